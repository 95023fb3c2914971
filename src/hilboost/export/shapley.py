"""Shapley values of the predictions of additive models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.shapley import (
    MOST_PLAYERS,
    LeafPaths,
    add_interventional,
    add_path_dependent,
    leaf_paths,
    node_counts,
)
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.packages import required
from hilboost.encoders import Encoding
from hilboost.export.sampled_shapley import sampled_values
from hilboost.learners.tree import Tree
from hilboost.learners.tree.tree import flat_trees
from hilboost.model.additive import AdditiveModel
from hilboost.model.fitted import FittedModel

_CHUNK = 1024  # rows


@dataclass(frozen=True)
class ShapValues:
    """Shapley values of raw predictions.

    Attributes
    ----------
    values : (n, d) or (n, d, r) float64
        Contribution of each column of ``X`` to each raw prediction.
    base_values : (n,) or (n, r) float64
        The mean raw prediction of the background, for every row.  Together with the values of a
        row, it adds up to the raw prediction of the row.
    data : (n, d) array
        The rows.
    feature_names : list of str
    standard_errors : array of the shape of ``values``, or None
        Of the values of stages that are neither trees nor sums over columns, which are estimated;
        ``None`` if there are none, and all values are exact.
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]
    standard_errors: Floats | None = None

    def explanation(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of shap.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        MissingPackage
            The package shap is not installed.
        """
        shap = required("shap", "explanation()")
        return shap.Explanation(
            self.values, self.base_values, self.data, feature_names=self.feature_names
        )


@dataclass(frozen=True)
class Game:
    """What is divided among the columns, and how.

    Attributes
    ----------
    path_dependent : bool
        Whether trees divide their outputs by the numbers of background rows in their nodes.
    n_orders : int
        Number of random orders for stages that are neither trees nor sums over columns.
    """

    path_dependent: bool
    n_orders: int


def shapley_values(
    fitted: FittedModel, X: Floats, background: Floats, game: Game, n_threads: int
) -> tuple[Floats, Floats, Floats | None]:
    """Compute Shapley values of raw predictions.

    Parameters
    ----------
    fitted : FittedModel
    X, background : (n, d), (m, d) float32 or float64
        Validated inputs.
    game : Game
    n_threads : int

    Returns
    -------
    values : (n, d, r) float64
    base : (r,) float64
        Mean raw prediction of the background.
    standard_errors : (n, d, r) float64 or None
        ``None`` if all values are exact.
    """
    base = fitted.predict_raw(background, n_threads).mean(axis=0)
    d = X.shape[1]
    X, background = _matrix(fitted.encode_inputs(X)), _matrix(fitted.encode_inputs(background))
    players = _players(fitted.encoding, d)
    values = np.zeros((len(X), len(players.shares), len(base)))
    terms = [term for stage in fitted.model.stages for term in stage.terms]
    trees = [term for term in terms if term.model.family == "trees"]
    if trees:
        path_dependent = game.path_dependent
        _add_trees(values, trees, X, background, players.of_column, path_dependent, n_threads)
    others = [
        term
        for term in terms
        if term.model.family != "trees" and not _add_effects(values, term, X, background, players)
    ]
    errors = None
    if others:
        rest = AdditiveModel(np.zeros(len(base)), (Stage(tuple(others)),))
        columns, seed = players.of_column, fitted.seed
        found = sampled_values(
            lambda rows: rest.predict_raw(rows, n_threads),
            *(X, background, columns, game.n_orders, seed),
        )
        values += found.values
        errors = np.sqrt(np.einsum("npr,pd->ndr", found.variances, players.shares**2))
    return np.einsum("npr,pd->ndr", values, players.shares), base, errors


def _matrix(X: Floats) -> Floats:
    return np.ascontiguousarray(X, dtype=np.float64)


def _add_effects(
    values: Floats, term: Term, X: Floats, background: Floats, players: _Players
) -> bool:
    """Add the values of a sum over columns to (n, n_players, r); whether the term is one."""
    effects, of_others = (term.model.column_effects(rows) for rows in (X, background))
    if effects is None or of_others is None:
        return False
    effects = effects - of_others.mean(axis=0)
    for column, player in enumerate(players.of_column):
        values[:, player, term.columns] += term.coefficient * effects[:, column]
    return True


@dataclass(frozen=True)
class _Players:
    """The players of a game, as which the columns of the base models count.

    Attributes
    ----------
    of_column : (width,) int32
        The player of each column: the column of ``X`` that it is computed from.  A column computed
        from two columns is a player of its own.
    shares : (n_players, d) float64
        Fraction of the value of each player that belongs to each column of ``X``.
    """

    of_column: NDArray[np.int32]
    shares: Floats


def _players(encoding: Encoding | None, d: int) -> _Players:
    of_column = list(range(d))
    shares = list(np.eye(d))
    pairs: dict[tuple[int, ...], int] = {}
    statistics = () if encoding is None else encoding.statistics
    for origin in (origin for one in statistics for origin in one.origins):
        if len(origin) == 1:
            of_column.append(origin[0])
            continue
        if origin not in pairs:
            pairs[origin] = len(shares)
            shares.append(np.eye(d)[list(origin)].mean(axis=0))
        of_column.append(pairs[origin])
    return _Players(np.array(of_column, dtype=np.int32), np.array(shares))


def _add_trees(
    values: Floats,
    terms: Sequence[Term],
    X: Floats,
    background: Floats,
    player_of_column: NDArray[np.int32],
    path_dependent: bool,
    n_threads: int,
) -> None:
    """Add the values of the players of all trees to (n, n_players, r)."""
    models: list[Any] = [term.model for term in terms]
    trees = flat_trees(models)
    paths = [_paths(trees, t, player_of_column) for t in range(len(models))]
    leaf_values = [_leaf_values(term) for term in terms]
    counts = np.zeros(len(trees.child), dtype=np.int64)
    if path_dependent:
        node_counts(background, trees, 0, len(background), counts)
    points, masses = _gauss_rules()
    factors = _factors()

    def work(begin: int) -> None:
        rows = begin, min(begin + _CHUNK, len(X))
        for t, term in enumerate(terms):
            last = leaf_values[t], term.columns.start, *rows, values
            if path_dependent:
                add_path_dependent(X, counts, trees, t, paths[t], points, masses, *last)
            else:
                add_interventional(X, background, trees, t, paths[t], factors, *last)

    with ThreadTeam(n_threads) as team:
        team.map(work, range(0, len(X), _CHUNK))


def _paths(trees: Any, tree: int, player_of_column: NDArray[np.int32]) -> LeafPaths:
    size = int(trees.roots[tree + 1] - trees.roots[tree])
    n_leaves = (size + 1) // 2
    most = n_leaves * int(trees.depths[tree])
    paths = LeafPaths(
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.bool_),
        np.empty(most, dtype=np.int32),
        np.empty(n_leaves + 1, dtype=np.int64),
        np.empty(most, dtype=np.int32),
        np.empty(n_leaves + 1, dtype=np.int64),
    )
    leaf_paths(trees, tree, player_of_column, np.empty(size, dtype=np.int64), paths)
    if np.diff(paths.first_slot).max() > MOST_PLAYERS:
        raise IncompatibleParts(
            f"shap_values supports paths of up to {MOST_PLAYERS} different columns, and a tree of "
            "this model has a longer one; limit max_depth."
        )
    return paths


def _leaf_values(term: Term) -> Floats:
    """Values of the leaves in the order of their nodes, coefficients multiplied in."""
    tree: Any = term.model
    own: Tree = tree
    numbers = own.leaf_number[own.leaf_number >= 0]
    return np.ascontiguousarray(term.coefficient * own.leaf_values[numbers])


@cache
def _factors() -> Floats:
    """``(a - 1)! b! / (a + b)!`` for up to ``MOST_PLAYERS`` players; row 0 is not used."""
    most = MOST_PLAYERS + 1
    table = np.zeros((most, most))
    for a in range(1, most):
        for b in range(most - a):
            table[a, b] = factorial(a - 1) * factorial(b) / factorial(a + b)
    return table


@cache
def _gauss_rules() -> tuple[Floats, Floats]:
    """Gauss rules on [0, 1], exact for products of up to ``MOST_PLAYERS`` linear factors."""
    most = MOST_PLAYERS + 1
    points, masses = np.zeros((most, most // 2 + 1)), np.zeros((most, most // 2 + 1))
    for n_players in range(1, most):
        size = (n_players + 1) // 2
        at, mass = np.polynomial.legendre.leggauss(size)
        points[n_players, :size], masses[n_players, :size] = (at + 1) / 2, mass / 2
    return points, masses

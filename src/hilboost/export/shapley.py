"""Shapley values of the predictions of additive models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, IncompatibleParts, warn_caller
from hilboost.core.packages import required
from hilboost.core.records import brief_repr
from hilboost.encoders.encoding import Encoding
from hilboost.engine import (
    MOST_PLAYERS,
    GaussRules,
    LeafPaths,
    Tree,
    TreeGame,
    add_interactions,
    add_values,
    flat_trees,
    leaf_paths,
)
from hilboost.export.sampled_shapley import sampled_values
from hilboost.model.additive import AdditiveModel
from hilboost.model.fitted import FittedModel


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

    __repr__ = brief_repr

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
class ShapInteractions:
    """Shapley interaction values of raw predictions.

    Attributes
    ----------
    values : (n, d, d) or (n, d, d, r) float64
        Symmetric.  Outside of the diagonal, half of what two columns contribute together beyond
        their single contributions; on the diagonal, what a column contributes alone.  The sum over
        one of the columns is the Shapley value of the other.
    base_values : (n,) or (n, r) float64
        The mean raw prediction of the background, for every row.
    data : (n, d) array
        The rows.
    feature_names : list of str
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]

    __repr__ = brief_repr


_TOLERANCE = 0.05  # largest standard error, in standard deviations of the predictions
_FEWEST_ORDERS, _MOST_COST = 32, 4 * 10**8  # operations of predictions
_CHUNK = 1024  # rows


def shapley_values(
    fitted: FittedModel,
    X: Floats,
    background: Floats,
    path_dependent: bool,  # whether trees count the background rows in their nodes
    n_orders: int | None,  # of estimated values; None: by standard errors and cost
    n_threads: int,
) -> tuple[Floats, Floats, Floats | None]:
    """Compute Shapley values of raw predictions.

    Returns values (n, d, r), base (r,), and standard errors (n, d, r), or None if all are exact.
    """
    raw = fitted.predict_raw(background, n_threads)
    base, tolerance = raw.mean(axis=0), _TOLERANCE * raw.std(axis=0)
    d = X.shape[1]
    X, background = _matrix(fitted.encode_inputs(X)), _matrix(fitted.encode_inputs(background))
    players = _players(fitted.encoding, d)
    values = np.zeros((len(X), len(players.shares), len(base)))
    terms = [term for stage in fitted.model.stages for term in stage.terms]
    trees = [term for term in terms if term.model.family == "trees"]
    if trees:
        forest = _Forest.of(trees, X, background, players.of_column, path_dependent)
        forest.add_values(values, n_threads)
    rest = [term for term in terms if term.model.family != "trees"]
    others = [one for one in rest if not _add_effects(values, one, X, background, players)]
    errors = None
    if others:
        model = AdditiveModel(np.zeros(len(base)), (Stage(tuple(others)),))
        cost = 2 * X.size * model.cost_per_row  # of one order
        most = max(_FEWEST_ORDERS, _MOST_COST // max(cost, 1))
        limits = (_FEWEST_ORDERS, most) if n_orders is None else (n_orders, n_orders)
        found = sampled_values(
            lambda rows: model.predict_raw(rows, n_threads),
            *(X, background, players.of_column, limits, tolerance, fitted.seed),
        )
        values += found.values
        errors = np.sqrt(np.einsum("npr,pd->ndr", found.variances, players.shares**2))
        if n_orders is None and (errors > tolerance).any():
            _warn_of_errors(errors, raw)
    return np.einsum("npr,pd->ndr", values, players.shares), base, errors


def _warn_of_errors(errors: Floats, raw: Floats) -> None:
    """Warn that the chosen number of orders left large standard errors (n, d, r)."""
    spread = raw.std(axis=0)
    share = np.divide(errors, spread, out=np.zeros_like(errors), where=spread > 0)
    largest = np.unravel_index(share.argmax(), share.shape)
    warn_caller(
        f"the largest standard error of the estimated Shapley values, {errors[largest]:.2g}, is "
        f"{share[largest]:.0%} of the standard deviation of the predictions of the background; "
        "explain fewer rows, or set n_orders: a fourfold number halves the errors.",
        DataWarning,
    )


def interaction_values(
    fitted: FittedModel, X: Floats, background: Floats, path_dependent: bool, n_threads: int
) -> tuple[Floats, Floats]:
    """Compute interaction values (n, d, d, r) of raw predictions, and the base (r,)."""
    base = fitted.predict_raw(background, n_threads).mean(axis=0)
    d = X.shape[1]
    X, background = _matrix(fitted.encode_inputs(X)), _matrix(fitted.encode_inputs(background))
    players = _players(fitted.encoding, d)
    n_players = len(players.shares)
    alone = np.zeros((len(X), n_players, len(base)))
    terms = [term for stage in fitted.model.stages for term in stage.terms]
    trees = [term for term in terms if term.model.family == "trees"]
    for term in terms:
        sums = term.model.family == "trees" or _add_effects(alone, term, X, background, players)
        if not sums:
            raise IncompatibleParts(
                "shap_interaction_values supports trees and linear functions, and this model has "
                "other stages; use learner='tree', or shap_values."
            )
    pairs = np.zeros((len(X), n_players, n_players, len(base)))
    if trees:
        forest = _Forest.of(trees, X, background, players.of_column, path_dependent)
        forest.add_values(alone, n_threads)
        forest.add_pairs(pairs, n_threads)
    every = np.arange(n_players)
    pairs[:, every, every] = alone - pairs.sum(axis=2)
    shares = players.shares
    values: Floats = pairs
    if n_players > d:
        values = np.einsum("npqr,pd,qe->nder", pairs, shares, shares, optimize=True)
    return values, base


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
    """The players of a game, as which the columns of the base models count."""

    # (width,) int32: the player of each column: the column of ``X`` that it is computed from.  A
    # column computed from two columns is a player of its own.
    of_column: NDArray[np.int32]
    # (n_players, d) float64: fraction of the value of each player that belongs to each column of
    # ``X``
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


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees as arrays, the rows that they explain, and the paths and values of their leaves."""

    terms: Sequence[Term]
    X: Floats  # (n, width) float64
    background: Floats  # (m, width) float64
    path_dependent: bool
    trees: Any
    paths: list[LeafPaths]
    leaf_values: list[Floats]  # list of (n_leaves, r) float64
    # (n_nodes,) int64: rows of the background in the nodes; zeros for interventional values
    counts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        terms: Sequence[Term],
        X: Floats,
        background: Floats,
        player_of_column: NDArray[np.int32],
        path_dependent: bool,
    ) -> _Forest:
        """Convert trees."""
        models: list[Any] = [term.model for term in terms]
        trees = flat_trees(models)
        paths = [_paths(trees, t, player_of_column) for t in range(len(models))]
        counts = np.zeros(len(trees.child), dtype=np.int64)
        if path_dependent:
            counts = np.concatenate([tree.node_counts(tree.leaves(background)) for tree in models])
        leaf_values = [_leaf_values(term) for term in terms]
        return cls(terms, X, background, path_dependent, trees, paths, leaf_values, counts)

    def add_values(self, values: Floats, n_threads: int) -> None:
        """Add the values of the players of all trees to (n, n_players, r)."""
        rules, factors = _gauss_rules(), _factors()
        others = self.background[:0] if self.path_dependent else self.background

        def add(game: TreeGame, rows: slice) -> None:
            add_values(self.X[rows], others, self.counts, game, factors, rules, values[rows])

        self._for_blocks_of_rows(add, n_threads)

    def add_pairs(self, values: Floats, n_threads: int) -> None:
        """Add the interactions of the players of all trees to (n, n_players, n_players, r)."""
        rules = _gauss_rules()
        others = self.background[:0] if self.path_dependent else self.background

        def add(game: TreeGame, rows: slice) -> None:
            add_interactions(self.X[rows], others, self.counts, game, rules, values[rows])

        self._for_blocks_of_rows(add, n_threads)

    def _for_blocks_of_rows(self, add: Callable[[TreeGame, slice], None], n_threads: int) -> None:
        """Call ``add`` with each tree and a block of rows."""
        games = [
            TreeGame(self.trees, t, self.paths[t], self.leaf_values[t], term.columns.start)
            for t, term in enumerate(self.terms)
        ]

        def work(begin: int) -> None:
            for game in games:
                add(game, slice(begin, begin + _CHUNK))

        with ThreadTeam(n_threads) as team:
            team.map(work, range(0, len(self.X), _CHUNK))


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
def _gauss_rules() -> GaussRules:
    """Gauss rules on [0, 1], exact for products of up to ``MOST_PLAYERS`` linear factors."""
    most = MOST_PLAYERS + 1
    points, masses = np.zeros((most, most // 2 + 1)), np.zeros((most, most // 2 + 1))
    for n_players in range(1, most):
        size = (n_players + 1) // 2
        at, mass = np.polynomial.legendre.leggauss(size)
        points[n_players, :size], masses[n_players, :size] = (at + 1) / 2, mass / 2
    return GaussRules(points, masses)

"""Shapley values of any function of columns, estimated from random orders of the players."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

_DEGREE = 3
_FARTHEST = 3.0  # in standard deviations
_PENALTY = 0.01  # for each row of the background
_MOST_ENTRIES = 2**21  # of the rows that are evaluated together


@dataclass(frozen=True)
class Estimate:
    """Estimated Shapley values."""

    # (n, n_players, r) float64: for each row, they add up to the difference between its output and
    # the mean output of the background
    values: Floats
    variances: Floats  # (n, n_players, r) float64: squared standard errors


@dataclass(frozen=True)
class Surrogate:
    """A sum of polynomials of single columns, fitted to outputs of the background.

    Its Shapley values are known, so that only the remainder's values need be estimated.
    """

    center: Floats  # (width,) float64
    scale: Floats  # (width,) float64
    weights: Floats  # (width, degree, r) float64
    mean: Floats  # (width, degree) float64: mean powers of the background

    @classmethod
    def of(cls, background: Floats, outputs: Floats) -> Surrogate:
        """Fit the polynomials by ridge regression on rows (m, width) with outputs (m, r)."""
        known = np.isfinite(background)
        filled = np.where(known, background, 0.0)
        count = np.maximum(known.sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            center = filled.sum(axis=0) / count
            spread = np.sqrt(np.where(known, (filled - center) ** 2, 0.0).sum(axis=0) / count)
        usable = np.isfinite(spread) & (spread > 0)
        center, scale = np.where(usable, center, 0.0), np.where(usable, spread, 1.0)
        shape = (background.shape[1], _DEGREE, outputs.shape[1])
        empty = cls(center, scale, np.zeros(shape), np.zeros(shape[:2]))
        powers = empty._powers(background)
        mean = powers.mean(axis=0)
        A = (powers - mean).reshape(len(background), -1)
        gram = A @ A.T
        gram[np.diag_indices_from(gram)] += _PENALTY * len(background)
        solved = np.linalg.solve(gram, outputs - outputs.mean(axis=0))
        return cls(center, scale, (A.T @ solved).reshape(shape), mean)

    def _powers(self, X: Floats) -> Floats:
        """Powers of the standardized columns, (n, width, degree); zero for missing values."""
        with np.errstate(over="ignore"):
            Z = np.clip((X - self.center) / self.scale, -_FARTHEST, _FARTHEST)
        Z = np.nan_to_num(Z)
        return np.stack([Z**k for k in range(1, _DEGREE + 1)], axis=-1)

    def effects(self, X: Floats) -> Floats:
        """Additions of each column to the mean of the background, (n, width, r)."""
        return np.einsum("nwk,wkr->nwr", self._powers(X) - self.mean, self.weights, optimize=True)


def sampled_values(
    function: Callable[[Floats], Floats],  # maps rows (n, width) to outputs (n, r)
    X: Floats,  # (n, width) float64
    background: Floats,  # (m, width) float64
    player_of_column: NDArray[np.int32],  # (width,) int32
    # smallest and largest number of random orders of the players, at least 2.  Each of them and its
    # reverse start at one row of the background.
    n_orders: tuple[int, int],
    tolerance: Floats,  # (r,) float64: standard errors above which the number is doubled
    seed: int,
) -> Estimate:
    """Estimate interventional Shapley values of a function.

    The columns of a background row are replaced by the explained row's columns, one player
    after the other; the value of a player is the mean change of the output (Štrumbelj & Kononenko
    2014).  All rows have the same orders, so that the values of a row do not depend on the others.
    A sum of polynomials of single columns is divided exactly, and the orders only serve for what it
    leaves.  What is missing from the exact sum is divided among the players in proportion to their
    variances.  The cost is that of ``2 n n_orders (n_players + 1)`` predictions.
    """
    n_players = int(player_of_column.max()) + 1
    rng = np.random.default_rng(seed)
    outputs = function(background)
    base = outputs.mean(axis=0)
    surrogate = Surrogate.of(background, outputs)

    def remainder(rows: Floats) -> Floats:
        return function(rows) - surrogate.effects(rows).sum(axis=1)

    found = np.zeros((2, len(X), n_players, len(base)))
    shuffled, n, wanted = None, 0, n_orders[0]
    while True:
        orders = [rng.permutation(n_players) for _ in range(n, wanted)]
        if shuffled is None:
            shuffled = background[rng.permutation(len(background))]
        starts = shuffled[np.arange(n, wanted) % len(background)]
        _add_orders(found, remainder, X, starts, orders, player_of_column)
        n = wanted
        values = found[0] / n
        variances = np.maximum(found[1] / n - values * values, 0.0) / (n - 1)
        wanted = 2 * n
        if wanted > n_orders[1] or not (variances > tolerance**2).any():
            break
    effects = surrogate.effects(X)
    for column, player in enumerate(player_of_column):
        values[:, player] += effects[:, column]
    missing = function(X) - base - values.sum(axis=1)
    # Players without variance share the missing part only if there are no others.
    share = variances + np.finfo(np.float64).tiny
    share /= share.sum(axis=1, keepdims=True)
    return Estimate(values + share * missing[:, None], variances)


def _add_orders(
    found: Floats,  # (2, n, n_players, r) float64
    function: Callable[[Floats], Floats],
    X: Floats,
    starts: Floats,  # (n_orders, width) float64
    orders: Sequence[NDArray[np.int64]],
    player_of_column: NDArray[np.int32],
) -> None:
    """Add the mean additions of each order and its reverse, and their squares."""
    size = max(1, _MOST_ENTRIES // (found.shape[2] + 1) // X.shape[1])
    for begin in range(0, len(X), size):
        rows = slice(begin, begin + size)
        for order, start in zip(orders, starts, strict=True):
            walks = [order, order[::-1]]
            pair = [_changes(function, X[rows], start, walk, player_of_column) for walk in walks]
            mean = 0.5 * (pair[0] + pair[1])
            found[0, rows] += mean
            found[1, rows] += mean * mean


def _changes(
    function: Callable[[Floats], Floats],
    X: Floats,
    start: Floats,
    order: NDArray[np.int64],
    player_of_column: NDArray[np.int32],
) -> Floats:
    """Additions of each player in this order, (n, n_players, r)."""
    n, width = X.shape
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    steps = np.arange(len(order) + 1)[:, None, None]
    known = place[player_of_column] < steps  # (n_players + 1, 1, width)
    rows = np.where(known, X, start).reshape(-1, width)
    outputs = function(rows).reshape(len(order) + 1, n, -1)
    return np.diff(outputs, axis=0)[place].transpose(1, 0, 2)

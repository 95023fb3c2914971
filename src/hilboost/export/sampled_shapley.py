"""Shapley values of any function of columns, estimated from random orders of the players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

_MOST_ENTRIES = 2**21  # of the rows that are evaluated together


@dataclass(frozen=True)
class Estimate:
    """Estimated Shapley values.

    Attributes
    ----------
    values : (n, n_players, r) float64
        For each row, they add up to the difference between its output and the mean output of the
        background.
    variances : (n, n_players, r) float64
        Squared standard errors.
    """

    values: Floats
    variances: Floats


def sampled_values(
    function: Callable[[Floats], Floats],
    X: Floats,
    background: Floats,
    player_of_column: NDArray[np.int32],
    n_orders: int,
    seed: int,
) -> Estimate:
    """Estimate interventional Shapley values of a function.

    Parameters
    ----------
    function : callable
        Maps rows (n, width) to outputs (n, r).
    X, background : (n, width), (m, width) float64
    player_of_column : (width,) int32
    n_orders : int
        Number of random orders of the players, at least 2.  Each of them and its reverse start at
        one row of the background.
    seed : int

    Returns
    -------
    Estimate

    Notes
    -----
    The columns of a row of the background are replaced by those of the explained row, one player
    after the other; the value of a player is the mean change of the output (Štrumbelj & Kononenko
    2014).  All rows have the same orders, so that the values of a row do not depend on the others.
    What is missing from the exact sum is divided among the players in proportion to their
    variances.  The cost is that of ``2 n n_orders (n_players + 1)`` predictions.
    """
    n_players = int(player_of_column.max()) + 1
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n_players) for _ in range(n_orders)]
    starts = background[rng.permutation(len(background))[np.arange(n_orders) % len(background)]]
    base = function(background).mean(axis=0)
    found = np.zeros((2, len(X), n_players, len(base)))
    size = max(1, _MOST_ENTRIES // ((n_players + 1) * X.shape[1]))
    for begin in range(0, len(X), size):
        rows = slice(begin, begin + size)
        for order, start in zip(orders, starts, strict=True):
            walks = [order, order[::-1]]
            pair = [_changes(function, X[rows], start, walk, player_of_column) for walk in walks]
            mean = 0.5 * (pair[0] + pair[1])
            found[0, rows] += mean
            found[1, rows] += mean * mean
    values = found[0] / n_orders
    variances = np.maximum(found[1] / n_orders - values * values, 0.0) / (n_orders - 1)
    missing = function(X) - base - values.sum(axis=1)
    # Players without variance share what is missing only if there are no others.
    share = variances + np.finfo(np.float64).tiny
    share /= share.sum(axis=1, keepdims=True)
    return Estimate(values + share * missing[:, None], variances)


def _changes(
    function: Callable[[Floats], Floats],
    X: Floats,
    start: Floats,
    order: NDArray[np.int64],
    player_of_column: NDArray[np.int32],
) -> Floats:
    """What each player adds in this order, (n, n_players, r)."""
    n, width = X.shape
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    steps = np.arange(len(order) + 1)[:, None, None]
    known = place[player_of_column] < steps  # (n_players + 1, 1, width)
    rows = np.where(known, X, start).reshape(-1, width)
    outputs = function(rows).reshape(len(order) + 1, n, -1)
    return np.diff(outputs, axis=0)[place].transpose(1, 0, 2)

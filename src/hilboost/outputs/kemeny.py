"""The ranking that agrees best with weighted preferences between pairs (Kemeny's problem)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

EXACT_UP_TO = 8
"""Items up to which the best ranking is found for certain."""

_CELLS_AT_ONCE = 2**20


def best_orders(preference: Floats, start: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Orders with the greatest sum of preferences of earlier items over later ones.

    Parameters
    ----------
    preference : (n, K, K) float64
        Antisymmetric: how much item i should stand before item j.
    start : (n, K) int64 or None
        Orders known to be good, for more than ``EXACT_UP_TO`` items.

    Returns
    -------
    (n, K) int64
        Items, the best one first.

    Notes
    -----
    Up to ``EXACT_UP_TO`` items by dynamic programming over sets of items, O(n 2^K K).  Beyond, from
    the order of row sums (Borda's), and from ``start``, the best move of one item to another place
    is made for as long as one improves: O(n K²) a move; the better local optimum is taken.
    """
    n, K, _ = preference.shape
    few = K <= EXACT_UP_TO
    size = max(1, _CELLS_AT_ONCE // (K * 2**K if few else 8 * K**2))
    orders = np.empty((n, K), dtype=np.int64)
    for begin in range(0, n, size):
        rows = slice(begin, begin + size)
        if few:
            orders[rows] = _by_subsets(preference[rows])
        else:
            orders[rows] = _by_search(preference[rows], None if start is None else start[rows])
    return orders


def _by_subsets(preference: Floats) -> NDArray[np.int64]:
    """A set's best order is the best order of all but its last item, and then that item.

    Sets are numbers whose bits are items, so that every set comes after its subsets.
    """
    n, K, _ = preference.shape
    rows = np.arange(n)
    over = np.ascontiguousarray(preference.transpose(1, 2, 0))  # (K, K, n)
    gain = np.zeros((2**K, K, n))  # of putting an item behind all items of the set
    value = np.zeros((2**K, n))
    last = np.zeros((2**K, n), dtype=np.int64)
    for items in range(1, 2**K):
        lowest = (items & -items).bit_length() - 1
        gain[items] = gain[items & (items - 1)] + over[lowest]
        members = np.array([j for j in range(K) if items >> j & 1])
        before = items ^ (1 << members)
        values = value[before] + gain[before, members]  # (members, n)
        best = values.argmax(axis=0)
        value[items] = values[best, rows]
        last[items] = members[best]
    orders = np.empty((n, K), dtype=np.int64)
    left = np.full(n, 2**K - 1)
    for place in range(K - 1, -1, -1):
        orders[:, place] = last[left, rows]
        left ^= 1 << orders[:, place]
    return orders


def _by_search(preference: Floats, start: NDArray[np.int64] | None) -> NDArray[np.int64]:
    borda = np.argsort(-preference.sum(axis=2), axis=1, kind="stable")
    found = _improved(preference, borda)
    if start is None:
        return found
    other = _improved(preference, start)
    better = _value(preference, other) > _value(preference, found)
    return np.where(better[:, None], other, found)


def _sorted(preference: Floats, orders: NDArray[np.int64]) -> Floats:
    """Preferences with the items in these orders, (n, K, K)."""
    rows = np.arange(len(orders))[:, None, None]
    return preference[rows, orders[:, :, None], orders[:, None, :]]


def _value(preference: Floats, orders: NDArray[np.int64]) -> Floats:
    """(n,)"""
    return np.triu(_sorted(preference, orders)).sum(axis=(1, 2))


def _improved(preference: Floats, start: NDArray[np.int64]) -> NDArray[np.int64]:
    n, K = start.shape
    place = np.arange(K)
    orders = start.copy()
    least = 1e-12 * np.abs(preference).sum(axis=(1, 2))
    active = np.arange(n)
    while len(active):
        now = orders[active]
        over = _sorted(preference[active], now)
        # Moving the item at place a to place b turns round the pairs with all items between.
        total = over.cumsum(axis=2)
        gain = np.einsum("iaa->ia", total)[:, :, None] - total + np.tril(over, -1)
        best = gain.reshape(len(active), -1).argmax(axis=1)
        improves = gain.reshape(len(active), -1)[np.arange(len(active)), best] > least[active]
        active = active[improves]
        a, b = (ends[improves, None] for ends in np.divmod(best, K))
        source = place + ((a <= place) & (place < b)) - ((b < place) & (place <= a))
        source = np.where(place == b, a, source)
        orders[active] = np.take_along_axis(now[improves], source, axis=1)
    return orders

"""Optimal rankings for weighted pairwise preferences (Kemeny's problem)."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats, Ints

EXACT_UP_TO = 8
"""Maximum number of items for which the optimal ranking is guaranteed."""

_CELLS_AT_ONCE = 2**20


def best_orders(preference: Floats, start: Ints | None = None) -> Ints:
    """Find the orders (n, K) that maximize the sum of preferences of earlier items over later ones.

    ``preference`` (n, K, K) is antisymmetric.  Up to ``EXACT_UP_TO`` items, the solution is found
    by dynamic programming over sets of items in O(n 2^K K).  Beyond that, a local search starts
    from the order of the row sums (Borda count) and from ``start``.  It repeats the best move of a
    single item until no move improves the order, in O(n K²) per move.  The better local optimum is
    returned.
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


def _by_subsets(preference: Floats) -> Ints:
    """Solve by dynamic programming: append the best last item to the best order of the others.

    Sets are encoded as bit masks, so each set comes after its subsets.
    """
    n, K, _ = preference.shape
    rows = np.arange(n)
    over = np.ascontiguousarray(preference.transpose(1, 2, 0))  # (K, K, n)
    gain = np.zeros((2**K, K, n))  # gain of placing an item after all items of the set
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


def _by_search(preference: Floats, start: Ints | None) -> Ints:
    borda = np.argsort(-preference.sum(axis=2), axis=1, kind="stable")
    found = _improved(preference, borda)
    if start is None:
        return found
    other = _improved(preference, start)
    better = _value(preference, other) > _value(preference, found)
    return np.where(better[:, None], other, found)


def _sorted(preference: Floats, orders: Ints) -> Floats:
    """Reorder the preferences by the given orders, (n, K, K)."""
    rows = np.arange(len(orders))[:, None, None]
    return preference[rows, orders[:, :, None], orders[:, None, :]]


def _value(preference: Floats, orders: Ints) -> Floats:
    """Compute the sum of preferences of each order, (n,)."""
    return np.triu(_sorted(preference, orders)).sum(axis=(1, 2))


def _improved(preference: Floats, start: Ints) -> Ints:
    n, K = start.shape
    place = np.arange(K)
    orders = start.copy()
    least = 1e-12 * np.abs(preference).sum(axis=(1, 2))
    active = np.arange(n)
    while len(active):
        now = orders[active]
        over = _sorted(preference[active], now)
        # Moving the item at position a to b reverses its pairs with all items in between.
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

"""Strings with given n-gram counts: Eulerian paths of the de Bruijn graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def eulerian_path(grams: Sequence[tuple[int, ...]], counts: NDArray[np.int64]) -> list[int] | None:
    """Find a string that contains each n-gram a given number of times, and no other n-grams.

    Each occurrence of an n-gram is an edge from its first n - 1 tokens to its last n - 1 tokens.

    ``counts``: (m,) int64: at least one is positive.

    Returns list of int or None: the tokens; ``None`` if there is no such string.

    Notes
    -----
    Hierholzer's algorithm, in time linear in the sum of the counts.
    """
    ahead: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    surplus: Counter[tuple[int, ...]] = Counter()
    for gram, count in sorted(zip(grams, counts.tolist(), strict=True), reverse=True):
        if count:
            ahead.setdefault(gram[:-1], []).extend([gram[1:]] * count)
            surplus[gram[:-1]] += count
            surplus[gram[1:]] -= count
    odd = sorted(node for node, value in surplus.items() if value)
    if odd and sorted(surplus[node] for node in odd) != [-1, 1]:
        return None
    start = next((node for node in odd if surplus[node] == 1), min(ahead))
    stack, path = [start], []
    while stack:
        if ahead.get(stack[-1]):
            stack.append(ahead[stack[-1]].pop())
        else:
            path.append(stack.pop())
    if len(path) != counts.sum() + 1:
        return None
    path.reverse()
    if start == ():  # 1-grams: all edges are loops at the same node
        return [gram[0] for gram, count in zip(grams, counts, strict=True) for _ in range(count)]
    return [*start, *(node[-1] for node in path[1:])]

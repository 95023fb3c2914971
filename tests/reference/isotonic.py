"""Naive twin of :mod:`hilboost.backends.isotonic`: the min-max formula over sets of leaves."""

from itertools import combinations

import numpy as np


def pairs_in_order(children, leaf_number, directions):
    """(i, j) for which leaf i must not lie above leaf j."""

    def below(node):
        if children[node] == node:
            return [leaf_number[node]]
        return below(children[node]) + below(children[node] + 1)

    pairs = []
    for node, direction in enumerate(directions):
        if direction:
            sides = below(children[node]), below(children[node] + 1)
            low, high = sides[:: int(direction)]
            pairs += [(i, j) for i in low for j in high]
    return pairs


def nearest_in_order(children, leaf_number, directions, weights, values):
    """Robertson, Wright and Dykstra, *Order Restricted Statistical Inference*, 1988, Th. 1.4.4."""
    pairs, n = pairs_in_order(children, leaf_number, directions), len(values)
    subsets = [set(s) for k in range(1, n + 1) for s in combinations(range(n), k)]
    upper = [s for s in subsets if all(j in s for i, j in pairs if i in s)]
    lower = [s for s in subsets if all(i in s for i, j in pairs if j in s)]

    def mean(leaves):
        leaves = sorted(leaves)
        return np.average(values[leaves], weights=weights[leaves])

    values[:] = [
        max(min(mean(up & low) for low in lower if leaf in low) for up in upper if leaf in up)
        for leaf in range(n)
    ]

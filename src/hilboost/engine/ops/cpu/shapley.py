"""Shapley values of the columns of a tree, leaf by leaf.

The players of a leaf are the columns of its path.  A row has a pattern of bits, one for each
player: whether the row satisfies all conditions of the path on this column.  The Shapley values of
a leaf depend on the row only through its pattern, so they are computed once for each pattern::

    path: age > 30, income > 5, age <= 50      players: age, income

    row (age 40, income 3)  ->  pattern 1 0    row (age 20, income 9)  ->  pattern 0 1
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, compiled, inner
from hilboost.engine.ops.cpu.traverse import FlatTrees, goes_right


class LeafPaths(NamedTuple):
    """Conditions on the paths to the leaves of one tree."""

    # (n_conditions,) int32: the split; from the leaf up, for leaves in the order of their nodes
    node: NDArray[np.int32]
    right: NDArray[np.bool_]  # (n_conditions,) bool: whether the path goes right
    slot: NDArray[np.int32]  # (n_conditions,) int32: place of the player among the leaf's players
    start: NDArray[np.int64]  # (n_leaves + 1,) int64: first condition of each leaf
    player: NDArray[np.int32]  # (n_slots,) int32
    first_slot: NDArray[np.int64]  # (n_leaves + 1,) int64


@compiled
def leaf_paths(trees, tree, player_of_column, parent, paths):
    """Write the paths of one tree.

    ``player_of_column``: (d,) int32. ``parent``: (n_nodes of the tree,) int64, scratch.
    """
    root, end = trees.roots[tree], trees.roots[tree + 1]
    for node in range(root, end):
        child = trees.child[node]
        if child != node:
            parent[child - root], parent[child + 1 - root] = node, node
    leaf, at, n_slots = 0, 0, 0
    for node in range(root, end):
        if trees.child[node] != node:
            continue
        paths.start[leaf], paths.first_slot[leaf] = at, n_slots
        first, here = n_slots, node
        while here != root:
            above = parent[here - root]
            player = player_of_column[trees.column[above]]
            slot = first
            while slot < n_slots and paths.player[slot] != player:
                slot += 1
            if slot == n_slots:
                paths.player[slot] = player
                n_slots += 1
            paths.node[at], paths.slot[at] = above, slot - first
            paths.right[at] = here == trees.child[above] + 1
            at, here = at + 1, above
        leaf += 1
    paths.start[leaf], paths.first_slot[leaf] = at, n_slots


MOST_PLAYERS = 62
_TABLE_BITS = 10  # patterns of more players are not kept


class TreeGame(NamedTuple):
    """A tree whose output is shared among the players, and where its values are added."""

    trees: FlatTrees
    tree: int  # its number
    paths: LeafPaths
    leaf_values: NDArray[np.float64]  # (n_leaves, r) float64, in the order of the nodes
    first_output: int  # of the leaf values in the Shapley values


class GaussRules(NamedTuple):
    """Quadrature on [0, 1] that is exact for polynomials of so many factors as a row's number."""

    points: NDArray[np.float64]  # (most + 1, most // 2 + 1) float64
    masses: NDArray[np.float64]


@inner
def _directions(X, trees, tree, right):
    """Whether rows go right at the splits of a tree, (n_nodes of the tree, n) uint8."""
    root = trees.roots[tree]
    for node in range(root, trees.roots[tree + 1]):
        if trees.child[node] != node:
            column, here = trees.column[node], right[node - root]
            for k in range(X.shape[0]):
                here[k] = goes_right(np.float64(X[k, column]), node, trees)


@inner
def _patterns(paths, leaf, root, right, count, patterns):
    """Patterns of the first rows at a leaf, (count,) uint64; return that of the leaf's own rows."""
    n_players = uint64(paths.first_slot[leaf + 1] - paths.first_slot[leaf])
    everything = (uint64(1) << n_players) - uint64(1)
    for k in range(count):
        patterns[k] = everything
    for condition in range(paths.start[leaf], paths.start[leaf + 1]):
        others = everything ^ (uint64(1) << uint64(paths.slot[condition]))
        here, wanted = right[paths.node[condition] - root], paths.right[condition]
        for k in range(count):
            patterns[k] &= everything if (here[k] != 0) == wanted else others
    return everything


@inner
def _bits(word):
    count = 0
    while word != uint64(0):
        word &= word - uint64(1)
        count += 1
    return count


@inner
def _add_leaf(paths, leaf, table, at, value, first_output, row):
    """Add the values of a leaf's players, times the leaf's outputs, to a row (n_players, r)."""
    first = paths.first_slot[leaf]
    for i in range(paths.first_slot[leaf + 1] - first):
        player = paths.player[first + i]
        for output in range(value.shape[0]):
            row[player, first_output + output] += table[at + i] * value[output]


@inner
def _distinct(patterns, count, seen, times):
    """Write the distinct patterns and how often each occurs; return their number."""
    n_seen = 0
    for k in range(count):
        place = 0
        while place < n_seen and seen[place] != patterns[k]:
            place += 1
        if place == n_seen:
            seen[place], times[place] = patterns[k], 0
            n_seen += 1
        times[place] += 1
    return n_seen


@inner
def _interventional(pattern, everything, n_players, seen, times, factors, values):
    """Mean over the background of the values of the players of a leaf with output 1.

    A background row counts if every condition is satisfied by it or by the explained row.  The
    ``a`` players satisfied only by the explained row share the leaf, the ``b`` players satisfied
    only by the background row share its loss.
    """
    for i in range(n_players):
        values[i] = 0.0
    b = _bits(everything & ~pattern)
    total = 0
    for place in range(seen.shape[0]):
        total += times[place]
    for place in range(seen.shape[0]):
        other = seen[place]
        if (pattern | other) != everything:
            continue
        a = _bits(everything & ~other)
        gain = factors[a, b] * times[place] / total
        loss = factors[b, a] * times[place] / total
        for i in range(n_players):
            bit = uint64(1) << uint64(i)
            if (other & bit) == uint64(0):
                values[i] += gain
            elif (pattern & bit) == uint64(0):
                values[i] -= loss


@inner
def _shares(paths, leaf, trees, counts, shares):
    """Fraction of the rows that satisfy each player's conditions, split by split, (n_players,)."""
    shares[:] = 1.0
    for condition in range(paths.start[leaf], paths.start[leaf + 1]):
        node = paths.node[condition]
        taken = trees.child[node] + paths.right[condition]
        whole = counts[node]
        share = counts[taken] / whole if whole > 0 else 0.5
        shares[paths.slot[condition]] *= share


@inner
def _path_dependent(pattern, n_players, shares, rules, before, values):
    """Values of the players of a leaf with output 1, by Gauss quadrature.

    The value of player i is ``(o_i - w_i) ∫ Π_{j ≠ i} (w_j (1 - t) + o_j t) dt`` over [0, 1] with
    the bits ``o`` of the pattern and the shares ``w``; the rule is exact for this polynomial.
    """
    for i in range(n_players):
        values[i] = 0.0
    for q in range((n_players + 1) // 2):
        t = rules.points[n_players, q]
        product = rules.masses[n_players, q]
        for i in range(n_players):
            before[i] = product
            own = t if (pattern >> uint64(i)) & uint64(1) else 0.0
            product *= shares[i] * (1.0 - t) + own
        product = 1.0
        for i in range(n_players - 1, -1, -1):
            values[i] += before[i] * product
            own = t if (pattern >> uint64(i)) & uint64(1) else 0.0
            product *= shares[i] * (1.0 - t) + own
    for i in range(n_players):
        own = 1.0 if (pattern >> uint64(i)) & uint64(1) else 0.0
        values[i] *= own - shares[i]


@allocating
def add_values(X, background, counts, game, factors, rules, shapley):
    """Add the Shapley values of one tree: interventional ones, or without a background others.

    ``X``: (n, d) float32 or float64. ``background``: (m, d) float32 or float64: the value of a set
    of players is the mean output over these rows, with the players' columns taken from the
    explained row. ``counts``: (n_nodes,) int64: rows in the nodes of the forest: path-dependent
    values (Lundberg et al. 2020, Algorithm 1) let a row go both ways with the fractions of these
    where a column is no player. ``game``: TreeGame. ``factors``: (most + 1, most + 1) float64: ``(a
    - 1)! b! / (a + b)!``. ``rules``: GaussRules. ``shapley``: (n, n_players, r) float64.

    Notes
    -----
    Cost O(n · conditions) for each tree, and O(m) more for each leaf and pattern.
    """
    trees, tree, paths, leaf_values, first_output = game
    root, size = trees.roots[tree], trees.roots[tree + 1] - trees.roots[tree]
    count, m = X.shape[0], background.shape[0]
    right, right_of_others = np.zeros((size, count), np.uint8), np.zeros((size, m), np.uint8)
    _directions(X, trees, tree, right)
    _directions(background, trees, tree, right_of_others)
    patterns, seen = np.empty(max(count, m), np.uint64), np.empty(m, np.uint64)
    times, shares, before = np.empty(m, np.int64), np.empty(MOST_PLAYERS), np.empty(MOST_PLAYERS)
    table = np.empty((1 << _TABLE_BITS) * _TABLE_BITS + MOST_PLAYERS)
    known = np.empty(1 << _TABLE_BITS, np.bool_)
    for leaf in range(leaf_values.shape[0]):
        n_players, n_seen = paths.first_slot[leaf + 1] - paths.first_slot[leaf], 0
        if m > 0:
            _patterns(paths, leaf, root, right_of_others, m, patterns)
            n_seen = _distinct(patterns, m, seen, times)
        else:
            _shares(paths, leaf, trees, counts, shares)
        everything = _patterns(paths, leaf, root, right, count, patterns)
        kept = n_players <= _TABLE_BITS
        known[:] = False
        for k in range(count):
            pattern = patterns[k]
            at = np.int64(pattern) * n_players if kept else 0
            if not kept or not known[np.int64(pattern)]:
                values, others, often = table[at:], seen[:n_seen], times[:n_seen]
                if m > 0:
                    _interventional(pattern, everything, n_players, others, often, factors, values)
                else:
                    _path_dependent(pattern, n_players, shares, rules, before, values)
                if kept:
                    known[np.int64(pattern)] = True
            row = shapley[k]
            _add_leaf(paths, leaf, table, at, leaf_values[leaf], first_output, row)


@inner
def _pairs(pattern, n_players, shares, mass, rules, before, values):
    """Add the interactions of the players of a leaf with output ``mass``, (n_players ** 2,).

    That of players i and j is ``½ (o_i - w_i) (o_j - w_j) ∫ Π_{k ≠ i, j} (w_k (1 - t) + o_k t) dt``
    over [0, 1], as in :func:`_path_dependent`.
    """
    for q in range((n_players + 1) // 2):
        t = rules.points[n_players, q]
        for i in range(n_players):
            own = 1.0 if (pattern >> uint64(i)) & uint64(1) else 0.0
            product = 0.5 * mass * rules.masses[n_players, q] * (own - shares[i])
            for j in range(n_players):
                before[j] = product
                if j != i:
                    own = t if (pattern >> uint64(j)) & uint64(1) else 0.0
                    product *= shares[j] * (1.0 - t) + own
            product = 1.0
            for j in range(n_players - 1, -1, -1):
                if j != i:
                    own = 1.0 if (pattern >> uint64(j)) & uint64(1) else 0.0
                    values[i * n_players + j] += before[j] * product * (own - shares[j])
                    product *= shares[j] * (1.0 - t) + t * own


@allocating
def add_interactions(X, background, counts, game, rules, shapley):
    """Add the Shapley interactions of pairs of different players in one tree.

    ``X``: (n, d) float32 or float64. ``background``: (m, d) float32 or float64: of the
    interventional values; without rows, ``counts`` give the path-dependent ones. ``game``:
    TreeGame. ``rules``: GaussRules. ``shapley``: (n, n_players, n_players, r) float64.
    """
    trees, tree, paths, leaf_values, first_output = game
    root, size = trees.roots[tree], trees.roots[tree + 1] - trees.roots[tree]
    count, m = X.shape[0], background.shape[0]
    right, right_of_others = np.zeros((size, count), np.uint8), np.zeros((size, m), np.uint8)
    _directions(X, trees, tree, right)
    _directions(background, trees, tree, right_of_others)
    patterns, seen = np.empty(max(count, m), np.uint64), np.empty(m, np.uint64)
    times, order = np.empty(m, np.int64), np.empty(count, np.int64)
    shares, before = np.empty(MOST_PLAYERS), np.empty(MOST_PLAYERS)
    values = np.empty(MOST_PLAYERS * MOST_PLAYERS)
    for leaf in range(leaf_values.shape[0]):
        n_players = paths.first_slot[leaf + 1] - paths.first_slot[leaf]
        n_seen = 1
        if m > 0:
            _patterns(paths, leaf, root, right_of_others, m, patterns)
            n_seen = _distinct(patterns, m, seen, times)
        else:
            _shares(paths, leaf, trees, counts, shares)
        _patterns(paths, leaf, root, right, count, patterns)
        order[:] = np.argsort(patterns[:count])
        for k in range(count):
            pattern = patterns[order[k]]
            if k == 0 or pattern != patterns[order[k - 1]]:
                values[: n_players * n_players] = 0.0
                for place in range(n_seen):
                    mass = 1.0
                    if m > 0:
                        mass = times[place] / m
                        for i in range(n_players):
                            bit = (seen[place] >> uint64(i)) & uint64(1)
                            shares[i] = 1.0 if bit else 0.0
                    _pairs(pattern, n_players, shares, mass, rules, before, values)
            row = shapley[order[k]]
            first = paths.first_slot[leaf]
            for i in range(n_players):
                for j in range(n_players):
                    if i == j:
                        continue
                    value = values[i * n_players + j]
                    pair = row[paths.player[first + i], paths.player[first + j]]
                    for output in range(leaf_values.shape[1]):
                        pair[first_output + output] += value * leaf_values[leaf, output]

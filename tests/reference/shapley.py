"""Shapley values by the definition: the mean over all orders of the players, by subsets."""

from itertools import combinations
from math import factorial

import numpy as np
from tests.reference.traverse import goes_right


def leaf_paths(trees, tree, player_of_column, parent, paths):
    del parent
    root, end = trees.roots[tree], trees.roots[tree + 1]
    above = {}
    for node in range(root, end):
        if trees.child[node] != node:
            above[trees.child[node]] = (node, False)
            above[trees.child[node] + 1] = (node, True)
    conditions, players = [], []
    leaves = [node for node in range(root, end) if trees.child[node] == node]
    for leaf, node in enumerate(leaves):
        paths.start[leaf], paths.first_slot[leaf] = len(conditions), len(players)
        own, here = [], node
        while here in above:
            here, right = above[here]
            player = player_of_column[trees.column[here]]
            own += [] if player in own else [player]
            conditions.append((here, right, own.index(player)))
        players += own
    paths.start[len(leaves)], paths.first_slot[len(leaves)] = len(conditions), len(players)
    for k, (node, right, slot) in enumerate(conditions):
        paths.node[k], paths.right[k], paths.slot[k] = node, right, slot
    paths.player[: len(players)] = players


def _add(value, paths, leaf_values, row):
    """Shapley values of a game over the players of a tree, added to (n_players, r)."""
    players = sorted(set(paths.player[: paths.first_slot[len(leaf_values)]].tolist()))
    n = len(players)
    for player in players:
        others = [other for other in players if other != player]
        for size in range(n):
            weight = factorial(size) * factorial(n - 1 - size) / factorial(n)
            for chosen in combinations(others, size):
                row[player] += weight * (value({*chosen, player}) - value(set(chosen)))


def _add_pairs(value, paths, leaf_values, row):
    """Shapley interactions of a game over the players of a tree, added to (players, players, r)."""
    players = sorted(set(paths.player[: paths.first_slot[len(leaf_values)]].tolist()))
    n = len(players)
    for i, j in combinations(players, 2):
        others = [other for other in players if other not in (i, j)]
        for size in range(n - 1):
            weight = factorial(size) * factorial(n - size - 2) / factorial(n - 1) / 2
            for chosen in map(set, combinations(others, size)):
                both, none = value({*chosen, i, j}), value(chosen)
                difference = weight * (both - value({*chosen, i}) - value({*chosen, j}) + none)
                row[i, j] += difference
                row[j, i] += difference


def _leaf_numbers(trees, tree):
    nodes = range(trees.roots[tree], trees.roots[tree + 1])
    return {node: k for k, node in enumerate(n for n in nodes if trees.child[n] == n)}


def _players(trees, paths):
    nodes = paths.node[: paths.start[-1]]
    return dict(zip(trees.column[nodes].tolist(), _of_conditions(paths), strict=True))


def _of_conditions(paths):
    first = np.repeat(paths.first_slot[:-1], np.diff(paths.start))
    return paths.player[first + paths.slot[: len(first)]].tolist()


def _interventional(trees, tree, paths, leaf_values, background):
    """Worth of a set of players of a row: a mean over the background."""
    number, player_of = _leaf_numbers(trees, tree), _players(trees, paths)

    def output(x, z, chosen):
        node = trees.roots[tree]
        while trees.child[node] != node:
            column = trees.column[node]
            row = x if player_of[column] in chosen else z
            node = trees.child[node] + goes_right(row[column], node, trees)
        return leaf_values[number[node]]

    return lambda x, chosen: np.mean([output(x, z, chosen) for z in background], axis=0)


def _path_dependent(trees, tree, paths, leaf_values, counts):
    """Worth of a set of players of a row: a mean over leaves."""
    number, player_of = _leaf_numbers(trees, tree), _players(trees, paths)

    def output(x, node, chosen):
        child = trees.child[node]
        if child == node:
            return leaf_values[number[node]]
        column = trees.column[node]
        if player_of[column] in chosen:
            return output(x, child + goes_right(x[column], node, trees), chosen)
        left = counts[child] / counts[node] if counts[node] else 0.5
        return left * output(x, child, chosen) + (1 - left) * output(x, child + 1, chosen)

    return lambda x, chosen: output(x, trees.roots[tree], chosen)


def _rows(game, shapley):
    """What of each row's values belongs to the outputs of the tree."""
    width = game.leaf_values.shape[1]
    return shapley[..., game.first_output : game.first_output + width]


def _worth(background, counts, game):
    trees, tree, paths, leaf_values, _ = game
    of_values = _path_dependent if not len(background) else _interventional
    return of_values(trees, tree, paths, leaf_values, background if len(background) else counts)


def add_values(X, background, counts, game, factors, rules, shapley):
    del factors, rules
    value = _worth(background, counts, game)
    for x, row in zip(X, _rows(game, shapley), strict=True):
        _add(lambda chosen, x=x: value(x, chosen), game.paths, game.leaf_values, row)


def add_interactions(X, background, counts, game, rules, shapley):
    del rules
    value = _worth(background, counts, game)
    for x, row in zip(X, _rows(game, shapley), strict=True):
        _add_pairs(lambda chosen, x=x: value(x, chosen), game.paths, game.leaf_values, row)

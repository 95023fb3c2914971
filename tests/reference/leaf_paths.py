"""Paths to the leaves of a tree, from node to node."""


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

"""The table of the nodes of a growing tree."""

from hilboost.backends.compiled import compiled
from hilboost.backends.split import NO_GAIN

# Columns of ``nodes`` (n_nodes, N_NODE_FIELDS) int64.  COLUMN, BIN, MISSING_LEFT are the best split
# found so far while LEFT is -1, and the node's split after.
BEGIN, END, BUFFER, DEPTH, SLOT, COLUMN, BIN, MISSING_LEFT, LEFT, RIGHT = range(10)
N_NODE_FIELDS = 10
# ``control`` (int64): node to split (-1: stop), nodes so far.
NODE, N_NODES = 0, 1
CONTROL_SIZE = 2


@compiled
def choose_node(nodes, gains, n_nodes, max_leaves):
    """The open node with the largest gain, the first of equals; -1 where growth ends."""
    if (n_nodes + 1) // 2 >= max_leaves:
        return -1
    chosen = -1
    for i in range(n_nodes):
        if nodes[i, LEFT] < 0 and gains[i] > NO_GAIN and (chosen < 0 or gains[i] > gains[chosen]):
            chosen = i
    return chosen


@compiled
def open_children(node, n_left, nodes, gains, totals, left_totals, control):
    """Note a split: its two children are leaves that hold its rows."""
    left = control[N_NODES]
    begin, end = nodes[node, BEGIN], nodes[node, END]
    for child in (left, left + 1):
        nodes[child, BUFFER] = 1 - nodes[node, BUFFER]
        nodes[child, DEPTH] = nodes[node, DEPTH] + 1
        nodes[child, SLOT] = -1
        nodes[child, LEFT] = -1
        nodes[child, RIGHT] = -1
        gains[child] = NO_GAIN
    nodes[left, BEGIN], nodes[left, END] = begin, begin + n_left
    nodes[left + 1, BEGIN], nodes[left + 1, END] = begin + n_left, end
    for c in range(totals.shape[1]):
        totals[left, c] = left_totals[node, c]
        totals[left + 1, c] = totals[node, c] - left_totals[node, c]
    nodes[node, LEFT], nodes[node, RIGHT] = left, left + 1
    control[N_NODES] = left + 2

"""Operations on batches of nodes, in which the threads of a fit share the work of each node."""

from hilboost.backends.compiled import compiled
from hilboost.engine.ops.cpu.grow import search_node, settle_node
from hilboost.engine.ops.cpu.node_histogram import fill_histogram
from hilboost.engine.ops.cpu.nodes import LEFT_BEGIN, N_LEFT_HERE
from hilboost.engine.ops.cpu.partition import divide_rows
from hilboost.engine.ops.cpu.sync import barrier


@compiled
def partition_nodes(threads, batch, growth, found):
    """Divide the rows of some nodes by their splits.

    threads : Threads; batch : (k,) int64; growth : Growth
    found : (k, 2) int64, written: how many rows go left, and where they begin
    """
    nodes = growth.nodes
    for i in range(batch.shape[0]):
        divide_rows(threads, batch[i], growth.table, nodes, growth.categories, growth.buffers)
        if threads.number == 0:
            found[i, 0] = nodes.control[N_LEFT_HERE]
            found[i, 1] = nodes.control[LEFT_BEGIN]
        if not barrier(threads):
            return


@compiled
def sum_nodes(threads, batch, growth):
    """Sum the rows of some nodes into the slots of their histograms.

    threads : Threads; batch : (k,) int64; growth : Growth
    """
    for i in range(batch.shape[0]):
        fill_histogram(threads, growth, growth.packed, growth.joint, batch[i])
        if not barrier(threads):
            return


@compiled
def search_nodes(threads, batch, columns, growth):
    """Note the best split of each node on its columns.

    threads : Threads; batch : (k,) int64; columns : (k, d) uint8; growth : Growth
    """
    for i in range(batch.shape[0]):
        search_node(threads, 0, batch[i], columns[i], growth)
        if not barrier(threads):
            return
        if threads.number == 0:
            settle_node(0, batch[i], growth)
        if not barrier(threads):
            return

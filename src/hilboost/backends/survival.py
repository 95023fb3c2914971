"""Loops over survival times and their intervals."""

from hilboost.backends.compiled import compiled


@compiled
def concordant_pairs(ends, event, rank, weight, tree, totals):
    """Count pairs of rows of which one is known to fail first, by their predicted risk.

    The rows are in descending order of time.  A row with an event is compared with all rows that
    have later times, and with the censored ones at its time.

    ends : (u,) int64, where the rows of each of the u times end
    event : (n,) bool; weight : (n,) float64
    rank : (n,) int64, the rank of the predicted risk from 1 on, the same for equal risks
    tree : (largest rank + 1,) float64, zeros: sums of weights by rank (Fenwick 1994)
    totals : (3,) float64, written: weights of the concordant pairs, of the ties, and of all pairs

    Notes
    -----
    Cost O(n log n).
    """
    totals[0], totals[1], totals[2] = 0.0, 0.0, 0.0
    inserted, begin = 0.0, 0
    for tie in range(ends.shape[0]):
        for censored in (True, False):
            if not censored:
                for i in range(begin, ends[tie]):
                    if event[i]:
                        below, up_to = 0.0, 0.0
                        k = rank[i] - 1
                        while k > 0:
                            below += tree[k]
                            k -= k & -k
                        k = rank[i]
                        while k > 0:
                            up_to += tree[k]
                            k -= k & -k
                        totals[0] += weight[i] * below
                        totals[1] += weight[i] * (up_to - below)
                        totals[2] += weight[i] * inserted
            for i in range(begin, ends[tie]):
                if event[i] != censored:
                    inserted += weight[i]
                    k = rank[i]
                    while k < tree.shape[0]:
                        tree[k] += weight[i]
                        k += k & -k
        begin = ends[tie]


@compiled
def row_products(values, matrix, result):
    """Product of rows with a matrix, whose bits do not depend on the other rows.

    values : (n, m) float64; matrix : (m, q) float64; result : (n, q) float64, written
    """
    for i in range(values.shape[0]):
        for k in range(matrix.shape[1]):
            result[i, k] = values[i, 0] * matrix[0, k]
        for j in range(1, matrix.shape[0]):
            value = values[i, j]
            for k in range(matrix.shape[1]):
                result[i, k] += value * matrix[j, k]

"""Metrics of relevant rows in rankings, means over all orders of ties; see :mod:`.ranking`."""

from hilboost.backends.compiled import compiled
from hilboost.backends.ranking import end_of_tie, resort_group


@compiled
def group_average_precision(rows, k, result):
    """Average precision among the first ``k`` rows of every group, the mean over orders of ties.

    rows : GroupedRows, whose gains are 0 or 1; result : (q,) float64, 1 if no row is relevant
    """
    relevant, scores, starts, order = rows
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        resort_group(scores, relevant, order, first, last)
        total, found, begin = 0.0, 0.0, first
        while begin < last:
            end = end_of_tie(scores, order, begin, last)
            size, hits = end - begin, 0.0
            for at in range(begin, end):
                hits += relevant[order[at]]
            others = (hits - 1.0) / (size - 1.0) if size > 1 else 0.0
            for at in range(begin, min(end, first + k)):
                before = found + 1.0 + (at - begin) * others
                total += hits / size * before / (at - first + 1)
            found += hits
            begin = end
        result[group] = total / min(found, k) if found > 0.0 else 1.0


@compiled
def group_reciprocal_rank(rows, k, result):
    """Reciprocal position of the first relevant row of every group, the mean over orders of ties.

    0 if it is not among the first ``k``, 1 if no row is relevant; the arguments as in
    :func:`group_average_precision`.
    """
    relevant, scores, starts, order = rows
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        resort_group(scores, relevant, order, first, last)
        result[group], begin = 1.0, first
        while begin < last:
            end = end_of_tie(scores, order, begin, last)
            hits = 0.0
            for at in range(begin, end):
                hits += relevant[order[at]]
            if hits > 0.0:
                # ``left`` is the probability that no relevant row has come before this position.
                total, left = 0.0, 1.0
                for at in range(begin, min(end, first + k)):
                    here = min(1.0, hits / (end - at))
                    total += left * here / (at - first + 1)
                    left *= 1.0 - here
                result[group] = total
                break
            begin = end

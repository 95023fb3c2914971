"""Gradients of rankings from random numbers: of orders of the rows, and of shares of the gains.

A group is sorted by score and gain, which gives each row a *place*.  Orders are drawn by hashes of
the places, and rows that are equal in score and gain receive the mean of their gradients, so that
nothing depends on the order in which the rows are given::

    place      0  1  2  3  4
    order 1    1  0  3  2  4          the place that comes first, second, ...
    order 2    0  1  2  4  3
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_inside
from hilboost.backends.loss_gradients import LONGEST_STEP, bounded_curvature
from hilboost.backends.random_bits import bits_of
from hilboost.backends.ranking import all_equal, ideal_of_group, resort_group, sort_group

_FEW = 48  # so many places are found by insertion


class GroupDraws(NamedTuple):
    """Random numbers of groups."""

    key: np.uint64
    numbers: NDArray[np.int64]  # (q,) int64: of the groups in the whole table


class DrawnOrder(NamedTuple):
    """Working memory for a drawn order of a group, each (longest group,)."""

    values: NDArray[np.float64]  # by which the places are sorted, the largest first
    places: NDArray[np.int64]
    hits: NDArray[np.float64]  # relevant rows up to each position
    inverses: NDArray[np.float64]  # sums of the inverse positions of the relevant rows


@inner
def _uniform(key, number):
    """A random number between 0 and 1, both excluded."""
    return (float(bits_of(key, number) >> uint64(11)) + 0.5) * 2.0**-53


@inner
def _add_pair(better, worse, weight, ranked):
    """Add the logistic loss of two places of a group; returns the sum of both gradients."""
    powers, slopes, bends = ranked.powers, ranked.slopes, ranked.bends
    low = powers[worse] / (powers[better] + powers[worse])  # the probability of the wrong order
    bend = bounded_curvature(weight * low, 1.0 - low)
    slopes[better] += weight * low
    slopes[worse] -= weight * low
    bends[better] += bend
    bends[worse] += bend
    return 2.0 * weight * low


@inner
def _begin_group(rows, first, last, ranked):
    """Sort a group, and write the exponentials of its scores by place; the largest is 1."""
    keep_inside()
    scores, order = rows.scores, rows.order
    resort_group(scores, rows.gains, order, first, last)
    best = scores[order[first]]
    for place in range(last - first):
        ranked.powers[place] = np.exp(max(scores[order[first + place]] - best, -600.0))
        ranked.slopes[place], ranked.bends[place] = 0.0, 0.0


@inner
def _end_group(rows, first, last, factor, ranked, written):
    """Write the gradients of the rows: means over equal rows, times a factor."""
    keep_inside()
    gains, scores, order = rows.gains, rows.scores, rows.order
    begin, n = 0, last - first
    while begin < n:
        row, end, slope, bend = order[first + begin], begin, 0.0, 0.0
        while end < n:
            other = order[first + end]
            if scores[other] != scores[row] or gains[other] != gains[row]:
                break
            slope += ranked.slopes[end]
            bend += ranked.bends[end]
            end += 1
        for place in range(begin, end):
            written.negative[order[first + place]] = factor * slope / (end - begin)
            written.hessian[order[first + place]] = factor * bend / (end - begin)
        begin = end


@inner
def _first_places(values, n, most, places):
    """Write the places of at least the ``most`` largest values, in descending order."""
    if most > _FEW:
        sort_group(values, values, places, 0, n)
        return
    n_kept = 0
    for place in range(n):
        if n_kept == most and values[place] <= values[places[most - 1]]:
            continue
        at = min(n_kept, most - 1)
        n_kept = min(n_kept + 1, most)
        while at > 0 and values[places[at - 1]] < values[place]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place


@compiled
def neighbor_gradients(rows, positions, draws, n_orders, ranked, drawn, written):
    """Logistic loss of the neighbors in random orders, weighted by the change if exchanged.

    Each order sorts the scores plus logistic noise.  A pair at the positions p and p + 1 has
    the weight ``|gain - gain| discounts[p]`` over the largest DCG.  Sums over the pairs are divided
    by the number of orders, and multiplied by the square root of the number of rows.

    rows : GroupedRows; positions : Positions; draws : GroupDraws; ranked : ByPlace
    drawn : DrawnOrder; written : RowGradients
    """
    gains, order, k = rows.gains, rows.order, positions.k
    for group in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[group], rows.starts[group + 1]
        n = last - first
        for row in range(first, last):
            written.negative[row], written.hessian[row] = 0.0, 0.0
        ideal = ideal_of_group(rows, group, positions)
        if ideal <= 0.0:
            continue
        of_group = bits_of(draws.key, draws.numbers[group])
        _begin_group(rows, first, last, ranked)
        for number in range(n_orders):
            for place in range(n):
                uniform = _uniform(of_group, number * n + place)
                drawn.values[place] = ranked.powers[place] * uniform / (1.0 - uniform)
            _first_places(drawn.values, n, min(n, k + 1), drawn.places)
            for position in range(min(n - 1, k)):
                a, b = drawn.places[position], drawn.places[position + 1]
                apart = gains[order[first + a]] - gains[order[first + b]]
                if apart == 0.0:
                    continue
                if apart < 0.0:
                    a, b = b, a
                weight = abs(apart) * positions.discounts[position] / ideal
                _add_pair(a, b, weight, ranked)
        factor = np.sqrt(float(n)) / n_orders
        _end_group(rows, first, last, factor, ranked, written)


@inner
def _precision_change(p, q, above, drawn, k):
    """Change of the average precision, times the relevant rows, if positions p < q are exchanged.

    above : bool, whether the row at p is the relevant one
    """
    hits, inverses = drawn.hits, drawn.inverses
    end = min(q, k) - 1
    between = inverses[end] - inverses[p] if end > p else 0.0
    later = hits[q] / (q + 1.0) if q < k else 0.0
    own = hits[p] if above else hits[p] + 1.0
    return own / (p + 1.0) + between - later


@inner
def _reciprocal_change(p, q, above, one, two, k):
    """Change of the reciprocal position of the first relevant row if positions p < q change.

    one, two : the positions of the first two relevant rows; the others are those above
    """
    if above != (p == one) or p > one:
        return 0.0  # another relevant row comes before
    other = min(two, q) if above else one
    return 1.0 / (p + 1.0) - (1.0 / (other + 1.0) if other < k else 0.0)


@compiled
def exchange_gradients(rows, k, only_first, draws, ranked, drawn, written):
    """LambdaMART's gradients: pairs by the change of a metric of relevant rows if exchanged.

    Only pairs that touch the first ``k`` positions count; rows with equal scores have their
    positions in random order.

    rows : GroupedRows, whose gains are 0 or 1; draws : GroupDraws; ranked : ByPlace
    only_first : bool, the reciprocal position of the first relevant row, else average precision
    drawn : DrawnOrder; written : RowGradients
    """
    relevant, scores, starts, order = rows
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        n = last - first
        for row in range(first, last):
            written.negative[row], written.hessian[row] = 0.0, 0.0
        if all_equal(relevant, first, last):
            continue
        _begin_group(rows, first, last, ranked)
        of_group = bits_of(draws.key, draws.numbers[group])
        for place in range(n):
            drawn.values[place] = _uniform(of_group, place)
        sort_group(ranked.powers, drawn.values, drawn.places, 0, n)
        found, inverse, one, two = 0.0, 0.0, n, n
        for position in range(n):
            hit = relevant[order[first + drawn.places[position]]]
            found += hit
            inverse += hit / (position + 1.0)
            drawn.hits[position], drawn.inverses[position] = found, inverse
            if hit > 0.0:
                one, two = min(one, position), position if found == 2.0 else two
        total, share = 0.0, 1.0 / min(found, float(k))
        by_distance = scores[order[first]] != scores[order[last - 1]]
        for p in range(min(n, k)):
            above = relevant[order[first + drawn.places[p]]] > 0.0
            for q in range(p + 1, n):
                if (relevant[order[first + drawn.places[q]]] > 0.0) == above:
                    continue
                if only_first:
                    weight = _reciprocal_change(p, q, above, one, two, k)
                else:
                    weight = _precision_change(p, q, above, drawn, k) * share
                if weight <= 0.0:
                    continue
                a, b = drawn.places[p], drawn.places[q]
                if by_distance:
                    weight /= 0.01 + abs(scores[order[first + a]] - scores[order[first + b]])
                better, worse = (a, b) if above else (b, a)
                total += _add_pair(better, worse, weight, ranked)
        factor = np.log2(1.0 + total) / total if total > 0.0 else 0.0
        _end_group(rows, first, last, factor, ranked, written)


@compiled
def listwise_gradients(rows, draws, drawn, values, written):
    """Cross-entropy between the shares of the gains, minus random numbers, and a softmax of scores.

    The share of a row is that of ``gain + 1 - u``, where ``u`` is uniform between 0 and 1.  Rows
    with equal scores and gains have the same ``u``.  Groups of equal gains have no loss.

    rows : GroupedRows; draws : GroupDraws; written : RowGradients
    drawn : bool, whether there are random numbers, else ``u = 1 / 2``
    values : (n,) float64, written: the term of each row
    """
    (gains, scores, starts, order), (negative, hessian) = rows, written
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        if all_equal(gains, first, last):
            for row in range(first, last):
                values[row], negative[row], hessian[row] = 0.0, 0.0, 0.0
            continue
        resort_group(scores, gains, order, first, last)
        of_group = bits_of(draws.key, draws.numbers[group])
        best, power, share, uniform = scores[order[first]], 0.0, 0.0, 0.5
        for at in range(first, last):
            row, before = order[at], order[max(first, at - 1)]
            differs = scores[row] != scores[before] or gains[row] != gains[before]
            if drawn and (at == first or differs):
                uniform = (bits_of(of_group, at - first) >> uint64(11)) * 2.0**-53
            hessian[row] = gains[row] + 1.0 - uniform
            negative[row] = np.exp(max(scores[row] - best, -600.0))
            share += hessian[row]
            power += negative[row]
        normalizer = np.log(power) + best
        for at in range(first, last):
            row = order[at]
            own, p = hessian[row] / share, negative[row] / power
            values[row] = own * (normalizer - scores[row])
            negative[row] = own - p
            hessian[row] = max(p * (1.0 - p), abs(own - p) / LONGEST_STEP)

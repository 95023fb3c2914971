"""Loops over groups of rows that are ranked by their scores.

The rows of a group are taken in descending order of the score and, for equal scores, of the gain.
No sum depends on the order in which the rows are given, because rows that are equal in both are
interchangeable.

Rows with equal scores have their positions in random order, and what depends on the positions is
replaced by its mean over all orders.  The positions of a tie::

    position   0  1 | 2  3  4 | 5  6
    score      9  9 | 7  7  7 | 4  4          a tie has the mean discount of its positions
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart, keep_inside
from hilboost.backends.loss_gradients import bounded_curvature
from hilboost.backends.sums_in_eights import sums_of_pairs

_MOVES_PER_ROW = 24  # more of them are a reason to sort by a heap; no 48 rows need so many


class GroupedRows(NamedTuple):
    """Rows of q groups, one after the other."""

    gains: NDArray[np.float64]  # (n,) float64, at least 0 where positions count
    scores: NDArray[np.float64]  # (n,) float64
    starts: NDArray[np.int64]  # (q + 1,) int64
    # (n,) int64: the rows of each group in any order, best that of the last call; sorted
    order: NDArray[np.int64]


class Positions(NamedTuple):
    """The positions that count, and the largest DCG of each group at them."""

    k: int
    discounts: NDArray[np.float64]  # (longest group,) float64
    # (q,) float64: NaN at first, and kept between calls with the same gains and ``k``
    ideals: NDArray[np.float64]
    largest: NDArray[np.float64]  # (n,) float64: working memory


class ByPlace(NamedTuple):
    """Working memory for the rows of a group by place, each (longest group,) float64."""

    gains: NDArray[np.float64]
    scores: NDArray[np.float64]
    powers: NDArray[np.float64]  # exponentials of the scores; the largest is 1
    discounts: NDArray[np.float64]  # means over the positions of a tie
    slopes: NDArray[np.float64]  # sums of negative gradients
    bends: NDArray[np.float64]  # sums of hessians
    pulls: NDArray[np.float64]  # negative gradients of the pairs of one row
    curvatures: NDArray[np.float64]  # their hessians


class RowGradients(NamedTuple):
    """Gradients of the rows, written."""

    negative: NDArray[np.float64]  # (n,) float64
    hessian: NDArray[np.float64]  # (n,) float64


class _PairWeights(NamedTuple):
    """Common parts of the weights of the pairs of a tie."""

    early: float  # of ``_discounts_of_tie``
    inside: float  # of ``_discounts_of_tie``
    scale: float  # one over the largest DCG
    by_distance: bool  # whether they are divided by the distance of the scores


@inner
def _comes_first(scores, gains, a, b):
    """Whether row ``a`` comes before row ``b``."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and gains[a] > gains[b])


@inner
def _sift(scores, gains, order, first, root, end):
    """Move the root of a heap of ``order[first:first + end]`` down to its place."""
    moved = order[first + root]
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        if child + 1 < end and _comes_first(
            scores, gains, order[first + child], order[first + child + 1]
        ):
            child += 1
        if not _comes_first(scores, gains, moved, order[first + child]):
            break
        order[first + root] = order[first + child]
        root = child
    order[first + root] = moved


@inner
def _sort_by_heap(scores, gains, order, first, last):
    """Sort the rows of these places, in any order."""
    keep_apart()
    n = last - first
    for root in range(n // 2 - 1, -1, -1):
        _sift(scores, gains, order, first, root, n)
    for end in range(n - 1, 0, -1):
        order[first], order[first + end] = order[first + end], order[first]
        _sift(scores, gains, order, first, 0, end)


@inner
def resort_group(scores, gains, order, first, last):
    """Sort the rows at the places ``first`` to ``last - 1`` of ``order``, the highest first.

    scores, gains : (n,) float64
    order : (n,) int64, written; holds these rows in any order, best in nearly the right one
    """
    one = np.uintp(1)
    moves = np.uintp(_MOVES_PER_ROW * (last - first))  # how many are left
    for place in range(np.uintp(first + 1), np.uintp(last)):
        row = np.uintp(order[place])
        score, gain, at = scores[row], gains[row], place
        while at > first:
            other = np.uintp(order[at - one])
            above = scores[other]
            if above > score or (above == score and gains[other] >= gain):
                break
            order[at] = other
            at -= one
        order[at] = row
        if moves < place - at:
            _sort_by_heap(scores, gains, order, first, last)
            return
        moves -= place - at


@inner
def sort_group(scores, gains, order, first, last):
    """Write the rows ``first`` to ``last - 1`` into these places of ``order``, the highest first.

    scores, gains : (n,) float64; order : (n,) int64, written
    """
    for row in range(first, last):
        order[row] = row
    resort_group(scores, gains, order, first, last)


@inner
def end_of_tie(scores, order, begin, last):
    """The place after the tie that begins at a place of ``order``."""
    end = begin + 1
    while end < last and scores[order[end]] == scores[order[begin]]:
        end += 1
    return end


@inner
def _ideal_dcg(gains, first, last, positions):
    """The largest discounted gain of the first ``k`` positions."""
    k, largest, n_kept = positions.k, positions.largest, 0
    for row in range(first, last):
        gain = gains[row]
        if n_kept == k and gain <= largest[first + k - 1]:
            continue
        at = first + min(n_kept, k - 1)
        n_kept = min(n_kept + 1, k)
        while at > first and largest[at - 1] < gain:
            largest[at] = largest[at - 1]
            at -= 1
        largest[at] = gain
    total = 0.0
    for position in range(n_kept):
        total += largest[first + position] * positions.discounts[position]
    return total


@inner
def all_equal(gains, first, last):
    """Whether all rows of a group have the same gain."""
    equal = True
    for row in range(first + 1, last):
        equal = equal and gains[row] == gains[first]
    return equal


@inner
def ideal_of_group(rows, group, positions):
    """The largest DCG of a group, noted at the first call; 0 if all orders are equally good."""
    ideals = positions.ideals
    if np.isnan(ideals[group]):
        first, last = rows.starts[group], rows.starts[group + 1]
        ideals[group] = 0.0
        if not all_equal(rows.gains, first, last):
            ideals[group] = _ideal_dcg(rows.gains, first, last, positions)
    return ideals[group]


@inner
def _ndcg_of_order(rows, first, last, positions, ideal):
    """NDCG@k of a sorted group, the mean over all orders of tied rows."""
    gains, scores, order = rows.gains, rows.scores, rows.order
    k, discounts = positions.k, positions.discounts
    total, begin = 0.0, first
    while begin < min(last, first + k):
        end = end_of_tie(scores, order, begin, last)
        if end == begin + 1:
            total += gains[order[begin]] * discounts[begin - first]
        else:
            gained, discount = 0.0, 0.0
            for at in range(begin, end):
                gained += gains[order[at]]
            for at in range(begin, min(end, first + k)):
                discount += discounts[at - first]
            total += gained / (end - begin) * discount
        begin = end
    return total / ideal


@compiled
def group_ndcg(rows, positions, result):
    """NDCG@k of every group, the mean over all orders of tied rows; 1 if all are equally good.

    rows : GroupedRows; positions : Positions; result : (q,) float64
    """
    for group in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[group], rows.starts[group + 1]
        ideal = ideal_of_group(rows, group, positions)
        if ideal <= 0.0:
            result[group] = 1.0
            continue
        resort_group(rows.scores, rows.gains, rows.order, first, last)
        result[group] = _ndcg_of_order(rows, first, last, positions, ideal)


@inner
def _discounts_of_tie(begin, end, k, discounts):
    """Means over the positions of a tie: discount, discount in the first k, part of the first k.

    Also the mean, over two different positions, of the difference of their discounts, which is zero
    unless one of them is one of the first k.
    """
    if end == begin + 1:
        inside = 1.0 if begin < k else 0.0
        return discounts[begin], inside * discounts[begin], inside, 0.0
    size = end - begin
    total, early, apart, later = 0.0, 0.0, 0.0, 0.0
    for position in range(end - 1, begin - 1, -1):
        if position < k:
            early += discounts[position]
            apart += (end - 1 - position) * discounts[position] - later
        later += discounts[position]
        total += discounts[position]
    pairs = 0.5 * size * (size - 1)
    return total / size, early / size, max(0, min(end, k) - begin) / size, apart / pairs


@inner
def _add_tie(gains, begin, end, factor, slopes, bends):
    """Add the pairs of a tie, whose scores are equal; returns the sum of all gradients.

    The places ``begin`` to ``end - 1`` are sorted by gain, so that sums over pairs are sums over
    rows.
    """
    size, before, total = end - begin, 0.0, 0.0
    for at in range(begin, end):
        total += gains[at]
    everything, distance = 0.0, 0.0
    for at in range(begin, end):
        gain, place = gains[at], at - begin
        if at == begin or gain != gains[at - 1]:  # equal rows have equal bits
            # The gains before are at least as large as this one, and those after it at most.
            distance = (before - place * gain) + ((size - place) * gain - (total - before))
        slopes[at] += 0.5 * factor * (size * gain - total)
        bends[at] += 0.25 * factor * distance
        everything += 0.5 * factor * distance
        before += gain
    return everything


@inner
def _add_pairs(place, end, n, times, weights, ranked):
    """Add the pairs of equal rows at a place with those from the place ``end`` on.

    Pairs of equal gains add zeros, which is faster than a branch.

    times : float, how many rows are equal to the one at ``place``
    Returns the sums of the gradients and hessians of one of the rows, and of all gradients.
    """
    gains, scores, powers, discounts, slopes, bends, pulls, curvatures = ranked
    early, inside, scale, by_distance = weights
    gain, score, power = gains[place], scores[place] + 0.01, powers[place]
    for at in range(np.uintp(end), np.uintp(n)):
        difference = gain - gains[at]
        distance = score - scores[at] if by_distance else 1.0
        both = power + powers[at]
        inverse = 1.0 / (distance * both)
        delta = abs(difference) * (early - inside * discounts[at]) * scale * both * inverse
        low = powers[at] * distance * inverse  # the probability of the wrong order
        high = 1.0 - low
        size = delta * (low if difference > 0.0 else high)
        pulls[at] = size if difference > 0.0 else -size
        curvatures[at] = bounded_curvature(size, high if difference > 0.0 else low)
    for at in range(np.uintp(end), np.uintp(n)):
        slopes[at] -= times * pulls[at]
        bends[at] += times * curvatures[at]
    slope, total, curvature = sums_of_pairs(pulls[end:n], curvatures[end:n])
    return slope, curvature, 2.0 * times * total


@inner
def _rank_group(rows, first, last, positions, ranked):
    """Sort a group, and write its gains, scores, their exponentials and discounts by place."""
    keep_inside()
    gains, scores, order = rows.gains, rows.scores, rows.order
    k, discounts = positions.k, positions.discounts
    resort_group(scores, gains, order, first, last)
    best, begin = scores[order[first]], first
    while begin < last:
        end = end_of_tie(scores, order, begin, last)
        mean, _, _, _ = _discounts_of_tie(begin - first, end - first, k, discounts)
        power = np.exp(max(scores[order[begin]] - best, -600.0))
        for at in range(begin, end):
            place = at - first
            ranked.gains[place], ranked.scores[place] = gains[order[at]], scores[order[at]]
            ranked.powers[place], ranked.discounts[place] = power, mean
            ranked.slopes[place], ranked.bends[place] = 0.0, 0.0
        begin = end


@compiled
def lambda_gradients(rows, positions, normalized, ranked, written, ndcg):
    """Negative gradients and hessians of LambdaMART: pairs by the change of NDCG@k if exchanged.

    Only pairs that touch the first ``k`` positions count.  The results contain NDCG@k as well.

    rows : GroupedRows; positions : Positions; ranked : ByPlace; written : RowGradients
    normalized : bool, whether pairs with near scores count more, and groups count about equally
    ndcg : (q,) float64, written as by :func:`group_ndcg`
    """
    starts, order, k, discounts = rows.starts, rows.order, positions.k, positions.discounts
    negative, hessian, slopes, bends = (
        written.negative,
        written.hessian,
        ranked.slopes,
        ranked.bends,
    )
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        n = last - first
        for row in range(first, last):
            negative[row], hessian[row] = 0.0, 0.0
        ideal = ideal_of_group(rows, group, positions)
        ndcg[group] = 1.0
        if ideal <= 0.0:
            continue
        _rank_group(rows, first, last, positions, ranked)
        ndcg[group] = _ndcg_of_order(rows, first, last, positions, ideal)
        by_distance = normalized and ranked.scores[0] != ranked.scores[n - 1]
        total, begin, scale = 0.0, 0, 1.0 / ideal
        while begin < min(n, k):
            end = begin + 1
            while end < n and ranked.scores[end] == ranked.scores[begin]:
                end += 1
            _, early, inside, apart = _discounts_of_tie(begin, end, k, discounts)
            weights = _PairWeights(early, inside, scale, by_distance)
            if end > begin + 1:
                factor = apart / ideal * (100.0 if by_distance else 1.0)
                total += _add_tie(ranked.gains, begin, end, factor, slopes, bends)
            other = begin
            while other < end:  # rows of equal scores and gains have the same pairs
                alike = other + 1
                while alike < end and ranked.gains[alike] == ranked.gains[other]:
                    alike += 1
                times = float(alike - other)
                slope, curvature, added = _add_pairs(other, end, n, times, weights, ranked)
                total += added
                for at in range(other, alike):
                    slopes[at] += slope
                    bends[at] += curvature
                other = alike
            begin = end
        factor = np.log2(1.0 + total) / total if normalized and total > 0.0 else 1.0
        for at in range(n):
            row = order[first + at]
            negative[row], hessian[row] = factor * slopes[at], factor * bends[at]

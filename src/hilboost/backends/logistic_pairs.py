"""The logistic loss of the pairs of a group.

A group is sorted as in :mod:`.ranking`.  Rows that are equal in score and gain have equal
gradients, so that nothing depends on the order in which the rows are given, nor on earlier calls.
"""

import numpy as np

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.loss_gradients import bounded_curvature
from hilboost.backends.ranking import resort_group
from hilboost.backends.sums_in_eights import sums_of_pairs


@inner
def _stride(size, most, k):
    """The k-th of ``most`` distances between rows of a long group, spread over all distances."""
    return 1 + (k * (size - 1)) // most


@tiny
def _pair(gain, power, other_gain, other_power):
    """Gradient and hessian of the first row of a pair; 0 for equal gains."""
    inverse = 1.0 / (power + other_power)
    before, after = power * inverse, other_power * inverse  # the probabilities of both orders
    pull = after if gain > other_gain else (-before if gain < other_gain else 0.0)
    return pull, bounded_curvature(abs(pull), before if gain > other_gain else after)


@inner
def _add_logistic_pairs(place, first, last, times, ranked):
    """Add the pairs of equal rows at a place with those at other places.

    times : float, how many rows are equal to the one at ``place``
    Returns the sums of the gradients and hessians of one of the rows.
    """
    gains, powers, pulls, curvatures = ranked.gains, ranked.powers, ranked.pulls, ranked.curvatures
    gain, power = gains[place], powers[place]
    for at in range(np.uintp(first), np.uintp(last)):
        pulls[at], curvatures[at] = _pair(gain, power, gains[at], powers[at])
    for at in range(np.uintp(first), np.uintp(last)):
        ranked.slopes[at] -= times * pulls[at]
        ranked.bends[at] += times * curvatures[at]
    slope, _, curvature = sums_of_pairs(pulls[first:last], curvatures[first:last])
    return slope, curvature


@inner
def _log_loss_of_pairs(rows, first, last, most, powers):
    """Sum of the logistic losses of the pairs at some distances, or of all pairs if ``most`` is 0.

    The logarithm of a product of probabilities is faster than a sum of logarithms.
    """
    keep_apart()
    gains, scores, order, size = rows.gains, rows.scores, rows.order, last - first
    product, loss = 1.0, 0.0
    for place in range(size):
        for k in range(most if most > 0 else size - 1 - place):
            other = place + (_stride(size // 2, most, k) if most > 0 else k + 1)
            other -= size if other >= size else 0
            a, b = order[first + place], order[first + other]
            if gains[a] == gains[b]:
                continue
            ahead = scores[a] - scores[b] if gains[a] > gains[b] else scores[b] - scores[a]
            if min(powers[place], powers[other]) < 1e-200:
                loss += np.log1p(np.exp(-abs(ahead))) + max(-ahead, 0.0)
                continue
            right = powers[place] if gains[a] > gains[b] else powers[other]
            product *= right / (powers[place] + powers[other])
            if product < 1e-30:
                loss -= np.log(product)
                product = 1.0
    return loss - np.log(product)


@inner
def _add_distant_pairs(n, most, ranked):
    """Add the pairs at some distances in the order of the scores."""
    keep_apart()
    gains, powers, slopes, bends = ranked.gains, ranked.powers, ranked.slopes, ranked.bends
    for place in range(n):
        for k in range(most):
            other = place + _stride(n // 2, most, k)
            other -= n if other >= n else 0
            pull, bend = _pair(gains[place], powers[place], gains[other], powers[other])
            slopes[place] += pull
            slopes[other] -= pull
            bends[place] += bend
            bends[other] += bend


@inner
def _end_of_equal(begin, n, gains, powers):
    """The place after the rows that are equal to the one at ``begin``."""
    end = begin + 1
    while end < n and powers[end] == powers[begin] and gains[end] == gains[begin]:
        end += 1
    return end


@inner
def _average(begin, end, slopes, bends):
    """Replace the sums of equal rows, which differ by their places, by their means."""
    slope, bend = 0.0, 0.0
    for at in range(begin, end):
        slope += slopes[at]
        bend += bends[at]
    for at in range(begin, end):
        slopes[at] = slope / (end - begin)
        bends[at] = bend / (end - begin)


@compiled
def pairwise_gradients(rows, most, with_values, ranked, values, written):
    """Logistic loss of all pairs with different gains, divided by the rows of the group.

    In groups of more than ``2 * most + 1`` rows, each row is compared with the rows at ``2 * most``
    distances in the order of the scores, which are spread over all distances.  The partners of
    equal rows differ by their places, so that these rows receive the mean of their gradients.

    rows : GroupedRows; ranked : ByPlace
    with_values : bool, whether ``values`` are written, else the gradients
    values : (n,) float64, written: an equal share of the loss of the group
    written : RowGradients
    """
    gains, scores, starts, order = rows
    ranked_gains, powers, slopes, bends = ranked.gains, ranked.powers, ranked.slopes, ranked.bends
    for group in range(starts.shape[0] - 1):
        first, last = starts[group], starts[group + 1]
        n = last - first
        resort_group(scores, gains, order, first, last)
        for place in range(n):
            row = order[first + place]
            ranked_gains[place], slopes[place], bends[place] = gains[row], 0.0, 0.0
            powers[place] = np.exp(max(scores[row] - scores[order[first]], -600.0))
        whole = n <= 2 * most + 1
        share = 1.0 / n if whole else (n - 1.0) / (2.0 * most * n)
        if with_values:
            distances = 0 if whole else most
            loss = _log_loss_of_pairs(rows, first, last, distances, powers)
            for row in range(first, last):
                values[row] = share * loss / n
            continue
        if not whole:
            _add_distant_pairs(n, most, ranked)
        begin = 0
        while begin < n:
            end = _end_of_equal(begin, n, ranked_gains, powers)
            if whole:
                slope, bend = _add_logistic_pairs(begin, end, n, float(end - begin), ranked)
                for at in range(begin, end):
                    slopes[at] += slope
                    bends[at] += bend
            elif end > begin + 1:
                _average(begin, end, slopes, bends)
            begin = end
        for place in range(n):
            written.negative[order[first + place]] = share * slopes[place]
            written.hessian[order[first + place]] = share * bends[place]

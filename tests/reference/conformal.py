"""Conformal prediction, written down as slowly and simply as possible."""

import math


def threshold(scores, coverage):
    """The ceil((n + 1) coverage)-th smallest score; infinite beyond the largest one."""
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return sorted(scores)[rank - 1] if rank <= len(scores) else math.inf


def cqr_interval(low, high, calibration, coverage):
    """Romano, Patterson & Candès (2019), eqs. 6 and 7; calibration holds (low, high, y)."""
    scores = [max(a - y, y - b) for a, b, y in calibration]
    q = threshold(scores, coverage)
    return low - q, high + q


def cv_plus_interval(lows, highs, scores, folds, coverage):
    """Barber, Candès, Ramdas & Tibshirani (2021), eq. 14, for one new row.

    ``lows[k]`` and ``highs[k]`` are the ends that member k predicts; row i has ``scores[i]`` under
    member ``folds[i]``.
    """
    upper = [highs[k] + score for score, k in zip(scores, folds, strict=True)]
    lower = [score - lows[k] for score, k in zip(scores, folds, strict=True)]
    return -threshold(lower, coverage), threshold(upper, coverage)


def cross_conformal_set(new_scores, scores, folds, coverage):
    """Vovk (2015): classes y with (1 + #{i: s_i >= s_k(i)(x, y)}) / (n + 1) > 1 - coverage."""
    found = set()
    for y in range(len(new_scores[0])):
        at_least = sum(score >= new_scores[k][y] for score, k in zip(scores, folds, strict=True))
        if (at_least + 1) / (len(scores) + 1) > 1 - coverage + 1e-9:
            found.add(y)
    return found


def adaptive_scores(probabilities):
    """For each class, the sum of the probabilities of all classes that are more probable."""
    return [sum(q for q in probabilities if q > p) for p in probabilities]

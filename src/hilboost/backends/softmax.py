"""Scores and gradients of the log loss of several classes."""

from hilboost.backends.compiled import compiled


@compiled
def shift_scores(scores, codes, highest, own):
    """Subtract the highest score of every row from all of its scores, and take those of its class.

    Parameters
    ----------
    scores : (C, n) float64, written
    codes : (n,) int64, classes of the rows
    highest, own : (n,) float64, written
    """
    first = scores[0]
    for i in range(first.shape[0]):
        highest[i] = first[i]
    for c in range(1, scores.shape[0]):
        of_class = scores[c]
        for i in range(of_class.shape[0]):
            highest[i] = max(highest[i], of_class[i])
    for c in range(scores.shape[0]):
        of_class = scores[c]
        for i in range(of_class.shape[0]):
            of_class[i] -= highest[i]
    for i in range(codes.shape[0]):
        own[i] = scores[codes[i], i]


@compiled
def softmax_gradients(values, totals, codes, factor, hessian):
    """Negative gradients ``1[c = y] - p_c`` and hessians ``factor p_c (1 - p_c)`` in one pass.

    Parameters
    ----------
    values : (C, n) float64
        Multiples of the probabilities; negative gradients are written in their place.
    totals : (n,) float64
        Their sums.
    codes : (n,) int64, classes of the rows
    factor : float
    hessian : (C, n) float64, written
    """
    for c in range(values.shape[0]):
        of_class, curvature = values[c], hessian[c]
        for i in range(of_class.shape[0]):
            p = of_class[i] / totals[i]
            curvature[i] = (1.0 - p) * p * factor
            of_class[i] = -p
    for i in range(codes.shape[0]):
        values[codes[i], i] += 1.0

"""Gradients of the log loss of several classes."""

from hilboost.backends.compiled import compiled


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
        own, curvature = values[c], hessian[c]
        for i in range(own.shape[0]):
            p = own[i] / totals[i]
            curvature[i] = (1.0 - p) * p * factor
            own[i] = -p
    for i in range(codes.shape[0]):
        values[codes[i], i] += 1.0

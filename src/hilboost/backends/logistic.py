"""Losses and gradients of the log loss of two classes."""

from hilboost.backends.compiled import compiled


@compiled
def finish_logistic(y, raw, value, negative, hessian):
    """Losses, negative gradients and hessians from the functions that NumPy evaluates.

    Parameters
    ----------
    y : (n,) float64, 0 or 1
    raw : (n,) float64
    value : (n,) float64
        ``log(1 + exp(-abs(raw)))``; losses are written in their place.
    negative : (n,) float64
        ``tanh(raw / 2)``; negative gradients are written in their place.
    hessian : (n,) float64, written
    """
    for i in range(raw.shape[0]):
        value[i] = (value[i] + max(raw[i], 0.0)) - y[i] * raw[i]
        p = negative[i] * 0.5 + 0.5
        hessian[i] = (1.0 - p) * p
        negative[i] = y[i] - p

"""Losses and gradients of half the squared error."""

from numba import uint64

from hilboost.backends.compiled import compiled


@compiled
def add_squares(y, raw, is_first, value, negative):
    """Residuals of one output, and half their squares, which are added to the other outputs' sums.

    ``y``: (n,) float64. ``raw``: (n,) float64. ``is_first``: whether the squares take the place of
    what is in ``value``. ``value``: (n,) float64, written. ``negative``: (n,) float64, written.
    """
    for i in range(raw.shape[0]):
        j = uint64(i)
        residual = y[j] - raw[j]
        half = 0.5 * (residual * residual)
        value[j] = half if is_first else value[j] + half
        negative[j] = residual

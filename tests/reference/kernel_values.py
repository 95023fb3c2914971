"""Values of kernels by formulas of whole arrays."""

import numpy as np


def exponentials(x):
    with np.errstate(under="ignore"):
        x[:] = np.where(x < -708, 0, np.exp(x))


def matern52(squares, is_slope):
    t = np.sqrt(5 * squares)
    decay = np.where(t > 708, 0, np.exp(-t))
    squares[:] = (-5 / 6 * (1 + t) if is_slope else 1 + t + t**2 / 3) * decay

"""Naive twin of :mod:`hilboost.backends.squared_error`."""


def add_squares(y, raw, is_first, value, negative):
    """One row after the other."""
    for i in range(len(raw)):
        negative[i] = y[i] - raw[i]
        half = negative[i] ** 2 / 2
        value[i] = half if is_first else value[i] + half

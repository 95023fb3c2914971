"""Squared distances between rows."""

from __future__ import annotations

from collections.abc import Callable

from hilboost.backends import array_api
from hilboost.backends.array_api import Array

LARGEST_SQUARE = 1e30  # beyond it every kernel is zero; its powers stay finite in float32


def squared_distances(A: Array, B: Array) -> Array:
    """Compute ``|a - b|²``, (a, b), from one matrix product."""
    return in_tiles(A, B)(slice(None), slice(None))


def in_tiles(A: Array, B: Array) -> Callable[[slice, slice], Array]:
    """Compute the norms of all rows, for the squared distances of ranges of rows of each."""
    xp = array_api.namespace(A)
    middle = xp.mean(B, axis=0)  # cancellation is least around the middle
    A, B = A - middle, B - middle
    ones_a, ones_b = xp.ones_like(A[:, :1]), xp.ones_like(B[:, :1])
    left = xp.concat([-2 * A, xp.sum(A * A, axis=1)[:, None], ones_a], axis=1)
    right = xp.concat([B, ones_b, xp.sum(B * B, axis=1)[:, None]], axis=1)

    def squares(rows: slice, columns: slice) -> Array:
        return array_api.clip(left[rows] @ right[columns].T, 0.0, LARGEST_SQUARE)

    return squares


def rounding_error(Z: Array) -> float:
    """Bound the error of ``squared_distances(Z, Z)``: (d + 2) terms of at most ``4 |z|²``."""
    xp = array_api.namespace(Z)
    largest = float(xp.max(xp.sum(Z * Z, axis=1)))
    return 4 * (Z.shape[1] + 2) * float(xp.finfo(Z.dtype).eps) * largest

"""Squared distances between rows."""

from __future__ import annotations

from hilboost.backends import array_api
from hilboost.backends.array_api import Array

LARGEST_SQUARE = 1e30  # beyond it every kernel is zero; its powers stay finite in float32


def squared_distances(A: Array, B: Array) -> Array:
    """Compute ``|a - b|²``, (a, b), from one matrix product."""
    left, right = with_norms(A, B)
    return product_of(left, right)


def with_norms(A: Array, B: Array) -> tuple[Array, Array]:
    """Append columns to the rows, so that a product of rows is a squared distance."""
    xp = array_api.namespace(A)
    middle = xp.mean(B, axis=0)  # cancellation is least around the middle
    A, B = A - middle, B - middle
    ones_a, ones_b = xp.ones_like(A[:, :1]), xp.ones_like(B[:, :1])
    left = xp.concat([-2 * A, xp.sum(A * A, axis=1)[:, None], ones_a], axis=1)
    right = xp.concat([B, ones_b, xp.sum(B * B, axis=1)[:, None]], axis=1)
    return left, right


def product_of(left: Array, right: Array) -> Array:
    """Compute ``|a - b|²`` from rows with norms."""
    return array_api.clip(left @ right.T, 0.0, LARGEST_SQUARE)


def rounding_error(Z: Array) -> float:
    """Bound the error of ``squared_distances(Z, Z)``: (d + 2) terms of at most ``4 |z|²``."""
    xp = array_api.namespace(Z)
    largest = float(xp.max(xp.sum(Z * Z, axis=1)))
    return 4 * (Z.shape[1] + 2) * float(xp.finfo(Z.dtype).eps) * largest

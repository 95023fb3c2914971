"""Kernels, pair by pair: each function makes ``k(a, b)`` of two rows from hyperparameters."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np


def gram(pair, A, B):
    """Every pair by itself, (a, b)."""
    return np.array([[pair(a, b) for b in B] for a in A])


def distance(a, b, length_scale):
    scales = np.broadcast_to(length_scale, len(a))
    return math.sqrt(sum(((x - y) / scale) ** 2 for x, y, scale in zip(a, b, scales, strict=True)))


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def gaussian(length_scale):
    return lambda a, b: math.exp(-(distance(a, b, length_scale) ** 2) / 2)


def matern(length_scale, nu):
    def pair(a, b):
        t = math.sqrt(2 * nu) * distance(a, b, length_scale)
        polynomial = {0.5: 1, 1.5: 1 + t, 2.5: 1 + t + t**2 / 3}[nu]
        return polynomial * math.exp(-t)

    return pair


def rational_quadratic(length_scale, alpha):
    return lambda a, b: (1 + distance(a, b, length_scale) ** 2 / (2 * alpha)) ** -alpha


def manhattan_laplace(length_scale):
    return lambda a, b: np.exp(-np.sum(np.abs(a - b) / length_scale))


def additive(length_scale, main, pairs):
    def pair(a, b):
        scales = np.broadcast_to(length_scale, len(a))
        values = [(1 + ((x - y) / s) ** 2 / 8) ** -4 for x, y, s in zip(a, b, scales, strict=True)]
        products = [k * m for k, m in combinations(values, 2)]
        return main * np.mean(values) + pairs * np.mean(products)

    return pair


def linear(offset):
    return lambda a, b: dot(a, b) + offset


def polynomial(degree, offset, scale):
    return lambda a, b: (scale * dot(a, b) + offset) ** degree


def cosine(a, b):
    if not any(a) or not any(b):
        return float(not any(a) and not any(b))
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def tanimoto(a, b):
    if not any(a) and not any(b):
        return 1.0
    return dot(a, b) / (dot(a, a) + dot(b, b) - dot(a, b))


def same(x, y):
    return x == y or (math.isnan(x) and math.isnan(y))


def delta(length_scale):
    def pair(a, b):
        scales = np.broadcast_to(length_scale, len(a))
        factors = [
            1.0 if same(x, y) else math.exp(-1 / s) for x, y, s in zip(a, b, scales, strict=True)
        ]
        return math.prod(factors)

    return pair


def hamming(a, b):
    return sum(same(x, y) for x, y in zip(a, b, strict=True)) / len(a)


def constant(value):
    return lambda a, b: value


def total(*pairs):
    return lambda a, b: sum(pair(a, b) for pair in pairs)


def product(*pairs):
    return lambda a, b: math.prod(pair(a, b) for pair in pairs)


def on_columns(pair, columns):
    return lambda a, b: pair(a[list(columns)], b[list(columns)])


def lookup(table):
    return lambda a, b: table[int(a[0]), int(b[0])]

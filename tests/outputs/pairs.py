"""Naive output kernels, one pair of labels at a time."""

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
from scipy.linalg import logm


def gram(pair, A, B):
    return np.array([[pair(a, b) for b in B] for a in A], dtype=float)


def inner(a, b):
    return float(np.ravel(a) @ np.ravel(b))


def gaussian(scale):
    return lambda a, b: float(np.exp(-np.sum((a - b) ** 2) / (2 * scale**2)))


def common(weights=None):
    """Sets: the weights of the labels in both."""
    return lambda a, b: sum(1.0 if weights is None else weights[label] for label in a & b)


def weighted(weights):
    return lambda a, b: float(np.sum(np.asarray(weights) * a * b))


def kemeny(a, b):
    pairs = list(combinations(range(len(a)), 2))
    signs = [np.sign(a[j] - a[i]) * np.sign(b[j] - b[i]) for i, j in pairs]
    return sum(signs) / len(pairs)


def spearman(a, b):
    return float(np.corrcoef(a, b)[0, 1])


def hamming(a, b):
    return float(np.mean(np.asarray(a) == np.asarray(b)))


def quantile(sample, level):
    """The least value that a share ``level`` of the sample does not exceed."""
    return min(x for x in sample if np.mean(np.asarray(sample) <= x) >= level - 1e-12)


def quantiles(sample, q):
    return np.array([quantile(sample, (i + 0.5) / q) for i in range(q)])


def wasserstein(q):
    return lambda a, b: float(np.mean(quantiles(a, q) * quantiles(b, q)))


def hellinger(a, b):
    return float(np.sum(np.sqrt(a * b)))


def aitchison(a, b):
    a, b = np.log(a), np.log(b)
    return float((a - a.mean()) @ (b - b.mean()))


@cache
def _logarithm(size, entries):
    return logm(np.frombuffer(entries).reshape(size, size))


def log_euclidean(a, b):
    a, b = (_logarithm(len(matrix), np.asarray(matrix, float).tobytes()) for matrix in (a, b))
    return float(np.trace(a @ b))


def of_counts(count, normalize):
    """Products of the counts of features."""

    def product(a, b):
        a, b = count(a), count(b)
        return sum(a[feature] * b[feature] for feature in a)

    def pair(a, b):
        size = np.sqrt(product(a, a) * product(b, b)) if normalize else 1
        return product(a, b) / size if size else 0.0

    return pair


def spectrum(lengths, normalize):
    def count(string):
        return Counter(
            tuple(string[i : i + length])
            for length in lengths
            for i in range(len(string) - length + 1)
        )

    return of_counts(count, normalize)


def weisfeiler_lehman(depth, normalize):
    """Trees of neighbors, written out as nested lists."""

    def tree(graph, node, levels):
        labels, edges = graph
        if not levels:
            return repr(labels[node])
        around = [i + j - node for i, j in edges if node in (i, j)]
        own = tree(graph, node, levels - 1)
        return repr([own, sorted(tree(graph, other, levels - 1) for other in around)])

    def count(graph):
        nodes = range(len(graph[0]))
        return Counter((k, tree(graph, node, k)) for k in range(depth + 1) for node in nodes)

    return of_counts(count, normalize)


def path(parents, weight):
    def above(node):
        return [] if node is None else [node, *above(parents.get(node))]

    return lambda a, b: sum(weight(len(above(v)) - 1) for v in set(above(a)) & set(above(b)))

"""Naive twin of :mod:`hilboost.backends.strings`: every string of the lengths is tried."""

from collections import Counter
from itertools import product

import numpy as np


def count(string, n_gram_lengths):
    return Counter(
        tuple(string[i : i + n]) for n in n_gram_lengths for i in range(len(string) - n + 1)
    )


def value(string, columns, n_gram_lengths, point, cosine, offset):
    counts = count(string, n_gram_lengths)
    square = sum(c**2 for c in counts.values())
    inner = sum(c * point[columns[gram]] for gram, c in counts.items() if gram in columns)
    if not cosine:
        return 0.5 * square - inner
    return offset - inner / np.sqrt(square) if square else 0.0


def search_strings(columns, n_tokens, n_gram_lengths, string_lengths, point, cosine, offset):
    """The least value of all strings, and one that has it."""
    strings = (s for m in string_lengths for s in product(range(n_tokens), repeat=m))
    values = ((value(s, columns, n_gram_lengths, point, cosine, offset), s) for s in strings)
    return min(values)


def longest_suffix(prefixes, string):
    return max((p for p in prefixes if string[len(string) - len(p) :] == p), key=len)

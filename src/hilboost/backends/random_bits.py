"""Random bits by number: each is a hash of a key and a number, and none depends on another.

A key stands for one purpose in one stage of one fit.  A row is hashed by its number in the whole
table, so that any part of the table finds the bits of its own rows, in any order.
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numba import uint64

from hilboost.backends.compiled import compiled

_WORD = 2**64 - 1


@compiled
def mix(x):
    """One step of the SplitMix64 generator (Steele, Lea and Flood, 2014): a permutation."""
    x = (x + uint64(0x9E3779B97F4A7C15)) & uint64(0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@compiled
def bits_of(key, number):
    """64 random bits of a number, e.g. of a row; different numbers have different bits.

    key : uint64; number : int, 0 or more

    Notes
    -----
    This is output ``number + 1`` of the SplitMix64 generator that starts at ``key``.
    """
    return mix(key + uint64(number) * uint64(0x9E3779B97F4A7C15))


@compiled
def hash_numbers(key, first, hashes):
    """The bits of the numbers from ``first`` on; ``hashes`` (n,) uint64 is written.

    Cost O(n).
    """
    for i in range(hashes.shape[0]):
        hashes[i] = bits_of(key, first + i)


class Purpose(IntEnum):
    """Purposes of random numbers; different purposes have independent numbers."""

    ROWS_OF_STAGE = 1
    FOLDS = 2
    HELD_OUT_ROWS = 3
    PARTS_OF_ENCODING = 4
    ROWS_FOR_BINS = 5
    ROWS_COMPARED = 6
    FOLDS_COMPARED = 7
    SHARDS = 8
    LOSS = 9
    ROWS_OF_METRIC = 10
    CENTERS = 11
    ROUNDING = 12


def key_of(seed: int, purpose: Purpose, stage: int = 0, member: int = 0) -> np.uint64:
    """Hash a seed, a purpose, and the numbers of a stage and of a member of an ensemble."""
    key = _key_of_purpose(seed, purpose)
    for word in (stage, member):
        key = _mixed((key ^ int(word)) & _WORD)
    return np.uint64(key)


@lru_cache(maxsize=64)
def _key_of_purpose(seed: int, purpose: Purpose) -> int:
    """The part that the keys of all stages share."""
    return _mixed((_mixed(int(seed) & _WORD) ^ int(purpose)) & _WORD)


def _mixed(x: int) -> int:
    """:func:`mix` for Python's integers: nothing is compiled for a few keys."""
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)

"""Naive twins of :mod:`hilboost.backends.random_bits`, in Python integers."""

_WORD = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def mix(x):
    x = (x + _STEP) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def bits_of(key, number):
    return mix((int(key) + int(number) * _STEP) & _WORD)


def hash_numbers(key, first, hashes):
    hashes[:] = [bits_of(key, first + i) for i in range(len(hashes))]

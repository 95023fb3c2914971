"""Naive twins of :mod:`hilboost.backends.trees.draws`, in Python integers."""

import numpy as np

_WORD = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def draw_columns(allowed, n_draw, seed, node, drawn):
    """Selection sampling with a counter-based generator."""
    left = int(np.sum(allowed))
    wanted = min(n_draw, left)
    state = mix((seed ^ ((node + 1) * 0xD1342543DE82EF95)) & _WORD)
    for f, is_allowed in enumerate(allowed):
        drawn[f] = 0
        if is_allowed:
            state = mix(state)
            if (state >> 11) * 2.0**-53 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1

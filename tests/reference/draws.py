"""Naive twins of :mod:`hilboost.engine.ops.cpu.draws`, in Python integers."""

import numpy as np
from tests.reference.random_bits import mix


def draw_columns(allowed, n_draw, seed, drawn):
    """Selection sampling with a counter-based generator."""
    left = int(np.sum(allowed))
    wanted = min(n_draw, left)
    state = int(seed)
    for f, is_allowed in enumerate(allowed):
        drawn[f] = 0
        if is_allowed:
            state = mix(state)
            if (state >> 11) * 2.0**-53 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1

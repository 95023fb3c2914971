"""Random numbers from a counter: a draw depends on the seed and the node, not on the threads."""

from numba import int64, uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.intrinsics import keep_apart


@compiled
def mix(x):
    """One step of the SplitMix64 generator."""
    x = (x + uint64(0x9E3779B97F4A7C15)) & uint64(0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@compiled
def draw_columns(allowed, n_draw, seed, node, drawn):
    """Mark ``n_draw`` of the allowed columns, chosen by a counter-based generator.

    allowed, drawn : (n_columns,) uint8
    """
    keep_apart()
    n_columns = allowed.shape[0]
    left = 0
    for f in range(n_columns):
        left += int64(allowed[f])
    wanted = min(n_draw, left)
    state = mix(uint64(seed) ^ (uint64(node + 1) * uint64(0xD1342543DE82EF95)))
    for f in range(n_columns):
        drawn[f] = 0
        if allowed[f]:
            state = mix(state)
            # float(2**-53) * 53 random bits is uniform on [0, 1)
            if (state >> uint64(11)) * 1.1102230246251565e-16 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1

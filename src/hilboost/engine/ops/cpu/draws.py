"""The columns of a node, drawn at random: they depend on the node's seed, not on the threads."""

from numba import int64, uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.random_bits import mix


@compiled
def draw_columns(allowed, n_draw, seed, drawn):
    """Mark ``n_draw`` of the allowed columns.

    allowed, drawn : (n_columns,) uint8; seed : uint64, of the node
    """
    keep_apart()
    n_columns = allowed.shape[0]
    left = 0
    for f in range(n_columns):
        left += int64(allowed[f])
    wanted = min(n_draw, left)
    state = seed
    for f in range(n_columns):
        drawn[f] = 0
        if allowed[f]:
            state = mix(state)
            # float(2**-53) * 53 random bits is uniform on [0, 1)
            if (state >> uint64(11)) * 1.1102230246251565e-16 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1

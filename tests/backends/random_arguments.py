"""Random arguments of compiled loops."""

import numpy as np

LIMITS = [(0.0, 1.0, 0.0, 0.0), (1.0, 3.0, 0.5, 0.0)]
LEVEL_LIMITS = [(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0), (1.0, 3.0, 0.5, 0.0, 4.0, 3.0, 2.0)]


def draw_words(rng, n, d, n_bins):
    words = np.zeros((-(-d // 8), n), dtype=np.uint64)
    for k in range(d):
        words[k // 8] |= rng.integers(n_bins, size=n).astype(np.uint64) << np.uint64(8 * (k % 8))
    return words


def draw_rows(rng, n):
    m = int(rng.integers(1, n + 1))
    rows = np.sort(rng.choice(n, m, replace=False)).astype(np.uint32)
    begin = int(rng.integers(0, m))
    return rows, begin, int(rng.integers(begin, m + 1))


def draw_layout(rng, curved=True):
    count_bits, hessian_bits = (8, 12) if curved else (8, 0)
    layout = np.array(
        [
            count_bits,
            (1 << hessian_bits) - 1,
            (1 << count_bits) - 1,
            count_bits + hessian_bits,
        ]
    )
    scales = np.array([0.25, 0.125 if curved else 0.0, 0.0 if curved else 1.0, 1.0])
    return layout, scales


def draw_histogram(rng, n_bins, n_channels, layout, curved, count_channel):
    """A column whose bins are partly empty; the last one is that of missing values."""
    count = rng.integers(0, 4, size=n_bins)
    if rng.uniform() < 0.5:
        count[-1] = 0
    result = np.zeros((n_bins, n_channels), dtype=np.int64)
    n_outputs = n_channels - count_channel
    for k in range(n_outputs):
        gradient = rng.integers(-5, 6, size=n_bins) * (count > 0)
        hessian = rng.integers(0, 9, size=n_bins) * (count > 0) if curved else 0
        result[:, k] = (gradient << layout[3]) + (hessian << layout[0])
        result[:, k] += 0 if count_channel else count
    if count_channel:
        result[:, -1] = count
    return result


def draw_bounds(rng, n_outputs):
    """No bounds, endless ones, and narrow ones, with and without a direction."""
    narrow = np.sort(0.1 * rng.normal(size=(2, n_outputs)), axis=0)
    endless = np.array([[-np.inf], [np.inf]]) + np.zeros((2, n_outputs))
    return [
        (0, np.empty((0, 0))),
        *((direction, bounds) for direction in (-1, 0, 1) for bounds in (endless, narrow)),
    ]

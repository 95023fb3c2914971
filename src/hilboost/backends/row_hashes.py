"""64-bit hashes of rows, by which equal rows are found."""

from numba import uint64

from hilboost.backends.compiled import compiled

_NAN = 0x7FF8000000000000


@compiled
def _mixed(state, word):
    state = (state ^ word) * uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> uint64(29))) * uint64(0xBF58476D1CE4E5B9)
    return state ^ (state >> uint64(32))


@compiled
def _word(value, word):
    """The bits of a number; zero and NaN have the same bits for both signs."""
    if value == 0.0:
        return uint64(0)
    if value != value:
        return uint64(_NAN)
    return uint64(word)


@compiled
def hash_rows(values, words, first, last, hashes):
    """Mix the columns ``first`` to ``last - 1`` of every row into its hash.

    values : (n, d) float64 or float32; words : its bits, (n, d) uint64 or uint32
    hashes : (n,) uint64, changed in place
    """
    for i in range(values.shape[0]):
        state = hashes[i]
        for k in range(first, last):
            state = _mixed(state, _word(values[i, k], words[i, k]))
        hashes[i] = state


@compiled
def hash_sparse_rows(values, words, columns, starts, hashes):
    """The same for rows of a sparse table; zeros count the same whether they are stored or not.

    values : (m,) float64 or float32; words : its bits; columns : (m,); starts : (n + 1,)
    hashes : (n,) uint64, changed in place
    """
    for i in range(hashes.shape[0]):
        state = hashes[i]
        for t in range(starts[i], starts[i + 1]):
            word = _word(values[t], words[t])
            if word != uint64(0):
                state = _mixed(_mixed(state, uint64(columns[t] + 1)), word)
        hashes[i] = state

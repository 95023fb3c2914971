"""Counts of the n-grams of a string, token by token, and the value of a string."""

import numpy as np

from hilboost.backends.compiled import inner

ROUNDING = 1e-12


@inner
def next_state(automaton, state, token):
    """Find the longest suffix of a state and a token that is a state."""
    while True:
        low, high = automaton.first_child[state], automaton.first_child[state + 1]
        while low < high:
            middle = (low + high) // 2
            if automaton.token[middle] < token:
                low = middle + 1
            else:
                high = middle
        if low < automaton.first_child[state + 1] and automaton.token[low] == token:
            return low
        if state == 0:
            return 0
        state = automaton.fail[state]


@inner
def _earlier(tokens, position, length):
    """Count earlier occurrences of the n-gram that ends at a position."""
    count = 0
    for end in range(length - 1, position):
        same = True
        for back in range(length):
            if tokens[end - back] != tokens[position - back]:
                same = False
                break
        if same:
            count += 1
    return count


@inner
def enter(automaton, point, tokens, position, state, counts):
    """Count the n-grams that end at a position; return the growth of ``|c|²`` and ``c'f``."""
    square, product = 0.0, 0.0
    longest = min(automaton.longest, position + 1)
    for length in range(longest, automaton.shortest - 1, -1):
        while automaton.depth[state] > length:
            state = automaton.fail[state]
        column = automaton.column[state] if automaton.depth[state] == length else -1
        if column >= 0:
            square += 2.0 * counts[column] + 1.0
            product += point[column]
            counts[column] += 1
        else:
            square += 2.0 * _earlier(tokens, position, length) + 1.0
    return square, product


@inner
def leave(automaton, state, counts):
    """Undo the counts of :func:`enter`."""
    while state != 0:
        column = automaton.column[state]
        if column >= 0:
            counts[column] -= 1
        state = automaton.fail[state]


@inner
def value_of(criterion, square, product):
    """Compute the criterion from ``|c|²`` and ``c'f``."""
    if not criterion.cosine:
        return 0.5 * square - product
    return criterion.offset - product / np.sqrt(square) if square > 0.0 else 0.0


@inner
def offer(automaton, point, criterion, tokens, length, scale, buffers):
    """Compute the value of a string, and keep it if it is the best one."""
    buffers.counts[:] = 0
    state, square, product = 0, 0.0, 0.0
    for position in range(length):
        state = next_state(automaton, state, tokens[position])
        more, gained = enter(automaton, point, tokens, position, state, buffers.counts)
        square += more
        product += gained
    keep(value_of(criterion, square, product), tokens, length, scale, buffers)


@inner
def keep(value, tokens, length, scale, buffers):
    """Replace the best string if another one is better by more than rounding errors."""
    if value < buffers.best[0] - ROUNDING * scale:
        buffers.best[0] = value
        buffers.best[1] = length
        for position in range(length):
            buffers.found[position] = tokens[position]

"""Counts of the n-grams of a string, and lower bounds of what strings of one length may cost.

A string is a path through the automaton of the known n-grams, so a sum of weights over its n-grams
is minimized by dynamic programming.  The squared norm of the counts is not such a sum, but is
bounded by one: ``c² >= s c - max_k (s k - k²)`` for an integer ``c`` and any slope ``s``.  Slopes
above 1 keep the path from using one n-gram again and again.
"""

from typing import NamedTuple

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


_ROUNDS = 60
_PATIENCE = 4
_CELLS_PER_NODE = 128


@inner
def sum_suffixes(automaton, weight, arrival):
    """Sum the weights (r,) of the known n-grams that end in each state, (S,)."""
    arrival[0] = 0.0
    for state in range(1, automaton.token.shape[0]):
        column = automaton.column[state]
        own = weight[column] if column >= 0 else 0.0
        arrival[state] = arrival[automaton.fail[state]] + own


@inner
def arrive(automaton, arrival, price, position, state):
    """Cost of the n-grams that end at a position; each unknown one costs at least ``price``."""
    unknown = automaton.ending[position] - automaton.known[state]
    return arrival[state] + price * max(unknown, 0)


@inner
def fill_to_go(automaton, arrival, price, length, to_go, spent):
    """Compute the least cost from each state to the end, by position.

    A state may also go where its suffix goes, as if the longer n-gram were unknown.  This saves
    the list of all tokens for each state, and only lowers the bound.
    """
    spent[0] += 1 + length * automaton.token.shape[0] // _CELLS_PER_NODE
    to_go[length, :] = 0.0
    for position in range(length - 1, -1, -1):
        deepest = min(position, automaton.longest)
        for state in range(automaton.n_within[deepest]):
            least = np.inf
            if state > 0:
                least = to_go[position, automaton.fail[state]]
            elif automaton.unstarted >= 0:
                least = arrive(automaton, arrival, price, position + 1, 0)
                least += to_go[position + 1, 0]
            for child in range(automaton.first_child[state], automaton.first_child[state + 1]):
                cost = arrive(automaton, arrival, price, position + 1, child)
                least = min(least, cost + to_go[position + 1, child])
            to_go[position, state] = least


@inner
def _follow(automaton, arrival, price, length, buffers):
    """Find a path of least cost: its tokens, and how often it uses each known n-gram."""
    to_go, state = buffers.to_go, 0
    buffers.used[:] = 0
    for position in range(length):
        least, at, reached = to_go[position, state], state, 0
        while True:
            for child in range(automaton.first_child[at], automaton.first_child[at + 1]):
                cost = arrive(automaton, arrival, price, position + 1, child)
                if cost + to_go[position + 1, child] <= least:
                    reached = child
                    break
            if reached > 0 or at == 0:
                break
            at = automaton.fail[at]
        state = reached
        buffers.tokens[position] = automaton.token[state] if state > 0 else automaton.unstarted
        while reached != 0:
            if automaton.column[reached] >= 0:
                buffers.used[automaton.column[reached]] += 1
            reached = automaton.fail[reached]


@inner
def _conjugate(slope):
    """``max_k (slope k - k²)`` over integers, and its argument."""
    k = np.floor((slope + 1.0) / 2.0)
    return slope * k - k * k, k


@inner
def lower_bound(automaton, point, price, length, slope, buffers):
    """Fill ``to_go`` for given slopes (r,); return the bound of all strings of a length."""
    constant = 0.0
    for column in range(point.shape[0]):
        buffers.weight[column] = price * slope[column] - point[column]
        if slope[column] > 1.0:
            constant += price * _conjugate(slope[column])[0]
    sum_suffixes(automaton, buffers.weight, buffers.arrival)
    fill_to_go(automaton, buffers.arrival, price, length, buffers.to_go, buffers.spent)
    return buffers.to_go[0, 0] - constant


@inner
def _move_slopes(price, step, buffers):
    """Take a step along the subgradient, use minus supporting count; return its squared length."""
    squared = 0.0
    for column in range(buffers.slope.shape[0]):
        slope, used = buffers.slope[column], buffers.used[column]
        k = _conjugate(slope)[1] if slope > 1.0 else min(used, 1)
        if used != k:
            squared += (price * (used - k)) ** 2
            buffers.slope[column] = max(1.0, slope + step * price * (used - k))
    return squared


class Problem(NamedTuple):
    """Strings of one length: those with ``price |c|² - c'f < threshold`` may be better."""

    length: int
    price: float
    least_square: float  # of the norms of counts, |c|², where all n-grams differ
    largest_norm: float  # |c| where all n-grams of a length are equal
    scale: float  # of values, for rounding


@inner
def threshold(criterion, problem, buffers):
    """Cost that a string must beat to be better than the best one.

    With the cosine, a better string has ``c'f > v |c|``.  Where v > 0, the root is replaced by its
    chord from the least ``|c|²``, whose slope is ``price / v``.
    """
    if not criterion.cosine:
        return buffers.best[0]
    v = criterion.offset - buffers.best[0]
    if v <= 0.0:
        return -v * problem.largest_norm
    return problem.price * problem.least_square - v * np.sqrt(problem.least_square)


@inner
def tighten(automaton, point, criterion, problem, max_nodes, buffers):
    """Raise the bound by subgradient steps, and offer the strings of its paths."""
    price, length = problem.price, problem.length
    slack = ROUNDING * problem.scale * problem.least_square
    buffers.slope[:] = 1.0
    highest, factor, failures = -np.inf, 1.0, 0
    for _ in range(_ROUNDS):
        bound = lower_bound(automaton, point, price, length, buffers.slope, buffers)
        failures += 1
        if bound > highest:
            if bound > highest + 1e-3 * abs(highest):
                failures = 0
            highest = bound
            for column in range(point.shape[0]):
                buffers.best_slope[column] = buffers.slope[column]
        _follow(automaton, buffers.arrival, price, length, buffers)
        offer(automaton, point, criterion, buffers.tokens, length, problem.scale, buffers)
        gap = threshold(criterion, problem, buffers) - highest
        if gap <= slack or price == 0.0 or buffers.spent[0] > max_nodes:
            break
        squared = _move_slopes(price, 0.0, buffers)
        if squared == 0.0:
            break
        if failures >= _PATIENCE:
            factor, failures = factor / 2.0, 0
        gap = threshold(criterion, problem, buffers) - bound
        _move_slopes(price, factor * gap / squared, buffers)
    return highest

"""Search for the string whose n-gram counts are nearest to a point, by branch and bound."""

import numpy as np

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.strings.bounds import (
    ROUNDING,
    Problem,
    arrive,
    enter,
    fill_to_go,
    keep,
    leave,
    lower_bound,
    offer,
    sum_suffixes,
    threshold,
    tighten,
    value_of,
)

_RESTARTS = 4


@inner
def _expand(automaton, point, problem, position, constant, limit, buffers):
    """List the tokens by which the prefix may be extended, the lowest bound first."""
    price, state, depth = problem.price, buffers.states[position], 0
    buffers.target[:] = 0
    at = state
    while at != 0:
        buffers.chain[depth] = at
        depth += 1
        at = automaton.fail[at]
    buffers.chain[depth] = 0
    for level in range(depth, -1, -1):  # longer suffixes replace what shorter ones say
        at = buffers.chain[level]
        for child in range(automaton.first_child[at], automaton.first_child[at + 1]):
            buffers.target[automaton.token[child]] = child
    n = 0
    linear = buffers.linear[position]
    cost = price * buffers.square[position] - buffers.product[position]
    for token in range(buffers.target.shape[0]):
        child = buffers.target[token]
        bound = arrive(automaton, buffers.arrival, price, position + 1, child)
        bound += linear + buffers.to_go[position + 1, child] - constant
        if bound >= limit:
            continue
        flat = arrive(automaton, buffers.flat_arrival, price, position + 1, child)
        flat += cost + buffers.flat_to_go[position + 1, child]
        at = child
        while at != 0:
            if automaton.column[at] >= 0:
                flat += 2.0 * price * buffers.counts[automaton.column[at]]
            at = automaton.fail[at]
        bound = max(bound, flat)
        if bound >= limit:
            continue
        place = n
        while place > 0 and buffers.bounds[position, place - 1] > bound:
            for rows in (buffers.children, buffers.added):
                rows[position, place] = rows[position, place - 1]
            buffers.bounds[position, place] = buffers.bounds[position, place - 1]
            place -= 1
        buffers.children[position, place] = child
        buffers.added[position, place] = token
        buffers.bounds[position, place] = bound
        n += 1
    buffers.n_children[position] = n
    buffers.next_child[position] = 0


@inner
def _branch(automaton, point, criterion, problem, constant, max_nodes, buffers):
    """Search depth first; return whether the search is complete."""
    length, position = problem.length, 0
    slack = ROUNDING * problem.scale * problem.least_square
    buffers.counts[:] = 0
    buffers.states[0] = 0
    buffers.linear[0] = buffers.square[0] = buffers.product[0] = 0.0
    limit = threshold(criterion, problem, buffers) - slack
    _expand(automaton, point, problem, 0, constant, limit, buffers)
    while True:
        k = buffers.next_child[position]
        if k == buffers.n_children[position] or buffers.bounds[position, k] >= limit:
            if position == 0:
                return True
            leave(automaton, buffers.states[position], buffers.counts)
            position -= 1
            continue
        buffers.spent[0] += 1
        if buffers.spent[0] > max_nodes:
            return False
        buffers.next_child[position] += 1
        child = buffers.children[position, k]
        buffers.tokens[position] = buffers.added[position, k]
        more, gained = enter(automaton, point, buffers.tokens, position, child, buffers.counts)
        price = problem.price
        buffers.square[position + 1] = buffers.square[position] + more
        buffers.product[position + 1] = buffers.product[position] + gained
        buffers.linear[position + 1] = buffers.linear[position] + arrive(
            automaton, buffers.arrival, price, position + 1, child
        )
        position += 1
        buffers.states[position] = child
        if position < length:
            _expand(automaton, point, problem, position, constant, limit, buffers)
            continue
        value = value_of(criterion, buffers.square[length], buffers.product[length])
        keep(value, buffers.tokens, length, problem.scale, buffers)
        limit = threshold(criterion, problem, buffers) - slack
        leave(automaton, child, buffers.counts)
        position -= 1


@inner
def _sizes(automaton, length):
    """Least ``|c|²`` and largest ``|c|`` of strings of a length."""
    total, squares = 0.0, 0.0
    for n in range(automaton.shortest, automaton.longest + 1):
        grams = max(0.0, length - n + 1.0)
        total += grams
        squares += grams * grams
    return total, np.sqrt(squares)


@inner
def _largest_product(automaton, point, length, buffers):
    """Bound ``c'f`` for strings of a length."""
    for column in range(point.shape[0]):
        buffers.weight[column] = -point[column]
    sum_suffixes(automaton, buffers.weight, buffers.arrival)
    fill_to_go(automaton, buffers.arrival, 0.0, length, buffers.to_go, buffers.spent)
    return -buffers.to_go[0, 0]


@inner
def _search_length(automaton, point, criterion, length, scale, max_nodes, buffers):
    """Search the strings of one length; return whether the search is complete."""
    total, norm = _sizes(automaton, length)
    largest = _largest_product(automaton, point, length, buffers) if criterion.cosine else 0.0
    problem = Problem(length, 0.5, total, norm, scale)
    for _ in range(_RESTARTS):
        if criterion.cosine:
            v = criterion.offset - buffers.best[0]
            root, price = np.sqrt(total), 0.0
            if v > 0.0:
                if largest <= v * root * (1.0 + ROUNDING):
                    return True
                price = v / (root + largest / v)
            problem = Problem(length, price, total, norm, scale)
        before = buffers.best[0]
        bound = tighten(automaton, point, criterion, problem, max_nodes, buffers)
        slack = ROUNDING * scale * total
        if bound >= threshold(criterion, problem, buffers) - slack:
            return True
        if buffers.spent[0] > max_nodes:
            return False
        if not criterion.cosine or buffers.best[0] == before:
            break
    for column in range(point.shape[0]):
        buffers.weight[column] = problem.price - point[column]
    sum_suffixes(automaton, buffers.weight, buffers.flat_arrival)
    flat = buffers.flat_to_go
    fill_to_go(automaton, buffers.flat_arrival, problem.price, length, flat, buffers.spent)
    bound = lower_bound(automaton, point, problem.price, length, buffers.best_slope, buffers)
    constant = buffers.to_go[0, 0] - bound
    return _branch(automaton, point, criterion, problem, constant, max_nodes, buffers)


@compiled
def search_strings(
    automaton, point, criterion, limits, buffers
):  # whether no string is better, up to rounding
    """Minimize a criterion over all strings of given lengths; ``point``: (r,) float64, f."""
    starts, start_lengths, lengths, least, max_nodes = limits
    scale = 1e-300
    for column in range(point.shape[0]):
        scale = max(scale, abs(point[column]))
    if not criterion.cosine:
        scale = max(scale, 1.0)
    buffers.best[0] = np.inf
    for k in range(starts.shape[0]):
        offer(automaton, point, criterion, starts[k], start_lengths[k], scale, buffers)
    buffers.spent[0] = 0
    for k in range(lengths.shape[0]):
        if buffers.best[0] <= least + ROUNDING * scale:
            return True
        length = lengths[k]
        if not _search_length(automaton, point, criterion, length, scale, max_nodes, buffers):
            return buffers.best[0] <= least + ROUNDING * scale
    return True

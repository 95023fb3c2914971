"""Automaton of the known n-grams, and the memory of a search through it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Automaton(NamedTuple):
    """Aho-Corasick automaton of S states: the prefixes of the known n-grams, shortest first.

    ::

        n-grams ab, bc   states  0 ""   1 "a"  2 "b"  3 "ab"  4 "bc"
                  first_child      1      3      4      5       5      5
                  fail             0      0      0      2       0
    """

    first_child: NDArray[np.int64]  # (S + 1,), of states sorted by parent and token
    token: NDArray[np.int64]  # (S,), the last one; -1 for the root
    fail: NDArray[np.int64]  # (S,), the longest proper suffix that is a state
    depth: NDArray[np.int64]  # (S,)
    column: NDArray[np.int64]  # (S,), of the n-gram that the state is, or -1
    known: NDArray[np.int64]  # (S,), number of known n-grams that are suffixes of the state
    n_within: NDArray[np.int64]  # (longest + 1,), states of at most this depth
    ending: NDArray[np.int64]  # (L + 1,), n-grams that end at each position
    shortest: int  # lengths of n-grams
    longest: int
    unstarted: int  # a token with which no known n-gram starts, or -1


class Criterion(NamedTuple):
    """The criterion to minimize: ``|c|²/2 - c'f``, or ``offset - c'f / |c|`` (0 where c = 0)."""

    cosine: bool
    offset: float


class SearchLimits(NamedTuple):
    """Which strings are searched, and when the search ends."""

    starts: NDArray[np.int64]  # (k, L), strings to begin with, from which ties are resolved
    start_lengths: NDArray[np.int64]  # (k,)
    lengths: NDArray[np.int64]  # (l,), none below the shortest n-gram
    least: float  # no string has a lower value
    max_nodes: int  # prefixes


class Buffers(NamedTuple):
    """Memory of a search of strings of at most L tokens out of A, with r known n-grams."""

    to_go: NDArray[np.float64]  # (L + 1, S), least cost from a state at a position, slopes chosen
    flat_to_go: NDArray[np.float64]  # (L + 1, S), with slopes 1
    arrival: NDArray[np.float64]  # (S,), cost of the known n-grams that end in a state
    flat_arrival: NDArray[np.float64]  # (S,)
    weight: NDArray[np.float64]  # (r,)
    slope: NDArray[np.float64]  # (r,)
    best_slope: NDArray[np.float64]  # (r,)
    used: NDArray[np.int64]  # (r,)
    counts: NDArray[np.int64]  # (r,), n-grams of the current prefix
    tokens: NDArray[np.int64]  # (L,), the current prefix
    found: NDArray[np.int64]  # (L,), the best string
    best: NDArray[np.float64]  # (2,), its value and length
    spent: NDArray[np.int64]  # (1,), prefixes, and an equivalent for bounds
    children: NDArray[np.int64]  # (L, A), states in which tokens lead, best first
    added: NDArray[np.int64]  # (L, A), these tokens
    bounds: NDArray[np.float64]  # (L, A)
    n_children: NDArray[np.int64]  # (L,)
    next_child: NDArray[np.int64]  # (L,)
    target: NDArray[np.int64]  # (A,)
    states: NDArray[np.int64]  # (L + 1,)
    linear: NDArray[np.float64]  # (L + 1,), cost of the prefix with slopes
    square: NDArray[np.float64]  # (L + 1,), |c|² of the prefix
    product: NDArray[np.float64]  # (L + 1,), c'f of the prefix
    chain: NDArray[np.int64]  # (longest + 1,)


def buffers(automaton: Automaton, n_columns: int, n_tokens: int) -> Buffers:
    """Allocate the memory of a search."""
    S, L = len(automaton.token), len(automaton.ending) - 1
    whole, real = np.int64, np.float64
    return Buffers(
        to_go=np.zeros((L + 1, S), real),
        flat_to_go=np.zeros((L + 1, S), real),
        arrival=np.zeros(S, real),
        flat_arrival=np.zeros(S, real),
        weight=np.zeros(n_columns, real),
        slope=np.ones(n_columns, real),
        best_slope=np.ones(n_columns, real),
        used=np.zeros(n_columns, whole),
        counts=np.zeros(n_columns, whole),
        tokens=np.zeros(L, whole),
        found=np.zeros(L, whole),
        best=np.zeros(2, real),
        spent=np.zeros(1, whole),
        children=np.zeros((L, n_tokens), whole),
        added=np.zeros((L, n_tokens), whole),
        bounds=np.zeros((L, n_tokens), real),
        n_children=np.zeros(L, whole),
        next_child=np.zeros(L, whole),
        target=np.zeros(n_tokens, whole),
        states=np.zeros(L + 1, whole),
        linear=np.zeros(L + 1, real),
        square=np.zeros(L + 1, real),
        product=np.zeros(L + 1, real),
        chain=np.zeros(automaton.longest + 1, whole),
    )

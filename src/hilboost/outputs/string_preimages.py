"""Pre-images of points among all strings of given lengths, for n-gram counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hilboost.backends.strings.automaton import Automaton, Buffers, Criterion, SearchLimits, buffers
from hilboost.backends.strings.search import search_strings
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import DecodeWarning, warn_caller


def eulerian_path(grams: Sequence[tuple[int, ...]], counts: Ints) -> list[int] | None:
    """Find a string that contains each n-gram a given number of times, and no other n-grams.

    Each occurrence of an n-gram is an edge from its first n - 1 tokens to its last n - 1 tokens.
    Hierholzer's algorithm, in time linear in the sum of the counts.
    """
    ahead: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    surplus: Counter[tuple[int, ...]] = Counter()
    for gram, count in sorted(zip(grams, counts.tolist(), strict=True), reverse=True):
        if count:
            ahead.setdefault(gram[:-1], []).extend([gram[1:]] * count)
            surplus[gram[:-1]] += count
            surplus[gram[1:]] -= count
    odd = sorted(node for node, value in surplus.items() if value)
    if odd and sorted(surplus[node] for node in odd) != [-1, 1]:
        return None
    start = next((node for node in odd if surplus[node] == 1), min(ahead))
    stack, path = [start], []
    while stack:
        if ahead.get(stack[-1]):
            stack.append(ahead[stack[-1]].pop())
        else:
            path.append(stack.pop())
    if len(path) != counts.sum() + 1:
        return None
    path.reverse()
    if start == ():  # 1-grams: all edges are loops at the same node
        return [gram[0] for gram, count in zip(grams, counts, strict=True) for _ in range(count)]
    return [*start, *(node[-1] for node in path[1:])]


Numbers = Ints
Tokens = Sequence[Hashable]

_CELLS_AT_MOST = 2**25
_FAINT = 1e-9  # of the largest coordinate


@dataclass(frozen=True)
class StringSearch:
    """Search for the strings whose n-gram counts are nearest to points.

    Strings are sequences of token numbers, the positions of tokens in the alphabet.
    """

    vocabulary: Mapping[Any, int]  # column of each known n-gram
    alphabet: Tokens
    n_gram_lengths: range
    string_lengths: range
    # number of prefixes, and equivalent work on bounds, after which the search for one point stops
    max_nodes: int

    def best(
        self, raw: Floats, starts: Sequence[Tokens], criterion: Criterion
    ) -> list[list[Hashable]]:
        """Find the best string for each point; the starts if no string is better.

        Warns if the search stopped before it was complete.
        """
        if not self._fits():
            self._warn("its limit of memory", len(raw), len(raw), "")
            return [list(start) for start in starts]
        memory = buffers(self._automaton, len(self.vocabulary), len(self.alphabet))
        found, n_stopped = [], 0
        for point, start in zip(np.ascontiguousarray(raw), starts, strict=True):
            n_stopped += not self._search(point, start, criterion, memory)
            numbers = memory.found[: int(memory.best[1])]
            found.append([self.alphabet[number] for number in numbers])
        if n_stopped:
            limit = f"max_nodes={self.max_nodes} prefixes"
            self._warn(limit, n_stopped, len(raw), "increase max_nodes or ")
        return found

    def _search(self, point: Floats, start: Tokens, criterion: Criterion, memory: Buffers) -> bool:
        """Search for one point; return whether the search was complete."""
        begin = [self._to_numbers(start), *self._simple(), *self._eulerian(point, criterion)]
        table = np.zeros((len(begin), self.string_lengths.stop - 1), dtype=np.int64)
        for row, numbers in zip(table, begin, strict=True):
            row[: len(numbers)] = numbers
        limits = SearchLimits(
            table,
            np.array([len(numbers) for numbers in begin]),
            self._lengths_around(len(start)),
            _lower_bound(point, criterion),
            self.max_nodes,
        )
        complete: bool = search_strings(self._automaton, point, criterion, limits, memory)
        return complete

    def _simple(self) -> Iterator[list[int]]:
        """Yield a string without n-grams, if there is one of an allowed length."""
        if self.string_lengths.start < self.n_gram_lengths.start:
            yield [0] * self.string_lengths.start

    def _eulerian(self, point: Floats, criterion: Criterion) -> Iterator[list[int]]:
        """Yield the string whose counts are the rounded point, if there is one.

        The n-grams are the edges of a de Bruijn graph, and the string is an Eulerian path (Cortes,
        Mohri and Weston 2005).  With the cosine, the point is scaled so that its smallest positive
        coordinate is 1.
        """
        grams, columns = self._longest
        values = np.maximum(point[columns], 0.0)
        if criterion.cosine and values.any():
            values = values / values[values > _FAINT * values.max()].min()
        counts = np.rint(values)
        n = self.n_gram_lengths.stop - 1
        if counts.any() and counts.sum() + n - 1 in self.string_lengths:
            path = eulerian_path(grams, counts.astype(np.int64))
            if path is not None:
                yield path

    @cached_property
    def _longest(self) -> tuple[list[tuple[int, ...]], Numbers]:
        """The known n-grams of the largest length, and their columns."""
        n = self.n_gram_lengths.stop - 1
        own = [(gram, column) for gram, column in self.vocabulary.items() if len(gram) == n]
        grams = [tuple(self._to_numbers(gram)) for gram, _ in own]
        return grams, np.array([column for _, column in own], dtype=np.int64)

    def _lengths_around(self, length: int) -> Numbers:
        """Lengths of strings with n-grams, those close to a given length first."""
        longer = [m for m in self.string_lengths if m >= self.n_gram_lengths.start]
        return np.array(sorted(longer, key=lambda m: (abs(m - length), m)), dtype=np.int64)

    def _to_numbers(self, tokens: Tokens) -> list[int]:
        return [self._number[token] for token in tokens]

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return {token: i for i, token in enumerate(self.alphabet)}

    @cached_property
    def _automaton(self) -> Automaton:
        columns = {tuple(self._to_numbers(gram)): j for gram, j in self.vocabulary.items()}
        n_tokens = len(self.alphabet)
        return build_automaton(columns, n_tokens, self.n_gram_lengths, self.string_lengths)

    def _fits(self) -> bool:
        """Whether the memory of the search is within its limit."""
        if self.string_lengths.stop > _CELLS_AT_MOST:
            return False
        widest = max(len(self._automaton.token), len(self.alphabet))
        return self.string_lengths.stop * widest <= _CELLS_AT_MOST

    def _warn(self, limit: str, n_stopped: int, n: int, advice: str) -> None:
        warn_caller(
            f"the search for the best string stopped at {limit} for {n_stopped} of {n} points, so "
            f"that better strings may exist; {advice}reduce the range of string_lengths.",
            DecodeWarning,
        )


def _lower_bound(point: Floats, criterion: Criterion) -> float:
    """Bound the criterion for all counts, whether or not they belong to a string."""
    values = np.maximum(point, 0.0)
    if criterion.cosine:
        return min(0.0, criterion.offset - float(np.sqrt((values**2).sum())))
    counts = np.rint(values)
    return float((0.5 * counts**2 - counts * point).sum())


def build_automaton(
    columns: Mapping[tuple[int, ...], int],
    n_tokens: int,
    n_gram_lengths: range,
    string_lengths: range,
) -> Automaton:
    """Build the Aho-Corasick automaton of n-grams, which are tuples of token numbers."""
    prefixes = {gram[:k] for gram in columns for k in range(len(gram) + 1)} | {()}
    states = sorted(prefixes, key=lambda prefix: (len(prefix), prefix))
    number = {prefix: s for s, prefix in enumerate(states)}
    depth = np.array([len(prefix) for prefix in states])
    fail = np.zeros(len(states), dtype=np.int64)
    for s, prefix in enumerate(states[1:], start=1):
        fail[s] = next(
            number[rest] for k in range(len(prefix)) if (rest := prefix[k + 1 :]) in number
        )
    parents = np.array([number[prefix[:-1]] for prefix in states[1:]], dtype=np.int64)
    column = np.array([columns.get(prefix, -1) for prefix in states])
    known = (column >= 0).astype(np.int64)
    for s in range(1, len(states)):
        known[s] += known[fail[s]]
    token = np.array([-1, *(prefix[-1] for prefix in states[1:])])
    shortest, longest = n_gram_lengths.start, n_gram_lengths.stop - 1
    starting = {prefix[0] for prefix in states[1:]}
    return Automaton(
        first_child=1 + np.searchsorted(parents, np.arange(len(states) + 1)),
        token=token,
        fail=fail,
        depth=depth,
        column=column,
        known=known,
        n_within=np.searchsorted(depth, np.arange(longest + 1), side="right"),
        ending=np.clip(np.arange(string_lengths.stop) - shortest + 1, 0, len(n_gram_lengths)),
        shortest=shortest,
        longest=longest,
        unstarted=next((t for t in range(n_tokens) if t not in starting), -1),
    )

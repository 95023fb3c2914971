"""Strings and sequences of tokens with the n-gram spectrum kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from hilboost.backends.strings.automaton import Criterion
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.core.plain_values import is_integer, is_pair
from hilboost.outputs.agreement import equal, minus_edits
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.label_checks import as_strings, in_order, is_sequence
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates
from hilboost.outputs.string_preimages import StringSearch

LONGEST = 100_000
"""Maximum length of strings in exact decoding, unless training strings are longer."""


@dataclass(frozen=True)
class Strings(OutputSpace):
    """Output space of strings, embedded by n-gram counts ``φ(y)`` (Leslie, Eskin, Noble 2002).

    A string is a ``str``, whose tokens are characters, or a list or tuple of tokens, such as words
    or integers.

    Parameters
    ----------
    n : int or (int, int), default=3
        Length of the n-grams in tokens, or the minimum and maximum length.
    normalize : bool, default=True
        Whether to divide by the norm, so that ``k(y, y) = 1``.
    string_lengths : (int, int) or None, default=None
        Minimum and maximum length of the strings among which ``"exact"`` and ``"exact_cosine"``
        search; by default, the training strings' symbols.
    max_nodes : int, default=200_000
        Number of prefixes of strings, and equivalent work on bounds, after which the search for one
        point stops.

    Notes
    -----
    A string without n-grams, such as an empty string or one shorter than ``n``, is embedded at the
    origin; ``n=(1, 3)`` distinguishes short strings.  Strings are not preprocessed: the caller
    normalizes case and whitespace if needed.  The dense points (n, r) contain only the n-grams of
    the training strings, but ``norms`` counts all n-grams.  Tokens are hashable; those that are
    equal, such as 1 and 1.0, are one token.  Predictions are a list of str or of tuples.

    Decoding methods: ``"nearest"`` and ``"cosine"`` choose among the distinct training strings.
    ``"exact"`` and ``"exact_cosine"`` search all strings of the given lengths over the tokens of
    the training strings, by distance and by angle.  The string whose counts are the rounded point
    is found as an Eulerian path (Cortes, Mohri and Weston 2005) in linear time.  Otherwise a
    branch-and-bound search, whose bounds are shortest paths in the automaton of the n-grams,
    proves the best string or stops at ``max_nodes`` with a ``DecodeWarning`` and the best string
    found.  It is never worse than the best training string of an allowed length, which is returned
    in case of a tie.  The search takes O(L S) memory and O(L S) time per bound, where L is the
    maximum length and S the number of prefixes of n-grams, and exponential time in the worst case.

    Metrics: ``"accuracy"`` is the share of equal strings, ``"edit"`` minus the mean number of edits
    (insertions, deletions and substitutions of a token).  Both are decoded by ``"nearest"``.
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"string": {}}

    n: int | tuple[int, int] = 3
    normalize: bool = True
    string_lengths: tuple[int, int] | None = None
    max_nodes: int = 200_000

    def fit(self, labels: Any) -> StringEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        lengths = _range(self.n, "n", 1)
        if not is_integer(self.max_nodes) or self.max_nodes < 1:
            raise InvalidParameter(
                f"max_nodes must be a positive integer; got {shown(self.max_nodes)}."
            )
        among = None
        if self.string_lengths is not None:
            among = _range(self.string_lengths, "string_lengths", 0)
            if among.stop > LONGEST + 1:
                raise InvalidParameter(
                    f"string_lengths must not exceed {LONGEST}; got {shown(self.string_lengths)}."
                )
        training = list(dict.fromkeys(as_strings(labels)))
        grams = in_order({gram for string in training for gram in _count(string, lengths)})
        if not grams:
            raise InvalidData(
                f"no string of Y, rows 0 to {len(labels) - 1}, contains n-grams of {lengths.start} "
                f"{'tokens' if is_sequence(training[0]) else 'characters'}; use a smaller n."
            )
        vocabulary = {gram: j for j, gram in enumerate(grams)}
        if among is None:
            sizes = [len(string) for string in training]
            among = range(min(sizes), max(sizes) + 1)
        return StringEmbedding(
            training, vocabulary, lengths, self.normalize, among, int(self.max_nodes)
        )


def _range(given: object, name: str, least: int) -> range:
    """Validate a length or a pair of lengths."""
    ends: Any = (given, given) if is_integer(given) else given
    if not (is_pair(ends) and all(map(is_integer, ends)) and least <= ends[0] <= ends[1]):
        sign = "positive" if least else "nonnegative"
        raise InvalidParameter(
            f"{name} must be a {sign} integer or an ascending pair of {sign} integers; got "
            f"{given!r}."
        )
    return range(int(ends[0]), int(ends[1]) + 1)


@dataclass(frozen=True)
class StringEmbedding(ChoosingEmbedding):
    """Fitted embedding of strings by counts of the n-grams of the training strings."""

    file_name = "strings"
    label_kind = "texts"

    training: list[Any]  # the distinct training strings
    vocabulary: Mapping[Any, int]  # column of each n-gram
    lengths: range  # lengths of the n-grams
    normalize: bool
    string_lengths: range  # lengths of the strings of exact decoding
    max_nodes: int
    ways: ClassVar[tuple[str, ...]] = (*CANDIDATE_WAYS, "exact", "exact_cosine")

    def checked(self, labels: object, what: str = "Y") -> list[Any]:
        """Validate strings, and convert lists of tokens to tuples."""
        return as_strings(labels, what, self._of_tokens)

    def points(self, labels: list[Any]) -> Floats:
        """Return the counts of n-grams, (n, r)."""
        return self._candidates(labels).codes

    def _formula(self, way: str) -> Callable[[Floats], list[Any]]:
        return partial(self._exact, way)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Share of equal strings, and number of edits."""
        return {
            "accuracy": OutputMetric("nearest", self._on_checked(equal)),
            "edit": OutputMetric("nearest", self._on_checked(minus_edits)),
        }

    def settled(self, labels: object) -> list[Any]:
        """Convert lists of tokens to tuples."""
        return self.checked(labels)

    @property
    def _of_tokens(self) -> bool:
        return is_sequence(self.training[0])

    def _exact(self, way: str, raw: Floats) -> list[Any]:
        by_angle = way == "exact_cosine"
        offset = 0.5 if self.normalize and not by_angle else 0.0
        criterion = Criterion(bool(by_angle or self.normalize), offset)
        starts = [[self._search.alphabet[0]] * self.string_lengths.start] * len(raw)
        if self._allowed is not None:
            starts = self._allowed.choose(raw, "cosine" if by_angle else "nearest")
        found = self._search.best(raw, starts, criterion)
        if self._of_tokens:
            return [tuple(tokens) for tokens in found]
        return ["".join(map(str, tokens)) for tokens in found]

    @cached_property
    def _search(self) -> StringSearch:
        alphabet = in_order({token for string in self.training for token in string})
        return StringSearch(
            self.vocabulary, alphabet, self.lengths, self.string_lengths, self.max_nodes
        )

    @cached_property
    def _allowed(self) -> Candidates | None:
        """Training strings of the allowed lengths, in order, so that ties do not depend on rows."""
        allowed = [string for string in self.training if len(string) in self.string_lengths]
        return self._candidates(in_order(allowed)) if allowed else None

    def _candidates(self, labels: list[Any]) -> Candidates:
        """Count n-grams; those absent from the training strings count in norms only."""
        codes = np.zeros((len(labels), len(self.vocabulary)))
        squares = np.zeros(len(labels))
        for i, string in enumerate(labels):
            counts = _count(string, self.lengths)
            squares[i] = sum(count**2 for count in counts.values())
            for gram, count in counts.items():
                if gram in self.vocabulary:
                    codes[i, self.vocabulary[gram]] = count
        if self.normalize:
            codes /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
            squares = np.where(squares > 0, 1.0, 0.0)
        return Candidates(labels, codes, squares)


def _count(string: Any, lengths: range) -> Counter[Any]:
    """Count the occurrences of each n-gram."""
    return Counter(
        string[begin : begin + length]
        for length in range(lengths.start, min(lengths.stop, len(string) + 1))
        for begin in range(len(string) - length + 1)
    )

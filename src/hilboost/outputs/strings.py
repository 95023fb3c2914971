"""Strings with the n-gram spectrum kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice, Embedding, OutputSpace, ShortNames
from hilboost.kernels.validation import is_integer
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates, decode
from hilboost.outputs.row_checks import as_objects


@dataclass(frozen=True)
class Strings(OutputSpace):
    """Output space of strings, embedded by n-gram counts ``φ(y)`` (Leslie, Eskin, Noble 2002).

    Parameters
    ----------
    n : int or (int, int), default=3
        Length of the n-grams in characters, or the minimum and maximum length.
    normalize : bool, default=True
        Whether to divide by the norm, so that ``k(y, y) = 1``.

    Notes
    -----
    A string without n-grams, such as an empty string or one shorter than ``n``, is embedded at the
    origin; ``n=(1, 3)`` distinguishes short strings.  Strings are not preprocessed: the caller
    normalizes case and whitespace if needed.  The dense points (n, r) contain only the n-grams of
    the training strings, but ``norms`` counts all n-grams.  Decoding methods: ``"nearest"`` and
    ``"cosine"`` choose among the distinct training strings.  Predictions are a list of str.
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"string": {}}

    n: int | tuple[int, int] = 3
    normalize: bool = True

    def fit(self, labels: Any) -> StringEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        lengths = self._lengths()
        training = list(dict.fromkeys(_strings(labels)))
        grams = sorted({gram for string in training for gram in _count(string, lengths)})
        if not grams:
            raise InvalidData(
                f"no string of Y, rows 0 to {len(labels) - 1}, contains n-grams of {lengths.start} "
                "characters; use a smaller n."
            )
        vocabulary = {gram: j for j, gram in enumerate(grams)}
        return StringEmbedding(training, vocabulary, lengths, self.normalize)

    def _lengths(self) -> range:
        ends: Any = (self.n, self.n) if is_integer(self.n) else self.n
        if (
            not isinstance(ends, tuple | list)
            or len(ends) != 2
            or not all(map(is_integer, ends))
            or not 1 <= ends[0] <= ends[1]
        ):
            raise InvalidParameter(
                f"n must be a positive integer or an ascending pair of positive integers; got "
                f"{self.n!r}."
            )
        return range(int(ends[0]), int(ends[1]) + 1)


@dataclass(frozen=True)
class StringEmbedding(Embedding):
    """Fitted embedding of strings by counts of the n-grams of the training strings.

    Attributes
    ----------
    training : list of str
        The distinct training strings.
    vocabulary : mapping of str to int
        Column of each n-gram.
    lengths : range
        Lengths of the n-grams.
    normalize : bool
    """

    file_name = "strings"

    training: list[str]
    vocabulary: Mapping[str, int]
    lengths: range
    normalize: bool
    ways: ClassVar[tuple[str, ...]] = CANDIDATE_WAYS

    def encode(self, labels: Any) -> Floats:
        """Encode labels as points, (n, r)."""
        return self._codes_and_squares(_strings(labels))[0]

    def norms(self, labels: Any) -> Floats:
        """Kernel values ``k(y, y)``, (n,), including n-grams absent from the training strings."""
        return self._norms(self._codes_and_squares(_strings(labels))[1])

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> list[str]:
        """Return the nearest training strings or candidates."""
        return list(decode(self, raw, way, candidates, lambda: self._own, self._given))

    def training_labels(self) -> Any:
        """Return the distinct training strings."""
        return self.training

    @cached_property
    def _own(self) -> Candidates:
        return self._candidates(self.training)

    def _given(self, labels: Any) -> Candidates:
        return self._candidates(_strings(labels, "candidates"))

    def _candidates(self, strings: list[str]) -> Candidates:
        codes, squares = self._codes_and_squares(strings)
        return Candidates(strings, codes, self._norms(squares))

    def _norms(self, squares: Floats) -> Floats:
        return np.where(squares > 0, 1.0, 0.0) if self.normalize else squares

    def _codes_and_squares(self, strings: list[str]) -> tuple[Floats, Floats]:
        """Compute points, and squared norms of all counts before normalization."""
        codes = np.zeros((len(strings), len(self.vocabulary)))
        squares = np.zeros(len(strings))
        for i, string in enumerate(strings):
            counts = _count(string, self.lengths)
            squares[i] = sum(count**2 for count in counts.values())
            for gram, count in counts.items():
                if gram in self.vocabulary:
                    codes[i, self.vocabulary[gram]] = count
        if self.normalize:
            codes /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
        return codes, squares


def _count(string: str, lengths: range) -> Counter[str]:
    """Count the occurrences of each n-gram."""
    return Counter(
        string[begin : begin + length]
        for length in range(lengths.start, min(lengths.stop, len(string) + 1))
        for begin in range(len(string) - length + 1)
    )


def _strings(labels: Any, what: str = "Y") -> list[str]:
    """Validate strings."""
    strings = as_objects(labels, "strings", what)
    for i, string in enumerate(strings):
        if not isinstance(string, str):
            raise InvalidData(
                f"row {i} of {what} is {string!r:.60} ({type(string).__name__}); each output must "
                "be a string."
            )
    return strings

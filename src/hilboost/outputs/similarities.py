"""Kernels on labels: kernels on rows of numbers, and functions of users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.outputs.label_checks import as_numbers

WHAT = "the output kernel"


class Similarity(Protocol):
    """Protocol of kernels on labels."""

    def __call__(self, A: Any, B: Any) -> Floats:
        """Kernel matrix ``k(a_i, b_j)``, (a, b)."""

    def pairs(self, A: Any, B: Any) -> Floats:
        """Kernel values ``k(a_i, b_i)`` of corresponding labels, (a,)."""

    def at(self, first: int) -> Similarity:
        """Return the kernel for labels whose rows are numbered from ``first`` in messages."""


@dataclass(frozen=True)
class SimilarityOfRows:
    """A kernel on rows of numbers."""

    kernel: Kernel

    def __call__(self, A: Floats, B: Floats) -> Floats:
        """Evaluate the kernel on all pairs of rows."""
        return np.asarray(evaluate(self.kernel, A, B), dtype=np.float64)

    def pairs(self, A: Floats, B: Floats) -> Floats:
        """Evaluate the kernel on corresponding rows."""
        return _blockwise(self, A, B, 64)

    def at(self, first: int) -> SimilarityOfRows:
        """Return the kernel itself, whose rows are not named in messages."""
        return self


@dataclass(frozen=True)
class SimilarityFunction:
    """A user-defined kernel function on labels, whose return values are validated."""

    function: Callable[..., Any]
    pairwise: bool
    first: int = 0

    def at(self, first: int) -> SimilarityFunction:
        """Return the function for rows that are numbered from ``first``."""
        return replace(self, first=first)

    def __call__(self, A: Any, B: Any) -> Floats:
        """Evaluate the function on all pairs of labels."""
        if self.pairwise:
            same = A is B
            numbers = [
                [self._number(i, a, j if same else None, b) for j, b in enumerate(B)]
                for i, a in enumerate(A, self.first)
            ]
            return np.array(numbers, dtype=np.float64).reshape(len(A), len(B))
        answer = self.function(A, B)
        if (values := as_numbers(answer)) is None:
            raise InvalidData(
                f"{WHAT} returned {type(answer).__name__} {answer!r:.60}; it must return a "
                f"matrix of numbers of shape ({len(A)}, {len(B)})."
            )
        if values.shape != (len(A), len(B)):
            raise InvalidData(
                f"{WHAT} returned an array of shape {values.shape} for {len(A)} and {len(B)} "
                f"labels; it must return shape ({len(A)}, {len(B)}). For a function of two single "
                "labels, set pairwise=True."
            )
        return values

    def pairs(self, A: Any, B: Any) -> Floats:
        """Evaluate the function on corresponding labels."""
        if not self.pairwise:
            return _blockwise(self, A, B, 1)
        rows = enumerate(zip(A, B, strict=True), self.first)
        numbers = [self._number(i, a, i, b) for i, (a, b) in rows]
        return np.array(numbers, dtype=np.float64)

    def _number(self, i: int, a: object, j: int | None, b: object) -> float:
        """Evaluate one pair; ``j`` is ``None`` if ``b`` is a training label."""
        try:
            answer = self.function(a, b)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise InvalidData(
                f"{WHAT} failed for {_pair(i, a, j, b)}: {type(error).__name__}: {error}. It must "
                "accept any two labels."
            ) from error
        number = as_numbers(answer)
        if number is None or number.ndim or answer is None:
            raise InvalidData(
                f"{WHAT} returned {type(answer).__name__} {answer!r:.60} for {_pair(i, a, j, b)}; "
                "with pairwise=True, it must return one number."
            )
        return float(number)


def _pair(i: int, a: object, j: int | None, b: object) -> str:
    other = f"the training label {b!r:.60}" if j is None else f"row {j}, {b!r:.60}"
    return f"row {i}, {a!r:.60}, and {other}"


def _blockwise(similarity: Similarity, A: Any, B: Any, size: int) -> Floats:
    """Compute the diagonal in blocks of ``size`` rows."""
    blocks = [slice(i, i + size) for i in range(0, len(A), size)]
    return np.concatenate([np.diagonal(similarity(A[block], B[block])) for block in blocks])

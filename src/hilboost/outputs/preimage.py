"""Pre-images: the label whose point lies nearest to a predicted one (G2007, eq. 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, unknown_name
from hilboost.core.output_space import Choice, Embedding
from hilboost.outputs.row_checks import count_rows

_CELLS_AT_ONCE = 2**22

CANDIDATE_WAYS = ("nearest", "cosine")
"""Ways to choose among candidates: by distance, or by angle."""


def nearest(
    raw: Floats,
    codes: Floats,
    norms: Floats,
    way: str = "nearest",
    allowed: Sequence[Sequence[int]] | None = None,
) -> NDArray[np.int64]:
    """Number of the best candidate of every row.

    Parameters
    ----------
    raw : (n, r) float64
        Predicted points ``F(x)``.
    codes : (c, r) float64
        Points of the candidates.
    norms : (c,) float64
        ``k(y', y')`` of the candidates.
    way : {"nearest", "cosine"}
        Least ``k(y', y') - 2 ⟨φ(y'), F(x)⟩``, or greatest ``⟨φ(y'), F(x)⟩ / |φ(y')|``, where a
        candidate at the origin scores zero.
    allowed : sequence of sequences of int, or None
        Candidates each row may take.

    Returns
    -------
    (n,) int64
        The first one of equals.

    Raises
    ------
    InvalidData
        No candidates, for all rows or for one.

    Notes
    -----
    Cost O(n c r), as matrix products over blocks of rows.
    """
    if len(codes) == 0:
        raise InvalidData("there are no candidates to choose predictions from; give at least one.")
    best = np.empty(len(raw), dtype=np.int64)
    if way == "cosine":
        length = np.sqrt(norms)
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        codes, offset = codes * scale[:, None], np.zeros(len(codes))
    else:
        offset = 0.5 * norms
    if allowed is not None:
        for i, among in enumerate(_checked_allowed(allowed, len(raw), len(codes))):
            best[i] = among[np.argmin(offset[among] - codes[among] @ raw[i])]
        return best
    size = max(1, _CELLS_AT_ONCE // len(codes))
    for begin in range(0, len(raw), size):
        cost = raw[begin : begin + size] @ -codes.T
        cost += offset
        best[begin : begin + size] = cost.argmin(axis=1)
    return best


def _checked_allowed(
    allowed: Sequence[Sequence[int]], n: int, n_candidates: int
) -> list[NDArray[np.int64]]:
    if count_rows(allowed, "lists of candidate numbers", "allowed") != n:
        raise InvalidData(
            f"allowed has entries for {len(allowed)} rows, X has {n}; give one list of candidate "
            "numbers for every row."
        )
    checked = []
    for i, numbers in enumerate(allowed):
        try:
            among = np.asarray(numbers)
        except ValueError:  # lists of several lengths
            among = np.empty((0, 0))
        if among.ndim != 1 or len(among) == 0 or among.dtype.kind not in "iu":
            raise InvalidData(
                f"allowed[{i}] must hold the numbers of one candidate or more; got {numbers!r}."
            )
        odd = among[(among < 0) | (among >= n_candidates)]
        if len(odd):
            raise InvalidData(
                f"allowed[{i}] names candidate {odd[0]}; there are candidates 0 to "
                f"{n_candidates - 1}."
            )
        checked.append(among.astype(np.int64))
    return checked


def take(labels: Any, index: NDArray[np.int64]) -> Any:
    """``labels[index]`` for arrays and for lists."""
    return labels[index] if isinstance(labels, np.ndarray) else [labels[i] for i in index]


@dataclass(frozen=True)
class Candidates:
    """Labels with their points, ready to be chosen from.

    Attributes
    ----------
    labels : (c, …) array or list
    codes : (c, r) float64
    norms : (c,) float64
    """

    labels: Any
    codes: Floats
    norms: Floats

    @classmethod
    def of(cls, labels: Any, codes: Floats) -> Candidates:
        """Labels whose points leave nothing out: ``k(y, y) = |φ(y)|²``.

        Parameters
        ----------
        labels : (c, …) array or list
        codes : (c, r) float64

        Returns
        -------
        Candidates
        """
        return cls(labels, codes, np.einsum("ij,ij->i", codes, codes))

    def choose(self, raw: Floats, way: str, allowed: Sequence[Sequence[int]] | None = None) -> Any:
        """The best label of every row.

        Parameters
        ----------
        raw : (n, r) float64
            Predicted points.
        way : {"nearest", "cosine"}
        allowed : sequence of sequences of int, optional
            Numbers of the candidates that each row may take.

        Returns
        -------
        (n, …) array or list of n labels

        Raises
        ------
        InvalidData
            No candidates, for all rows or for one.
        """
        return take(self.labels, nearest(raw, self.codes, self.norms, way, allowed))


def decode(
    embedding: Embedding,
    raw: Floats,
    way: str,
    candidates: Choice | None,
    training: Callable[[], Candidates],
    given: Callable[[Any], Candidates] | None = None,
    formula: Callable[[Floats], Any] | None = None,
) -> Any:
    """Labels chosen among the candidates given, or else among the training labels.

    Parameters
    ----------
    embedding : Embedding
    raw : (n, r) float64
    way : str
        One of the embedding's.  With candidates, one that is not in ``CANDIDATE_WAYS`` counts as
        ``"nearest"``.
    candidates : Choice or None
    training : callable
        Returns the candidates where none are given.
    given : callable, optional
        Checks the labels of ``candidates`` and returns them with their points; by default they are
        encoded by the embedding.
    formula : callable, optional
        Labels for points in all ways that are not in ``CANDIDATE_WAYS``; these need no candidates.

    Returns
    -------
    (n, …) array or list of n labels

    Raises
    ------
    InvalidParameter
        ``way`` is not one of the embedding's.
    InvalidData
        Candidates of another kind, or none.
    """
    if way not in embedding.ways:
        raise unknown_name("decode", way, embedding.ways)
    by = way if way in CANDIDATE_WAYS else "nearest"
    if candidates is not None:
        if not count_rows(candidates.labels, "labels", "candidates"):
            raise InvalidData("candidates is empty; give at least one label to choose from.")
        found = (given or partial(_encoded, embedding))(candidates.labels)
        return found.choose(raw, by, candidates.allowed)
    if formula is not None and way not in CANDIDATE_WAYS:
        return formula(raw)
    return training().choose(raw, by)


def _encoded(embedding: Embedding, labels: Any) -> Candidates:
    codes, norms = embedding.encode(labels), embedding.norms(labels)
    return Candidates(labels.to_numpy() if hasattr(labels, "to_numpy") else labels, codes, norms)

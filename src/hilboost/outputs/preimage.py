"""Pre-images: labels whose embeddings are closest to the predicted points (G2007, eq. 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, counted, shown, unknown_name
from hilboost.core.labels import take_labels
from hilboost.core.output_space import Choice, Embedding
from hilboost.core.records import brief_repr
from hilboost.kernels import Gaussian
from hilboost.kernels.gram import evaluate
from hilboost.outputs.label_checks import count_rows
from hilboost.tables.arrays import without_frame

_STEPS = 300
_HALVINGS = 6
_CLOSE = 1e-7  # relative improvement below which a row has converged
_FAINT = 1e-300  # avoids division by zero if all centers are far away


def climb(kernel: Gaussian, start: Floats, centers: Floats, weights: Floats) -> Floats:
    """Maximize ``Σ_j w_j k(c_j, y)`` over ``y`` (n, c) from an initial value, for each row.

    The fixed-point update ``y ← Σ_j w_j k(c_j, y) c_j / Σ_j w_j k(c_j, y)`` (Mika et al. 1999) is a
    step along the gradient.  Boosted weights may be negative, so a step that does not improve the
    objective is halved.  If the denominator is not positive, a plain gradient step is tried
    instead.  Each of at most 300 steps costs O(n p c).  Rows that have converged are skipped,
    most of them within 60.
    """
    found = start.copy()
    scale = kernel.length_scale
    C, Y = centers / scale, found / scale
    active = np.arange(len(Y))
    similar = evaluate(kernel, found, centers)
    value = np.einsum("ij,ij->i", weights, similar)
    for _ in range(_STEPS):
        W = weights[active] * similar
        total = W.sum(axis=1)
        # In scaled coordinates, the gradient is W C - total Y.  The update divides it by total.
        gradient = W @ C - total[:, None] * Y[active]
        usual = np.maximum(np.abs(W).sum(axis=1), _FAINT)
        length = 1 / np.where(total > 1e-3 * usual, total, usual)
        step = gradient * length[:, None]
        moved, new_value, similar = _search(
            kernel, Y[active], step, centers, weights[active], value[active], similar
        )
        improved = new_value - value[active] > _CLOSE * np.abs(new_value)
        Y[active], value[active] = moved, new_value
        active, similar = active[improved], similar[improved]
        if not len(active):
            break
    return np.asarray(Y * scale)


def _search(
    kernel: Gaussian,
    Y: Floats,
    step: Floats,
    centers: Floats,
    weights: Floats,
    value: Floats,
    similar: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Halve the steps of the rows until they increase the objective; other rows do not move.

    ``Y`` and ``step`` (n, c) are in scaled coordinates.  Return ``Y``, its objective (n,) and its
    kernel values (n, p) after the steps.
    """
    Y, value, similar = Y.copy(), value.copy(), similar.copy()
    rows = np.arange(len(Y))
    for halving in range(_HALVINGS):
        tried = Y[rows] + step[rows] / 2**halving
        similar_tried = evaluate(kernel, tried * kernel.length_scale, centers)
        value_tried = np.einsum("ij,ij->i", weights[rows], similar_tried)
        better = value_tried > value[rows]
        hit = rows[better]
        Y[hit], value[hit], similar[hit] = tried[better], value_tried[better], similar_tried[better]
        rows = rows[~better]
        if not len(rows):
            break
    return Y, value, similar


_CELLS_AT_ONCE = 2**22

CANDIDATE_WAYS = ("nearest", "cosine")
"""Decoding methods that choose among candidates, by distance or by angle."""


def nearest(
    raw: Floats,  # (n, r) float64: predicted points ``F(x)``
    codes: Floats,  # (c, r) float64: embedded candidates
    norms: Floats,  # (c,) float64: ``k(y', y')`` of the candidates
    # ``"nearest"`` minimizes ``k(y', y') - 2 ⟨φ(y'), F(x)⟩``.  ``"cosine"`` maximizes ``⟨φ(y'),
    # F(x)⟩ / |φ(y')|``, where a candidate at the origin has score zero.
    way: str = "nearest",
    # indices of the candidates that are allowed for each row
    allowed: Sequence[Sequence[int]] | None = None,
) -> Ints:
    """Find the index of the best candidate for each row, (n,); the first of equal ones.

    The cost is O(n c r), in matrix products over blocks of rows.
    """
    if len(codes) == 0:
        raise InvalidData("there are no candidates; pass at least one label to choose from.")
    best = np.empty(len(raw), dtype=np.int64)
    if way == "cosine":
        length = np.sqrt(norms)
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        codes, offset = codes * scale[:, None], np.zeros(len(codes))
    else:
        offset = 0.5 * norms
    if allowed is not None:
        for i, among in enumerate(checked_allowed(allowed, len(raw), len(codes))):
            best[i] = among[np.argmin(offset[among] - codes[among] @ raw[i])]
        return best
    size = max(1, _CELLS_AT_ONCE // len(codes))
    for begin in range(0, len(raw), size):
        cost = raw[begin : begin + size] @ -codes.T
        cost += offset
        best[begin : begin + size] = cost.argmin(axis=1)
    return best


def checked_allowed(allowed: Sequence[Sequence[int]], n: int, n_candidates: int) -> list[Ints]:
    """Return the indices of the candidates that are allowed for each of n rows."""
    if count_rows(allowed, "lists of candidate indices", "allowed") != n:
        raise InvalidData(
            f"allowed has {len(allowed)} entries, but X has {counted(n, 'row')}; pass one list of "
            "candidate indices per row."
        )
    checked = []
    for i, numbers in enumerate(allowed):
        try:
            among = np.asarray(numbers)
        except ValueError:  # nested lists of unequal lengths
            among = np.empty((0, 0))
        if among.ndim != 1 or len(among) == 0 or among.dtype.kind not in "iu":
            raise InvalidData(
                f"allowed[{i}] must contain the index of at least one candidate; "
                f"got {shown(numbers)}."
            )
        odd = among[(among < 0) | (among >= n_candidates)]
        if len(odd):
            raise InvalidData(
                f"allowed[{i}] contains index {odd[0]}; candidates have indices 0 to "
                f"{n_candidates - 1}."
            )
        checked.append(among.astype(np.int64))
    return checked


@dataclass(frozen=True)
class Candidates:
    """Candidate labels with their embeddings.

    Attributes
    ----------
    labels : (c, …) array or list
    codes : (c, r) float64
    norms : (c,) float64
    """

    labels: Any
    codes: Floats
    norms: Floats

    __repr__ = brief_repr

    @classmethod
    def of(cls, labels: object, codes: Floats) -> Candidates:
        """Create candidates with exact embeddings, for which ``k(y, y) = |φ(y)|²``.

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
        """Choose the best label for each row.

        Parameters
        ----------
        raw : (n, r) float64
            Predicted points.
        way : {"nearest", "cosine"}
        allowed : sequence of sequences of int, optional
            Indices of the candidates that are allowed for each row.

        Returns
        -------
        (n, …) array or list of n labels

        Raises
        ------
        InvalidData
            There are no candidates for all rows or for one row.
        """
        return take_labels(self.labels, nearest(raw, self.codes, self.norms, way, allowed))


def decode(
    embedding: Embedding,
    raw: Floats,
    way: str,
    candidates: Choice | None,
    training: Callable[[], Candidates],
    given: Callable[[Any], Candidates] | None = None,
    formula: Callable[[Floats], Any] | None = None,
) -> Any:
    """Decode points by choosing among the given candidates, or else among the training labels.

    Parameters
    ----------
    embedding : Embedding
    raw : (n, r) float64
    way : str
        One of the embedding's decoding methods.  With candidates, a method that is not in
        ``CANDIDATE_WAYS`` is treated as ``"cosine"`` if its name ends so, and else as
        ``"nearest"``.
    candidates : Choice or None
    training : callable
        Returns the default candidates.
    given : callable, optional
        Validates the labels of ``candidates`` and returns them with their embeddings.  By default,
        the embedding encodes them.
    formula : callable, optional
        Decodes points with all methods that are not in ``CANDIDATE_WAYS``; these need no
        candidates.

    Returns
    -------
    (n, …) array or list of n labels

    Raises
    ------
    InvalidParameter
        ``way`` is not one of the embedding's decoding methods.
    InvalidData
        The candidates have the wrong type, or there are none.
    """
    if way not in embedding.ways:
        raise unknown_name("decode", way, embedding.ways)
    by = "cosine" if way.endswith("cosine") else "nearest"
    if candidates is not None:
        if not count_rows(candidates.labels, "labels", "candidates"):
            raise InvalidData("candidates is empty; pass at least one label to choose from.")
        found = (given or partial(_encoded, embedding))(candidates.labels)
        return found.choose(raw, by, candidates.allowed)
    if formula is not None and way not in CANDIDATE_WAYS:
        return formula(raw)
    return training().choose(raw, by)


def _encoded(embedding: Embedding, labels: object) -> Candidates:
    codes, norms = embedding.encode(labels), embedding.norms(labels)
    return Candidates(without_frame(labels), codes, norms)

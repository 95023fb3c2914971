"""Label sets (multi-label classification) with the linear kernel of their indicators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, InvalidParameter, first_few, unknown_name
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.core.plain_values import is_array_or_list, positive_numbers
from hilboost.outputs.agreement import all_equal, f1_of_sets, share_equal
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.label_checks import as_objects, as_table, in_order_of, refuse_rows
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates
from hilboost.tables.arrays import columns_of
from hilboost.tables.columns import is_missing_value
from hilboost.tables.sparse import check_sparse, is_sparse

Bools = NDArray[np.bool_]

_WEIGHTINGS = ("uniform", "inverse_frequency")
_THRESHOLD = 0.5


@dataclass(frozen=True)
class LabelSets(OutputSpace):
    """Output space of label sets: ``φ(y)_l = √w_l`` if label ``l`` is in ``y``, else 0.

    Labels are an array, a sparse matrix or a data frame of zeros and ones, (n, L), or a list of
    sets (or lists) of hashable labels.  Predictions are an array of zeros and ones with the dtype
    of the training labels, or a list of sets.  Sets may be empty.  An empty set is embedded at the
    origin, and its cosine with any point is 0.

    Parameters
    ----------
    weighting : {"uniform", "inverse_frequency"}, sequence of float or mapping, default="uniform"
        Label weights ``w``.  ``"uniform"`` uses ones.  ``"inverse_frequency"`` uses the inverse of
        the number of training sets with the label, scaled to mean 1.  A sequence holds one
        positive number per label, in the order of the columns or of the sorted labels.  A mapping
        assigns a number to each label.

    Notes
    -----
    Decoding methods:

    - ``"nearest"`` and ``"cosine"`` choose among the distinct training sets.
    - ``"threshold"`` selects the labels with score ``F(x)_l / √w_l`` of at least 1/2.  This is the
      exact pre-image and optimal for the Hamming loss.
    - ``"f1"`` uses the scores, clipped to [0, 1], as probabilities ``p`` and selects the ``k``
      labels with the largest probabilities, where ``k`` maximizes
      ``2 Σ_{top k} p / (k + Σ p)``, the plug-in approximation of the expected F1.  The value of
      the empty set is ``Π (1 - p_l)``, because F1 is 1 if both sets are empty and 0 if one is.
    - ``"top"`` selects as many labels as the average training set has, and at least one.

    Decoding costs O(n c L) with ``c`` candidates, and O(n L log L) otherwise.

    Metrics: ``"f1"`` is the mean F1 of the sets (decoded by ``"f1"``), ``"hamming"`` the share of
    right indicators (``"threshold"``), ``"subset_accuracy"`` the share of sets that are equal
    (``"nearest"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"label_set": {}}

    weighting: str | Sequence[float] | Mapping[Any, float] = "uniform"

    def fit(self, labels: object) -> LabelSetEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        found = _table_of(labels)
        if found is None:
            rows = _sets(labels)
            names = _ordered({label for row in rows for label in row})
            table, dtype = _indicators(rows, {name: j for j, name in enumerate(names)}), None
        else:
            table, names, dtype = _ones(found), _column_names(labels, found), _dtype_of(found)
        if not table.any():
            raise InvalidData(
                f"all label sets, rows 0 to {len(table) - 1}, are empty; at least one must contain "
                "a label."
            )
        return LabelSetEmbedding(
            training=np.unique(table, axis=0),
            names=names,
            scale=np.sqrt(self._weights(table, names)),
            mean_size=max(1, round(float(table.sum(axis=1).mean()))),
            dtype=dtype,
        )

    def _weights(self, table: Bools, names: tuple[Hashable, ...]) -> Floats:
        """Compute the label weights, (L,)."""
        if isinstance(self.weighting, str):
            if self.weighting not in _WEIGHTINGS:
                raise unknown_name("weighting", self.weighting, _WEIGHTINGS)
            if self.weighting == "uniform":
                return np.ones(len(names))
            rarity = 1 / np.maximum(table.sum(axis=0), 1)
            return np.asarray(rarity / rarity.mean())
        weights = positive_numbers(in_order_of(names, "weighting", self.weighting, "label"))
        if weights is None or weights.shape != (len(names),):
            raise InvalidParameter(
                f"weighting must contain one positive, finite number for each of the {len(names)} "
                f"labels; got {self.weighting!r:.80}."
            )
        return weights


@dataclass(frozen=True)
class LabelSetEmbedding(ChoosingEmbedding):
    """Fitted embedding of label sets by weighted indicators."""

    file_name = "label_sets"
    label_kind = "sets"

    training: Bools  # (c, L) bool: the distinct training sets
    names: tuple[Hashable, ...]  # the L labels
    scale: Floats  # (L,) float64: ``√w``
    mean_size: int  # average number of labels per training set, rounded
    dtype: np.dtype | None  # the dtype of the label array; ``None`` if labels are sets
    ways: ClassVar[tuple[str, ...]] = (*CANDIDATE_WAYS, "threshold", "f1", "top")

    def points(self, labels: Bools) -> Floats:
        """Return weighted indicators, (n, L)."""
        return labels * self.scale

    def _formula(self, way: str) -> Callable[[Floats], Bools]:
        return partial(self._by_scores, way)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """F1, share of right indicators, and share of equal sets."""
        return {
            "f1": OutputMetric("f1", self._on_checked(f1_of_sets)),
            "hamming": OutputMetric("threshold", self._on_checked(share_equal)),
            "subset_accuracy": OutputMetric("nearest", self._on_checked(all_equal)),
        }

    def settled(self, labels: object) -> Any:
        """Convert labels to the format of the training labels."""
        return self._as_given(self.checked(labels))

    def labels_of(self, codes: Floats) -> Any:
        """Return the sets at these points."""
        return self._as_given(codes > 0)

    def _by_scores(self, way: str, raw: Floats) -> Bools:
        """Decode by scores to sets that need not occur in training, (n, L)."""
        scores = raw / self.scale
        if way == "threshold":
            return scores >= _THRESHOLD
        if way == "top":
            return _largest(scores, np.full(len(raw), self.mean_size))
        scores = scores.clip(0, 1)
        return _largest(scores, _best_sizes(scores))

    def _candidates(self, labels: Bools) -> Candidates:
        return Candidates(labels, self.points(labels), labels @ (self.scale**2))

    def checked(self, labels: object, what: str = "Y") -> Bools:
        """Convert labels to indicators, (n, L)."""
        found = _table_of(labels, lists_are_rows=self.dtype is not None)
        if found is not None:
            columns = columns_of(labels)
            if columns is not None:
                self._check_columns(tuple(columns), what)
            return _ones(found, len(self.names), what)
        rows = _sets(labels, what)
        return _indicators(rows, {name: j for j, name in enumerate(self.names)}, what)

    def _check_columns(self, columns: tuple[Hashable, ...], what: str) -> None:
        if self.names != columns and self.names != tuple(range(len(columns))):
            new = [repr(name) for name in columns if name not in self.names]
            difference = f"{new[0]} is new" if new else "some are missing or in a different order"
            raise InvalidData(
                f"the columns of {what} differ from those in fit: {difference}; pass the columns "
                f"{first_few(self.names)}."
            )

    def _as_given(self, table: Bools) -> Any:
        if self.dtype is not None:
            return table.astype(self.dtype)
        return [{self.names[j] for j in np.flatnonzero(row)} for row in table]


def _best_sizes(proba: Floats) -> Ints:
    """Find the set sizes (n,) with the largest expected F1 (plug-in) from (n, L)."""
    top = np.cumsum(-np.sort(-proba, axis=1), axis=1)
    value = np.empty((len(proba), proba.shape[1] + 1))
    value[:, 0] = (1 - proba).prod(axis=1)
    # With at least one label, the denominator is at least one.
    value[:, 1:] = 2 * top / (np.arange(1, proba.shape[1] + 1) + top[:, -1:])
    return value.argmax(axis=1)


def _largest(scores: Floats, sizes: Ints) -> Bools:
    """Mark the ``sizes[i]`` labels with the largest scores; ties go to the first label."""
    order = np.argsort(-scores, axis=1, kind="stable")
    chosen = np.empty(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(scores.shape[1]) < sizes[:, None], axis=1)
    return chosen


def _table_of(labels: Any, lists_are_rows: bool | None = None) -> Any | None:
    """Return labels as a table of zeros and ones, (n, L), or ``None`` for lists of sets.

    The training labels determine whether lists of lists are rows of indicators.
    """
    if is_sparse(labels):
        check_sparse(labels, "Y")
        return labels.toarray()
    if columns_of(labels) is not None:
        return labels.to_numpy()
    if isinstance(labels, np.ndarray):
        return labels if labels.ndim > 1 else None
    if isinstance(labels, Sequence) and not isinstance(labels, str | bytes) and len(labels):
        rows = [row for row in labels if is_array_or_list(row)]
        if rows and lists_are_rows:
            return labels
        if lists_are_rows is None and len(rows) == len(labels) and _look_like_indicators(rows):
            return labels
    return None


def _look_like_indicators(rows: list[Any]) -> bool:
    """Whether lists are indicators: as label sets, they would be {0, 1} or repeat a label."""
    length = len(rows[0])
    if length < 2 or any(len(row) != length for row in rows):
        return False
    try:
        table = np.asarray(rows)
    except ValueError:
        return False
    return table.dtype.kind in "biuf" and bool(np.isin(table, (0, 1)).all())


def _ones(table: object, width: int | None = None, what: str = "Y") -> Bools:
    rows = as_table(table, "indicators (0 or 1), one for each label", width, what)
    odd = (rows != 0) & (rows != 1)
    refuse_rows(
        odd.any(axis=1),
        lambda i: (
            f"{what} contains {rows[i][odd[i]][0]:g} in row {i}; indicators must be 0 or 1. If the "
            "numbers are labels, pass a list of sets."
        ),
    )
    return rows == 1


def _dtype_of(table: object) -> np.dtype:
    dtype = np.asarray(table).dtype
    return dtype if dtype.kind in "biuf" else np.dtype(np.int64)


def _column_names(labels: object, table: Any) -> tuple[Hashable, ...]:
    columns = columns_of(labels)
    return tuple(range(np.shape(table)[1]) if columns is None else columns)


def _sets(labels: object, what: str = "Y") -> list[frozenset[Hashable]]:
    """Validate label sets."""
    rows = as_objects(labels, "label sets", what)
    for i, row in enumerate(rows):
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Collection):
            has_commas = any(type(text) is str and "," in text for text in rows)
            split = f"; split text with {what}.str.split(',')" if has_commas else ""
            raise InvalidData(
                f"row {i} of {what} is {row!r:.60}, not a set; each output must be a set or a "
                f"list of labels, such as {{'a', 'b'}}{split}."
            )
    return [_as_set(f"row {i} of {what}", row) for i, row in enumerate(rows)]


def _as_set(where: str, row: Collection[Hashable]) -> frozenset[Hashable]:
    try:
        found = frozenset(row)
    except TypeError:
        raise InvalidData(
            f"{where} contains a label that is not hashable: {row!r:.60}; use strings, numbers or "
            "tuples as labels."
        ) from None
    if len(found) != len(row):
        raise InvalidData(
            f"{where} contains a label twice: {row!r:.60}. Pass sets of labels, or an array if the "
            "rows are indicators (0 or 1)."
        )
    if any(map(is_missing_value, found)):
        raise InvalidData(
            f"{where} contains a missing label (None, NaN, NA or NaT): {row!r:.60}; remove it."
        )
    return found


def _ordered(names: set[Hashable]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(names))  # type: ignore[type-var]
    except TypeError:  # labels of several types
        return tuple(sorted(names, key=lambda name: (type(name).__name__, repr(name))))


def _indicators(
    rows: list[frozenset[Hashable]], number: dict[Hashable, int], what: str = "Y"
) -> Bools:
    """Convert label sets to indicators, (n, L)."""
    table = np.zeros((len(rows), len(number)), dtype=bool)
    for i, row in enumerate(rows):
        for label in row:
            if label not in number:
                raise InvalidData(
                    f"row {i} of {what} contains the label {label!r}, which does not occur in the "
                    f"training labels: {first_few(number)}."
                )
            table[i, number[label]] = True
    return table

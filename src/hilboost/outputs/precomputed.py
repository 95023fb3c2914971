"""Outputs given by their Gram matrix, with or without a kernel for new outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, InvalidParameter, counted
from hilboost.core.labels import take_labels
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.kernels.pivoted_cholesky import GramFactor, factor_gram
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.kernel_output import KernelEmbedding, KernelOutput, check_accuracy
from hilboost.outputs.label_checks import as_rows, count_rows
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates
from hilboost.outputs.similarities import Similarity

_WHAT = "the Gram matrix Y"
_NEGLIGIBLE = 1e-9  # of the trace
_COMPARED = 4
_AGREEMENT = 1e-6  # of the largest entry of the diagonal


@dataclass(frozen=True)
class PrecomputedOutput(OutputSpace):
    """Output space of labels given by their Gram matrix, (n, n), which is passed to ``fit``.

    Parameters
    ----------
    kernel : callable, Kernel, str or scikit-learn kernel, optional
        The kernel that produced the matrix; see :class:`KernelOutput`.  A callable is called with
        new and training labels, ``kernel(new_labels, labels)``, and with the new labels twice to
        compute their norms.
    labels : sequence of n labels, optional
        The training labels, in the order of the matrix.  Required with ``kernel``.
    pairwise : bool, default=False
        Whether the callable takes two single labels and returns a number.
    tolerance : float in [0, 1), default=0.0
        Fraction of the trace that the factor may omit; 0 is exact.
    max_rank : int or None, default=None
        Maximum number of columns of the factor.

    Notes
    -----
    With ``kernel`` and ``labels``, everything except ``fit`` uses labels: scores, candidates and
    predictions.  Without them, new outputs are encoded by their kernel values with the training
    outputs, (m, n), and have no norms; predictions and candidates are indices of training outputs.
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"precomputed": {}}
    predicts_rows = True

    kernel: Any = None
    labels: Any = field(default=None, repr=False)
    pairwise: bool = False
    tolerance: float = 0.0
    max_rank: int | None = None

    def fit(self, labels: object) -> KernelEmbedding | PrecomputedEmbedding:
        """Factor the Gram matrix."""
        check_accuracy(self.tolerance, self.max_rank)
        if (self.kernel is None) != (self.labels is None):
            given, lacking = ("labels", "kernel") if self.kernel is None else ("kernel", "labels")
            raise InvalidParameter(
                f"PrecomputedOutput has {given} but no {lacking}; pass both or neither."
            )
        gram = _square(labels)
        factor = factor_gram(gram, self.tolerance, self.max_rank, _WHAT)
        if self.kernel is None:
            left = gram.trace() - float((factor.codes**2).sum())
            rest = gram.copy() if left > _NEGLIGIBLE * gram.trace() else None
            return PrecomputedEmbedding(factor, gram.diagonal().copy(), rest)
        n = count_rows(self.labels, "training labels", "labels")
        if n != len(gram):
            raise InvalidParameter(
                f"labels contains {counted(n, 'training label')}, but the Gram matrix Y has "
                f"{counted(len(gram), 'row')}; pass one label for each row of Y."
            )

        def known(similarity: Similarity, objects: object) -> GramFactor:
            _compare(similarity, objects, gram, factor.pivots[:_COMPARED])
            return factor

        return KernelOutput(self.kernel, self.pairwise).embedding(self.labels, known, "labels")

    def take_rows(self, labels: object, rows: Ints) -> Floats:
        """Select the Gram matrix of some training outputs, (m, m)."""
        return _square(labels)[np.ix_(rows, rows)]


def _square(labels: object) -> Floats:
    gram = as_rows(labels, _WHAT)
    if gram.shape[0] != gram.shape[1]:
        raise InvalidData(
            f"the Gram matrix Y must be square, (n, n); got {gram.shape}. Pass k(y_i, y_j) for all "
            "pairs of training outputs."
        )
    return gram


def _compare(similarity: Similarity, objects: object, gram: Floats, rows: Ints) -> None:
    """Reject a kernel that does not reproduce some columns of the matrix."""
    values = similarity(objects, take_labels(objects, rows))
    bad = ~(np.abs(values - gram[:, rows]) <= _AGREEMENT * float(gram.diagonal().max()))
    if bad.any():
        i, k = (int(number) for number in np.argwhere(bad)[0])
        j = int(rows[k])
        raise InvalidData(
            f"kernel returns k({i}, {j}) = {values[i, k]:.6g} for these rows of labels, but the "
            f"Gram matrix Y has {gram[i, j]:.6g}; pass the function that produced the matrix, and "
            "the labels in the order of its rows."
        )


@dataclass(frozen=True)
class PrecomputedEmbedding(ChoosingEmbedding):
    """Fitted embedding from columns of a Gram matrix; integers (m,) index training outputs."""

    file_name = "precomputed"
    label_kind = "rows"

    factor: GramFactor
    diagonal: Floats  # (n,) float64
    # (n, n) float64 or None: the matrix, stored only if the factor omits some of it
    gram: Floats | None = None
    ways: ClassVar[tuple[str, ...]] = CANDIDATE_WAYS

    def encode(self, labels: object) -> Floats:
        """Encode labels given by their kernel values with all training labels, (m, n)."""
        if _are_numbers(labels):
            return self.points(self.checked(labels))
        return self.factor.encode(self._values(labels)[:, self.factor.pivots])

    def encode_training(self, labels: object) -> Floats:
        """Return the rows of the factor."""
        return self.factor.codes

    def norms(self, labels: object) -> Floats:
        """Kernel values ``k(y, y)``, (m,); available only for training outputs."""
        return self.diagonal[self._known(labels)]

    def products(self, labels: object, others: object) -> Floats:
        """Kernel values ``k(y_i, y'_i)`` of corresponding training outputs, (m,)."""
        first, second = self._known(labels), self._known(others)
        if self.gram is not None:
            return self.gram[first, second]
        codes = self.factor.codes
        return np.einsum("ij,ij->i", codes[first], codes[second])

    def spanning(self) -> Ints:
        """Return the pivots of the factor."""
        return self.factor.pivots

    @property
    def training(self) -> Ints:
        """Indices of the training outputs."""
        return np.arange(len(self.diagonal))

    def points(self, labels: Ints) -> Floats:
        """Return rows of the factor."""
        return self.factor.codes[labels]

    def _candidates(self, labels: Ints) -> Candidates:
        return Candidates(labels, self.points(labels), self.diagonal[labels])

    def _values(self, labels: object) -> Floats:
        """Validate kernel values with all training outputs, (m, n)."""
        values = as_rows(labels, "Y")
        if values.shape[1] != len(self.diagonal):
            raise InvalidData(
                f"Y must contain kernel values with all {len(self.diagonal)} training outputs, one "
                f"column each; got {counted(values.shape[1], 'column')}."
            )
        return values

    def _known(self, labels: object) -> Ints:
        """Return indices of training outputs, given as indices or by their Gram matrix."""
        if _are_numbers(labels):
            return self.checked(labels)
        values = self._values(labels)
        if len(values) != len(self.diagonal) or not np.allclose(
            values.diagonal(), self.diagonal, rtol=1e-9, atol=0
        ):
            raise InvalidData(
                "the loss requires k(y, y) of the new outputs, which the Gram matrix does not "
                "contain; pass the kernel and the training labels to PrecomputedOutput, or "
                "evaluate predict_kernel or the predicted indices instead."
            )
        return np.arange(len(values))

    def checked(self, labels: Any, what: str = "Y") -> Ints:
        """Validate indices of training outputs, (m,)."""
        if not _are_numbers(labels) or not len(labels):
            raise InvalidData(
                "with output='precomputed', candidates must be indices of training outputs; to "
                "choose among other labels, pass the kernel and the training labels to "
                "PrecomputedOutput."
            )
        chosen, n = np.asarray(labels).astype(np.int64), len(self.diagonal)
        if chosen.min() < 0 or chosen.max() >= n:
            odd = chosen[(chosen < 0) | (chosen >= n)][0]
            raise InvalidData(
                f"there is no training output {odd}; indices must be from 0 to {n - 1}."
            )
        return chosen


def _are_numbers(labels: object) -> bool:
    """Whether labels are integers, (m,)."""
    try:
        found = np.asarray(labels)
    except ValueError:
        return False
    return found.ndim == 1 and found.dtype.kind in "iu"

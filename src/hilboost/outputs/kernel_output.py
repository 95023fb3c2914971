"""Any kernel on any objects: points by a pivoted Cholesky factor, pre-images over candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from hilboost.core.contracts import Choice, Embedding, OutputSpace
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.core.records import Floats
from hilboost.kernels import Gaussian, Kernel, as_kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.marginal_likelihood import mean_squared_distance
from hilboost.kernels.pivoted_cholesky import GramFactor, factor_columns, factor_gram
from hilboost.outputs.checks import as_rows
from hilboost.outputs.fixed_point import climb
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates, check_way, decode, take
from hilboost.outputs.vectors import shape_of_one

_WHOLE_UP_TO = 8192
_MOST_COLUMNS = 4096

Similarity = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class KernelOutput(OutputSpace):
    """Labels of any type under a kernel (G2007, section 2.2).

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable
        A kernel, its name or scikit-learn's take labels that are rows of numbers; ``"gaussian"``
        takes the mean squared distance of the training labels for its scale.  A callable takes
        labels of any type: ``kernel(labels_a, labels_b)`` returns the (a, b) matrix.
    pairwise : bool
        The callable takes two single labels and returns a number.
    tolerance : float
        Share of the Gram matrix's trace that its factor may leave out; 0 is exact.  A split's gain
        is off by at most the trace left out.
    max_rank : int or None

    Notes
    -----
    Up to 8,192 labels the whole Gram matrix is factored, O(n³) at worst; beyond, single columns
    are, O(n r²), with at most 4,096 of them unless ``max_rank`` says more.
    """

    kernel: Any = "gaussian"
    pairwise: bool = False
    tolerance: float = 0.01
    max_rank: int | None = None

    def fit(self, labels: Any) -> KernelEmbedding:
        """Factor the Gram matrix of the training labels."""
        _check_accuracy(self.tolerance, self.max_rank)
        if self._is_function():
            objects = _objects(labels)
            function = _Function(self.kernel, self.pairwise)
            return KernelEmbedding(function, objects, self._factor(function, objects))
        rows = as_rows(labels)
        kernel = self._kernel(rows)
        kernel.check(rows.shape[1])
        similarity = partial(_block, kernel)
        factor = self._factor(similarity, rows)
        kind = GaussianEmbedding if isinstance(kernel, Gaussian) else RowEmbedding
        return kind(similarity, rows, factor, kernel, shape_of_one(labels))

    def _is_function(self) -> bool:
        from sklearn.gaussian_process.kernels import Kernel as Theirs

        if isinstance(self.kernel, type):
            raise InvalidType(
                f"kernel={self.kernel.__name__} is a class; write {self.kernel.__name__}()."
            )
        return callable(self.kernel) and not isinstance(self.kernel, Kernel | Theirs)

    def _kernel(self, rows: Floats) -> Kernel:
        if isinstance(self.kernel, str) and self.kernel == "gaussian":
            return Gaussian(np.sqrt(max(mean_squared_distance(rows), 1e-12) / 2))
        return as_kernel(self.kernel)

    def _factor(self, similarity: Similarity, labels: Any) -> GramFactor:
        n = len(labels)
        if n <= _WHOLE_UP_TO:
            gram = np.asarray(similarity(labels, labels), dtype=np.float64)
            return factor_gram(gram, self.tolerance, self.max_rank, "the output kernel")
        diagonal = np.concatenate(
            [
                np.diagonal(similarity(part, part))
                for part in (labels[i : i + 64] for i in range(0, n, 64))
            ]
        )
        column = partial(_column, similarity, labels)
        most = _MOST_COLUMNS if self.max_rank is None else self.max_rank
        return factor_columns(diagonal, column, self.tolerance, most, "the output kernel")


def _check_accuracy(tolerance: float, max_rank: int | None) -> None:
    if not 0 <= tolerance < 1:
        raise InvalidParameter(f"tolerance must lie in [0, 1); got {tolerance!r}.")
    if max_rank is not None and max_rank < 1:
        raise InvalidParameter(f"max_rank must be at least 1; got {max_rank!r}.")


def _objects(labels: Any) -> Any:
    """Labels of any type as an array or a list."""
    found = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
    return found if isinstance(found, np.ndarray) else list(found)


def _block(kernel: Kernel, A: Floats, B: Floats) -> Floats:
    return np.asarray(evaluate(kernel, A, B))


def _column(similarity: Similarity, labels: Any, i: int) -> Floats:
    return np.asarray(similarity(labels, labels[i : i + 1]), dtype=np.float64)[:, 0]


@dataclass(frozen=True)
class _Function:
    """A user's function of labels, its answers checked."""

    function: Callable[..., Any]
    pairwise: bool

    def __call__(self, A: Any, B: Any) -> Floats:
        if self.pairwise:
            values = np.array([[self.function(a, b) for b in B] for a in A], dtype=np.float64)
            return values.reshape(len(A), len(B))
        values = np.asarray(self.function(A, B), dtype=np.float64)
        if values.shape != (len(A), len(B)):
            raise InvalidData(
                f"the output kernel returned shape {values.shape} for {len(A)} and {len(B)} "
                f"labels; it must return ({len(A)}, {len(B)}), or be given with pairwise=True."
            )
        return values


@dataclass(frozen=True)
class KernelEmbedding(Embedding):
    """Points in the span of the pivots.

    Attributes
    ----------
    similarity : callable
    training : array or list
    factor : GramFactor
    """

    similarity: Similarity
    training: Any
    factor: GramFactor
    ways: ClassVar[tuple[str, ...]] = CANDIDATE_WAYS

    def encode(self, labels: Any) -> Floats:
        """(n, r)"""
        cross = self._similar(_objects(labels), take(self.training, self.factor.pivots))
        _refuse_unfinished(cross)
        return self.factor.encode(cross)

    def encode_training(self, labels: Any) -> Floats:
        """The factor's rows."""
        return self.factor.codes

    def norms(self, labels: Any) -> Floats:
        """``k(y, y)``, (n,)"""
        return self.products(labels, labels)

    def products(self, labels: Any, others: Any) -> Floats:
        """``k(y_i, y'_i)`` of labels pair by pair, (n,)."""
        return self._products(_objects(labels), _objects(others), 1)

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """The training label, or the candidate, that lies nearest."""
        return decode(self, raw, way, candidates, self._candidates)

    def _similar(self, A: Any, B: Any) -> Floats:
        return np.asarray(self.similarity(A, B), dtype=np.float64)

    def _products(self, A: Any, B: Any, size: int) -> Floats:
        """Diagonals of blocks of ``size`` rows."""
        parts = [slice(i, i + size) for i in range(0, len(A), size)]
        return np.concatenate([np.diagonal(self._similar(A[part], B[part])) for part in parts])

    @cached_property
    def _own(self) -> Candidates:
        return Candidates(self.training, self.factor.codes, self.norms(self.training))

    def _candidates(self) -> Candidates:
        return self._own


def _refuse_unfinished(cross: Floats) -> None:
    bad = ~np.isfinite(cross).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidData(f"the output kernel has NaN or infinity for label {row}.")


@dataclass(frozen=True)
class RowEmbedding(KernelEmbedding):
    """Labels that are rows of numbers, under a kernel of rows.

    Attributes
    ----------
    kernel : Kernel
    shape : tuple of int
        Of one label.
    """

    kernel: Kernel
    shape: tuple[int, ...]

    def encode(self, labels: Any) -> Floats:
        """(n, r)"""
        return super().encode(as_rows(labels, width=self.training.shape[1]))

    def norms(self, labels: Any) -> Floats:
        """``k(y, y)``, (n,)"""
        rows = as_rows(labels, width=self.training.shape[1])
        return np.asarray(self.kernel.diag(rows), dtype=np.float64)

    def products(self, labels: Any, others: Any) -> Floats:
        """``k(y_i, y'_i)`` of labels pair by pair, (n,)."""
        width = self.training.shape[1]
        return self._products(as_rows(labels, width=width), as_rows(others, width=width), 64)

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Floats:
        """Rows in the shape of one label."""
        found = np.asarray(super().decode(raw, way, candidates))
        return found.reshape(len(raw), *self.shape)


class GaussianEmbedding(RowEmbedding):
    """Under a Gaussian kernel pre-images need not be candidates."""

    ways: ClassVar[tuple[str, ...]] = ("continuous", *CANDIDATE_WAYS)

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Floats:
        """Start at the best training label and climb, unless candidates are given or asked for."""
        check_way(self, way)
        if way != "continuous" or candidates is not None:
            return super().decode(raw, way, candidates)
        start = self._candidates().choose(raw, "nearest")
        pivots = self.training[self.factor.pivots]
        assert isinstance(self.kernel, Gaussian)
        found = climb(self.kernel, start, pivots, self.factor.weights(raw))
        return found.reshape(len(raw), *self.shape)


@dataclass(frozen=True)
class PrecomputedOutput(OutputSpace):
    """Labels given by their Gram matrix alone.

    ``fit`` takes the (n, n) matrix of the training labels.  Other labels are encoded from their
    kernel values with the training labels, (m, n); predictions are numbers of training labels.

    Parameters
    ----------
    tolerance : float
        Share of the trace that the factor may leave out; 0 is exact.
    max_rank : int or None
    """

    tolerance: float = 0.0
    max_rank: int | None = None

    def fit(self, labels: Any) -> PrecomputedEmbedding:
        """Factor the matrix."""
        _check_accuracy(self.tolerance, self.max_rank)
        gram = as_rows(labels, "the Gram matrix Y")
        if gram.shape[0] != gram.shape[1]:
            raise InvalidData(
                f"the Gram matrix Y must be square, (n, n); got {gram.shape}. Give k(y_i, y_j) of "
                "the training outputs."
            )
        factor = factor_gram(gram, self.tolerance, self.max_rank, "the Gram matrix Y")
        return PrecomputedEmbedding(factor, gram.diagonal().copy())


@dataclass(frozen=True)
class PrecomputedEmbedding(Embedding):
    """Points from columns of a Gram matrix; integers (m,) are numbers of training outputs.

    Attributes
    ----------
    factor : GramFactor
    diagonal : (n,) float64
    """

    factor: GramFactor
    diagonal: Floats
    ways: ClassVar[tuple[str, ...]] = CANDIDATE_WAYS

    def encode(self, labels: Any) -> Floats:
        """Points of labels given by kernel values with all training labels, (m, n)."""
        if _are_numbers(labels):
            return self.factor.codes[self._numbers(labels)]
        cross = as_rows(labels, "Y", None)
        if cross.shape[1] != len(self.diagonal):
            raise InvalidData(
                f"Y must hold kernel values with all {len(self.diagonal)} training outputs, one "
                f"column each; got {cross.shape[1]} columns."
            )
        return self.factor.encode(cross[:, self.factor.pivots])

    def encode_training(self, labels: Any) -> Floats:
        """The factor's rows."""
        return self.factor.codes

    def norms(self, labels: Any) -> Floats:
        """``k(y, y)``, (m,); known for the training outputs only."""
        if _are_numbers(labels):
            return self.diagonal[self._numbers(labels)]
        cross = as_rows(labels, "Y", None)
        if cross.shape != 2 * self.diagonal.shape or not np.allclose(
            cross.diagonal(), self.diagonal, rtol=1e-9, atol=0
        ):
            raise InvalidData(
                "the Gram matrix does not tell k(y, y) of new outputs, so that no loss can be "
                "computed; score the predicted kernel or the predicted numbers instead."
            )
        return self.diagonal

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Numbers of training labels."""
        numbers = np.arange(len(self.diagonal))
        if candidates is None:
            check_way(self, way)
            return Candidates(numbers, self.factor.codes, self.diagonal).choose(raw, way)
        chosen = self._numbers(candidates.labels)
        found = Candidates(chosen, self.factor.codes[chosen], self.diagonal[chosen])
        return found.choose(raw, way, candidates.allowed)

    def _numbers(self, candidates: Sequence[int]) -> Any:
        chosen = np.asarray(candidates)
        n = len(self.diagonal)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
            raise InvalidData(
                "with output='precomputed' candidates must be numbers of training outputs."
            )
        if chosen.min() < 0 or chosen.max() >= n:
            odd = chosen[(chosen < 0) | (chosen >= n)][0]
            raise InvalidData(f"there is no training output {odd}; there are 0 to {n - 1}.")
        return chosen


def _are_numbers(labels: Any) -> bool:
    return np.ndim(labels) == 1 and np.asarray(labels).dtype.kind in "iu"

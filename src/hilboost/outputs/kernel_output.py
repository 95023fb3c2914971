"""Output kernels on objects of any type, embedded by a pivoted Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidParameter, refuse_class, shown
from hilboost.core.exchange import Exchange, RowShare
from hilboost.core.labels import take_labels
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.core.plain_values import is_integer, is_name, is_number
from hilboost.kernels import Gaussian, Kernel, as_kernel
from hilboost.kernels.marginal_likelihood import mean_squared_distance
from hilboost.kernels.pivoted_cholesky import (
    GramFactor,
    factor_columns,
    factor_gram,
    refuse_unfinished,
)
from hilboost.outputs.agreement import minus_mean_square
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.label_checks import as_rows, refuse_no_list
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates, climb
from hilboost.outputs.similarities import WHAT, Similarity, SimilarityFunction, SimilarityOfRows
from hilboost.outputs.vectors import shape_of_one
from hilboost.tables.arrays import without_frame

_WHOLE_UP_TO = 8192


@dataclass(frozen=True)
class KernelOutput(OutputSpace):
    """Output space of labels of any type, defined by an output kernel (G2007, section 2.2).

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable, default="gaussian"
        Output kernel.  A kernel, a kernel name or a scikit-learn kernel requires labels that are
        rows of numbers; ``"gaussian"`` sets its scale from the mean squared distance of the
        training labels.  A callable supports labels of any type: ``kernel(labels_a, labels_b)``
        returns the (a, b) matrix of kernel values.
    pairwise : bool, default=False
        Whether the callable takes two single labels and returns a number.
    tolerance : float in [0, 1), default=0.01
        Fraction of the trace of the Gram matrix that the factor may omit; 0 is exact.  The error
        of a split's gain is at most the omitted trace.
    max_rank : int or None, default=None
        Maximum number of columns of the factor.

    Notes
    -----
    Up to 8,192 labels, the full Gram matrix is factored in O(n³) in the worst case.  Beyond that,
    single columns are computed in O(n r²), at most 4,096 of them unless ``max_rank`` is larger.  A
    warning is issued if this omits more than ``tolerance``.

    Metric of rows of numbers: ``"mean_squared_error"`` is minus the mean over all entries.
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"gaussian": {"kernel": "gaussian"}}

    kernel: Any = "gaussian"
    pairwise: bool = False
    tolerance: float = 0.01
    max_rank: int | None = None

    def fit(self, labels: object) -> KernelEmbedding:
        """Factor the Gram matrix of the training labels."""
        return self._fitted(labels, None)

    def fit_among(self, labels: object, exchange: Exchange) -> KernelEmbedding:
        """Factor the Gram matrix; each worker computes some of its rows.

        Up to 8,192 labels, all workers then factor the whole matrix.  Beyond that, they choose
        pivots together, and each computes its rows of the factor.
        """
        return self._fitted(labels, exchange)

    def _fitted(self, labels: object, exchange: Exchange | None) -> KernelEmbedding:
        check_accuracy(self.tolerance, self.max_rank)
        return self.embedding(labels, partial(self._factor, exchange=exchange))

    def embedding(
        self, labels: object, factor: Callable[[Similarity, Any], GramFactor], what: str = "Y"
    ) -> KernelEmbedding:
        """Fit the embedding with a given function that factors the Gram matrix.

        Parameters
        ----------
        labels : sequence of n labels
        factor : callable
            Computes the factor from a similarity and labels.
        what : str
            Name of the labels in error messages.

        Returns
        -------
        KernelEmbedding

        Raises
        ------
        InvalidParameter
            ``pairwise=True`` with a kernel that is not a function.
        """
        if self._is_function():
            objects = _objects(labels, what)
            function = SimilarityFunction(self.kernel, self.pairwise)
            return KernelEmbedding(function, objects, factor(function, objects))
        if self.pairwise:
            raise InvalidParameter(
                "pairwise=True requires a function of two labels; remove it for "
                f"kernel={self.kernel!r:.60}."
            )
        rows = as_rows(labels, what)
        kernel = self._kernel(rows)
        kernel.check(rows.shape[1])
        return embedding_of_rows(
            kernel, rows, factor(SimilarityOfRows(kernel), rows), shape_of_one(labels)
        )

    def _is_function(self) -> bool:
        from sklearn.gaussian_process.kernels import Kernel as Theirs

        refuse_class("kernel", self.kernel)
        return callable(self.kernel) and not isinstance(self.kernel, Kernel | Theirs)

    def _kernel(self, rows: Floats) -> Kernel:
        if is_name(self.kernel, "gaussian"):
            return Gaussian(np.sqrt(max(mean_squared_distance(rows), 1e-12) / 2))
        return as_kernel(self.kernel)

    def _factor(
        self, similarity: Similarity, labels: Any, exchange: Exchange | None = None
    ) -> GramFactor:
        share = None if exchange is None else RowShare.block(len(labels), exchange)
        own = labels
        if share is not None:
            own = take_labels(labels, share.numbers.astype(np.int64))
            similarity = similarity.at(int(share.numbers[0]) if len(own) else 0)
        if len(labels) <= _WHOLE_UP_TO:
            gram = similarity(own, labels) if len(own) else np.empty((0, len(labels)))
            if share is not None:
                gram = share.exchange.gathered(gram)
            return factor_gram(gram, self.tolerance, self.max_rank, WHAT)
        column = partial(_column, similarity, own, labels)
        diagonal = similarity.pairs(own, own)
        return factor_columns(diagonal, column, self.tolerance, self.max_rank, WHAT, share)


def check_accuracy(tolerance: float, max_rank: int | None) -> None:
    """Reject parameters of the factor that are out of range."""
    if not is_number(tolerance) or not 0 <= tolerance < 1:
        raise InvalidParameter(f"tolerance must lie in [0, 1); got {shown(tolerance)}.")
    if max_rank is not None and (not is_integer(max_rank) or max_rank < 1):
        raise InvalidParameter(
            f"max_rank must be None or a positive integer; got {shown(max_rank)}."
        )


def _objects(labels: object, what: str = "Y") -> Any:
    """Convert labels of any type to an array or a list."""
    refuse_no_list(labels, "labels", what)
    found = without_frame(labels)
    return found if isinstance(found, np.ndarray) else list(found)


def _column(similarity: Similarity, own: object, labels: Any, i: int) -> Floats:
    return similarity(own, labels[i : i + 1])[:, 0]


@dataclass(frozen=True)
class KernelEmbedding(ChoosingEmbedding):
    """Fitted embedding of labels in the span of the pivots."""

    similarity: Similarity
    training: Any
    factor: GramFactor
    ways: ClassVar[tuple[str, ...]] = CANDIDATE_WAYS

    def checked(self, labels: object, what: str = "Y") -> Any:
        """Convert labels of any type to an array or a list."""
        return _objects(labels, what)

    def points(self, labels: object) -> Floats:
        """Encode labels by their kernel values with the pivots, (n, r)."""
        cross = self.similarity(labels, take_labels(self.training, self.factor.pivots))
        refuse_unfinished(cross, WHAT)
        return self.factor.encode(cross)

    def encode_training(self, labels: object) -> Floats:
        """Return the rows of the factor."""
        return self.factor.codes

    def norms(self, labels: object) -> Floats:
        """Kernel values ``k(y, y)``, (n,)."""
        return self.products(labels, labels)

    def training_norms(self, labels: object) -> Floats:
        """Kernel values ``k(y, y)`` of the training labels, (n,), which may come as a matrix."""
        return self.norms(self.training)

    def products(self, labels: object, others: object) -> Floats:
        """Kernel values ``k(y_i, y'_i)`` of corresponding labels, (n,)."""
        values = self.similarity.pairs(self.checked(labels), self.checked(others))
        refuse_unfinished(values, WHAT)
        return values

    def spanning(self) -> Ints:
        """Return the pivots of the factor."""
        return self.factor.pivots

    @cached_property
    def _own(self) -> Candidates:
        return Candidates(self.training, self.factor.codes, self.norms(self.training))

    def _candidates(self, labels: object) -> Candidates:
        return Candidates(labels, self.points(labels), self.norms(labels))


@dataclass(frozen=True)
class RowEmbedding(KernelEmbedding):
    """Fitted embedding of labels that are rows of numbers."""

    file_name = "rows"

    kernel: Kernel
    shape: tuple[int, ...]  # shape of one label

    def checked(self, labels: object, what: str = "Y") -> Floats:
        """Validate labels as rows, (n, c)."""
        return as_rows(labels, what, self.training.shape[1])

    def norms(self, labels: object) -> Floats:
        """Kernel values ``k(y, y)``, (n,)."""
        return np.asarray(self.kernel.diag(self.checked(labels)), dtype=np.float64)

    def _as_given(self, labels: Floats) -> Floats:
        return labels.reshape(len(labels), *self.shape)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Mean squared error of the entries, such as pixels."""
        measure = self._on_checked(minus_mean_square)
        return {"mean_squared_error": OutputMetric(self.ways[0], measure)}


class GaussianEmbedding(RowEmbedding):
    """Fitted embedding for a Gaussian kernel, whose pre-images need not be candidates."""

    file_name = "rows"
    kernel: Gaussian

    ways: ClassVar[tuple[str, ...]] = ("continuous", *CANDIDATE_WAYS)

    def _formula(self, way: str) -> Callable[[Floats], Floats]:
        return self._climbed

    def _climbed(self, raw: Floats) -> Floats:
        start = self._own.choose(raw, "nearest")
        pivots = self.training[self.factor.pivots]
        return climb(self.kernel, start, pivots, self.factor.weights(raw))


def embedding_of_rows(
    kernel: Kernel, rows: Floats, factor: GramFactor, shape: tuple[int, ...]
) -> RowEmbedding:
    """Create the embedding of rows of numbers, (n, c), from the factor of their Gram matrix."""
    kind = GaussianEmbedding if kernel.mean_shift else RowEmbedding
    return kind(SimilarityOfRows(kernel), rows, factor, kernel, shape)

"""One-dimensional distributions, given by samples, with the Wasserstein-2 distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import isotonic_regression

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.kernels.validation import positive_integer
from hilboost.outputs.agreement import minus_distance
from hilboost.outputs.exact_embedding import ExactEmbedding
from hilboost.outputs.label_checks import as_numbers, as_objects, as_table
from hilboost.tables.arrays import without_frame

_SAME_SUM = 1e-6


@dataclass(frozen=True)
class Distributions(OutputSpace):
    """Output space of one-dimensional distributions, given by samples.

    Labels are a list of 1-D arrays, or an array (n, m), with one sample per row.  An array whose
    rows are shares or counts with the same sum is rejected, because it holds histograms and not
    samples; a list of rows is always a list of samples.  The distance
    between points is the Wasserstein-2 distance (Petersen and Müller 2016): ``H`` is the space
    L2[0, 1] of quantile functions, on the grid ``u_i = (i - 1/2) / q`` of q quantiles.  The
    distance is exact for samples whose sizes divide q, and exact up to the grid for samples of
    equal size.

    Parameters
    ----------
    n_quantiles : int, default=64
        Number of quantiles, q.

    Notes
    -----
    Predictions are non-decreasing quantile functions (n, q) at ``u_1 … u_q``, in the units of the
    samples.  They are themselves samples and therefore valid labels.  Decoding methods:
    ``"exact"`` computes the nearest quantile function (isotonic projection, O(q) per row);
    ``"nearest"`` and ``"cosine"`` choose among the training distributions.  Metric:
    ``"wasserstein"`` is minus the mean Wasserstein-2 distance (decoded by ``"exact"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"distribution": {}}

    n_quantiles: int = 64

    def fit(self, labels: object) -> DistributionEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        q = positive_integer("n_quantiles", self.n_quantiles)
        _refuse_histograms(labels)
        return DistributionEmbedding(_quantiles(labels, q))


@dataclass(frozen=True)
class DistributionEmbedding(ExactEmbedding):
    """Quantiles divided by √q, so that squared distances are means over the grid."""

    file_name = "distributions"
    label_kind = "samples"

    training: Floats  # (n, q) float64: quantiles of the training distributions

    @property
    def levels(self) -> Floats:
        """Probability levels ``u`` (q,) of the quantiles."""
        q = self.training.shape[1]
        return (np.arange(q) + 0.5) / q

    def checked(self, labels: object, what: str = "Y") -> Floats:
        """Return the quantiles of samples, (n, q)."""
        return _quantiles(labels, self.training.shape[1], what)

    def points(self, labels: Floats) -> Floats:
        """Return the scaled quantiles, (n, q)."""
        return labels / np.sqrt(labels.shape[1])

    def exact(self, raw: Floats) -> Floats:
        """Return non-decreasing quantiles (n, q), in the units of the samples."""
        return _ascending(raw * np.sqrt(self.training.shape[1]))

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Wasserstein-2 distance."""
        return {"wasserstein": OutputMetric("exact", self._on_points(minus_distance))}


def _ascending(rows: Floats) -> Floats:
    """Project rows onto the nearest non-decreasing rows."""
    odd = np.flatnonzero((np.diff(rows, axis=1) < 0).any(axis=1))
    found = rows.copy()
    for i in odd:
        found[i] = isotonic_regression(rows[i]).x
    return found


def _quantiles(labels: object, q: int, what: str = "Y") -> Floats:
    """Compute sample quantiles (n, q), the left-continuous inverses of the empirical CDFs."""
    table = without_frame(labels)
    if isinstance(table, np.ndarray) and table.ndim > 1:
        rows = as_table(table, "a sample of one distribution", None, what)
        samples = np.sort(rows, axis=1)
        return samples[:, _positions(samples.shape[1], q)]
    found = [_sample(i, row, what) for i, row in enumerate(as_objects(table, "samples", what))]
    return np.stack([sample[_positions(len(sample), q)] for sample in found])


def _refuse_histograms(labels: object) -> None:
    """Reject a table whose rows are not negative, differ, and have the same sum.

    Rows of the same numbers in another order have the same sum, but are the same sample.
    """
    table = without_frame(labels)
    if not isinstance(table, np.ndarray) or table.ndim != 2 or min(table.shape) < 2:
        return
    rows = as_table(table, "a sample of one distribution")
    sums, ordered = rows.sum(axis=1), np.sort(rows, axis=1)
    if (rows < 0).any() or not sums[0] > 0 or (ordered == ordered[0]).all():
        return
    if np.abs(sums - sums[0]).max() <= _SAME_SUM * sums[0]:
        raise InvalidData(
            f"every row of Y has the sum {sums[0]:g}, so the rows look like histograms, but a row "
            "must be a sample; convert counts with np.repeat(values, counts). If the rows are "
            "samples, pass list(Y)."
        )


def _positions(size: int, q: int) -> Ints:
    """Compute ``⌈size u⌉ - 1`` at each level in integer arithmetic."""
    return (size * (2 * np.arange(q) + 1) + 2 * q - 1) // (2 * q) - 1


def _sample(i: int, row: object, what: str) -> Floats:
    """Validate and sort the sample in row ``i``."""
    if (values := as_numbers(row)) is None:
        raise InvalidData(
            f"row {i} of {what} is {row!r:.60}; each output must be a sample of numbers."
        )
    if values.ndim != 1:
        raise InvalidData(
            f"row {i} of {what} has shape {values.shape}; each output must be a 1-D sample of a "
            "distribution, such as [1.5, 2.0, 2.5]."
        )
    if not len(values):
        raise InvalidData(
            f"row {i} of {what} is an empty sample; each sample requires at least one number."
        )
    if not np.isfinite(values).all():
        raise InvalidData(
            f"row {i} of {what} contains NaN or infinity; samples must be finite numbers."
        )
    return np.sort(values)

"""The parameters that all kernel learners share, and the workspace of a fit.

Rows that are equal but for rounding share a basis vector: two of them would make systems singular.
They have the same output, so the quadratic model of their losses depends only on their weighted
mean gradient and the sum of their weights.  The losses themselves are evaluated on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.exact_sums import is_whole
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidParameter
from hilboost.core.exchange import Exchange
from hilboost.core.gradients import Gradients
from hilboost.core.plain_values import is_auto
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.feature_map import FeatureMap, Warps
from hilboost.learners.kernel_machine.inputs import completing, have_like_spreads, with_scales
from hilboost.reductions.rows import first_rows, row_ranks

_OFTEN, _FEW_DISTINCT = 10, 200
DIRECT_UP_TO = 5000  # rows whose Gram matrix is factored as a whole
_FLOAT64_UP_TO = 4096
_FEWEST_OBSERVATIONS, _MOST_OBSERVATIONS = 500, 8000
MEMORY_BUDGET = 8e9  # bytes: the triangle of 60,000 rows' Gram matrix, and what goes beside it


def repetitions(
    weight: Floats | None, row_weight: float, n_rows: int, distinct: DistinctRows | None
) -> Ints | None:
    """How often each row was observed, (n_rows,), if distinct rows do not tell the noise.

    ``None`` unless inputs were observed ten times on average, and with different targets if there
    are many inputs: then their smoothness tells the noise.  Weights are rounded to whole rows of
    ``row_weight`` so that their sums remain.
    """
    n_distinct = n_rows if distinct is None else len(distinct.first)
    if distinct is None and n_distinct > _FEW_DISTINCT:
        return None
    counts = np.ones(n_rows, np.int64)
    if weight is not None:
        if row_weight == 1 and not is_whole(weight):
            return None
        counts = np.diff(np.rint(np.cumsum(weight / row_weight)), prepend=0.0).astype(np.int64)
    return counts if counts.sum() >= _OFTEN * n_distinct else None


def draw_observations(counts: Ints, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw rows in random order, without replacement from rows that were observed so often."""
    ends = np.cumsum(counts)
    total = int(ends[-1])
    drawn = rng.choice(total, min(size, total), replace=False)
    return np.searchsorted(ends, drawn, side="right")


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Grouping of the rows of a table by equality but for rounding."""

    first: Ints  # (m,) int64: first occurrence of each distinct row, ascending
    group: Ints  # (n,) int64: for each row, the number of its distinct row
    weight: Floats  # (n,) float64: sample weights of all rows

    @classmethod
    def of(cls, X: Floats, weight: Floats | None) -> DistinctRows | None:
        """Group rows that are equal but for rounding; ``None`` if all are distinct."""
        rank = row_ranks(X, exactly=False)
        m = int(rank.max(initial=-1)) + 1
        if m == len(X):
            return None
        by_rank = first_rows(rank, m)
        first = np.sort(by_rank)
        number = np.empty(m, dtype=np.int64)
        number[rank[first]] = np.arange(m)
        return cls(first, number[rank], np.ones(len(X)) if weight is None else weight)

    def sums(self, values: Floats) -> Floats:
        """Sum values (n, …) over equal rows, (m, …)."""
        if values.ndim == 1:
            total = np.bincount(self.group, values, minlength=len(self.first))
            return total.astype(np.float64)
        return np.column_stack([self.sums(column) for column in values.T])

    def means(self, values: Floats, weight: Floats) -> Floats:
        """Average values (n, r) over equal rows with weights, (m, r); 0 if the weights are zero."""
        total = self.sums(weight)[:, None]
        return np.divide(
            self.sums(weight[:, None] * values),
            total,
            out=np.zeros((len(self.first), values.shape[1])),
            where=total > 0,
        )

    def merged(self, gradients: Gradients, weight: Floats | None) -> tuple[Gradients, Floats]:
        """Return the mean gradients and total weights of the distinct rows, for weights (n,)."""
        weight = np.ones(len(self.group)) if weight is None else weight
        hessian = gradients.hessian
        return (
            Gradients(
                self.means(gradients.negative_gradient, weight),
                None if hessian is None else self.means(hessian, weight),
                gradients.structure,
            ),
            self.sums(weight),
        )

    def members(self, distinct: Ints) -> tuple[Ints, Ints]:
        """Find all rows that are equal to one of some different distinct rows (k,).

        Returns the rows (l,), and for each of them, the index of its distinct row.
        """
        place = np.full(len(self.first), -1)
        place[distinct] = np.arange(len(distinct))
        rows = np.flatnonzero(place[self.group] >= 0)
        return rows, place[self.group[rows]]

    def scatter(self, residual: Floats, weight: Floats) -> float:
        """Weighted sum of squared deviations of residuals (n, r) from the means of equal rows."""
        spread = residual - self.means(residual, weight)[self.group]
        return float((weight[:, None] * spread * spread).sum())


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of the table in random order, several of which may be the same distinct row."""

    rows: NDArray[np.intp]  # (k,): numbers of the distinct rows
    negative_gradient: Floats  # (k, r)
    weight: Floats | None  # (k,): sample weights; ``None`` if each is one observation
    dependence: Dependence | None


@dataclass(frozen=True, eq=False)
class Workspace:
    """The training rows as kernels see them, and the resources of the fit.

    All arrays and row numbers refer to the distinct rows.  :meth:`rows_of` and
    :class:`~hilboost.learners.kernel_machine.descending.Conversion` convert to them.
    """

    inputs: FeatureMap
    X: Array  # (n, d) array: scaled rows, in the dtype of the kernel values
    weight: Floats | None  # (n,) float64 or None: sample weights
    memory: float  # bytes for Gram matrices
    seed: int
    team: ThreadTeam
    distinct: DistinctRows | None = None  # ``None`` if no two rows are equal but for rounding
    # (n, d) float64 or None: unscaled rows, if the precision or the map may change
    source: Floats | None = None
    can_refine: bool = False  # whether the precision may become float64
    # other workers with the same rows: kernel values of all rows are divided among them
    exchange: Exchange | None = None
    # observations from which kernel and λ are chosen, if these are not all distinct rows
    observed: Observations | None = None
    dependence: Dependence | None = None  # of the distinct rows, by what some are held out
    row_weight: float = 1.0  # the weight that counts as one observation

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return self.X.shape[0]

    @property
    def precision(self) -> str:
        """Dtype of the kernel values."""
        return array_api.precision(self.X)

    @property
    def all_rows(self) -> RowSample:
        """The sample of all rows of the table."""
        weight = self.weight if self.distinct is None else self.distinct.weight
        return RowSample(None, weight)

    @property
    def repetitions(self) -> Ints | None:
        """How often each row of the table was observed, if distinct rows do not tell the noise."""
        n = self.n_rows if self.distinct is None else len(self.distinct.group)
        return repetitions(self.all_rows.weight, self.row_weight, n, self.distinct)

    def observing(self, negative_gradient: Floats, dependence: Dependence | None) -> Workspace:
        """Draw observations from the first gradients (n, r) of all rows of the table.

        Equal rows may belong to different groups or times, so that they are not merged if rows
        depend on each other.
        """
        counts, distinct, weight = self.repetitions, self.distinct, None
        of_distinct = dependence
        if dependence is not None and distinct is not None:
            of_distinct = dependence.rows(distinct.first)
        changed = replace(self, dependence=of_distinct)
        rng = np.random.default_rng((self.seed, 6))
        if counts is not None:
            size = max(_FEWEST_OBSERVATIONS, min(self.n_rows, _MOST_OBSERVATIONS))
            rows = draw_observations(counts, size, rng)
        elif dependence is not None and distinct is not None:
            rows = rng.permutation(np.flatnonzero(distinct.weight))[:_MOST_OBSERVATIONS]
            weight = distinct.weight[rows]
        else:
            return changed
        own = dependence and dependence.rows(rows)
        observed = Observations(self.rows_of(rows), negative_gradient[rows], weight, own)
        return replace(changed, observed=observed)

    def in_float64(self) -> Workspace:
        """The workspace with kernel values in double precision, if the user left the choice."""
        return self._with(self.inputs, "float64") if self.can_refine else self

    def with_warps(self, warps: Warps) -> Workspace:
        """The workspace with warped features."""
        if warps is self.inputs.warps or not (warps or self.inputs.warps):
            return self
        return self._with(replace(self.inputs, warps=warps), self.precision)

    def _with(self, inputs: FeatureMap, precision: str) -> Workspace:
        """The workspace with another map or precision."""
        assert self.source is not None
        X = array_api.like(inputs(self.source), self.X, precision)
        return replace(
            self, inputs=inputs, X=X, can_refine=self.can_refine and precision == "float32"
        )

    def rows_of(self, rows: Ints) -> Ints:
        """Numbers of the distinct rows that some rows of the table are equal to."""
        return rows if self.distinct is None else self.distinct.group[rows]

    def gram(
        self, kernel: Kernel, left: Ints | None, right: Ints | None, memory: float = 0.0
    ) -> Gram:
        """``k(X[left], X[right])``; ``None`` means all rows."""
        A = self.X if left is None else self.X[left]
        B = self.X if right is None else self.X[right]
        exchange = self.exchange if left is None else None
        return Gram(kernel, A, B, memory, self.team, exchange)

    def basis(self, rows: Ints | slice) -> NDArray:
        """Some rows as basis vectors, in the dtype of the kernel values."""
        return array_api.to_numpy(self.X[rows]).astype(self.precision)

    def expansion(
        self, kernel: Kernel, rows: Ints, weights: Floats, basis: NDArray | None = None
    ) -> KernelExpansion:
        """An expansion in some training rows, whose basis vectors several stages may share."""
        basis = self.basis(rows) if basis is None else basis
        return KernelExpansion(kernel, self.inputs, basis, weights, rows)


@dataclass(frozen=True)
class KernelMachineConfig:
    """The parameters that all kernel learners share."""

    # ``"auto"`` chooses kernel, length scales and regularization from the first gradients
    kernel: Kernel | str = "auto"
    # λ of ``½ sum_i w_i (y_i - f(x_i))² + ½ λ |f|²``; the noise variance of a Gaussian process
    regularization: float | str = "auto"
    # scales columns to mean 0 and standard deviation 1; length scales are in these units.
    # ``"auto"`` divides more than 64 columns of similar spread (pixels, spectra) by one number,
    # leaves columns as they are for kernels of row numbers, fingerprints and codes, and moves a few
    # outlying values of a column to its bounds.
    standardize: bool | str = "auto"
    categorical: tuple[int, ...] = ()  # columns of category codes, which are compared by equality
    memory_budget: float | str = "auto"  # bytes for Gram matrices; "auto" is 8e9 on any computer
    precision: str = "auto"  # of kernel values; "auto" is float64 up to 4,096 rows
    device: str | None = None  # A Torch device such as ``"cuda"``; ``None`` is NumPy
    # ``"marginal_likelihood"`` fits the hyperparameters of the given kernel, or of SY2006, eq.
    # (23), and λ to 1,000 rows; ``"mean_distance"`` uses a Gaussian whose θ is the mean squared
    # distance (SY2006, section 4), and chooses λ by leave-one-out.
    tuning: str = "auto"
    tuning_seconds: float | None = None  # approximate time limit of the choice of kernel
    # whether the choice of kernel only serves to compare the learner with others: it considers
    # fewer families of kernels
    tunes_briefly: bool = False
    row_weight: float = 1.0  # the weight of the data that counts as one row
    kernels: tuple[Kernel, ...] = ()  # of several machines, in place of ``kernel``

    @property
    def given_kernel(self) -> Kernel | None:
        """The kernel that the user chose, or the sum; ``None`` if the fit chooses it."""
        if self.kernels:
            return Sum(self.kernels)
        return None if isinstance(self.kernel, str) else self.kernel

    @property
    def given_regularization(self) -> float | None:
        """The λ that the user chose; ``None`` if the fit chooses it."""
        return None if is_auto(self.regularization) else float(self.regularization)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows and start the threads."""
        X = np.asarray(X, dtype=np.float64)
        inputs = FeatureMap.unscaled(X.shape[1])
        if self.given_kernel is None:
            inputs = completing(X, weight, self.categorical)
        complete = inputs.complete(X)
        if self.given_kernel is not None:
            self.given_kernel.check(X.shape[1])
        distinct = DistinctRows.of(complete, weight)
        if distinct is not None:
            first = distinct.first
            X, complete, weight = X[first], complete[first], distinct.sums(distinct.weight)
        inputs = self._scaled(inputs, complete, weight)
        precision = self.precision
        if precision == "auto":
            precision = "float64" if len(X) <= _FLOAT64_UP_TO else "float32"
        scaled: Array = inputs(X, precision)
        if self.device is not None:
            scaled = array_api.like(scaled, _empty_on(self.device), precision)
        return Workspace(
            inputs=inputs,
            X=scaled,
            weight=weight,
            memory=memory_budget(self.memory_budget),
            seed=seed,
            team=ThreadTeam(n_threads),
            distinct=distinct,
            source=X,
            can_refine=precision == "float32" and self.precision == "auto",
            row_weight=self.row_weight,
        )

    def _scaled(self, inputs: FeatureMap, X: Floats, weight: Floats | None) -> FeatureMap:
        """Scale the columns, except for those that some of several kernels reads raw."""
        kernel, is_auto = self.given_kernel, self.standardize == "auto"
        if self.kernels and is_auto:
            raw = Sum(self.kernels).raw_columns(X.shape[1])
            if raw:
                return with_scales(inputs, X, weight, tuple(sorted({*self.categorical, *raw})))
        elif not self.standardize or (is_auto and kernel is not None and kernel.reads_raw_columns):
            return inputs
        common = is_auto and have_like_spreads(X)
        return with_scales(inputs, X, weight, self.categorical, common, bounded=is_auto)


def _empty_on(device: str) -> Array:
    """An empty array on a device."""
    try:
        import torch
    except ImportError as error:
        raise InvalidParameter(
            f"device={device!r} requires PyTorch; install torch, or set device=None."
        ) from error
    try:
        return torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidParameter(
            f"device={device!r} is not available ({error}); use another device, or set device=None."
        ) from error


def memory_budget(given: float | str) -> float:
    """Bytes; "auto" is the same number on any computer, since the model may depend on it."""
    return MEMORY_BUDGET if is_auto(given) else float(given)


def free_memory() -> float:
    """Bytes that are free now; no model depends on it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return np.inf


def require_free(needed: float, what: str) -> None:
    """Refuse what does not fit into the free memory."""
    free = free_memory()
    if needed > free:
        raise InvalidParameter(
            f"{what} requires {needed / 2**20:.0f} MiB, but only {free / 2**20:.0f} MiB of memory "
            "are free; set stages='sparse', or fit fewer rows."
        )

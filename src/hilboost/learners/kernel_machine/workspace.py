"""Constants of the fit of a kernel machine: scaled rows, weights, and threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.exchange import Exchange
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.inputs import Inputs
from hilboost.learners.kernel_machine.merging import DistinctRows, draw_observations, repetitions

_FEWEST_OBSERVATIONS, _MOST_OBSERVATIONS = 500, 8000


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
    :class:`~hilboost.learners.kernel_machine.conversion.Conversion` convert to them.
    """

    inputs: Inputs  # scales the columns
    X: Array  # (n, d) array: scaled rows, in the dtype of the kernel values
    weight: Floats | None  # (n,) float64 or None: sample weights
    memory: float  # bytes for Gram matrices
    seed: int
    team: ThreadTeam
    distinct: DistinctRows | None = None  # ``None`` if no two rows are equal but for rounding
    # (n, d) float64 or None: unscaled rows, if the precision may become float64
    source: Floats | None = None
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
        if distinct is None:
            changed = replace(self, dependence=dependence)
        else:
            of_distinct = dependence and dependence.rows(distinct.first)
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
        if self.source is None:
            return self
        return replace(self, X=self.inputs(self.source, self.X, "float64"), source=None)

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

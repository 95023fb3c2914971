"""Constants of the fit of a kernel machine: scaled rows, weights, and threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
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
    # (rows (k,), gradients (k, r)) or None: observations from which kernel and λ are chosen, if
    # inputs were observed many times
    observed: tuple[NDArray[np.intp], Floats] | None = None
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

    def observing(self, negative_gradient: Floats) -> Workspace:
        """Draw observations from the first gradients (n, r) of all rows of the table."""
        counts = self.repetitions
        if counts is None:
            return self
        size = max(_FEWEST_OBSERVATIONS, min(self.n_rows, _MOST_OBSERVATIONS))
        rows = draw_observations(counts, size, np.random.default_rng((self.seed, 6)))
        return replace(self, observed=(self.rows_of(rows), negative_gradient[rows]))

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

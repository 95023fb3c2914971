"""Components of the function so far: one for every kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Component:
    """The part of the model that lies in the space of one kernel, on the training rows.

    :meth:`add` changes the arrays in place; nothing else does.
    """

    in_files: ClassVar[bool] = True

    kernel: Kernel
    alpha: Floats  # (n, r) float64: weights, by training row
    function: Floats  # (n, r) float64: values ``K alpha``

    @classmethod
    def zero(cls, kernel: Kernel, n: int, n_outputs: int) -> Component:
        """The zero function on ``n`` rows."""
        return cls(kernel, np.zeros((n, n_outputs)), np.zeros((n, n_outputs)))

    def copied(self) -> Component:
        """Return a copy that later stages do not change."""
        return replace(self, alpha=self.alpha.copy(), function=self.function.copy())

    @property
    def basis(self) -> Ints:
        """Rows whose weights are not zero, in ascending order."""
        return np.flatnonzero(self.alpha.any(axis=1))

    def add(self, rows: Ints, weights: Floats, outputs: Floats, coefficient: Floats) -> None:
        """Add a multiple of an expansion.

        ``rows``: (m,) int64: distinct row numbers of its basis vectors. ``weights``: (m, r)
        float64. ``outputs``: (n, r) float64. ``coefficient``: (r,) float64.
        """
        alpha, function = self.alpha, self.function
        alpha[rows] += coefficient * weights
        function += coefficient * outputs

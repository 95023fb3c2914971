"""Which of several kernels made which stage of a kernel machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.equality import first_of_equals


@dataclass(frozen=True, eq=False)
class StageKernels:
    """The kernels of a list, the one that made each stage, and the norms of their functions."""

    kernels: tuple[Kernel, ...]  # in the order of the list
    chosen: Ints  # (n_stages,) int64: position of the kernel of each stage
    # (n_stages, n_kernels) float64: squared norms of the functions in the spaces of the kernels
    # after each stage: weighted sums of squared values on the training rows
    norms: Floats

    @property
    def total(self) -> Kernel:
        """The sum of the different kernels, to whose machine the stages converge."""
        distinct = [self.kernels[k] for k in sorted(set(first_of_equals(self.kernels)))]
        return distinct[0] if len(distinct) == 1 else Sum(tuple(distinct))

    @property
    def weights(self) -> Floats:
        """Shares of the squared norms after the last stage, (n_kernels,); zeros for a constant."""
        if not len(self.norms):
            return np.zeros(len(self.kernels))
        total = math.fsum(self.norms[-1])  # in any order
        return self.norms[-1] / total if total > 0 else np.zeros(len(self.kernels))

    def first(self, n_stages: int) -> StageKernels:
        """The record of the first stages."""
        return StageKernels(self.kernels, self.chosen[:n_stages], self.norms[:n_stages])

    def listed(self, firsts: Sequence[int]) -> StageKernels:
        """The record for a list that repeats kernels.

        ``firsts``: for each entry of the list, the position of the first equal one.
        """
        places = sorted(set(firsts))
        norms = np.zeros((len(self.norms), len(firsts)))
        norms[:, places] = self.norms
        kernels = tuple(self.kernels[places.index(first)] for first in firsts)
        return StageKernels(kernels, np.array(places, dtype=np.int64)[self.chosen], norms)

    @classmethod
    def of_one(cls, kernel: Kernel, n_stages: int) -> StageKernels:
        """The record of a list with one kernel, which makes every stage."""
        return cls((kernel,), np.zeros(n_stages, dtype=np.int64), np.ones((n_stages, 1)))

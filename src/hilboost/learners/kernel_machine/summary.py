"""Choices of a kernel machine fit: kernels, λ, and the data for standard deviations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.base import first_of_equals
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.variance import PosteriorVariance, is_approximate


@dataclass(frozen=True, eq=False)
class StageKernels:
    """The kernels of a list, the one that made each stage, and the norms of their functions."""

    in_files: ClassVar[bool] = True

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
        """The record for a list that repeats kernels, by the place of the first equal one."""
        places = sorted(set(firsts))
        norms = np.zeros((len(self.norms), len(firsts)))
        norms[:, places] = self.norms
        kernels = tuple(self.kernels[places.index(first)] for first in firsts)
        return StageKernels(kernels, np.array(places, dtype=np.int64)[self.chosen], norms)

    @classmethod
    def of(cls, kernels: tuple[Kernel, ...], n_stages: int = 0) -> StageKernels:
        """The record before the first stage, or that of one kernel, which makes every stage."""
        n = len(kernels)
        return cls(kernels, np.zeros(n_stages, dtype=np.int64), np.ones((n_stages, n)))

    def after(self, k: int, norms: Floats) -> StageKernels:
        """The record after a stage of the k-th kernel, and squared norms (n_kernels,)."""
        return StageKernels(self.kernels, np.append(self.chosen, k), np.vstack([self.norms, norms]))


@dataclass(frozen=True)
class KernelMachineSummary:
    """Kernel and regularization of a fitted kernel machine."""

    # ``None`` if no stage was fitted; the sum of the kernels if there are several
    kernel: Kernel | None
    regularization: float | None
    amplitude: float = 1.0  # maximum likelihood estimate of a common factor of kernel and noise
    # (n,) float64 or None: for full stages with squared error: diagonal of the linear system, λ
    # divided by the weights
    noise: Floats | None = None
    # weight of a new observation; the variance of its noise is λ divided by this weight.  One if λ
    # was given, otherwise the weight that counts as one row.
    row_weight: float = 1.0
    # (c,) float64 or None: the units of several targets, in which their variances are equal
    sizes: Floats | None = None
    # (n_stages,) int64 or None: numbers of basis vectors of nested machines
    path: Ints | None = None
    n_iter: int | None = None  # total number of steps on all nested machines
    stage_kernels: StageKernels | None = None  # kernels of the stages, if the user listed kernels
    # by what rows are left out to compare variances with residuals, if not one by one
    dependence: Dependence | None = None
    # factor of the variances of each target, or of all: from the first call of ``variance`` or from
    # a model file
    residual_factor: list[float] = field(default_factory=list, compare=False)
    _variance: list[PosteriorVariance] = field(default_factory=list, repr=False, compare=False)

    def first(self, n_stages: int) -> KernelMachineSummary:
        """The summary of a model with the first stages."""
        path, kernels = self.path, self.stage_kernels
        return replace(
            self,
            path=None if path is None else path[:n_stages],
            stage_kernels=None if kernels is None else kernels.first(n_stages),
            residual_factor=[],
            _variance=[],
        )

    def variance(
        self, model: KernelExpansion, weights: Floats, X: Floats, team: ThreadTeam
    ) -> Floats:
        """Compute the variance (n, r) or (n, 1) of new observations, in units of the fit.

        It includes noise.  ``weights`` (m, r) is the sum over all full stages.  The variances agree
        with the residuals unless the user chose kernel and λ.
        """
        if not self._variance:
            self._variance[:] = [self._posterior(model, weights, team)]
        return self.amplitude * self._variance[0](np.asarray(X, dtype=np.float64), team)

    def fit_to_residuals(self, model: KernelExpansion, weights: Floats, team: ThreadTeam) -> None:
        """Compute the factor that a file keeps, if it is missing, and keep nothing else."""
        is_kept = is_approximate(len(model.basis)) or self.dependence is not None
        if self.amplitude != 1 and not self.residual_factor and is_kept:
            self._posterior(model, weights, team)

    def _posterior(
        self, model: KernelExpansion, weights: Floats, team: ThreadTeam
    ) -> PosteriorVariance:
        """The variances, with the factor that makes them agree with the residuals."""
        assert self.noise is not None
        assert self.regularization is not None
        noise = float(self.regularization) / self.row_weight
        if self.stage_kernels is not None:
            assert self.kernel is not None
            model = replace(model, kernel=self.kernel)
        found = PosteriorVariance.of(model, self.noise, noise, team)
        if self.residual_factor:
            found = replace(found, factors=np.array(self.residual_factor))
        elif self.amplitude != 1:
            own = weights if self.sizes is None else weights / self.sizes
            found = found.fitted_to_residuals(
                own, self.noise, self.amplitude, team, self.dependence
            )
        is_kept = found.prior is not None or self.dependence is not None
        if is_kept and self.amplitude != 1:
            self.residual_factor[:] = found.factors.tolist()
        return found

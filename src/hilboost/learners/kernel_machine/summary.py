"""Choices of a kernel machine fit, with the data for standard deviations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.stage_kernels import StageKernels
from hilboost.learners.kernel_machine.variance import PosteriorVariance, is_approximate


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
    # factor of approximate variances, from the first call of ``variance`` or from a model file
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
        """Compute the variance (n,) of new observations, including noise, in units of the fit.

        ``model``: A full stage, whose basis vectors are all training rows. ``weights``: (m, r)
        float64: sum of the weights of all stages; approximate variances of a kernel that
        was chosen then agree with the residuals. ``X``: (n, d) float64.
        """
        if not self._variance:
            self._variance[:] = [self._posterior(model, weights, team)]
        return self.amplitude * self._variance[0](np.asarray(X, dtype=np.float64), team)

    def fit_to_residuals(self, model: KernelExpansion, weights: Floats, team: ThreadTeam) -> None:
        """Compute the factor of approximate variances, if it is missing, and keep nothing else."""
        if self.amplitude != 1 and not self.residual_factor and is_approximate(len(model.basis)):
            self._posterior(model, weights, team)

    def _posterior(
        self, model: KernelExpansion, weights: Floats, team: ThreadTeam
    ) -> PosteriorVariance:
        """The variances, with the factor that makes approximate ones agree with the residuals."""
        assert self.noise is not None
        assert self.regularization is not None
        noise = float(self.regularization) / self.row_weight
        if self.stage_kernels is not None:
            assert self.kernel is not None
            model = replace(model, kernel=self.kernel)
        found = PosteriorVariance.of(model, self.noise, noise, team)
        if self.residual_factor:
            found = replace(found, factor=self.residual_factor[0])
        elif self.amplitude != 1:
            own = weights if self.sizes is None else weights / self.sizes
            found = found.fitted_to_residuals(own, self.noise, self.amplitude, team)
        if found.prior is not None and self.amplitude != 1:
            self.residual_factor[:] = [found.factor]
        return found

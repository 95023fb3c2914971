"""Choices of a kernel machine fit, with the data for standard deviations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.variance import PosteriorVariance


@dataclass(frozen=True)
class KernelMachineSummary:
    """Kernel and regularization of a fitted kernel machine.

    Attributes
    ----------
    kernel : Kernel or None
        ``None`` if no stage was fitted.
    regularization : float or None
    amplitude : float
        Maximum likelihood estimate of a common factor of kernel and noise.
    noise : (n,) float64 or None
        For full stages with squared error: diagonal of the linear system, λ divided by the weights.
    row_weight : float
        Weight of a new observation; the variance of its noise is λ divided by this weight.  One if
        λ was given, otherwise the weight that counts as one row.
    path : (n_stages,) int64 or None
        Numbers of basis vectors of nested machines.
    n_iter : int or None
        Total number of steps on all nested machines.
    """

    kernel: Kernel | None
    regularization: float | None
    amplitude: float = 1.0
    noise: Floats | None = None
    row_weight: float = 1.0
    path: NDArray[np.int64] | None = None
    n_iter: int | None = None
    _variance: list[PosteriorVariance] = field(default_factory=list, repr=False, compare=False)

    def variance(self, model: KernelExpansion, X: Floats, team: ThreadTeam) -> Floats:
        """Compute the variance (n,) of new observations, including noise.

        Parameters
        ----------
        model : KernelExpansion
            A full stage, whose basis vectors are all training rows.
        X : (n, d) float64
        team : ThreadTeam
        """
        if not self._variance:
            assert self.noise is not None
            assert self.regularization is not None
            noise = float(self.regularization) / self.row_weight
            found = PosteriorVariance.of(model, self.noise, noise, team)
            self._variance[:] = [found]
        return self.amplitude * self._variance[0](np.asarray(X, dtype=np.float64), team)

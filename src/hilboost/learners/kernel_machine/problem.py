"""The quadratic problem of one stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.corners import CornerRows

_SMALLEST_CURVATURE = 1e-6


@dataclass(frozen=True, eq=False)
class StageProblem:
    """Minimize ``Σ_i w_i (½ h_i o_i² - g_i o_i) + ½ λ |f + o|²`` over functions ``o``.

    ``g`` is the negative gradient of the loss at the ensemble so far, ``h`` its hessian (1 without
    one, or a bound), and ``f`` the part of the ensemble that lies in the kernel's space.
    """

    kernel: Kernel
    regularization: float  # λ
    gradients: Gradients  # of the distinct rows
    weight: Floats | None  # (n,) float64 or None: sample weights; zero for rows outside the sample
    # the loss itself, if the gradients belong to a smoothed version of a loss with corners
    corners: CornerRows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.gradients.negative_gradient)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.gradients.negative_gradient.shape[1]

    @property
    def is_newton(self) -> bool:
        """Whether the hessian is that at ``raw`` alone, so that every stage has its own system."""
        return self.gradients.hessian is not None and self.gradients.structure.bound is None

    @cached_property
    def weighted_gradient(self) -> Floats:
        """``w g``, (n, r)."""
        negative = self.gradients.negative_gradient
        return negative if self.weight is None else negative * self.weight[:, None]

    @cached_property
    def curvature(self) -> Floats | None:
        """``w h``, (n, 1) if all outputs share it, else (n, r); ``None`` means 1 everywhere."""
        h = self.hessian
        if self.weight is None:
            return h
        return self.weight[:, None] if h is None else h * self.weight[:, None]

    @property
    def hessian(self) -> Floats | None:
        """``h`` without sample weights, bounded away from zero."""
        bound = self.gradients.structure.bound
        if self.gradients.hessian is None:
            return None
        if bound is not None and self.n_outputs > 1:
            return np.full((self.n_rows, 1), bound)  # one system for all outputs
        return np.maximum(self.own_hessian, _SMALLEST_CURVATURE)

    @property
    def own_hessian(self) -> Floats:
        """Hessian of the gradients, (n, 1) if all outputs share it, else (n, r)."""
        hessian = self.gradients.hessian
        assert hessian is not None
        return hessian[:, :1] if self.gradients.structure.isotropic else hessian

    @property
    def curvature_bound(self) -> float:
        """A number that no entry of the hessian exceeds; 1 for squared error."""
        bound, hessian = self.gradients.structure.bound, self.gradients.hessian
        if bound is not None:
            return bound
        return 1.0 if hessian is None else max(float(hessian.max()), 1e-12)

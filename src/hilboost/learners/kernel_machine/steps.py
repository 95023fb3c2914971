"""Ways through the nested machines of one basis."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from hilboost.backends import array_api as dense
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import FittedTerm
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram, row_blocks
from hilboost.learners.kernel_machine import SparseLearner, Workspace
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.sparse import StageSystem, row_curvature

_FEWEST = 50  # basis vectors of the smallest nested machine
_MOST_SIZES = 20
_STEPS_REMEMBERED = 20
_LEAST_CURVATURE = 1e-6


class Steps(ABC):
    """The way through the nested machines; a subclass takes a step towards the present one."""

    sizes: list[int]

    def __init__(
        self,
        sparse: SparseLearner,
        data: Workspace,
        kernel: Kernel,
        rows: NDArray[np.int64],
        regularization: float,
        gradients: Gradients,
        weight: Floats | None,
        tol: float,
        max_iter: int,
    ) -> None:
        self.sparse, self.data, self.kernel = sparse, data, kernel
        self.rows, self.regularization = rows, regularization
        self.tol, self.max_iter = tol, max_iter
        self.is_done = False
        self.begin(gradients, weight)
        basis = dense.to_numpy(data.X[rows]).astype(data.precision)
        self._bases = [basis[:t] for t in self.sizes]  # one array each, for stages to share

    @abstractmethod
    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Set ``sizes``, and compute what is computed once."""

    @abstractmethod
    def step(self, gradients: Gradients, weight: Floats | None) -> FittedTerm:
        """One expansion in the first ``sizes[0]`` basis vectors."""

    @abstractmethod
    def stage_added(self, stage: Stage) -> None:
        """Hear how long the last step became."""

    def grow(self) -> None:
        """The present machine is done."""
        self.is_done = len(self.sizes) == 1
        if not self.is_done:
            del self.sizes[0], self._bases[0]

    def system(self, gradients: Gradients, weight: Floats | None, size: int) -> StageSystem:
        """``H`` and ``g`` of SY2006, eq. (21), for the first ``size`` basis vectors."""
        W = row_curvature(gradients, weight, gradients.negative_gradient.shape[1])
        rows, lam = self.rows[:size], self.regularization
        return self.sparse._system(self.data, self.kernel, rows, gradients, weight, W, lam)

    def factored(self, gradients: Gradients, weight: Floats | None) -> tuple[Gram, Floats, Floats]:
        """The Gram matrix of the whole basis, the Cholesky factor of ``H``, and ``g``."""
        system = self.system(gradients, weight, len(self.rows))
        H = dense.to_numpy(system.grams[0] + self.regularization * system.K_DD)
        return system.gram, dense.cholesky(H), dense.to_numpy(system.g)

    def times(self, gram: Gram, V: Floats, transposed: bool = False) -> Floats:
        """``K V``, for rows of ``V`` up to the present size, or ``K' V``; in float64 sums.

        Steps divide by the small eigenvalues of ``H``, and the rounding of sums with them.
        """

        def product(rows: slice) -> Floats:
            block = dense.to_numpy(gram.block(rows))
            return block.T @ V[rows] if transposed else block[:, : len(V)] @ V

        if gram.is_kept:
            gram.whole()
        with dense.blas_threads(1):
            products = self.data.team.map(product, row_blocks(gram.shape[0]))
        return sum(products[1:], start=products[0]) if transposed else np.concatenate(products)

    def expansion(self, a: Floats, outputs: Floats) -> FittedTerm:
        """The base model of weights (t, r)."""
        rows = self.rows[: len(a)]
        return self.data.fitted_on(self.kernel, self._bases[0], rows, a, outputs)


class ClosedForm(Steps):
    """Squared error: all nested machines from one Cholesky factor.

    ``H_t`` and ``g_t`` of the first ``t`` basis vectors are the leading blocks of those of all, and
    so is the factor of ``H_t``: besides the largest machine, each costs O(t²) and one product with
    the Gram matrix.  Where that matrix is not kept there is only the largest.
    """

    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Factor once."""
        self._gram, self._factor, g = self.factored(gradients, weight)
        self._half = dense.solve_lower(self._factor, g)
        whole = dense.solve_lower(self._factor, self._half + 0.0, transposed=True)
        if self.data.needs_float64(self.kernel, self.rows, whole):
            self.begin(gradients, weight)
            return
        self._before = self._half[:0]
        D = len(self.rows)
        self.sizes = regular(D) if self._gram.is_kept else [D]

    def step(self, gradients: Gradients, weight: Floats | None) -> FittedTerm:
        """What leads from the last machine to this one."""
        t = self.sizes[0]
        a = dense.solve_lower(self._factor[:t, :t], self._half[:t] + 0.0, transposed=True)
        change = a + 0.0
        change[: len(self._before)] -= self._before
        self._before = a
        return self.expansion(change, self.times(self._gram, change))

    def stage_added(self, stage: Stage) -> None:
        """One step is all the way."""
        self.grow()


class Descent(Steps):
    """Several steps on every nested machine, each begun where the last smaller one ended."""

    n_steps = 0
    is_optimal = False

    def descending(
        self, g: Floats, a: Floats, outputs: Floats, weight: Floats | None
    ) -> Descending:
        """The step, and whether it is the last one on this machine."""
        rows = self.rows[: len(a)]
        function = self.data.component(self.kernel, a.shape[1]).function
        descent = float((g * a).sum())
        total = float(len(outputs)) if weight is None else float(weight.sum())
        self.n_steps += 1
        self.is_optimal = 0.5 * descent <= self.tol * total
        fitted = self.expansion(a, outputs)
        return Descending(
            fitted.term,
            outputs=outputs,
            slope=self.regularization * float((a * function[rows]).sum()),
            curvature=self.regularization * float((a * outputs[rows]).sum()),
            descent=descent,
        )

    def stage_added(self, stage: Stage) -> None:
        """Go on to the next machine where steps have become short."""
        is_stuck = not stage.terms[0].coefficient.any()
        is_late = self.n_steps >= self.max_iter
        if self.is_optimal or is_stuck or is_late:
            if is_late and not self.is_optimal and len(self.sizes) == 1:
                warnings.warn(
                    f"the kernel machine with {self.sizes[0]} basis vectors did not converge in "
                    f"{self.n_steps} steps; increase max_iter, tol or regularization.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            self.n_steps = 0
            self.grow()


class Newton(Descent):
    """Newton's method for one output: IRLS for log loss, the active set for squared hinge."""

    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Smaller machines add a third to the cost."""
        self.sizes = doubling(len(self.rows))

    def step(self, gradients: Gradients, weight: Floats | None) -> FittedTerm:
        """``H⁻¹ g``; cost O(n t²)."""
        system = self.system(gradients, weight, self.sizes[0])
        a = system.solve(None, 0)
        return self.descending(dense.to_numpy(system.g), a, self.times(system.gram, a), weight)


class QuasiNewton(Descent):
    """L-BFGS for several outputs, from a bound on the hessian that all of them share.

    For log loss the bound is that of Böhning (1992), ``½ (I - 11'/C)``.  It is factored once, for
    all sizes; a step costs O(n D r).
    """

    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Factor once."""
        self._gram, self._factor, _ = self.factored(gradients, weight)
        self.sizes = doubling(len(self.rows))
        self._forget()

    def _forget(self) -> None:
        self._pairs: list[tuple[Floats, Floats]] = []  # steps, and what they took from g
        self._last: tuple[Floats, Floats] | None = None  # g, and the step that it led to

    def step(self, gradients: Gradients, weight: Floats | None) -> FittedTerm:
        """The bound's step, corrected by the curvature that the last steps met."""
        t, right = self.sizes[0], gradients.negative_gradient
        function = self.data.component(self.kernel, right.shape[1]).function
        right = right if weight is None else right * weight[:, None]
        g = self.times(self._gram, right, transposed=True)[:t]
        g -= self.regularization * function[self.rows[:t]]
        if self._last is not None:
            before, step = self._last
            taken = before - g
            if (step * taken).sum() > _LEAST_CURVATURE * (step * before).sum():
                self._pairs = [*self._pairs[1 - _STEPS_REMEMBERED :], (step, taken)]
        a = self._direction(g)
        self._last = g, a
        return self.descending(g, a, self.times(self._gram, a), weight)

    def _direction(self, g: Floats) -> Floats:
        """Nocedal & Wright 2006, Algorithm 7.4, with their scale (7.20)."""
        factor = self._factor[: len(g), : len(g)]
        left, parts = g + 0.0, []
        for step, taken in reversed(self._pairs):
            parts.append((step * left).sum() / (step * taken).sum())
            left -= parts[-1] * taken
        a = dense.solve_cholesky(factor, left)
        if self._pairs:
            step, taken = self._pairs[-1]
            half = dense.solve_lower(factor, taken + 0.0)
            a *= (step * taken).sum() / (half * half).sum()
        for (step, taken), part in zip(self._pairs, reversed(parts), strict=True):
            a += (part - (taken * a).sum() / (step * taken).sum()) * step
        return a

    def stage_added(self, stage: Stage) -> None:
        """Note the step as it was taken."""
        if self._last is not None:
            g, a = self._last
            self._last = g, a * stage.terms[0].coefficient
        super().stage_added(stage)

    def grow(self) -> None:
        """What was learned about a smaller machine is of no use."""
        self._forget()
        super().grow()


def regular(D: int) -> list[int]:
    """50, 100, … and ``D``; at most 20 sizes."""
    step = max(_FEWEST, -(-D // _MOST_SIZES))
    return [*range(step, D, step), D]


def doubling(D: int) -> list[int]:
    """``D``, its half, its quarter, … down to 50, the smallest first."""
    sizes = [D]
    while sizes[0] >= 2 * _FEWEST:
        sizes.insert(0, sizes[0] // 2)
    return sizes

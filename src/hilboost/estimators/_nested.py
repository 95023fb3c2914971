"""One sparse kernel machine as boosting: every stage a step on nested sets of basis vectors.

The basis is chosen once; its first ``t`` vectors, for a growing ``t``, are a machine each.  For
squared error a stage is the whole way to the next machine, in closed form.  For other losses it is
one step towards the optimum of the present one, and ``t`` grows where no step is worth it.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from hilboost.backends import dense
from hilboost.backends.team import Team
from hilboost.core.contracts import Fitted, Learner, Loss, State
from hilboost.core.errors import DataWarning, IncompatibleParts, InvalidParameter
from hilboost.core.records import Floats, Gradients, Sample, Stage
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram, require_memory, row_blocks
from hilboost.learners.kernel_machine import SparseLearner, Workspace
from hilboost.learners.kernel_machine.sparse import StageSystem, _curvature
from hilboost.learners.kernel_machine.tuning import choose
from hilboost.learners.kernel_machine.workspace import sample_weights

_FEWEST = 50  # basis vectors of the smallest nested machine
_MOST_SIZES = 20
_STEPS_REMEMBERED = 10
_ROWS_A_BASIS_VECTOR = 8  # of the sample that hessians of many outputs come from
_FEWEST_SAMPLED = 2000
_FLAT = 0.1
_LEAST_CURVATURE = 1e-6
_LONGEST = 2.0**20
_BYTES_BESIDE = 2.0**27  # as SparseLearner counts them
_KEPT_BY_SEARCH = 2.0**28  # bytes of kernel values that the greedy search may keep
_COPIES_OF_COLUMNS = {"forward": 1, "rp_cholesky": 1, "information_gain": 2}
_MOST_ROWS_ALL_SCORED = 6000


@dataclass(frozen=True)
class NestedLearner(Learner):
    """The machine with as many of ``sparse.n_basis`` basis vectors as the memory budget allows.

    It minimises ``Σ_i w_i loss_i(F) + ½ λ |f|²`` for ``F = start + f`` (SY2006, eq. 6), where
    ``f`` lies in the span of the basis.

    Parameters
    ----------
    sparse : SparseLearner
        What chooses the basis and sums up the Gram matrices.
    tol : float
        A nested machine is done where a step would lower the mean loss by less than this.
    max_iter : int
        And after this number of steps.
    """

    sparse: SparseLearner
    tol: float = 1e-6
    max_iter: int = 100

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows."""
        return self.sparse.prepare(X, weight, seed, n_threads)

    def settle(self, data: Workspace, stage: Stage, fitted: tuple[Fitted, ...]) -> None:
        """Hear how long the step became."""
        data.settle(stage, fitted)
        data.solver.settle(stage)
        data.converged = data.solver.is_done

    def close(self, data: Workspace) -> None:
        """End the threads, forget the Gram matrix."""
        self.sparse.close(data)
        data.solver = None

    def fit(
        self, data: Workspace, gradients: Gradients, sample: Sample, rng: np.random.Generator
    ) -> list[Fitted]:
        """One expansion, in the basis vectors of the present machine."""
        weight = sample_weights(sample, len(gradients.negative))
        with dense.blas_threads(data.team.n_threads):
            if data.solver is None:
                data.solver = self._begin(data, gradients, weight, rng)
            return [data.solver.step(gradients, weight)]

    def _begin(
        self,
        data: Workspace,
        gradients: Gradients,
        weight: Floats | None,
        rng: np.random.Generator,
    ) -> Steps:
        """Kernel, basis, and the way to solve that suits the curvature."""
        sparse, began = self.sparse, time.monotonic()
        n, r = gradients.negative.shape
        W = _curvature(gradients, weight, r)
        subset = sparse._subset(weight, n, rng)
        if sparse.selection == "forward" and sparse.n_candidates is None:
            _refuse_many_rows(len(subset))
        n_hessians = 1 if gradients.hessian is None else r
        n_basis = fitting(sparse, len(subset), n_hessians, data.memory)
        kernel, lam = choose(sparse.setting, data, gradients, weight, n_basis)
        limited = replace(sparse, n_basis=n_basis)
        rows = subset[limited._select(data, kernel, gradients, W, subset, lam, rng)]
        kind: type[Steps] = Newton if r == 1 else QuasiNewton
        if gradients.hessian is None:
            kind = ClosedForm
        steps = kind(self, data, kernel, rows, lam, gradients, weight)
        data.seconds_before = time.monotonic() - began  # no later stage takes as long
        return steps


def _refuse_many_rows(m: int) -> None:
    if m > _MOST_ROWS_ALL_SCORED:
        raise InvalidParameter(
            f"n_candidates=None scores all of {m} rows for every basis vector, at {m}² kernel "
            f"values each time; set subset_size to at most {_MOST_ROWS_ALL_SCORED}, or "
            "n_candidates to a number such as 59."
        )


def fitting(sparse: SparseLearner, m: int, n_hessians: int, memory: float) -> int:
    """How many basis vectors, chosen among ``m`` rows, fit into ``memory`` bytes.

    Raises
    ------
    InvalidParameter
        Not one does.
    """
    D = np.arange(1, min(sparse.n_basis, m) + 1, dtype=np.float64)
    system = 8 * D**2 * (3 if n_hessians == 1 else 2 + n_hessians)
    search = 8 * m * D * _COPIES_OF_COLUMNS.get(sparse.selection, 0)
    if sparse.selection == "forward":
        search += min(8.0 * m * m, _KEPT_BY_SEARCH)
    needed = np.maximum(system, search) + _BYTES_BESIDE
    n_fitting = int(np.count_nonzero(needed <= memory))
    if n_fitting == 0:
        require_memory(float(needed[0]), memory, f"one basis vector, chosen among {m} rows,")
    if n_fitting < len(D):
        warnings.warn(
            f"memory_budget is {memory / 2**20:.0f} MiB, which {n_fitting} basis vectors chosen "
            f"among {m} rows fit into; the machine ends there instead of at {len(D)}. Raise "
            "memory_budget, or lower subset_size or n_basis.",
            DataWarning,
            stacklevel=2,
        )
    return n_fitting


@dataclass(frozen=True)
class Descending(Fitted):
    """A step, and what the penalised loss does along it besides what the loss does.

    Attributes
    ----------
    slope, curvature : float
        Of the penalty: a part ``c`` of the step adds ``slope c + ½ curvature c²``.
    descent : float
        How fast the penalised loss falls at the beginning of the step.
    """

    slope: float = 0.0
    curvature: float = 0.0
    descent: float = 0.0


class Steps(ABC):
    """The way through the nested machines; a subclass takes a step towards the present one."""

    sizes: list[int]

    def __init__(
        self,
        learner: NestedLearner,
        data: Workspace,
        kernel: Kernel,
        rows: NDArray[np.int64],
        regularization: float,
        gradients: Gradients,
        weight: Floats | None,
    ) -> None:
        self.learner, self.data, self.kernel = learner, data, kernel
        self.rows, self.regularization = rows, regularization
        self.is_done = False
        self.begin(gradients, weight)
        basis = dense.to_numpy(data.X[rows]).astype(data.precision)
        self._bases = [basis[:t] for t in self.sizes]  # one array each, for stages to share

    @abstractmethod
    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Set ``sizes``, and compute what is computed once."""

    @abstractmethod
    def step(self, gradients: Gradients, weight: Floats | None) -> Fitted:
        """One expansion in the first ``sizes[0]`` basis vectors."""

    @abstractmethod
    def settle(self, stage: Stage) -> None:
        """Hear how long the last step became."""

    def grow(self) -> None:
        """The present machine is done."""
        self.is_done = len(self.sizes) == 1
        if not self.is_done:
            del self.sizes[0], self._bases[0]

    def system(
        self,
        gradients: Gradients,
        weight: Floats | None,
        size: int,
        on: NDArray[np.int64] | None = None,
    ) -> StageSystem:
        """``H`` and ``g`` of SY2006, eq. (21), for the first ``size`` basis vectors."""
        W = _curvature(gradients, weight, gradients.negative.shape[1])
        rows, lam = self.rows[:size], self.regularization
        return self.learner.sparse._system(
            self.data, self.kernel, rows, gradients, weight, W, lam, on
        )

    def expansion(self, a: Floats, outputs: Floats) -> Fitted:
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
        D = len(self.rows)
        system = self.system(gradients, weight, D)
        self._gram = system.gram
        self._factor = dense.cholesky(system.grams[0] + self.regularization * system.K_DD)
        self._half = dense.solve_lower(self._factor, system.g)
        self._before = self._half[:0]
        self.sizes = regular(D) if system.gram.is_kept else [D]

    def step(self, gradients: Gradients, weight: Floats | None) -> Fitted:
        """What leads from the last machine to this one."""
        t = self.sizes[0]
        a = dense.solve_lower(self._factor[:t, :t], self._half[:t] + 0.0, transposed=True)
        change = a + 0.0
        change[: len(self._before)] -= self._before
        self._before = a
        return self.expansion(change, _times(self._gram, change))

    def settle(self, stage: Stage) -> None:
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
        learner, rows = self.learner, self.rows[: len(a)]
        function = self.data.component(self.kernel, a.shape[1]).function
        descent = float((g * a).sum())
        total = float(len(outputs)) if weight is None else float(weight.sum())
        self.n_steps += 1
        self.is_optimal = 0.5 * descent <= learner.tol * total
        fitted = self.expansion(a, outputs)
        return Descending(
            fitted.part,
            outputs=outputs,
            slope=self.regularization * float((a * function[rows]).sum()),
            curvature=self.regularization * float((a * outputs[rows]).sum()),
            descent=descent,
        )

    def settle(self, stage: Stage) -> None:
        """Go on to the next machine where steps have become short."""
        is_stuck = not stage.parts[0].coefficient.any()
        is_late = self.n_steps >= self.learner.max_iter
        if self.is_optimal or is_stuck or is_late:
            if is_late and not self.is_optimal and len(self.sizes) == 1:
                warnings.warn(
                    f"the machine of {self.sizes[0]} basis vectors has not converged in "
                    f"{self.n_steps} steps; raise max_iter, tol or regularization.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            self.n_steps = 0
            self.grow()


class Newton(Descent):
    """Newton's method, each output with its own hessian: IRLS for log loss."""

    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """Smaller machines add a third to the cost."""
        self.sizes = doubling(len(self.rows))

    def step(self, gradients: Gradients, weight: Floats | None) -> Fitted:
        """``H⁻¹ g``; cost O(n t²) an output."""
        system = self.system(gradients, weight, self.sizes[0])
        a = system.solve(None, 0)
        return self.descending(dense.to_numpy(system.g), a, system.outputs(a), weight)


class QuasiNewton(Descent):
    """L-BFGS for many outputs, begun from the Newton steps of each output by itself.

    These take their hessians from a sample of rows, and anew after every ten steps.  A step costs
    O(n D r) besides.
    """

    def begin(self, gradients: Gradients, weight: Floats | None) -> None:
        """The sample, and the Gram matrix for gradients."""
        D, n = len(self.rows), len(gradients.negative)
        r = gradients.negative.shape[1]
        self._sample = np.random.default_rng((self.data.seed, 2)).permutation(n)
        self._gram = self.data.gram(
            self.kernel, None, self.rows, self.data.memory - 8.0 * D * D * (2 + r)
        )
        self.sizes = doubling(D)
        self._forget()

    def _forget(self) -> None:
        self._factors: list[Floats] = []
        self._pairs: list[tuple[Floats, Floats]] = []  # steps, and what they took from g
        self._last: tuple[Floats, Floats] | None = None  # g, and the step that it led to

    def step(self, gradients: Gradients, weight: Floats | None) -> Fitted:
        """The Newton steps, corrected by the curvature that the last steps met."""
        t = self.sizes[0]
        if self.n_steps % _STEPS_REMEMBERED == 0:
            self._factors = self._factored(gradients, weight, t)
        negative = gradients.negative
        function = self.data.component(self.kernel, negative.shape[1]).function
        right = negative if weight is None else negative * weight[:, None]
        pull = _precise(self.data.team, self._gram, right, transposed=True)[:t]
        g = pull - self.regularization * function[self.rows[:t]]
        if self._last is not None:
            before, step = self._last
            taken = before - g
            if (step * taken).sum() > _LEAST_CURVATURE * np.abs(step * before).sum():
                self._pairs = [*self._pairs[1 - _STEPS_REMEMBERED :], (step, taken)]
        a = self._direction(g)
        self._last = g, a
        padded = np.zeros((self._gram.shape[1], a.shape[1]))
        padded[:t] = a
        return self.descending(g, a, _precise(self.data.team, self._gram, padded), weight)

    def _factored(self, gradients: Gradients, weight: Floats | None, t: int) -> list[Floats]:
        """Cholesky factors of ``H``, one an output."""
        n = len(self._sample)
        on = self._sample[: max(_ROWS_A_BASIS_VECTOR * t, _FEWEST_SAMPLED)]
        diagonal = replace(gradients, bound=None)
        system = self.system(diagonal, weight, t, on)
        share = len(on) / n
        return [
            dense.cholesky(total + (share * self.regularization) * system.K_DD) / np.sqrt(share)
            for total in system.grams
        ]

    def _direction(self, g: Floats) -> Floats:
        """Nocedal & Wright 2006, Algorithm 7.4."""
        left = g + 0.0
        parts = []
        for step, taken in reversed(self._pairs):
            parts.append((step * left).sum() / (step * taken).sum())
            left -= parts[-1] * taken
        a = np.column_stack(
            [dense.solve_cholesky(L, left[:, k] + 0.0) for k, L in enumerate(self._factors)]
        )
        for (step, taken), part in zip(self._pairs, reversed(parts), strict=True):
            a += (part - (taken * a).sum() / (step * taken).sum()) * step
        return a

    def settle(self, stage: Stage) -> None:
        """Note the step as it was taken."""
        if self._last is not None:
            g, a = self._last
            self._last = g, a * stage.parts[0].coefficient
        super().settle(stage)

    def grow(self) -> None:
        """What was learnt about a smaller machine is of no use."""
        self._forget()
        super().grow()


class PenalisedLineSearch:
    """The length of a step at which the penalised loss no longer falls, roughly.

    A length of one is kept where the slope there is a tenth of that at the beginning; else the
    slope is brought to zero by Brent's method.
    """

    def check(self, loss: Loss, learner: Learner) -> None:
        """Only this module's learner says what the penalty does."""
        if not isinstance(learner, NestedLearner):
            raise IncompatibleParts(
                f"PenalisedLineSearch needs a NestedLearner; got {type(learner).__name__}. Use "
                "LineSearch."
            )

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The coefficients times the length, 0 for a step that does not descend."""
        (fitted,) = state.fitted
        assert isinstance(fitted, Descending)
        assert fitted.outputs is not None
        outputs, weight = fitted.outputs, state.sample.weight
        weighted = outputs if weight is None else outputs * weight[:, None]

        def slope(length: float) -> float:
            moved = state.loss.gradients(state.target, state.raw + length * outputs)
            penalty = fitted.slope + fitted.curvature * length
            return penalty - float((weighted * moved.negative).sum())

        first, low, high = -fitted.descent, 0.0, 1.0
        if not first < 0:
            return stage.scaled(0.0)
        last = slope(high)
        if abs(last) <= _FLAT * -first:
            return stage
        while last < 0:
            low, high = high, 2 * high
            if high > _LONGEST:
                return stage.scaled(low)
            last = slope(high)
        return stage.scaled(float(brentq(slope, low, high, rtol=1e-2, maxiter=50, disp=False)))


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


def _precise(team: Team, gram: Gram, V: Floats, transposed: bool = False) -> Floats:
    """``K V`` or ``K' V`` in float64 sums, whatever the kernel values are.

    A step divides by the smallest eigenvalues of ``K'WK + λ K_DD``, and the rounding of ``g`` with
    them.
    """
    parts = row_blocks(gram.shape[0])

    def product(rows: slice) -> Floats:
        block = dense.to_numpy(gram.block(rows))
        return block.T @ V[rows] if transposed else block @ V

    if gram.is_kept:
        gram.whole()
    with dense.blas_threads(1):
        products = team.map(product, parts)
    return sum(products[1:], start=products[0]) if transposed else np.concatenate(products)


def _times(gram: Gram, a: Floats) -> Floats:
    """``K a`` for the weights of the first basis vectors, (n, r)."""
    padded = np.zeros((gram.shape[1], a.shape[1]))
    padded[: len(a)] = a
    return dense.to_numpy(gram.times(padded))

"""Steps through the nested machines of one basis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

from hilboost.backends import array_api
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import warn_caller
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.config import Workspace
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.stage_system import StageSystem
from hilboost.learners.kernel_machine.state import MachineState

_FEWEST = 50  # basis vectors of the smallest nested machine
_MOST_SIZES = 20
_STEPS_REMEMBERED = 20
_LEAST_CURVATURE = 1e-6


class Steps(ABC):
    """The steps through the nested machines; a subclass takes a step towards the present one.

    The methods change it in place, because it holds an (n, D) Gram matrix and factors of it.
    """

    def __init__(
        self,
        state: MachineState,
        problem: StageProblem,
        rows: Ints,  # (D,): the basis
        tol: float,
        max_iter: int,
    ) -> None:
        self.regularization = problem.regularization
        self.rows, self.tol, self.max_iter = rows, tol, max_iter
        self.is_done = False  # whether all machines are finished
        # Sizes of the machines that are not finished; the first is that of the present one.
        self.sizes = self.begin(state, problem)
        self.use_basis(state.workspace)

    def use_basis(self, workspace: Workspace) -> None:
        """Take the basis vectors of all machines, in the dtype of the kernel values.

        Each machine has one array, which all its stages share.
        """
        basis = workspace.basis(self.rows)
        self._bases = [basis[:t] for t in self.sizes]

    @abstractmethod
    def begin(self, state: MachineState, problem: StageProblem) -> list[int]:
        """Compute what is computed once; return the sizes of all machines."""

    @abstractmethod
    def step(self, state: MachineState, problem: StageProblem) -> Descending:
        """One expansion in the first ``sizes[0]`` basis vectors."""

    @abstractmethod
    def stage_added(self, stage: Stage) -> None:
        """Update the state after the step was added with the coefficients of a stage."""

    def grow(self) -> None:
        """Go on to the next machine."""
        self.is_done = len(self.sizes) == 1
        if not self.is_done:
            del self.sizes[0], self._bases[0]

    def factored(self, state: MachineState, problem: StageProblem) -> tuple[StageSystem, Floats]:
        """The system of the whole basis, and the Cholesky factor of ``H``."""
        system = StageSystem.of(state.workspace, problem, self.rows)
        H = array_api.to_numpy(system.grams[0] + self.regularization * system.K_DD)
        return system, array_api.cholesky(H)

    def term(self, state: MachineState, problem: StageProblem, a: Floats) -> Term[KernelExpansion]:
        """The base model of weights (t, r)."""
        rows, workspace = self.rows[: len(a)], state.workspace
        model = workspace.expansion(problem.kernel, rows, a, self._bases[0])
        return Term.of(model, slice(0, a.shape[1]))


class ClosedForm(Steps):
    """Squared error: all nested machines from one Cholesky factor.

    ``H_t`` and ``g_t`` of the first ``t`` basis vectors are leading blocks of the matrices of all
    basis vectors, and so is the factor of ``H_t``.  After the largest machine, each of the others
    costs O(t²) and one product with the Gram matrix.  If that matrix is not kept, there is only
    the largest machine.
    """

    def begin(self, state: MachineState, problem: StageProblem) -> list[int]:
        """Factor once, in double precision if single is inaccurate."""
        system, self._factor = self.factored(state, problem)
        self._gram = system.gram
        self._half = array_api.solve_lower(self._factor, array_api.to_numpy(system.g))
        whole = array_api.solve_lower(self._factor, self._half + 0.0, transposed=True)
        if state.refine_precision(problem, self.rows, whole):
            return self.begin(state, problem)
        self._before = self._half[:0]
        D = len(self.rows)
        return regular(D) if self._gram.is_kept else [D]

    def step(self, state: MachineState, problem: StageProblem) -> Descending:
        """The difference between the last machine and this one."""
        t = self.sizes[0]
        a = array_api.solve_lower(self._factor[:t, :t], self._half[:t] + 0.0, transposed=True)
        change = a + 0.0
        change[: len(self._before)] -= self._before
        self._before = a
        return Descending(self.term(state, problem, change), outputs=times(self._gram, change))

    def stage_added(self, stage: Stage) -> None:
        """Go on: one step solves the present machine."""
        self.grow()


class Direction(NamedTuple):
    """The weights of a step, and the terms of the quadratic model that it minimizes."""

    a: Floats  # (t, r) float64: the weights
    g: Floats  # (t, r) float64: the negative gradient of the penalized loss
    gram: Gram  # ``K`` (n, D); the first ``t`` columns are used
    K_DD: Floats  # (D, D) float64: likewise


class Iterative(Steps):
    """Several steps on every nested machine, each starting from the result of the smaller one.

    In single precision, the values of the function so far contain rounding errors, which are not
    smooth.  Steps that remove them at the basis vectors have large weights, whose rounding errors
    are larger still, and seem to decrease the penalty without bound.  The penalty is therefore
    computed from the weights, in double precision.
    """

    n_steps = 0  # on the present machine
    is_optimal = False  # whether the last step decreased the mean loss by less than the tolerance

    def begin(self, state: MachineState, problem: StageProblem) -> list[int]:
        """Each size is twice the one before; the smaller machines add a third to Newton's cost."""
        self._is_rounded = state.workspace.precision == "float32"
        self.prepare(state, problem)
        return doubling(len(self.rows))

    def prepare(self, state: MachineState, problem: StageProblem) -> None:
        """Compute what the steps share; by default, nothing."""
        return

    @abstractmethod
    def direction(self, state: MachineState, problem: StageProblem) -> Direction:
        """The next step on the present machine."""

    def step(self, state: MachineState, problem: StageProblem) -> Descending:
        """The next step on the present machine, in double precision if single is inaccurate."""
        direction = self.direction(state, problem)
        if state.refine_precision(problem, self.rows[: len(direction.a)], direction.a):
            self.use_basis(state.workspace)
            self.prepare(state, problem)
            direction = self.direction(state, problem)
        return self._descending(state, problem, direction)

    def function(self, problem: StageProblem, K_DD: Floats) -> Floats:
        """The function so far at the basis vectors of the present machine, (t, r)."""
        so_far, rows = problem.so_far, self.rows[: self.sizes[0]]
        return self._at_basis(so_far.function[rows], so_far.alpha[rows], K_DD)

    def _at_basis(self, values: Floats, weights: Floats, K_DD: Floats) -> Floats:
        """Values of an expansion at its basis vectors; in single precision, computed again."""
        t = len(weights)
        return K_DD[:t, :t] @ weights if self._is_rounded else values

    def _descending(
        self, state: MachineState, problem: StageProblem, direction: Direction
    ) -> Descending:
        a, g, gram, K_DD = direction
        outputs = times(gram, a)
        term, weight = self.term(state, problem, a), problem.weight
        function = self.function(problem, K_DD)
        own = self._at_basis(outputs[term.model.rows], a, K_DD)
        descent = float((g * a).sum())
        total = float(len(outputs)) if weight is None else float(weight.sum())
        self.n_steps += 1
        self.is_optimal = 0.5 * descent <= self.tol * total
        return Descending(
            term,
            outputs=outputs,
            slope=self.regularization * float((a * function).sum()),
            curvature=self.regularization * float((a * own).sum()),
            descent=descent,
        )

    def stage_added(self, stage: Stage) -> None:
        """Go on to the next machine if the last step hardly changed this one."""
        is_stuck = not stage.terms[0].coefficient.any()
        is_late = self.n_steps >= self.max_iter
        if self.is_optimal or is_stuck or is_late:
            if is_late and not self.is_optimal and len(self.sizes) == 1:
                warn_caller(
                    f"the kernel machine with {self.sizes[0]} basis vectors did not converge in "
                    f"{self.n_steps} steps; increase max_iter, tol or regularization.",
                    ConvergenceWarning,
                )
            self.n_steps = 0
            self.grow()


class Newton(Iterative):
    """Newton's method for one output: IRLS for log loss, an active-set method for squared hinge."""

    def direction(self, state: MachineState, problem: StageProblem) -> Direction:
        """``H⁻¹ g``; cost O(n t²)."""
        system = StageSystem.of(state.workspace, problem.alone, self.rows[: self.sizes[0]])
        K_DD = array_api.to_numpy(system.K_DD)
        penalty = self.regularization * self.function(problem, K_DD)
        g = array_api.to_numpy(system.g) - penalty
        a = replace(system, g=array_api.like(g, system.g)).solve()
        return Direction(a, g, system.gram, K_DD)


class QuasiNewton(Iterative):
    """L-BFGS for several outputs, with a bound on the hessian that all outputs share.

    For log loss, the bound is that of Böhning (1992), ``½ (I - 11'/C)``.  It is factored once, for
    all sizes; a step costs O(n D r).
    """

    def prepare(self, state: MachineState, problem: StageProblem) -> None:
        """Factor once."""
        system, self._factor = self.factored(state, problem)
        self._gram, self._K_DD = system.gram, array_api.to_numpy(system.K_DD)
        self._forget()

    def _forget(self) -> None:
        self._pairs: list[tuple[Floats, Floats]] = []  # steps, and what they took from g
        self._last: tuple[Floats, Floats] | None = None  # g, and the step from there

    def direction(self, state: MachineState, problem: StageProblem) -> Direction:
        """The step of the bound, corrected by the curvature along the last steps."""
        t = self.sizes[0]
        negative = array_api.like(problem.weighted_gradient, self._gram.A, "float64")
        g = array_api.to_numpy(self._gram.transposed_times(negative, exactly=True))[:t]
        g -= self.regularization * self.function(problem, self._K_DD)
        if self._last is not None:
            before, step = self._last
            taken = before - g
            if (step * taken).sum() > _LEAST_CURVATURE * (step * before).sum():
                self._pairs = [*self._pairs[1 - _STEPS_REMEMBERED :], (step, taken)]
        a = self._minimizer(g)
        self._last = g, a
        return Direction(a, g, self._gram, self._K_DD)

    def _minimizer(self, g: Floats) -> Floats:
        """Nocedal & Wright 2006, Algorithm 7.4, with the scale of (7.20)."""
        factor = self._factor[: len(g), : len(g)]
        left, coefficients = g + 0.0, []
        for step, taken in reversed(self._pairs):
            coefficients.append((step * left).sum() / (step * taken).sum())
            left -= coefficients[-1] * taken
        a = array_api.solve_cholesky(factor, left)
        if self._pairs:
            step, taken = self._pairs[-1]
            half = array_api.solve_lower(factor, taken + 0.0)
            a *= (step * taken).sum() / (half * half).sum()
        for (step, taken), coefficient in zip(self._pairs, reversed(coefficients), strict=True):
            a += (coefficient - (taken * a).sum() / (step * taken).sum()) * step
        return a

    def stage_added(self, stage: Stage) -> None:
        """Scale the last step as the rules did."""
        if self._last is not None:
            g, a = self._last
            self._last = g, a * stage.terms[0].coefficient
        super().stage_added(stage)

    def grow(self) -> None:
        """Go on to the next machine; the curvature of a smaller one is of no use to it."""
        self._forget()
        super().grow()


def times(gram: Gram, V: Floats) -> Floats:
    """``K V``, for ``V`` (t, r) with as many rows as the first columns of ``K``; in float64 sums.

    Steps divide by the small eigenvalues of ``H``, which amplifies the rounding errors of sums.
    """
    return array_api.to_numpy(gram.times(array_api.like(V, gram.A, "float64"), exactly=True))


def regular(D: int) -> list[int]:
    """50, 100, … and ``D``; at most 20 sizes."""
    step = max(_FEWEST, -(-D // _MOST_SIZES))
    return [*range(step, D, step), D]


def doubling(D: int) -> list[int]:
    """``D``, its half, its quarter, … down to 50, in ascending order."""
    sizes = [D]
    while sizes[0] >= 2 * _FEWEST:
        sizes.insert(0, sizes[0] // 2)
    return sizes

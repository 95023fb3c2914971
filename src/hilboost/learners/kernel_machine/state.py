"""The state of a kernel machine during a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel
from hilboost.kernels.base import are_equal
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.conjugate_gradients import largest_norm
from hilboost.learners.kernel_machine.descending import (
    ROWS_CHECKED,
    Conversion,
    Descending,
    Descent,
    loses_digits,
    unit_of,
)
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import (
    Change,
    Component,
    CornerRows,
    Newton,
    Penalty,
    StageProblem,
    minimizer,
)
from hilboost.learners.kernel_machine.summary import StageKernels
from hilboost.learners.kernel_machine.tuning.choose import (
    Choice,
    Chooser,
    PenaltyChoice,
    SharedChoice,
)

_LARGEST_FALL = 0.01  # of the penalized loss by the last stage, relative to all of them
_LARGEST_RESIDUAL = 0.1  # its square bounds the distance of the penalized loss to its minimum


@dataclass(frozen=True, eq=False)
class MachineRecord:
    """The function so far, the kernel and λ: what a fit continues from, besides its rows."""

    in_files: ClassVar[bool] = True

    unit: float | None = None  # that of the gradients; ``None`` before the first stage
    precision: str = ""  # dtype of the kernel values, in a snapshot
    choice: Choice | None = None  # ``None`` before the first stage
    descent: Descent | None = None  # of the penalized loss so far, if the fit ends with it
    n_stages: int = 0
    components: tuple[Component, ...] = ()  # one for each kernel
    own: Any = None  # what the learner adds, such as the state of its solver
    # norms of the first and the last dual residual, if stages solve its system
    residuals: tuple[float, float] | None = None


class MachineState:
    """The record of a fit, and what is not kept of it: Gram matrices, factors, threads.

    This is the ``data`` of the methods of a learner, which the boosting loop holds.  Its methods
    replace the record.
    """

    stage_kernels: StageKernels | None = None  # of the stages, if there are several kernels
    # number of basis vectors that the model can have, if fewer than rows
    n_effective: float = np.inf
    iterates = False  # whether the fit takes conjugate gradient steps on all rows
    choose_penalty: PenaltyChoice | None = None
    shared: SharedChoice | None = None  # of all members of an ensemble

    def __init__(self, workspace: Workspace, choice: Choice | None = None) -> None:
        self.workspace = workspace  # replaced at most once, by that in double precision
        self.record = MachineRecord(choice=choice)
        self._first: tuple[Gradients, Floats | None] | None = None
        self.proposed: tuple[Descending, ...] = ()  # for the distinct rows
        self._corners: CornerRows | None = None

    def note(self, **changes: Any) -> None:
        """Replace some fields of the record."""
        self.record = replace(self.record, **changes)

    @property
    def choice(self) -> Choice | None:
        """Kernel and λ; ``None`` before the first stage."""
        return self.record.choice

    @property
    def noise(self) -> Floats | None:
        """Diagonal (n,) of the linear system that the function solves, if there is one."""
        return None

    @property
    def conversion(self) -> Conversion:
        """To distinct rows, and to the unit of the gradients."""
        unit = self.record.unit
        return Conversion(self.workspace.distinct, 1.0 if unit is None else unit)

    @property
    def trial(self) -> tuple[Ints, Floats] | None:
        """Rows that the choice held out, and predictions of their first gradients."""
        choice = self.choice
        if choice is None or choice.rows is None or choice.predicted is None:
            return None
        return self.conversion.predictions(choice.rows, choice.predicted)

    @property
    def converged(self) -> bool:
        """Whether the penalized loss was observed, and no longer decreases."""
        return self.record.descent is not None and self.record.descent.has_ended

    @property
    def is_settled(self) -> bool:
        """Whether the fit is close to the minimum, or its stages do not approach one."""
        residuals, descent = self.record.residuals, self.record.descent
        if residuals is not None:
            return self.converged or residuals[1] <= _LARGEST_RESIDUAL * residuals[0]
        return descent is None or descent.last <= _LARGEST_FALL * descent.fall

    def note_residual(self, residual: Floats) -> None:
        """Remember the norm of the dual residual (n, r) of a stage, beside that of the first."""
        norm = largest_norm(residual)
        self.note(residuals=((self.record.residuals or (norm,))[0], norm))

    def seen(self, gradients: Gradients, sample: RowSample) -> tuple[Gradients, Floats | None]:
        """Gradients and sample weights of the distinct rows, in the unit of the first gradients."""
        if self.record.unit is None:
            self.note(unit=unit_of(gradients))
            observed = gradients.negative_gradient / self.conversion.unit
            self.workspace = self.workspace.observing(observed, sample.dependence)
            if self.shared is not None:
                self._first = self.conversion.seen(gradients, self.workspace.all_rows)
        self._corners = self.conversion.corners(gradients, sample)
        return self.conversion.seen(gradients, sample)

    def chosen(
        self,
        config: KernelMachineConfig,
        gradients: Gradients,  # as :meth:`seen` returns them
        weight: Floats | None,  # (n,) float64 or None: likewise
    ) -> Choice:
        """Kernel and λ, which the first stage chooses, once for all members and all workers."""
        if self.choice is None:
            # From the rows of the stage, or once for all members from all rows.
            first, own = self._first or (gradients, weight)
            self._first = None
            chooser = Chooser(
                config, self.workspace, self.n_effective, self.iterates, self.choose_penalty
            )
            find = partial(chooser.choice, first, own)
            found = find() if self.shared is None else self.shared.settled(find)
            # A time limit may end the search of another worker earlier.
            exchange = self.workspace.exchange
            self.note(choice=found if exchange is None else exchange.first(found))
        assert self.choice is not None
        return self.choice

    def problem(
        self, config: KernelMachineConfig, gradients: Gradients, weight: Floats | None
    ) -> StageProblem:
        """The problem of this stage, for arguments as of :meth:`chosen`."""
        choice = self.chosen(config, gradients, weight)
        self.workspace, regularization = choice.settled(self.workspace, weight)
        return StageProblem(choice.kernel, regularization, gradients, weight, self._corners)

    def penalize(self, regularization: float) -> None:
        """Set λ for this and later stages."""
        assert self.choice is not None
        self.note(choice=replace(self.choice, regularization=regularization))

    def expect_descent(self, patience: int) -> None:
        """Observe the decrease of the penalized loss, if it is not observed yet.

        The descent ends after ``patience`` consecutive stages with a negligible decrease.
        """
        if self.record.descent is None:
            self.note(descent=Descent(patience))

    def restart(self, regularization: float, least_fall: float) -> None:
        """Begin another fit from the function so far, with the same Gram matrix.

        The descent ends at a relative decrease of the penalized loss of ``least_fall``.
        """
        self.penalize(regularization)
        self.note(descent=Descent(1, least_fall))

    def refine_precision(self, kernel: Kernel, rows: Ints, weights: Floats) -> bool:
        """Turn to double precision if an expansion is inaccurate in single; whether it did."""
        workspace = self.workspace
        if workspace.source is None:
            return False
        some = workspace.X[:: max(1, workspace.n_rows // ROWS_CHECKED)]
        function = self.component(kernel, weights.shape[1]).function
        spread = float(np.sqrt((function**2).mean()))
        if not loses_digits(kernel, some, workspace.X[rows], weights, spread, workspace.team):
            return False
        self.workspace = workspace.in_float64()
        return True

    def component(self, kernel: Kernel, n_outputs: int) -> Component:
        """The component of the function so far in the space of a kernel."""
        for found in self.record.components:
            if found.kernel is kernel:
                return found
        return Component.zero(kernel, self.workspace.n_rows, n_outputs)

    def known(self, kernel: Kernel) -> Kernel | None:
        """The kernel of a component that is equal to this one: components belong to objects."""
        kernels = [one.kernel for one in self.record.components]
        return next((one for one in kernels if are_equal(one, kernel)), None)

    def snapshot(self) -> MachineRecord | None:
        """The record that later stages need; ``None`` before the first stage."""
        if self.choice is None or self.record.unit is None:
            return None
        return replace(self.record, precision=self.workspace.precision)

    def restore(self, record: MachineRecord, terms: Sequence[Term]) -> list[Term]:
        """Continue from a snapshot; return the terms so far with its kernels and these inputs.

        Predictions add up expansions that share these objects.
        """
        if self.workspace.precision != record.precision:
            self.workspace = self.workspace.in_float64()
        n_rows = self.workspace.n_rows
        shapes = [(one.alpha.shape, one.function.shape) for one in record.components]
        is_valid = all(a == b == (n_rows, *a[1:]) for a, b in shapes)
        if not is_valid or self.workspace.precision != record.precision:
            raise ValueError("a kernel machine has the wrong shape or precision")
        self.record = record
        return [self._shared(term) for term in terms]

    def _shared(self, term: Term[KernelExpansion]) -> Term:
        """Return the term with its kernel and inputs replaced by equal objects of the machine."""
        model, inputs = term.model, self.workspace.inputs
        kernel = self.known(model.kernel)
        if kernel is None or not are_equal(inputs, model.inputs):
            raise ValueError("the stages of a kernel machine have another kernel or other inputs")
        return term.with_model(replace(model, kernel=kernel, inputs=inputs))

    def gained(self, problem: StageProblem) -> Floats:
        """Decrease of the penalized squared error by the stages so far, (r,).

        A step that descends on the dual may increase the error, but not above that of the constant.
        """
        so_far = self.component(problem.kernel, problem.n_outputs)
        function = so_far.function
        w = 1.0 if problem.weight is None else problem.weight[:, None]
        gained = w * function * (0.5 * function + problem.gradients.negative_gradient)
        return (gained - 0.5 * problem.regularization * so_far.alpha * function).sum(axis=0)

    def step_of(
        self,
        problem: StageProblem,
        rows: Ints,  # (D,) int64: basis vectors
        weights: Floats,  # (D, r) float64
        outputs: Floats,  # (n, r) float64: values on all rows
        basis: NDArray | None = None,  # (D, d): an array of basis vectors that stages share
        of_ensemble: bool = True,  # whether the norm of the whole function is penalized
    ) -> Descending:
        """The step of weights, with its effect on the penalty."""
        model = self.workspace.expansion(problem.kernel, rows, weights, basis)
        function = self.component(problem.kernel, problem.n_outputs).function[rows]
        if not of_ensemble:
            function = np.zeros_like(function)
        return Descending.along(problem, model, outputs, function)

    def propose(self, *steps: Descending) -> list[FittedTerm]:
        """Remember the steps of a stage; return them for all rows, in the unit of the gradients."""
        self.proposed = steps
        return self.conversion.shown(steps)

    def withdraw(self) -> None:
        """Discard the proposed steps, because another kernel or learner made the stage."""
        self.add(())

    def stage_added(self, stage: Stage) -> None:
        """Add the proposed steps with the coefficients that the rules set."""
        if self.record.descent is not None:
            (step,) = self.proposed
            self.note(descent=self.record.descent.after(stage, step))
        self.add(zip(stage.terms, self.proposed, strict=True))

    def add(self, steps: Iterable[tuple[Term, Descending]]) -> None:
        """Add steps with the coefficients of terms, as one stage."""
        components = {id(one.kernel): one for one in self.record.components}
        for term, step in steps:
            model, coefficient = step.term.model, term.coefficient
            assert model.rows is not None
            key = id(model.kernel)
            before = components.get(key) or self.component(model.kernel, len(coefficient))
            components[key] = before.plus(model.rows, model.weights, step.outputs, coefficient)
        self.note(n_stages=self.record.n_stages + 1, components=tuple(components.values()))
        self.proposed = ()

    def meets_corners(self, problem: StageProblem, basis: Ints) -> bool:
        """Whether a stage minimizes a loss with corners over the span of its basis.

        The first stage does, and so does each one whose span is that of all rows.  In between, one
        step of Newton's method suffices: the bases limit the decrease.
        """
        is_whole = len(basis) == problem.n_rows
        return problem.corners is not None and (self.record.n_stages == 0 or is_whole)

    def at_corners(
        self, problem: StageProblem, basis: Ints, newton: Newton, function: Floats
    ) -> Change:
        """The step to the minimum over the span of a basis, where ``function`` (D, r) is penalized.

        ``newton`` takes Newton's steps of problems with smooth corners.
        """
        rows, lam = problem.corners, problem.regularization
        assert rows is not None
        so_far = self.component(problem.kernel, problem.n_outputs)
        norm = 0.5 * lam * (so_far.alpha * so_far.function).sum(axis=0)
        penalty = Penalty(lam, basis, function, norm)
        return minimizer(problem, rows, penalty, newton, rows.multipliers(so_far.alpha, lam))

    def amplitude(self, residual: Floats) -> float:
        """The maximum-likelihood factor of kernel and noise.

        ``y'(K + D)⁻¹y / n``, for the targets minus the start value ``y`` (n, r).
        """
        if self.choice is None:
            return 1.0
        alpha = self.component(self.choice.kernel, 0).alpha
        if alpha.shape[1] != residual.shape[1]:
            return 1.0
        product = float((self.conversion.means(residual) * alpha).sum())
        return likely_amplitude(self.conversion, self.choice.regularization, product, residual)

    def close(self) -> None:
        """End the threads; subclasses release their Gram matrices."""
        self.workspace.team.__exit__()


def likely_amplitude(
    conversion: Conversion, regularization: float, product: float, residual: Floats
) -> float:
    """The maximum-likelihood factor of kernel and noise.

    ``product`` is ``y'(K + D)⁻¹y`` for the mean targets ``y`` of the distinct rows, and
    ``residual`` (n, r) the targets minus the start value.
    """
    unit, distinct = conversion.unit, conversion.distinct
    if distinct is not None:
        product += distinct.scatter(residual / unit, distinct.weight) / max(regularization, 1e-300)
    return max(product / residual.size, 1e-300) * unit * unit

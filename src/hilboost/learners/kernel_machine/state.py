"""The state of a kernel machine during a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.base import are_equal
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.conjugate_gradients import largest_norm
from hilboost.learners.kernel_machine.descending import (
    ROWS_CHECKED,
    Descending,
    Descent,
    loses_digits,
    unit_of,
)
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import Component, CornerRows, StageProblem
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
    stage_kernels: StageKernels | None = None  # of the stages, if the user listed several kernels
    functions: tuple[Floats, ...] = ()  # (n, r) float64: the part of each of several kernels
    is_least_squares: bool = True
    own: Any = None  # what the learner adds, such as the state of its solver
    # norms of the first and the last dual residual, if stages solve its system
    residuals: tuple[float, float] | None = None


class MachineState:
    """The record of a fit, and what is not kept of it: Gram matrices, factors, threads.

    This is the ``data`` of the methods of a learner, which the boosting loop holds.  Its methods
    replace the record.
    """

    # number of basis vectors that the model can have, if fewer than rows
    n_effective: float = np.inf
    iterates = False  # whether the fit takes conjugate gradient steps on all rows
    patience = 5  # number of stages with a negligible decrease, after which several kernels end
    choose_penalty: PenaltyChoice | None = None
    shared: SharedChoice | None = None  # of all members of an ensemble

    def __init__(self, workspace: Workspace, choice: Choice | None = None) -> None:
        self.workspace = workspace  # replaced at most once, by that in double precision
        self.record = MachineRecord(choice=choice)
        self._first: tuple[Gradients, Floats | None] | None = None
        self.proposed: tuple[Descending, ...] = ()  # for the distinct rows
        self.best: StageProblem | None = None  # whose step is proposed

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
    def unit(self) -> float:
        """A power of two that gradients are divided by, so that their squares are finite."""
        return 1.0 if self.record.unit is None else self.record.unit

    @property
    def trial(self) -> tuple[Ints, Floats] | None:
        """Rows that the choice held out, and predictions of their first gradients."""
        choice, distinct = self.choice, self.workspace.distinct
        if choice is None or choice.rows is None or choice.predicted is None:
            return None
        outputs = choice.predicted * self.unit
        if distinct is None:
            return choice.rows, outputs
        members, places = distinct.members(choice.rows)
        return members, outputs[places]

    @property
    def converged(self) -> bool:
        """Whether the penalized loss was observed, and no longer decreases."""
        return self.record.descent is not None and self.record.descent.has_ended

    @property
    def is_settled(self) -> bool:
        """Whether the fit is close to the minimum, or its stages do not approach one."""
        residuals, descent = self.record.residuals, self.record.descent
        if descent is not None:
            return descent.last <= _LARGEST_FALL * descent.fall
        is_small = residuals is None or residuals[1] <= _LARGEST_RESIDUAL * residuals[0]
        return is_small or self.converged

    def note_residual(self, residual: Floats) -> None:
        """Remember the norm of the dual residual (n, r) of a stage, beside that of the first."""
        norm = largest_norm(residual)
        self.note(residuals=((self.record.residuals or (norm,))[0], norm))

    def problems(
        self, config: KernelMachineConfig, gradients: Gradients, sample: RowSample
    ) -> list[StageProblem]:
        """The problem of this stage, or one for each of several kernels.

        Under a loss with corners, no kernel alone may lower the loss where all together do.  Each
        stage is then one of the sum of the kernels.
        """
        if self.record.unit is None:
            self.note(unit=unit_of(gradients), is_least_squares=gradients.hessian is None)
            observed = gradients.negative_gradient / self.unit
            self.workspace = self.workspace.observing(observed, sample.dependence)
            if self.shared is not None:
                self._first = self._seen(gradients, self.workspace.all_rows)
        corners, (seen, weight) = None, self._seen(gradients, sample)
        if gradients.corners is not None:
            of_all = sample.weights_of_all(len(gradients.negative_gradient))
            corners = CornerRows(gradients.corners, of_all, self.workspace.distinct)
        choice = self._chosen(config, seen, weight)
        self.workspace, regularization = choice.settled(self.workspace, weight)
        r = gradients.negative_gradient.shape[1]
        if choice.parts and self.record.stage_kernels is None:
            zeros = (np.zeros((self.workspace.n_rows, r)),) * len(choice.parts)
            self.note(stage_kernels=StageKernels.of(choice.parts), functions=zeros)
            self.expect_descent(self.patience)
        kernels = choice.parts if choice.parts and corners is None else (choice.kernel,)
        return [
            StageProblem(self.component(kernel, r), regularization, seen, weight, corners, place)
            for place, kernel in enumerate(kernels)
        ]

    def _seen(self, gradients: Gradients, sample: RowSample) -> tuple[Gradients, Floats | None]:
        """Gradients and sample weights of the distinct rows, in the unit of the first gradients."""
        distinct = self.workspace.distinct
        weight = sample.weights_of_all(len(gradients.negative_gradient))
        if self.unit != 1:
            negative = gradients.negative_gradient / self.unit
            gradients = replace(gradients, negative_gradient=negative)
        return (gradients, weight) if distinct is None else distinct.merged(gradients, weight)

    def _chosen(
        self, config: KernelMachineConfig, gradients: Gradients, weight: Floats | None
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

    def refine_precision(self, problem: StageProblem, rows: Ints, weights: Floats) -> bool:
        """Turn to double precision if an expansion is inaccurate in single; whether it did."""
        workspace, kernel = self.workspace, problem.kernel
        if not workspace.can_refine:
            return False
        some = workspace.X[:: max(1, workspace.n_rows // ROWS_CHECKED)]
        spread = float(np.sqrt((problem.so_far.function**2).mean()))
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

    def stretched(self, kernel: Kernel, factors: tuple[float, ...]) -> list[Kernel]:
        """The kernel with multiples of its length scales; the objects of known ones."""
        kernels = [kernel if factor == 1 else kernel.stretched(factor) for factor in factors]
        return [self.known(one) or one for one in kernels]

    def snapshot(self) -> MachineRecord | None:
        """The record that later stages need; ``None`` before the first stage."""
        if self.choice is None or self.record.unit is None:
            return None
        return replace(self.record, precision=self.workspace.precision)

    def restore(self, record: MachineRecord, terms: Sequence[Term]) -> list[Term]:
        """Continue from a snapshot; return the terms so far with its kernels and these inputs.

        Predictions add up expansions that share these objects.
        """
        if record.choice is not None:
            self.workspace = self.workspace.with_warps(record.choice.warps)
        if self.workspace.precision != record.precision:
            self.workspace = self.workspace.in_float64()
        n_rows = self.workspace.n_rows
        shapes = [(one.alpha.shape, one.function.shape) for one in record.components]
        is_valid = all(a == b == (n_rows, *a[1:]) for a, b in shapes)
        is_valid = is_valid and all(len(part) == n_rows for part in record.functions)
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

    def propose(
        self, problems: Sequence[StageProblem], steps: Sequence[Descending]
    ) -> list[FittedTerm]:
        """Propose the step with the largest decrease; the first of several."""
        # At the minimum of a parabola, the decrease is half of what the slope promises: ½ g'H⁻¹g.
        gains = np.array([0.5 * float(np.sum(step.descent)) for step in steps])
        gains[np.isnan(gains)] = -np.inf
        best = int(np.argmax(gains))
        self.best = problems[best]
        return self.shown(steps[best])

    def shown(self, *steps: Descending) -> list[FittedTerm]:
        """Remember the steps of a stage; return them for all rows, in the unit of the gradients."""
        self.proposed, distinct = steps, self.workspace.distinct
        if distinct is not None:
            steps = tuple(step.on_all_rows(distinct) for step in steps)
        return [step if self.unit == 1 else step.in_unit(self.unit) for step in steps]

    def withdraw(self) -> None:
        """Discard the proposed steps, because another learner made the stage."""
        self._add([])

    def stage_added(self, stage: Stage) -> None:
        """Add the proposed steps with the coefficients that the rules set."""
        pairs = list(zip(stage.terms, self.proposed, strict=True))
        if self.record.descent is not None:
            falls = [0.5 * float((term.coefficient * step.descent).sum()) for term, step in pairs]
            self.note(descent=self.record.descent.after(sum(falls)))
        if self.record.stage_kernels is not None:
            self._note_kernels(pairs)
        self._add(pairs)

    def _note_kernels(self, pairs: list[tuple[Term, Descending]]) -> None:
        """Add a stage to the functions of several kernels, and note which kernel made it."""
        before, functions = self.record.stage_kernels, list(self.record.functions)
        assert before is not None
        assert self.best is not None
        maker = self.best.place
        if self.best.corners is None:
            # The stages before it follow, if their weights are set anew.
            makers = [maker, *before.chosen.tolist()][: len(pairs)]
            changes = [term.coefficient * step.outputs for term, step in pairs]
        else:
            makers, changes = [*range(len(functions))], self._parts_of(pairs[0][0])
            maker = int(np.argmax([float((values**2).sum()) for values in changes]))
        for place, values in zip(makers, changes, strict=True):
            functions[place] = functions[place] + values
        weight = self.workspace.weight
        w = 1.0 if weight is None else weight[:, None]
        norms = np.array([float((w * values**2).sum()) for values in functions])
        self.note(stage_kernels=before.after(maker, norms), functions=tuple(functions))

    def _parts_of(self, term: Term[KernelExpansion]) -> list[Floats]:
        """Outputs (n, r) of each of several kernels in a stage of their sum."""
        assert self.choice is not None
        model, workspace = self.proposed[0].term.model, self.workspace
        weights = array_api.like(term.coefficient * model.weights, workspace.X, "float64")
        outputs, parts = [], list(Sum((model.kernel,)).parts)
        for kernel in self.choice.parts:
            n_parts = len(Sum((kernel,)).parts)  # sums are flattened
            part, parts = Sum(tuple(parts[:n_parts])), parts[n_parts:]
            gram = workspace.gram(part, None, model.rows)
            outputs.append(array_api.to_numpy(gram.times(weights)))
        return outputs

    def _add(self, pairs: list[tuple[Term, Descending]]) -> None:
        """Add steps with the coefficients of terms, as one stage."""
        components = {id(one.kernel): one for one in self.record.components}
        for term, step in pairs:
            model, coefficient = step.term.model, term.coefficient
            assert model.rows is not None
            key = id(model.kernel)
            before = components.get(key) or self.component(model.kernel, len(coefficient))
            components[key] = before.plus(model.rows, model.weights, step.outputs, coefficient)
        self.note(n_stages=self.record.n_stages + 1, components=tuple(components.values()))
        self.proposed, self.best = (), None

    def amplitude(self, residual: Floats) -> float:
        """The maximum-likelihood factor of kernel and noise.

        ``y'(K + D)⁻¹y / n``, for the targets minus the start value ``y`` (n, r).  Functions of
        several kernels are close to the minimizer of the penalized loss; λ times this product is
        twice its minimum, if it is squared error.
        """
        choice, distinct, r = self.choice, self.workspace.distinct, residual.shape[1]
        if choice is None or (choice.parts and not self.record.is_least_squares):
            return 1.0
        unit, lam = self.unit, max(choice.regularization, 1e-300)
        means = residual / unit
        if distinct is not None:
            means = distinct.means(means, distinct.weight)
        parts = self.record.components if choice.parts else (self.component(choice.kernel, 0),)
        if not parts or parts[0].alpha.shape[1] != r:
            return 1.0
        if choice.parts:
            weight = self.workspace.weight
            left = (means - np.sum(self.record.functions, axis=0)) ** 2
            loss = float((left if weight is None else left * weight[:, None]).sum())
            product = loss / lam + sum(float((one.alpha * one.function).sum()) for one in parts)
        else:
            product = float((means * parts[0].alpha).sum())
        if distinct is not None:
            product += distinct.scatter(residual / unit, distinct.weight) / lam
        return max(product / residual.size, 1e-300) * unit * unit

    def close(self) -> None:
        """End the threads; subclasses release their Gram matrices."""
        self.workspace.team.__exit__()

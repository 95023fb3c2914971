"""The end of a fit of kernel stages: what the model keeps of the choices made in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import warn_caller
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.descending import check_predictions
from hilboost.learners.kernel_machine.expansion import merge
from hilboost.learners.kernel_machine.state import MachineState
from hilboost.learners.kernel_machine.summary import KernelMachineSummary, StageKernels
from hilboost.tables.bounds import stand_ins
from hilboost.training.recipe import Outcome


@dataclass(frozen=True)
class KernelFinish:
    """Record the choices of the kernel machine, and sharpen least-squares probabilities."""

    given: bool  # whether the user specified both kernel and regularization, leaving no free factor
    # whether λ was selected for the weights as they are, so that only their ratios matter
    relative: bool
    # for each kernel of a list, the position of the first equal one; empty without a list
    firsts: tuple[int, ...] = ()
    sizes: Floats | None = None  # (c,) float64: the unit of each of several targets
    # number of stages that should suffice; ``None`` if the user or held-out rows limit it
    enough: int | None = None
    # whether stages see samples of the rows: each lowers the loss of its own sample
    samples: bool = False

    def __call__(self, outcome: Outcome) -> Outcome:
        """Add a summary of the kernel machine to the outcome."""
        machine: MachineState | None = outcome.learner_data
        if machine is None:  # there was nothing to fit
            return replace(outcome, kernel_machine=KernelMachineSummary(None, None))
        member, X, target = outcome.state.members[0], outcome.data.X, outcome.data.target
        y = stand_ins(target.y)[:, None] if outcome.data.codec.has_bounds(target) else target.y
        check_predictions(
            *(member.model().predict_raw, X, member.raw, outcome.initial_raw),
            y,
            machine.workspace.precision,
            machine.workspace.seed,
        )
        is_settled = machine.is_settled or (self.samples and machine.record.residuals is None)
        if len(member.stages) == self.enough and not is_settled:
            warn_caller(
                f"the kernel machine did not converge in {self.enough} stages; increase "
                "regularization, n_estimators, or memory_budget (of block stages: n_basis).",
                ConvergenceWarning,
            )
        residual = y - outcome.initial_raw
        choice = machine.choice
        summary = KernelMachineSummary(
            kernel=None if choice is None else choice.kernel,
            regularization=None if choice is None else choice.regularization,
            amplitude=1.0 if self.given else machine.amplitude(residual),
            noise=machine.noise,
            row_weight=self._row_weight(machine, outcome.data.target),
            sizes=None if self.given else self.sizes,
            stage_kernels=self._stage_kernels(machine, len(member.stages)),
            dependence=machine.workspace.dependence,
        )
        loss, trial = outcome.loss, machine.trial
        if loss.sharpness is not None and trial is not None:
            rows, outputs = trial
            loss = loss.sharpened(outcome.data.target.rows(rows), outcome.initial_raw + outputs)
        return replace(outcome, loss=loss, kernel_machine=summary)

    def _row_weight(self, machine: MachineState, target: Target) -> float:
        """The weight whose noise has the variance λ: one, or the mean if λ suits the rows."""
        if target.weight is None or not self.relative:
            return 1.0
        if machine.workspace.repetitions is not None:
            return machine.workspace.row_weight
        return float(target.weight.mean())

    def _stage_kernels(self, machine: MachineState, n_stages: int) -> StageKernels | None:
        """The record of the kernels of the user's list, if there is one and a stage."""
        if not self.firsts or machine.choice is None:
            return None
        of_one = StageKernels.of((machine.choice.kernel,), n_stages)
        return (machine.record.stage_kernels or of_one).listed(self.firsts)


@dataclass(frozen=True)
class NestedFinish(KernelFinish):
    """Merge the steps on each machine into one stage; stages are nested machines."""

    def __call__(self, outcome: Outcome) -> Outcome:
        """Return the outcome with one stage for each nested machine."""
        outcome = super().__call__(outcome)
        state, summary = outcome.state, outcome.kernel_machine
        stages = state.members[0].stages
        sizes = np.array([_size(stage) for stage in stages], dtype=np.int64)
        ends = np.flatnonzero(np.diff(sizes, append=0)) + 1
        n_iter = len(stages)
        stages[:] = [_together(list(group)) for _, group in groupby(stages, key=_size)]
        for losses in (state.train, state.validation):
            if losses:
                losses[:] = [losses[0], *(losses[end] for end in ends)]
        if summary is not None:
            summary = replace(summary, path=sizes[ends - 1], n_iter=n_iter)
        return replace(outcome, kernel_machine=summary)


def _size(stage: Stage) -> int:
    model: Any = stage.terms[0].model
    return len(model.basis)


def _together(stages: list[Stage]) -> Stage:
    """Add up stages with the same basis."""
    if len(stages) == 1:
        return stages[0]
    ((model, columns),) = merge([term for stage in stages for term in stage.terms])
    return Stage((Term.of(model, columns),))

"""Several kernels in one model: each stage is that of the kernel with the largest decrease.

SY2006, section 5, names multiple kernel learning as a direction of future work.  The decrease of
the penalized loss by a stage, ``½ g'H⁻¹g`` of eq. (21), compares kernels at no extra cost.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Sum
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.stage_system import (
    ReweightedStages,
    origins,
    require_kept,
    require_squared_error,
)
from hilboost.learners.kernel_machine.state import MachineRecord, MachineState, likely_amplitude
from hilboost.learners.kernel_machine.summary import StageKernels
from hilboost.learners.kernel_machine.tuning.choose import Choice

_PATIENCE = {"full": 1, "sparse": 5, "block": 5}
_LEAST_FALL = 1e-7


@dataclass(frozen=True)
class SeveralKernelsLearner(KernelLearner):
    """Every stage is that of the kernel with the largest decrease of the penalized loss.

    The function is a sum of one function for each kernel, ``F = start + Σ_k f_k``, and the fit
    minimizes ``Σ_i w_i loss_i(F) + ½ λ Σ_k |f_k|²``.  In each stage, every kernel proposes the
    stage that it would make alone, given the function so far; the proposal with the largest
    ``½ g'H⁻¹g`` is added.  The first of several equal ones wins.

    This is block coordinate descent with the Gauss-Southwell rule.  The stages converge to the
    machine with the sum of the kernels.  A stage costs as much as one stage of every kernel.  All
    kernels draw the same random numbers, so that their order has no effect.
    """

    stage: KernelLearner  # proposes the stages.  Its setting has at least two different kernels.
    # whether to set the weights of the stages of all kernels anew after each one, by the recursion
    # (27).  Functions of different kernels have no inner product.
    reweight: bool = False

    @property
    def name(self) -> str | None:  # type: ignore[override]
        """Name of the stages."""
        return self.stage.name

    @property
    def capabilities(self) -> Capabilities:
        """Same as for the stages."""
        return self.stage.capabilities

    @property
    def setting(self) -> KernelMachineConfig:  # type: ignore[override]
        """Same as for the stages."""
        return self.stage.setting

    def with_setting(self, **changes: Any) -> SeveralKernelsLearner:
        """Same as for the stages."""
        return replace(self, stage=self.stage.with_setting(**changes))

    def state(self, workspace: Workspace) -> SeveralKernelsState:
        """Create the state before the first stage."""
        return SeveralKernelsState(workspace, self.stage)

    def fit(
        self,
        data: SeveralKernelsState,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        """Fit the stage of every kernel; return the best one, or new weights of all stages."""
        if self.reweight:
            require_squared_error(gradients, sample)
        if not data.states:
            data.begin(gradients, sample)
        proposals = [
            self.stage.fit(state, gradients, sample, copy.deepcopy(rng)) for state in data.states
        ]
        best = data.take_best()
        return data.reweighted(gradients, sample) if self.reweight else proposals[best]


@dataclass(frozen=True, eq=False)
class SeveralRecord:
    """Which kernel made which stage, and in a snapshot the machine of each kernel."""

    in_files: ClassVar[bool] = True

    is_least_squares: bool
    stage_kernels: StageKernels
    # (n, r) float64 each: values of each kernel, if each stage is one of their sum
    functions: tuple[Floats, ...] | None = None
    reweighted: ReweightedStages | None = None  # for stages whose weights are set anew
    machines: tuple[MachineRecord, ...] = ()


class SeveralKernelsState(MachineState):
    """The state of each kernel, and which one made which stage.

    Under a loss with corners, no kernel alone may lower the loss where all together do.  The only
    state is then that of the sum of the kernels, and each stage adds to the functions of them all.
    """

    def __init__(self, workspace: Workspace, stage: KernelLearner) -> None:
        super().__init__(workspace)  # shared by all kernels
        self._stage = stage
        self.states: list[MachineState] = []  # one for each kernel; empty before the first stage
        self._best = 0
        self._steps: tuple[Descending, ...] = ()

    @property
    def own(self) -> SeveralRecord:
        """The part of the record beside that of one machine."""
        found: SeveralRecord = self.record.own
        return found

    @property
    def stage_kernels(self) -> StageKernels | None:  # type: ignore[override]
        """The kernels of the stages."""
        return self.record.own and self.own.stage_kernels

    def begin(self, gradients: Gradients, sample: RowSample) -> None:
        """Choose the amplitudes of the kernels and λ; begin the machine of each kernel."""
        stage = self._stage
        seen, weight = self.seen(gradients, sample)
        self.iterates = stage.name == "full"
        choice = self.chosen(stage.setting, seen, weight)
        kernels, functions = choice.parts, None
        own = SeveralRecord(gradients.hessian is None, StageKernels.of(kernels))
        if gradients.corners is not None:
            functions = (np.zeros_like(seen.negative_gradient),) * len(kernels)
            kernels = (choice.kernel,)
        descent = Descent(_PATIENCE[stage.name or ""], _LEAST_FALL)
        self.note(descent=descent, own=replace(own, functions=functions))
        for state, kernel in zip(self._begun(len(kernels)), kernels, strict=True):
            state.note(choice=Choice(kernel, choice.regularization))

    def _begun(self, n_machines: int) -> list[MachineState]:
        """Begin the machine of each kernel, or that of their sum."""
        memory = self.workspace.memory
        if self._stage.name == "full":  # all Gram matrices are kept
            memory /= n_machines
        workspace = replace(self.workspace, memory=memory)
        self.states += [self._stage.state(workspace) for _ in range(n_machines)]
        return self.states

    def snapshot(self) -> MachineRecord | None:
        """The record that later stages need, with the machines of the kernels."""
        record = super().snapshot()
        if record is None:
            return None
        machines = [state.snapshot() for state in self.states]
        own = replace(
            self.own,
            reweighted=self.own.reweighted and self.own.reweighted.kept,
            machines=tuple(machine for machine in machines if machine is not None),
        )
        return replace(record, own=own)

    def restore(self, record: MachineRecord, terms: Sequence[Term]) -> list[Term]:
        """Continue from a snapshot; return the terms so far, as terms of the machines."""
        super().restore(record, ())
        own = self.own
        makers = own.stage_kernels.chosen.tolist()
        if own.functions is not None:
            makers = [0] * len(makers)
        if own.reweighted is not None:
            makers = [makers[origin] for origin in origins(len(makers))]
        if len(makers) != len(terms):
            raise ValueError("the number of stages of several kernels is inconsistent")
        restored = list(terms)
        states = self._begun(len(own.machines))
        for k, (state, before) in enumerate(zip(states, own.machines, strict=True)):
            places = [place for place, by in enumerate(makers) if by == k]
            found = state.restore(before, [terms[place] for place in places])
            for place, term in zip(places, found, strict=True):
                restored[place] = term
        if own.reweighted is not None:
            self._note(reweighted=own.reweighted.restored(restored))
        return restored

    def _note(self, **changes: Any) -> None:
        self.note(own=replace(self.own, **changes))

    def take_best(self) -> int:
        """The kernel whose proposal has the largest decrease; the first of several."""
        # At the minimum of a parabola, the decrease is half of what the slope promises: ½ g'H⁻¹g.
        gains = np.array([0.5 * float(np.sum(state.proposed[0].descent)) for state in self.states])
        gains[np.isnan(gains)] = -np.inf
        self._best = int(np.argmax(gains))
        self.proposed = self.states[self._best].proposed
        return self._best

    def reweighted(self, gradients: Gradients, sample: RowSample) -> list[FittedTerm]:
        """The best proposal with its weight, and the earlier stages with the change of theirs."""
        assert self.choice is not None
        seen, weight = self.conversion.seen(gradients, sample)
        (step,) = self.proposed
        model = step.term.model
        problem = StageProblem(model.kernel, self.choice.regularization, seen, weight)
        before = self.own.reweighted or ReweightedStages.of(problem)
        require_kept(self.workspace, problem.n_outputs, 1 + len(before.rows))
        after, steps = before.after(model, step.outputs, problem)
        self._note(reweighted=after)
        self._steps = tuple(steps)
        return self.conversion.shown(self._steps)

    def stage_added(self, stage: Stage) -> None:
        """Add the stage to the function of its kernel, with the coefficients of the rules."""
        descent = self.record.descent
        assert descent is not None
        (step,), maker = self.proposed, self._best
        if self.own.functions is not None:
            maker = self._add_to_functions(stage.terms[0])
        if self._steps:
            self._add_reweighted(stage)
            # New weights decrease the penalized loss at least as much as the proposal.
            stage = Stage((step.term,))
        else:
            for k, state in enumerate(self.states):
                if k == self._best:
                    state.stage_added(stage)
                else:
                    state.withdraw()
        self.note(descent=descent.after(stage, step))
        n_outputs = step.outputs.shape[1]
        functions = self.own.functions or [_function(one, n_outputs) for one in self.states]
        norms = np.array([self._squared_norm(values) for values in functions])
        self._note(stage_kernels=self.own.stage_kernels.after(maker, norms))
        self.proposed = ()

    def _add_to_functions(self, term: Term) -> int:
        """Add a stage of the sum; return the position of the kernel with the largest part in it."""
        assert self.own.functions is not None
        assert self.choice is not None
        (state,) = self.states
        model = state.proposed[0].term.model
        weights = array_api.like(term.coefficient * model.weights, state.workspace.X, "float64")
        outputs, parts = [], list(Sum((model.kernel,)).parts)
        for kernel in self.choice.parts:
            n_parts = len(Sum((kernel,)).parts)  # sums are flattened
            part, parts = Sum(tuple(parts[:n_parts])), parts[n_parts:]
            gram = state.workspace.gram(part, None, model.rows)
            outputs.append(array_api.to_numpy(gram.times(weights)))
        pairs = zip(self.own.functions, outputs, strict=True)
        self._note(functions=tuple(function + values for function, values in pairs))
        return int(np.argmax([float((values**2).sum()) for values in outputs]))

    def _add_reweighted(self, stage: Stage) -> None:
        """Add to the function of each kernel the terms that are functions of it."""
        pairs = list(zip(stage.terms, self._steps, strict=True))
        for state in self.states:
            own = {id(one.kernel) for one in state.record.components}
            own |= {id(one.term.model.kernel) for one in state.proposed}
            state.add([pair for pair in pairs if id(pair[1].term.model.kernel) in own])
        self._steps = ()

    def withdraw(self) -> None:
        """Discard the proposed steps, because another learner made the stage."""
        super().withdraw()
        for state in self.states:
            state.withdraw()
        self._steps = ()

    def _squared_norm(self, function: Floats) -> float:
        """Weighted sum of the squared values of a function on the training rows."""
        weight, squares = self.workspace.weight, function**2
        return float(squares.sum() if weight is None else (weight[:, None] * squares).sum())

    @property
    def noise(self) -> Floats | None:
        """Diagonal (n,) of the linear systems of the kernels, if there are any."""
        known = [state.noise for state in self.states if state.noise is not None]
        return np.max(known, axis=0) if known and len(known) == len(self.states) else None

    def amplitude(self, residual: Floats) -> float:
        """The maximum-likelihood factor of the kernels and the noise, under squared error.

        ``λ y'(K + D)⁻¹y`` is twice the minimum of the penalized loss, for the sum ``K`` of the
        kernels.  A function close to the minimizer has almost the same penalized loss.
        """
        parts = [part for state in self.states for part in state.record.components]
        if not parts or not self.own.is_least_squares or self.choice is None:
            return 1.0
        n_outputs = residual.shape[1]
        if parts[0].function.shape[1] != n_outputs:
            return 1.0
        function = np.sum([_function(state, n_outputs) for state in self.states], axis=0)
        left = (self.conversion.means(residual) - function) ** 2
        weight, regularization = self.workspace.weight, max(self.choice.regularization, 1e-300)
        loss = float((left if weight is None else left * weight[:, None]).sum())
        norm = sum(float((part.alpha * part.function).sum()) for part in parts)
        return likely_amplitude(
            self.conversion, regularization, loss / regularization + norm, residual
        )

    def close(self) -> None:
        """End the threads and release the Gram matrices."""
        for state in self.states:
            state.close()
        super().close()


def _function(state: MachineState, n_outputs: int) -> Floats:
    """Values of a function on the distinct training rows, (n, r)."""
    zero = np.zeros((state.workspace.n_rows, n_outputs))
    return np.sum([zero, *(one.function for one in state.record.components)], axis=0)

"""The state and the stages of several kernels in one model during a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel, Sum
from hilboost.learners.kernel_machine.config import Workspace
from hilboost.learners.kernel_machine.descending import Conversion, Descending, Descent
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.reweighting import (
    ReweightedSnapshot,
    ReweightedStages,
    origins,
    require_kept,
)
from hilboost.learners.kernel_machine.state import MachineSnapshot, MachineState, likely_amplitude
from hilboost.learners.kernel_machine.summary import StageKernels
from hilboost.learners.kernel_machine.tuning.choose import Choice, MemberState
from hilboost.learners.kernel_machine.tuning.choose_several import choose_several


class JointKernels:
    """The functions of the kernels; each stage of the sum adds to all of them.

    Under a loss with corners, no kernel alone may lower the loss where all together do.
    ``functions``: (n, r) float64 each, values on the distinct training rows.
    """

    in_files: ClassVar[bool] = True

    def __init__(self, kernels: Sequence[Kernel], functions: Sequence[Floats] = ()) -> None:
        self.kernels = tuple(kernels)
        self.functions = [function.copy() for function in functions]

    def copied(self) -> JointKernels:
        """Return a copy that later stages do not change."""
        return JointKernels(self.kernels, self.functions)

    def add(self, workspace: Workspace, step: Descending, stage: Stage) -> int:
        """Add a stage of the sum; return the position of the kernel with the largest part in it."""
        model, (term,) = step.term.model, stage.terms
        assert model.rows is not None
        weights = array_api.like(term.coefficient * model.weights, workspace.X, "float64")
        outputs, parts = [], list(Sum((model.kernel,)).parts)
        for kernel in self.kernels:
            n_parts = len(Sum((kernel,)).parts)  # sums are flattened
            part, parts = Sum(tuple(parts[:n_parts])), parts[n_parts:]
            gram = workspace.gram(part, None, model.rows)
            outputs.append(array_api.to_numpy(gram.times(weights)))
        if not self.functions:
            self.functions = [np.zeros_like(values) for values in outputs]
        for function, values in zip(self.functions, outputs, strict=True):
            function += values
        return int(np.argmax([float((values**2).sum()) for values in outputs]))


@dataclass(frozen=True, eq=False)
class SeveralSnapshot:
    """The machine of each kernel, and which one made which stage."""

    in_files: ClassVar[bool] = True

    unit: float
    is_least_squares: bool
    choice: Choice  # the sum of the kernels, and λ
    descent: Descent
    made_by: Ints  # (n_stages,) int64
    norms: Floats  # (n_stages, n_kernels) float64
    states: list[MachineSnapshot]
    reweighted: ReweightedSnapshot | None = None  # for stages whose weights are set anew
    joint: JointKernels | None = None  # if the stages have the sum of the kernels


_PATIENCE = {"full": 1, "sparse": 5, "block": 5}
_LEAST_FALL = 1e-7


class SeveralKernelsState(MemberState):
    """The state of each kernel, and which one made which stage.

    Its methods change it in place, like the methods of :class:`~.state.MachineState`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace  # shared by all kernels
        self.states: list[MachineState] = []  # one for each kernel; empty before the first stage
        self.choice: Choice | None = None  # the sum of the kernels, and λ
        self._kernels: tuple[Kernel, ...] = ()
        self._is_least_squares = False
        self._joint: JointKernels | None = None
        self._descent = Descent(1)
        self._best = 0
        self._proposed: Descending | None = None
        self._reweighted: ReweightedStages | None = None
        self._steps: tuple[Descending, ...] = ()
        self._made_by: list[int] = []
        self._norms: list[Floats] = []

    def begin(
        self,
        stage: KernelLearner,
        kernels: tuple[Kernel, ...],
        gradients: Gradients,
        sample: RowSample,
    ) -> None:
        """Choose the amplitudes of the kernels and λ; begin the machine of each kernel."""
        self.conversion = Conversion.of(self.workspace.distinct, gradients)
        observed = gradients.negative_gradient / self.conversion.unit
        self.workspace = self.workspace.observing(observed, sample.dependence)
        self._is_least_squares = gradients.hessian is None
        # From the rows of the stage, or once for all members from all rows.
        rows = sample if self.shared is None else self.workspace.all_rows
        seen, weight = self.conversion.seen(gradients, rows)
        find = partial(choose_several, stage.setting, kernels, self.workspace, seen, weight)
        self._kernels, self.choice = self.settled(
            partial(find, stage.name == "full", self.choose_penalty)
        )
        self._descent = Descent(_PATIENCE[stage.name or ""], _LEAST_FALL)
        machines = self._kernels
        if gradients.corners is not None:
            self._joint, machines = JointKernels(machines), (self.choice.kernel,)
        for state, kernel in zip(self._begun(stage, len(machines)), machines, strict=True):
            state.choice = Choice(kernel, self.choice.regularization)

    def _begun(self, stage: KernelLearner, n_machines: int) -> list[MachineState]:
        """Begin the machine of each kernel, or that of their sum."""
        memory = self.workspace.memory
        if stage.name == "full":  # all Gram matrices are kept
            memory /= n_machines
        workspace = replace(self.workspace, memory=memory)
        self.states += [stage.state(workspace) for _ in range(n_machines)]
        return self.states

    def snapshot(self) -> SeveralSnapshot | None:
        """State that later stages need; ``None`` before the first stage."""
        states = [state.snapshot() for state in self.states]
        known = [state for state in states if state is not None]
        if not known or self.conversion is None or self.choice is None:
            return None
        return SeveralSnapshot(
            self.conversion.unit,
            self._is_least_squares,
            self.choice,
            self._descent,
            np.array(self._made_by, dtype=np.int64),
            np.reshape(self._norms, (-1, len(self._kernels))),
            known,
            None if self._reweighted is None else self._reweighted.snapshot(),
            None if self._joint is None else self._joint.copied(),
        )

    def restore(
        self, stage: KernelLearner, snapshot: SeveralSnapshot, terms: Sequence[Term]
    ) -> list[Term]:
        """Continue from a snapshot; return the terms so far, as terms of the machines."""
        self.conversion = Conversion(self.workspace.distinct, snapshot.unit)
        self._is_least_squares = snapshot.is_least_squares
        self.choice, self._descent = snapshot.choice, snapshot.descent
        self._kernels = tuple(state.choice.kernel for state in snapshot.states)
        self._made_by, self._norms = snapshot.made_by.tolist(), list(snapshot.norms.copy())
        makers = self._made_by
        if snapshot.joint is not None:
            self._joint = snapshot.joint.copied()
            self._kernels, makers = self._joint.kernels, [0] * len(makers)
        if snapshot.reweighted is not None:
            makers = [makers[origin] for origin in origins(len(makers))]
        if len(makers) != len(terms):
            raise ValueError("the number of stages of several kernels is inconsistent")
        restored = list(terms)
        machines = self._begun(stage, len(snapshot.states))
        for k, (state, own) in enumerate(zip(machines, snapshot.states, strict=True)):
            places = [place for place, by in enumerate(makers) if by == k]
            found = stage.restore(state, own, [terms[place] for place in places])
            for place, term in zip(places, found, strict=True):
                restored[place] = term
        if snapshot.reweighted is not None:
            self._reweighted = ReweightedStages.restored(snapshot.reweighted, restored)
        return restored

    def take(self, proposals: Sequence[Descending]) -> Descending:
        """The proposal with the largest decrease; the first of several."""
        # At the minimum of a parabola, the decrease is half of what the slope promises: ½ g'H⁻¹g.
        gains = np.array([0.5 * float(np.sum(step.descent)) for step in proposals])
        gains[np.isnan(gains)] = -np.inf
        self._best = int(np.argmax(gains))
        self._proposed = proposals[self._best]
        return self._proposed

    def reweighted(self, gradients: Gradients, sample: RowSample) -> list[FittedTerm]:
        """The best proposal with its weight, and the earlier stages with the change of theirs."""
        assert self.conversion is not None
        assert self.choice is not None
        seen, weight = self.conversion.seen(gradients, sample)
        (step,) = self.states[self._best].proposed
        model = step.term.model
        assert step.outputs is not None
        problem = StageProblem(model.kernel, self.choice.regularization, seen, weight)
        if self._reweighted is None:
            self._reweighted = ReweightedStages(problem.regularization, problem.n_outputs)
        require_kept(self.workspace, problem.n_outputs, 1 + len(self._reweighted))
        self._steps = tuple(self._reweighted.add(model, step.outputs, problem))
        return self.conversion.shown(self._steps)

    def stage_added(self, stage: Stage) -> None:
        """Add the stage to the function of its kernel, with the coefficients of the rules."""
        assert self._proposed is not None
        norms = self._norms[-1].copy() if self._norms else np.zeros(len(self._kernels))
        changed, maker = {self._best}, self._best
        if self._joint is not None:
            (state,) = self.states
            maker = self._joint.add(state.workspace, state.proposed[0], stage)
            changed = set(range(len(self._kernels)))
        if self._steps:
            changed = set(range(len(self.states)))
            self._add_reweighted(stage)
            # New weights decrease the penalized loss at least as much as the proposal.
            stage = Stage((self._proposed.term,))
        else:
            for k, state in enumerate(self.states):
                if k == self._best:
                    state.stage_added(stage)
                else:
                    state.withdraw()
        self._descent = self._descent.after(stage, self._proposed)
        for k in changed:
            norms[k] = self._squared_norm(k)
        self._made_by.append(maker)
        self._norms.append(norms)
        self._proposed = None

    def _add_reweighted(self, stage: Stage) -> None:
        """Add to the function of each kernel the terms that are functions of it."""
        pairs = list(zip(stage.terms, self._steps, strict=True))
        for state in self.states:
            own = {id(kernel) for kernel in state.kernels}
            state.add([pair for pair in pairs if id(pair[1].term.model.kernel) in own])
        self._steps = ()

    def withdraw(self) -> None:
        """Discard the proposed steps, because another learner made the stage."""
        for state in self.states:
            state.withdraw()
        self._proposed, self._steps = None, ()

    def _squared_norm(self, k: int) -> float:
        """Weighted sum of the squared values of the function of a kernel on the training rows."""
        weight = self.workspace.weight
        joint = self._joint
        squares = (_function(self.states[k]) if joint is None else joint.functions[k]) ** 2
        return float(squares.sum() if weight is None else (weight[:, None] * squares).sum())

    @property
    def converged(self) -> bool:
        """Whether no kernel decreases the penalized loss any more."""
        return self._descent.has_ended

    @property
    def stage_kernels(self) -> StageKernels | None:
        """Kernels of the stages so far."""
        if not self._norms:
            return None
        chosen = np.array(self._made_by, dtype=np.int64)
        return StageKernels(self._kernels, chosen, np.array(self._norms))

    @property
    def noise(self) -> Floats | None:
        """Diagonal (n,) of the linear systems of the kernels, if there are any."""
        found = [state.noise for state in self.states]
        known = [noise for noise in found if noise is not None]
        return np.max(known, axis=0) if len(known) == len(found) and known else None

    def amplitude(self, residual: Floats) -> float:
        """The maximum-likelihood factor of the kernels and the noise, under squared error.

        ``λ y'(K + D)⁻¹y`` is twice the minimum of the penalized loss, for the sum ``K`` of the
        kernels.  A function close to the minimizer has almost the same penalized loss.
        """
        if not self._norms or not self._is_least_squares or self.choice is None:
            return 1.0
        assert self.conversion is not None
        function = np.sum([_function(state) for state in self.states], axis=0)
        if function.shape[1] != residual.shape[1]:
            return 1.0
        left = (self.conversion.means(residual) - function) ** 2
        weight, regularization = self.workspace.weight, max(self.choice.regularization, 1e-300)
        loss = float((left if weight is None else left * weight[:, None]).sum())
        norm = sum(
            float((part.alpha * part.function).sum())
            for state in self.states
            for part in state.components
        )
        return likely_amplitude(
            self.conversion, regularization, loss / regularization + norm, residual
        )

    def close(self) -> None:
        """End the threads and release the Gram matrices."""
        for state in self.states:
            state.close()
        self.workspace.team.__exit__()


def _function(state: MachineState) -> Floats:
    """Values of a function on the distinct training rows, (n, r); zero before its first stage."""
    values = [component.function for component in state.components]
    return values[0] if len(values) == 1 else np.sum(values, axis=0)

"""Several kernels in one model: each stage is that of the kernel with the largest decrease.

SY2006, section 5, names multiple kernel learning as a direction of future work.  The decrease of
the penalized loss by a stage, ``½ g'H⁻¹g`` of eq. (21), compares kernels at no extra cost.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.description import is_described
from hilboost.learners.kernel_machine.conversion import Conversion
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.snapshots import SeveralSnapshot
from hilboost.learners.kernel_machine.stage_kernels import StageKernels
from hilboost.learners.kernel_machine.state import MachineState, likely_amplitude
from hilboost.learners.kernel_machine.tuning.choose import Choice, PenaltyChoice
from hilboost.learners.kernel_machine.tuning.choose_several import SeveralChoice, choose_several
from hilboost.learners.kernel_machine.tuning.shared import SharedChoice
from hilboost.learners.kernel_machine.workspace import Workspace

_PATIENCE = {"full": 1, "sparse": 5, "block": 5}
_LEAST_FALL = 1e-7


@dataclass(frozen=True)
class SeveralKernelsLearner(Learner):
    """Every stage is that of the kernel with the largest decrease of the penalized loss.

    The function is a sum of one function for each kernel, ``F = start + Σ_k f_k``, and the fit
    minimizes ``Σ_i w_i loss_i(F) + ½ λ Σ_k |f_k|²``.  In each stage, every kernel proposes the
    stage that it would make alone, given the function so far; the proposal with the largest
    ``½ g'H⁻¹g`` is added.  The first of several equal ones wins.

    Parameters
    ----------
    stage : FullLearner, SparseLearner or BlockLearner
        Proposes the stages.  The kernel of its setting is ignored.
    kernels : tuple of Kernel
        At least two, all different.

    Notes
    -----
    This is block coordinate descent with the Gauss-Southwell rule.  The stages converge to the
    machine with the sum of the kernels.  A stage costs as much as one stage of every kernel.  All
    kernels draw the same random numbers, so that their order has no effect.
    """

    stage: KernelLearner
    kernels: tuple[Kernel, ...]

    base_model: ClassVar[type[KernelExpansion]] = KernelExpansion
    penalizes: ClassVar[bool] = True
    works_on_folds: ClassVar[bool] = False

    @property
    def name(self) -> str | None:  # type: ignore[override]
        """That of the stages."""
        return self.stage.name

    @property
    def has_state(self) -> bool:  # type: ignore[override]
        """Same as for the stages."""
        return self.stage.has_state

    @property
    def in_checkpoints(self) -> bool:
        """Whether files support the stages and the kernels."""
        return self.stage.in_checkpoints and all(map(is_described, self.kernels))

    @property
    def takes_categories(self) -> bool:
        """Same as for the stages."""
        return self.stage.takes_categories

    @property
    def takes_samples(self) -> bool:  # type: ignore[override]
        """Same as for the stages."""
        return self.stage.takes_samples

    def seeing_categories(self, columns: Sequence[tuple[int, int]]) -> SeveralKernelsLearner:
        """Same as for the stages."""
        return replace(self, stage=self.stage.seeing_categories(columns))

    def for_member(self, data: SeveralKernelsState) -> SeveralKernelsState:
        """Return a state with the same rows and choice, and functions of its own."""
        return data.for_member()

    def choose_penalty_by(self, data: SeveralKernelsState, choice: PenaltyChoice) -> None:
        """Let a function choose λ, if the user does not."""
        data.choose_penalty_by(choice)

    def prepare(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int
    ) -> SeveralKernelsState:
        """Scale the rows and start the threads.

        Columns that some kernel reads raw, such as codes or fingerprints, are not scaled.
        """
        d = X.shape[1]
        for kernel in self.kernels:
            kernel.check(d)
        setting = replace(self.stage.setting, kernel="auto")
        raw = {column for kernel in self.kernels for column in kernel.raw_columns(d)}
        if setting.standardize == "auto" and raw:
            untouched = tuple(sorted({*setting.categorical, *raw}))
            setting = replace(setting, standardize=True, categorical=untouched)
        return SeveralKernelsState(setting.prepare(X, weight, seed, n_threads))

    def fit(
        self,
        data: SeveralKernelsState,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        """Fit the stage of every kernel; return the best one."""
        if not data.states:
            data.begin(self, gradients, sample)
        proposals = [
            self.stage.fit(state, gradients, sample, copy.deepcopy(rng)) for state in data.states
        ]
        return [data.take([_single(proposal) for proposal in proposals])]

    def stage_added(
        self, data: SeveralKernelsState, stage: Stage, fitted: tuple[FittedTerm, ...]
    ) -> None:
        """Add the stage to the function of its kernel."""
        data.stage_added(stage)

    def other_stage_added(self, data: SeveralKernelsState) -> None:
        """Discard the proposed steps."""
        data.withdraw()

    def snapshot(self, data: SeveralKernelsState) -> SeveralSnapshot | None:
        """Return a snapshot of each machine, and who made which stage."""
        return data.snapshot()

    def restore(
        self, data: SeveralKernelsState, snapshot: SeveralSnapshot | None, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Continue from a snapshot."""
        return terms if snapshot is None else data.restore(self, snapshot, terms)

    def converged(self, data: SeveralKernelsState) -> bool:
        """Whether no kernel decreases the penalized loss any more."""
        return data.converged

    def close(self, data: SeveralKernelsState) -> None:
        """End the threads and release the Gram matrices."""
        data.close()


def _single(proposal: list[FittedTerm]) -> Descending:
    (step,) = proposal
    assert isinstance(step, Descending)
    return step


class SeveralKernelsState:
    """The state of each kernel, and which one made which stage.

    Its methods change it in place, as those of :class:`~.state.MachineState` do.

    Attributes
    ----------
    workspace : Workspace
        Shared by all kernels.
    states : list of MachineState
        One for each kernel; empty before the first stage.
    choice : Choice or None
        The sum of the kernels, and λ.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.states: list[MachineState] = []
        self.choice: Choice | None = None
        self._kernels: tuple[Kernel, ...] = ()
        self._choose_penalty: PenaltyChoice | None = None
        self._conversion: Conversion | None = None
        self._shared: SharedChoice[SeveralChoice] | None = None
        self._is_least_squares = False
        self._descent = Descent(1)
        self._best = 0
        self._proposed: Descending | None = None
        self._made_by: list[int] = []
        self._norms: list[Floats] = []

    def for_member(self) -> SeveralKernelsState:
        """The state of another member of an ensemble: the same rows, amplitudes and λ."""
        if self._shared is None:
            self._shared = SharedChoice()
        team = ThreadTeam(self.workspace.team.n_threads)
        member = SeveralKernelsState(replace(self.workspace, team=team))
        member._shared = self._shared
        return member

    def choose_penalty_by(self, choose_penalty: PenaltyChoice) -> None:
        """Let a function choose λ, if the user does not."""
        self._choose_penalty = choose_penalty

    def begin(
        self, learner: SeveralKernelsLearner, gradients: Gradients, sample: RowSample
    ) -> None:
        """Choose the amplitudes of the kernels and λ; begin the machine of each kernel."""
        self._conversion = Conversion.of(self.workspace.distinct, gradients)
        self._is_least_squares = gradients.hessian is None
        found = self._chosen(learner, gradients, sample)
        self.choice = Choice(Sum(found.kernels), found.regularization, found.rows, found.predicted)
        self._kernels = found.kernels
        self._descent = Descent(_PATIENCE[learner.name or ""], _LEAST_FALL)
        for state, kernel in zip(self._begun(learner), found.kernels, strict=True):
            state.choice = Choice(kernel, found.regularization)

    def _begun(self, learner: SeveralKernelsLearner) -> list[MachineState]:
        """Begin the machine of each kernel."""
        memory = self.workspace.memory
        if learner.name == "full":  # all Gram matrices are kept
            memory /= len(self._kernels)
        workspace = replace(self.workspace, memory=memory)
        self.states += [learner.stage.state(workspace) for _ in self._kernels]
        return self.states

    def snapshot(self) -> SeveralSnapshot | None:
        """What later stages need; ``None`` before the first stage."""
        states = [state.snapshot() for state in self.states]
        known = [state for state in states if state is not None]
        if not known or self._conversion is None or self.choice is None:
            return None
        return SeveralSnapshot(
            self._conversion.unit,
            self._is_least_squares,
            self.choice,
            self._descent,
            np.array(self._made_by, dtype=np.int64),
            np.reshape(self._norms, (-1, len(known))),
            known,
        )

    def restore(
        self, learner: SeveralKernelsLearner, snapshot: SeveralSnapshot, terms: Sequence[Term]
    ) -> list[Term]:
        """Continue from a snapshot; return the terms so far, as those of the machines."""
        self._conversion = Conversion(self.workspace.distinct, snapshot.unit)
        self._is_least_squares = snapshot.is_least_squares
        self.choice, self._descent = snapshot.choice, snapshot.descent
        self._kernels = tuple(state.choice.kernel for state in snapshot.states)
        self._made_by, self._norms = snapshot.made_by.tolist(), list(snapshot.norms.copy())
        if len(self._made_by) != len(terms):
            raise ValueError("the number of stages of several kernels is inconsistent")
        restored = list(terms)
        for k, (state, own) in enumerate(zip(self._begun(learner), snapshot.states, strict=True)):
            places = [place for place, by in enumerate(self._made_by) if by == k]
            found = learner.stage.restore(state, own, [terms[place] for place in places])
            for place, term in zip(places, found, strict=True):
                restored[place] = term
        return restored

    def _chosen(
        self, learner: SeveralKernelsLearner, gradients: Gradients, sample: RowSample
    ) -> SeveralChoice:
        """Choose from the rows of the stage, or once for all members from all rows."""
        assert self._conversion is not None
        rows = sample if self._shared is None else self.workspace.all_rows
        seen, weight = self._conversion.seen(gradients, rows)

        def choice() -> SeveralChoice:
            return choose_several(
                learner.stage.setting,
                learner.kernels,
                self.workspace,
                seen,
                weight,
                learner.name == "full",
                self._choose_penalty,
            )

        return choice() if self._shared is None else self._shared.settled(choice)

    def take(self, proposals: Sequence[Descending]) -> Descending:
        """The proposal with the largest decrease; the first of several."""
        # At the minimum of a parabola, the decrease is half of what the slope promises: ½ g'H⁻¹g.
        gains = np.array([0.5 * float(np.sum(step.descent)) for step in proposals])
        gains[np.isnan(gains)] = -np.inf
        self._best = int(np.argmax(gains))
        self._proposed = proposals[self._best]
        return self._proposed

    def stage_added(self, stage: Stage) -> None:
        """Add the stage to the function of its kernel, with the coefficients of the rules."""
        assert self._proposed is not None
        for k, state in enumerate(self.states):
            if k == self._best:
                state.stage_added(stage)
            else:
                state.withdraw()
        self._descent = self._descent.after(stage, self._proposed)
        norms = self._norms[-1].copy() if self._norms else np.zeros(len(self.states))
        norms[self._best] = self._squared_norm(self.states[self._best])
        self._made_by.append(self._best)
        self._norms.append(norms)
        self._proposed = None

    def withdraw(self) -> None:
        """Discard the proposed steps, because another learner made the stage."""
        for state in self.states:
            state.withdraw()
        self._proposed = None

    def _squared_norm(self, state: MachineState) -> float:
        """Weighted sum of the squared values of a function on the training rows."""
        weight = self.workspace.weight
        squares = _function(state) ** 2
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

    @property
    def trial(self) -> tuple[NDArray[np.int64], Floats] | None:
        """Rows that the choice of amplitudes held out, and predictions of their first gradients."""
        choice = self.choice
        if choice is None or choice.rows is None or choice.predicted is None:
            return None
        assert self._conversion is not None
        return self._conversion.predictions(choice.rows, choice.predicted)

    def amplitude(self, residual: Floats) -> float:
        """The maximum-likelihood factor of the kernels and the noise, under squared error.

        ``λ y'(K + D)⁻¹y`` is twice the minimum of the penalized loss, for the sum ``K`` of the
        kernels.  A function close to the minimizer has almost the same penalized loss.
        """
        if not self._norms or not self._is_least_squares or self.choice is None:
            return 1.0
        assert self._conversion is not None
        function = np.sum([_function(state) for state in self.states], axis=0)
        if function.shape[1] != residual.shape[1]:
            return 1.0
        left = (self._conversion.means(residual) - function) ** 2
        weight, regularization = self.workspace.weight, max(self.choice.regularization, 1e-300)
        loss = float((left if weight is None else left * weight[:, None]).sum())
        norm = sum(
            float((part.alpha * part.function).sum())
            for state in self.states
            for part in state.components
        )
        return likely_amplitude(
            self._conversion, regularization, loss / regularization + norm, residual
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

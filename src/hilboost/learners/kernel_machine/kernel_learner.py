"""The shared base of the learners of kernel stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.learner import Learner
from hilboost.core.split_settings import SplitSettings
from hilboost.kernels.description import is_described
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.state import MachineSnapshot, MachineState
from hilboost.learners.kernel_machine.tuning.choose import PenaltyChoice, SharedChoice


class KernelLearner(Learner):
    """Base class of learners of kernel stages; their ``data`` is a :class:`MachineState`."""

    setting: KernelMachineConfig

    @property
    def capabilities(self) -> Capabilities:
        """Category columns are supported if the configuration names them."""
        kernel = self.setting.given_kernel
        return Capabilities(
            base_model=KernelExpansion,
            penalizes=True,
            works_on_folds=False,
            takes_missing_values=kernel is None,
            takes_categories=bool(self.setting.categorical),
            has_state=True,
            in_checkpoints=kernel is None or is_described(kernel),
            prepare_among_workers=prepare_divided,
        )

    def state(self, workspace: Workspace) -> MachineState:
        """Create the state before the first stage."""
        return MachineState(workspace)

    def with_setting(self, **changes: Any) -> Self:
        """Return the learner with changed parameters of all kernel learners."""
        setting = replace(self.setting, **changes)
        # Every subclass is a dataclass with this field, or has a learner with it.
        changed: Any = replace(self, setting=setting)  # type: ignore[type-var]
        return changed

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner that compares codes in the category columns by equality."""
        return self.with_setting(categorical=tuple(column for column, _ in splits.categorical))

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> MachineState:
        """Scale the rows and start the threads."""
        return self.state(self.setting.prepare(X, weight, seed, n_threads))

    def for_members(
        self, data: MachineState, n_members: int, choose_penalty: PenaltyChoice | None
    ) -> list[MachineState]:
        """Return states with the same rows and choice of kernel, and functions of their own.

        The first one keeps the threads.
        """
        shared, team = SharedChoice() if n_members > 1 else None, data.workspace.team
        teams = [team, *(ThreadTeam(team.n_threads) for _ in range(n_members - 1))]
        states = [self.state(replace(data.workspace, team=own)) for own in teams]
        for state in states:
            state.choose_penalty, state.shared = choose_penalty, shared
        return states

    def stage_added(self, data: MachineState, stage: Stage | None) -> None:
        """Add the stage to the function so far, or discard the proposed step.

        After a stage of another learner, iterative solvers start again.
        """
        if stage is None:
            data.withdraw()
        else:
            data.stage_added(stage)

    def snapshot(self, data: MachineState) -> MachineSnapshot | None:
        """Return the function so far, the kernel and λ; ``None`` before the first stage."""
        return data.snapshot()

    def restore(
        self, data: MachineState, snapshot: MachineSnapshot | None, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Continue from a snapshot."""
        return terms if snapshot is None else data.restore(snapshot, terms)

    def converged(self, data: MachineState) -> bool:
        """Whether further stages would change nothing."""
        return data.converged

    def close(self, data: MachineState) -> None:
        """End the threads and release Gram matrices."""
        data.close()


def prepare_divided(
    learner: Learner, X: Floats, weight: Floats | None, seed: int, n_threads: int, share: RowShare
) -> Any:
    """Prepare all rows, which each worker has, and divide their kernel values among the workers."""
    data = learner.prepare(X, weight, seed, n_threads)
    data.workspace = replace(data.workspace, exchange=share.exchange)
    return data


def tuned_briefly(learner: Learner) -> Learner:
    """Return a kernel learner that considers fewer families of kernels; others are unchanged."""
    return (
        learner.with_setting(tunes_briefly=True) if isinstance(learner, KernelLearner) else learner
    )

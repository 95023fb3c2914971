"""The shared base of the learners of kernel stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

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
from hilboost.learners.kernel_machine.tuning.choose import PenaltyChoice

if TYPE_CHECKING:
    from hilboost.learners.kernel_machine.several_state import SeveralKernelsState, SeveralSnapshot

    Data: TypeAlias = MachineState | SeveralKernelsState


class MachineLearner(Learner):
    """Base class of learners whose ``data`` is the state of one or several kernel machines."""

    def for_members(
        self, data: Data, n_members: int, choose_penalty: PenaltyChoice | None
    ) -> list[Data]:
        """Return states with the same rows and choice of kernel, and functions of their own."""
        return [*data.for_members(n_members, choose_penalty)]

    def stage_added(self, data: Data, stage: Stage | None) -> None:
        """Add the stage to the function so far, or discard the proposed step.

        After a stage of another learner, iterative solvers start again.
        """
        if stage is None:
            data.withdraw()
        else:
            data.stage_added(stage)

    def snapshot(self, data: Data) -> MachineSnapshot | SeveralSnapshot | None:
        """Return the function so far, the kernel and λ; ``None`` before the first stage."""
        return data.snapshot()

    def converged(self, data: Data) -> bool:
        """Whether further stages would change nothing."""
        return data.converged

    def close(self, data: Data) -> None:
        """End the threads and release Gram matrices."""
        data.close()


class KernelLearner(MachineLearner):
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

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner that compares codes in the category columns by equality."""
        columns = tuple(column for column, _ in splits.categorical)
        setting = replace(self.setting, categorical=columns)
        # Every subclass is a dataclass with this field.
        changed: Any = replace(self, setting=setting)  # type: ignore[type-var]
        return changed

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> MachineState:
        """Scale the rows and start the threads."""
        return self.state(self.setting.prepare(X, weight, seed, n_threads))

    def restore(
        self, data: MachineState, snapshot: MachineSnapshot | None, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Continue from a snapshot."""
        return terms if snapshot is None else data.restore(snapshot, terms)


def prepare_divided(
    learner: Learner, X: Floats, weight: Floats | None, seed: int, n_threads: int, share: RowShare
) -> Any:
    """Prepare all rows, which each worker has, and divide their kernel values among the workers."""
    data = learner.prepare(X, weight, seed, n_threads)
    data.workspace = replace(data.workspace, exchange=share.exchange)
    return data


def tuned_briefly(learner: Learner) -> Learner:
    """Return a kernel learner that considers fewer families of kernels; others are unchanged."""
    if not isinstance(learner, KernelLearner):
        return learner
    changed: Any = replace(learner, setting=replace(learner.setting, tunes_briefly=True))  # type: ignore[type-var]
    return changed

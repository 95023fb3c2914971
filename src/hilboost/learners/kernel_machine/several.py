"""Several kernels in one model: each stage is that of the kernel with the largest decrease.

SY2006, section 5, names multiple kernel learning as a direction of future work.  The decrease of
the penalized loss by a stage, ``½ g'H⁻¹g`` of eq. (21), compares kernels at no extra cost.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.core.split_settings import SplitSettings
from hilboost.kernels import Kernel
from hilboost.kernels.description import is_described
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.inputs import require_complete
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner, MachineLearner
from hilboost.learners.kernel_machine.reweighting import require_squared_error
from hilboost.learners.kernel_machine.several_state import SeveralKernelsState, SeveralSnapshot


@dataclass(frozen=True)
class SeveralKernelsLearner(MachineLearner):
    """Every stage is that of the kernel with the largest decrease of the penalized loss.

    The function is a sum of one function for each kernel, ``F = start + Σ_k f_k``, and the fit
    minimizes ``Σ_i w_i loss_i(F) + ½ λ Σ_k |f_k|²``.  In each stage, every kernel proposes the
    stage that it would make alone, given the function so far; the proposal with the largest
    ``½ g'H⁻¹g`` is added.  The first of several equal ones wins.

    This is block coordinate descent with the Gauss-Southwell rule.  The stages converge to the
    machine with the sum of the kernels.  A stage costs as much as one stage of every kernel.  All
    kernels draw the same random numbers, so that their order has no effect.
    """

    stage: KernelLearner  # proposes the stages.  The kernel of its setting is ignored.
    kernels: tuple[Kernel, ...]  # at least two, all different
    # whether to set the weights of the stages of all kernels anew after each one, by the recursion
    # (27).  Functions of different kernels have no inner product.
    reweight: bool = False

    @property
    def name(self) -> str | None:  # type: ignore[override]
        """Name of the stages."""
        return self.stage.name

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the stages; files have to support the kernels, too."""
        stage = self.stage.capabilities
        in_checkpoints = stage.in_checkpoints and all(map(is_described, self.kernels))
        return replace(stage, in_checkpoints=in_checkpoints, takes_missing_values=False)

    def for_table(self, splits: SplitSettings) -> SeveralKernelsLearner:
        """Same as for the stages."""
        return replace(self, stage=self.stage.for_table(splits))

    def prepare(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int
    ) -> SeveralKernelsState:
        """Scale the rows and start the threads.

        Columns that some kernel reads raw, such as codes or fingerprints, are not scaled.
        """
        require_complete(X)
        d = X.shape[1]
        for kernel in self.kernels:
            kernel.check(d)
        setting = replace(self.stage.setting, kernel="auto")
        raw = {column for kernel in self.kernels for column in kernel.raw_columns(d)}
        if setting.standardize == "auto" and raw:
            untouched = tuple(sorted({*setting.categorical, *raw}))
            setting = replace(setting, standardize=True, categorical=untouched)
        workspace = setting.prepare(X, weight, seed, n_threads)
        inputs = replace(workspace.inputs, completion=None)
        return SeveralKernelsState(replace(workspace, inputs=inputs))

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
            data.begin(self.stage, self.kernels, gradients, sample)
        proposals = [
            self.stage.fit(state, gradients, sample, copy.deepcopy(rng)) for state in data.states
        ]
        best = data.take([_single(proposal) for proposal in proposals])
        return data.reweighted(gradients, sample) if self.reweight else [best]

    def restore(
        self, data: SeveralKernelsState, snapshot: SeveralSnapshot | None, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Continue from a snapshot."""
        return terms if snapshot is None else data.restore(self.stage, snapshot, terms)


def _single(proposal: list[FittedTerm]) -> Descending:
    (step,) = proposal
    assert isinstance(step, Descending)
    return step

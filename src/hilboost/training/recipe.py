"""Training recipes: the components of a fit, chosen but not yet run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.rotation import RotationPlan
from hilboost.boosting.state import TrainingState
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.encoders.encoding import Encoder
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.reductions.row_splits import Split, last_is_model
from hilboost.training.data import TrainingData

if TYPE_CHECKING:  # trees alone do without them
    from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
    from hilboost.learners.kernel_machine.summary import KernelMachineSummary


@dataclass(frozen=True)
class Candidate:
    """A learner that a short trial run may select, with its parameters.

    It must be better than others by ``margin``, a share of the decrease of the loss, and by
    ``margin_of_loss``, a share of the loss.
    """

    learner: Learner
    resolved: ResolvedParameters
    margin: float = 0.0
    margin_of_loss: float = 0.0


@dataclass(frozen=True)
class OpenChoices:
    """What a fit decides from short trial runs and its time budget."""

    # learners to select from by short trial runs; either none or at least two
    candidates: tuple[Candidate, ...] = ()
    # the kernel machine that may be added to the trees: see :mod:`hilboost.training.mixture`
    kernel_part: MetricKernelLearner | None = None
    learning_rate: bool = False  # whether it may depend on the time budget


@dataclass(frozen=True)
class Outcome:
    """The result of boosting, before it becomes a fitted model."""

    loss: Loss
    learner: Learner
    learner_data: Any  # the data that the learner prepared, with the choices it made during the fit
    data: TrainingData  # the training rows without those held out
    initial_raw: Floats  # (r,) float64
    state: TrainingState
    kernel_machine: KernelMachineSummary | None = None
    # with ``learner="auto"``, what became of each learner
    parts: dict[str, ModelPart] | None = None


def unchanged(outcome: Outcome) -> Outcome:
    """Return the outcome unchanged."""
    return outcome


@dataclass(frozen=True)
class LocationFirst:
    """Two fits in place of one: that of the location, and that of the distribution around it.

    The residuals of rows that a model has learned from are too small to tell a scale.  The second
    fit therefore has, as offsets, predictions of the location by members of the first one that did
    not learn from the row.
    """

    location: Callable[[], Recipe]  # the recipe of the first fit
    distribution: Callable[[Floats], Recipe]  # that of the second one, from offsets (n, r)
    n_outputs: int

    def offsets(self, out_of_fold: Floats) -> Floats:
        """Offsets of all outputs, (n, r): the location is the first one."""
        return np.pad(out_of_fold, ((0, 0), (0, self.n_outputs - 1)))


@dataclass(frozen=True)
class Recipe:
    """A fully specified fit."""

    config: BoostingConfig
    # (r,) float64: best constant for all rows, including those that will be held out, because a
    # class may be missing in a subset of the rows
    initial_raw: Floats
    data: TrainingData  # training data with the held-out rows
    splits: tuple[Split, ...] = ()  # of the members of a cross-validated ensemble
    rotation: RotationPlan = field(default_factory=RotationPlan)
    # encoder of category columns that base models cannot read directly
    encoder: Encoder | None = None
    choices: OpenChoices = OpenChoices()
    resolved: ResolvedParameters | None = None
    time_budget: float | None = None  # seconds, from the start of the fit
    # converts the outcome of boosting, for learners that need it
    finish: Callable[[Outcome], Outcome] = unchanged
    # fits that may take the place of this one
    location_first: LocationFirst | None = None
    # selects λ of a kernel machine by the held-out loss: a function of the workspace, the kernel
    # and the number of basis vectors
    choose_penalty: Callable[..., tuple[float, float]] | None = None

    @property
    def n_folds(self) -> int:
        """Number of members of a cross-validated ensemble; 1 for a single model."""
        return max(1, len(self.splits))

    @property
    def last_is_model(self) -> bool:
        """Whether the last member is the model, for which the others chose the number of stages."""
        return last_is_model(self.splits, self.data.target)

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``raw``."""
        return len(self.initial_raw)

    @property
    def width(self) -> int:
        """Number of input columns of a member."""
        return self.data.X.shape[1] if self.encoder is None else self.encoder.width

"""Training recipes: the components of a fit, chosen but not yet run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hilboost.boosting import BoostingConfig, EnsembleMember, TrainingState
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.version import ROW_DRAWS
from hilboost.encoders import Encoder, Encoding
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.learners.metric_kernel import MetricKernelLearner
from hilboost.model.fitted import FittedModel
from hilboost.model.parts import ModelPart
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.data import TrainingData
from hilboost.training.shards import ShardPlan


@dataclass(frozen=True)
class Candidate:
    """A learner that a short trial run may select, with its parameters.

    ``margin`` is a share of the decrease of the loss, by which it must be better than others.
    """

    learner: Learner
    resolved: ResolvedParameters
    margin: float = 0.0


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
class Recipe:
    """A fully specified fit."""

    config: BoostingConfig
    # (r,) float64: best constant for all rows, including those that will be held out, because a
    # class may be missing in a subset of the rows
    initial_raw: Floats
    data: TrainingData  # training data with the held-out rows
    n_folds: int = 1  # number of members of a cross-validated ensemble; 1 for a single model
    shards: ShardPlan = field(default_factory=ShardPlan)
    # encoder of category columns that base models cannot read directly
    encoder: Encoder | None = None
    # learners to select from by short trial runs; either none or at least two
    candidates: tuple[Candidate, ...] = ()
    resolved: ResolvedParameters | None = None
    time_budget: float | None = None  # seconds, from the start of the fit
    chooses_rate: bool = False  # whether the learning rate may depend on the time budget
    # the kernel machine that may be added to the trees: see :mod:`hilboost.training.mixture`
    kernel_part: MetricKernelLearner | None = None
    # converts the outcome of boosting, for learners that need it
    finish: Callable[[Outcome], Outcome] = unchanged
    # selects λ of a kernel machine by the held-out loss: a function of the workspace, the kernel
    # and the number of basis vectors
    choose_penalty: Callable[..., float] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``raw``."""
        return len(self.initial_raw)

    @property
    def width(self) -> int:
        """Number of input columns of a member."""
        return self.data.X.shape[1] if self.encoder is None else self.encoder.width


@dataclass(frozen=True)
class Continuation:
    """An earlier fit to continue."""

    state: TrainingState  # state with the existing stages
    seed: int
    # values of the automatic parameters at the start of the earlier fit
    resolved: ResolvedParameters | None = None
    encoding: Encoding | None = None  # encoding of category columns for the existing stages
    # whether the existing stages are in units of the fit, as in a checkpoint
    in_units: bool = False
    units: TargetUnits | None = None  # otherwise, the units of the existing stages
    # hashes of what the snapshots of the state belong to; ``None`` if this has been checked
    belongs_to: Mapping[str, str] | None = None
    stages: str | None = None  # name of the kernel stages in a checkpoint

    @classmethod
    def of(cls, fitted: FittedModel) -> Continuation:
        """The fit of a model that was not read from a file."""
        assert fitted.members is not None
        assert fitted.history is not None
        kept, history = fitted.n_stages, fitted.history
        validation = history.validation
        has_draws = validation is not None or fitted.encoding is not None
        if has_draws and fitted.row_draws != ROW_DRAWS:
            raise InvalidData(
                "warm_start: the model was fitted by another build of hilboost, which draws other "
                "rows at random, so that its stages may have been fitted to rows that would now be "
                "held out; set warm_start=False to start a new fit."
            )
        state = TrainingState(
            [
                EnsembleMember(model.initial_raw, stages=list(model.stages))
                for model in fitted.members
            ],
            train=list(history.train[: kept + 1]),
            validation=[] if validation is None else list(validation[: kept + 1]),
            metrics={k: list(v[: kept + 1]) for k, v in history.metrics.items()},
            snapshots=() if fitted.kept is None else (fitted.kept.snapshot,),
        )
        belongs_to = None if fitted.kept is None else fitted.kept.belongs_to
        return cls(
            *(state, fitted.seed, fitted.resolved, fitted.encoding),
            units=fitted.units,
            belongs_to=belongs_to,
        )

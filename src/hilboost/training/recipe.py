"""What to train: the parts of a fit, chosen but not yet run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hilboost.boosting import EarlyStopping, RowSampling, TrainingState
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.rule import Rule
from hilboost.encoders import Encoder, Encoding
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.data import TrainingData


@dataclass(frozen=True)
class Candidate:
    """A learner that a short trial run may choose, with the parameters it stands for."""

    learner: Learner
    resolved: ResolvedParameters


@dataclass(frozen=True)
class Outcome:
    """What boosting left behind, before it becomes a fitted model.

    Attributes
    ----------
    loss : Loss
    learner : Learner
    learner_data : object
        What the learner prepared, and what it chose during the fit.
    data : TrainingData
        The training rows without those held out.
    initial_raw : (r,) float64
    state : TrainingState
    kernel_machine : KernelMachineSummary or None
    """

    loss: Loss
    learner: Learner
    learner_data: Any
    data: TrainingData
    initial_raw: Floats
    state: TrainingState
    kernel_machine: KernelMachineSummary | None = None


def unchanged(outcome: Outcome) -> Outcome:
    """The outcome as it is."""
    return outcome


@dataclass(frozen=True)
class Recipe:
    """A fit that has been decided on.

    Attributes
    ----------
    loss : Loss
        For the given targets: masked where some of them are missing.
    initial_raw : (r,) float64
        Best constant for all rows, those that will be held out included: a part of the rows may
        lack a class.
    learner : Learner
    data : TrainingData
        With its held-out rows.
    seed : int
    n_stages : int
    rules : tuple of Rule
        Step lengths and leaf values; shrinkage comes last and by itself.
    learning_rate : float
    sampling : RowSampling
    stopping : EarlyStopping or None
    n_folds : int
        Members of a cross-validated ensemble; 1 is a single model.
    encoder : Encoder or None
        For columns of categories that base models do not read themselves.
    candidates : tuple of Candidate
        Learners to choose from by short trial runs; none or at least two.
    resolved : ResolvedParameters or None
    units : TargetUnits or None
        Units of the loss, the data, and the stages until the fit is over.
    time_budget : float or None
        Seconds, from the start of the fit.
    choose_penalty : callable or None
        Chooses λ of a kernel machine by the loss itself: a function of the workspace, the kernel
        and the number of basis vectors.
    finish : callable
        Turns the outcome of boosting into what is kept, for learners that need it.
    """

    loss: Loss
    initial_raw: Floats
    learner: Learner
    data: TrainingData
    seed: int
    n_stages: int
    rules: tuple[Rule, ...] = ()
    learning_rate: float = 1.0
    sampling: RowSampling = field(default_factory=RowSampling)
    stopping: EarlyStopping | None = None
    n_folds: int = 1
    encoder: Encoder | None = None
    candidates: tuple[Candidate, ...] = ()
    resolved: ResolvedParameters | None = None
    units: TargetUnits | None = None
    time_budget: float | None = None
    finish: Callable[[Outcome], Outcome] = unchanged
    choose_penalty: Callable[..., float] | None = None

    @property
    def n_outputs(self) -> int:
        """Columns of ``raw``."""
        return len(self.initial_raw)

    @property
    def width(self) -> int:
        """Columns that a member sees."""
        return self.data.X.shape[1] if self.encoder is None else self.encoder.width


@dataclass(frozen=True)
class Continuation:
    """An earlier fit that goes on.

    Attributes
    ----------
    state : TrainingState
        The stages so far.
    seed : int
    resolved : ResolvedParameters or None
        What automatic parameters became at the beginning.
    encoding : Encoding or None
        How the stages so far see columns of categories.
    in_units : bool
        Whether the stages so far are in the units of the fit, as in a checkpoint.
    """

    state: TrainingState
    seed: int
    resolved: ResolvedParameters | None = None
    encoding: Encoding | None = None
    in_units: bool = False

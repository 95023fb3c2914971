"""The record of a fit, used by predictions, model files, reports and exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.callback import History
from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, counted, unknown_name
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.target import TargetUnits
from hilboost.core.version import ROW_DRAWS
from hilboost.encoders.encoding import Encoding
from hilboost.model.additive import AdditiveModel
from hilboost.model.codecs import NumberCodec, OutputCodec, TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.fit_facts import FitSnapshot, ModelPart, ResolvedParameters
from hilboost.model.row_marks import RowMarks
from hilboost.tables.schema import Schema
from hilboost.validation.offsets import warn_of_new_exposures, warn_without

if TYPE_CHECKING:  # models of trees do without them
    from hilboost.learners.kernel_machine.summary import KernelMachineSummary
    from hilboost.model.survival import SurvivalCurves


@dataclass(frozen=True)
class StageLearners:
    """The learner that fitted each stage of a model with several learners."""

    names: tuple[str, ...]  # names of all learners
    # names of the learners of each stage, one per member of an ensemble
    stages: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, names: tuple[str, ...], stages: Sequence[Stage]) -> StageLearners:
        """Collect the learners from the terms of the stages."""
        # The first term of each member has the first output.
        first = ([term for term in stage.terms if term.columns.start == 0] for stage in stages)
        return cls(names, tuple(tuple(names[one.learner or 0] for one in some) for some in first))

    @property
    def counts(self) -> dict[str, int]:
        """Number of stages that each learner fitted, in all members."""
        fitted = [name for stage in self.stages for name in stage]
        return {name: fitted.count(name) for name in self.names}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {count}" for name, count in self.counts.items())
        return f"<StageLearners: {counted(len(self.stages), 'stage')}, {parts}>"


@dataclass(frozen=True)
class FittedModel:
    """Record of a fitted model."""

    model: AdditiveModel
    loss: Loss
    learner: Learner
    schema: Schema  # columns of the inputs
    codec: TargetCodec  # encoding of the labels
    seed: int  # seed of the fit
    history: History | None = None  # ``None`` if there was no boosting
    # the models whose mean is ``model``: one for each fold, or a single one.  ``None`` if the model
    # was read from a file and cannot be continued.
    members: tuple[AdditiveModel, ...] | None = None
    last_is_model: bool = False  # whether ``model`` is the last of them, instead of their mean
    # units in which the members were fitted; ``None`` for the units of the target
    units: TargetUnits | None = None
    # encoding of category columns that base models cannot read directly
    encoding: Encoding | None = None
    resolved: ResolvedParameters | None = None  # values of the automatic parameters of tree models
    kernel_machine: KernelMachineSummary | None = None  # choices made by a kernel machine
    # scores that prediction intervals and sets are computed from
    calibration: Calibration | None = None
    # with ``learner="auto"``, the weights and gains of the learners that it compared
    parts: dict[str, ModelPart] | None = None
    # with ``warm_start=True``, the state of learners that cannot be continued from their stages
    kept: FitSnapshot | None = None
    # what turns the risks of a survival model into survival functions
    survival: SurvivalCurves | None = None
    beside_offsets: bool = False  # whether the fit had offsets, to which the model is added
    offset_range: tuple[float, float] | None = None  # of these offsets, if it is known
    row_draws: int = 1  # version of the random draws of rows; the first one was not noted
    # by which training rows are recognized; ``None`` if the model was read from a file without them
    marks: RowMarks | None = None
    # hashes of the groups, times or splits that rows were held out by; not stored in files
    held_out_by: Mapping[str, str] | None = None
    # what a time budget did not suffice for: "stages", and the whole "kernel" machine
    cut_short: tuple[str, ...] = ()
    # number of stages of the model that this one has the first stages of; not stored in files
    cut_from: int | None = None

    @property
    def n_stages(self) -> int:
        """Number of stages."""
        return len(self.model.stages)

    @property
    def learners(self) -> StageLearners:
        """Which of several learners fitted which stage."""
        names = self.learner.capabilities.learner_names
        if len(names) < 2:
            raise AttributeError(
                "learners_ is defined only for models of several learners; all stages were fitted "
                f"by {type(self.learner).__name__}."
            )
        return StageLearners.of(names, self.model.stages)

    @property
    def mixes_kernels(self) -> bool:
        """Whether a kernel machine is the last stage, beside trees with a weight."""
        return self.parts is not None and self.parts["kernel"].weight > 0

    def warn_of_offsets(self, offset: PerRow) -> None:
        """Warn if offsets are missing, or look like exposures whose logarithms the fit had."""
        warn_without(offset, self.beside_offsets)
        if offset is None or self.offset_range is None:
            return
        if self.loss.link is not None and self.loss.link.smallest == 0:  # the link has a logarithm
            warn_of_new_exposures(np.asarray(offset, dtype=np.float64), self.offset_range)

    def to_continue(self) -> FittedModel:
        """Return the record with the members of the ensemble, to which stages can be added."""
        if self.members is not None:
            return self
        if self.cut_from is not None:
            raise InvalidData(
                "warm_start: the first stages of a model with a kernel machine cannot be "
                f"continued, because its state belongs to all {self.cut_from} stages; fit it with "
                f"n_estimators={self.n_stages} and warm_start=True, or set warm_start=False."
            )
        needed = []
        if self.history is None or self.history.validation is not None:
            needed.append("early_stopping=False")
        if self.encoding is not None and self.encoding.statistics:
            needed.append("target_encoding=False")
        if needed:
            raise InvalidData(
                "warm_start: a model read from a file cannot be continued if its fit held rows out "
                "or encoded categories by the target; fit it with "
                f"{' and '.join(needed)}, or set warm_start=False."
            )
        return replace(self, members=(self.model,), row_draws=ROW_DRAWS)

    def first(self, n_stages: int) -> FittedModel:
        """Return the model of the first stages."""
        if self.survival is not None:
            raise InvalidParameter(
                "the survival functions of a model belong to all of its stages; fit it with "
                f"n_estimators={n_stages}."
            )
        if n_stages == self.n_stages:
            return replace(self, calibration=None)
        if self.mixes_kernels:
            found = replace(self, model=self.model.first(n_stages)).part("tree")
            history = None if self.history is None else self.history.first(n_stages)
            return replace(found, history=history, cut_from=self.n_stages)
        machine, members = self.kernel_machine, self.members
        if machine is not None:  # only the residuals of all stages say how large variances are
            machine = replace(machine.first(n_stages), residual_factor=[1.0])
        if members is not None:
            members = tuple(member.first(n_stages) for member in members)
        return replace(
            self,
            model=self.model.first(n_stages),
            history=None if self.history is None else self.history.first(n_stages),
            members=None if self.learner.capabilities.has_state else members,
            kernel_machine=machine,
            calibration=None,
            kept=None,
            cut_from=self.cut_from or self.n_stages,
        )

    def part(self, name: str) -> FittedModel:
        """Return the model of the stages that one of several learners fitted.

        The part of the first learner includes the start value, so that the raw predictions of all
        parts add up to this model's predictions.
        """
        names = self.learners.names
        if name not in names:
            raise unknown_name("name", name, names)
        k = names.index(name)
        start = self.model.initial_raw
        model = AdditiveModel(start if k == 0 else np.zeros_like(start), self.model.terms_of(k))
        learner = self.learner.parts[k]
        return replace(
            self,
            model=model,
            learner=learner,
            history=None,
            members=None,
            calibration=None,
            parts=None,
            kept=None,
        )

    @property
    def classes(self) -> Any:
        """Classes of a classifier."""
        return self.codec.of_classes().classes

    @property
    def numbers(self) -> NumberCodec:
        """Codec of a regression model."""
        return self.codec.of_numbers()

    @property
    def output(self) -> OutputCodec:
        """Codec of a model with structured outputs."""
        return self.codec.of_structures()

    def encode_target(self, y: object, n: int) -> Floats:
        """Encode the labels of n rows as (n, c); NaN for missing targets if the fit allows them."""
        takes_missing = self.learner.capabilities.takes_missing_targets
        return self.codec.encode(y, n, takes_missing and self.loss.additive_over_targets)

    def encode_inputs(self, X: Floats) -> Floats:
        """Convert validated inputs (n, d) to inputs of the base models."""
        return X if self.encoding is None else self.encoding.encode(X)

    def predict_raw(self, X: Floats, n_threads: int = 1) -> Floats:
        """Raw predictions (n, r) for validated inputs (n, d)."""
        return self.model.predict_raw(self.encode_inputs(X), n_threads)

    def staged_raw(self, X: Floats, n_threads: int = 1) -> Iterator[Floats]:
        """Raw predictions (n, r) after every stage, in one array that is updated in place."""
        return self.model.staged_raw(self.encode_inputs(X), n_threads)

    def distribution_of(self, raw: Floats) -> Distribution:
        """Distributions of raw predictions (n, r), calibrated unless by group."""
        found, calibration = self.loss.distribution_of(raw), self.calibration
        if calibration is None or calibration.group_names is not None:
            return found
        return calibration.calibrated(found, np.empty(0, dtype=np.int64))

    def raw_of_members(self, X: Floats, n_threads: int = 1) -> list[Floats]:
        """Raw predictions (n, r) of each model that made the predictions of the calibration."""
        assert self.calibration is not None
        X = self.encode_inputs(X)
        members = self.calibration.members(self.model)
        return [member.predict_raw(X, n_threads) for member in members]


def importances(fitted: FittedModel, trees: FittedModel) -> Floats:
    """Return the fraction of the gain of all stages that is due to each column, (d,)."""
    encoding = fitted.encoding
    width = fitted.schema.n_columns if encoding is None else encoding.full_width

    def fractions(values: Floats) -> Floats:
        values = values if encoding is None else encoding.attributed(values)
        total = values.sum()
        return values / total if total > 0 else values

    gains = fractions(column_gains(trees.model.stages, width))
    if not fitted.mixes_kernels:
        return gains
    assert fitted.parts is not None
    of_kernel = fractions(effects(fitted.part("kernel").model.stages, width))
    return fitted.parts["tree"].share * gains + fitted.parts["kernel"].share * of_kernel


def column_gains(stages: Sequence[Stage], width: int) -> Floats:
    """Return the total gain of the splits of trees on each column, (width,)."""
    gains = np.zeros(width)
    for stage in stages:
        for term in stage.terms:
            model: Any = term.model
            if model.family == "trees":
                np.add.at(gains, model.column, model.gain)
    return gains


def effects(stages: Sequence[Stage], width: int) -> Floats:
    """Return how much each column changes the outputs of kernel machines, (width,).

    The effects of several members add up.
    """
    found = np.zeros(width)
    for stage in stages:
        for term in stage.terms:
            model: Any = term.model
            columns, sizes = model.effects(term.coefficient)
            found[columns] += sizes
    return found

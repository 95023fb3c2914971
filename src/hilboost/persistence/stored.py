"""The contents of a model file that do not follow from the parameters of the estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hilboost.core.callback import History
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.encoders.encoding import Encoding
from hilboost.model import AdditiveModel
from hilboost.model.codecs import TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.model.fitted import FittedModel
from hilboost.model.row_marks import RowMarks
from hilboost.tables.schema import Schema

if TYPE_CHECKING:  # models of trees do without them
    from hilboost.learners.kernel_machine.summary import KernelMachineSummary
    from hilboost.model.survival import SurvivalCurves


@dataclass(frozen=True)
class StoredModel:
    """A validated model file, from which an estimator creates its fitted record."""

    model: AdditiveModel
    schema: Schema
    codec: TargetCodec
    seed: int
    history: History | None = None
    encoding: Encoding | None = None
    resolved: ResolvedParameters | None = None
    kernel_machine: KernelMachineSummary | None = None
    calibration: Calibration | None = None
    parts: dict[str, ModelPart] | None = None
    stages: str | None = None  # name of the learner of kernel stages
    sharpness: float | None = None  # sharpness of least-squares classification
    survival: SurvivalCurves | None = None
    # whether the fit had offsets; not noted by files of earlier versions
    beside_offsets: bool = False
    offset_range: tuple[float, float] | None = None
    marks: RowMarks | None = None
    cut_short: tuple[str, ...] = ()

    def fitted(self, loss: Loss, learner: Learner) -> FittedModel:
        """Create the record with the loss and learner that the parameters specify."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        del record["stages"], record["sharpness"]  # of the learner and of the loss
        return FittedModel(loss=loss, learner=learner, **record)


Header = dict[str, Any]

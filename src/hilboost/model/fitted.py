"""The one record of a fit: all that predictions, files, reports, and exports need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hilboost.core.callback import History
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.encoders import Encoding
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.model.additive import AdditiveModel
from hilboost.model.codecs import ClassCodec, NumberCodec, OutputCodec, TargetCodec
from hilboost.model.resolved import ResolvedParameters
from hilboost.tables import Schema


@dataclass(frozen=True)
class FittedModel:
    """A fitted model.

    Attributes
    ----------
    model : AdditiveModel
    loss : Loss
    learner : Learner
    schema : Schema
        Columns of the inputs.
    codec : TargetCodec
        How labels are encoded.
    seed : int
        The seed of the fit.
    history : History or None
        ``None`` where no boosting took place.
    members : tuple of AdditiveModel or None
        The models whose mean ``model`` is: one for each fold, or one.  ``None`` where the model
        was read from a file, so that it cannot be continued.
    encoding : Encoding or None
        Encoding of category columns, where base models do not read the columns themselves.
    resolved : ResolvedParameters or None
        What automatic parameters of tree models became.
    kernel_machine : KernelMachineSummary or None
        What a kernel machine chose.
    """

    model: AdditiveModel
    loss: Loss
    learner: Learner
    schema: Schema
    codec: TargetCodec
    seed: int
    history: History | None = None
    members: tuple[AdditiveModel, ...] | None = None
    encoding: Encoding | None = None
    resolved: ResolvedParameters | None = None
    kernel_machine: KernelMachineSummary | None = None

    @property
    def n_stages(self) -> int:
        """Number of stages of the model."""
        return len(self.model.stages)

    @property
    def classes(self) -> Any:
        """The classes of a classifier."""
        if isinstance(self.codec, ClassCodec):
            return self.codec.classes
        raise InvalidData("the model has no classes: its targets are not class labels.")

    @property
    def numbers(self) -> NumberCodec:
        """The codec of a regression model."""
        if isinstance(self.codec, NumberCodec):
            return self.codec
        raise InvalidData("the model has no numeric targets.")

    @property
    def output(self) -> OutputCodec:
        """The codec of a model with structured outputs."""
        if isinstance(self.codec, OutputCodec):
            return self.codec
        raise InvalidData("the model has no output space: its targets are numbers or classes.")

    def encode_target(self, y: Any, n: int) -> Floats:
        """Labels of n rows as (n, c); NaN for a missing target where the fit allows it."""
        missing = self.learner.takes_missing_targets and self.loss.additive_over_targets
        return self.codec.encode(y, n, missing)

    def encode_inputs(self, X: Floats) -> Floats:
        """Checked inputs (n, d) as the base models read them."""
        return X if self.encoding is None else self.encoding.encode(X)

    def predict_raw(self, X: Floats, n_threads: int = 1) -> Floats:
        """(n, r) for checked inputs (n, d)."""
        return self.model.predict_raw(self.encode_inputs(X), n_threads)

    def staged_raw(self, X: Floats, n_threads: int = 1) -> Iterator[Floats]:
        """(n, r) after every stage; the array is the same one, changed in place."""
        return self.model.staged_raw(self.encode_inputs(X), n_threads)

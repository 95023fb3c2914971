"""The contents of a model file that do not follow from the parameters of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hilboost.model.codecs import TargetCodec
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.model.fitted import FittedModel
from hilboost.tables.schema import Schema


@dataclass(frozen=True)
class StoredModel:
    """A validated model file, and what its loss and its learner depend on."""

    schema: Schema
    codec: TargetCodec
    resolved: ResolvedParameters | None
    parts: dict[str, ModelPart] | None
    stages: str | None  # name of the learner of kernel stages
    sharpness: float | None  # sharpness of least-squares classification
    fitted: Callable[..., FittedModel]  # takes the loss and the learner


Header = dict[str, Any]

"""Columns that a learner can use: checks, and the adaptation to category columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.capabilities import SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.core.learner import Learner, splits_of
from hilboost.core.plain_values import is_auto
from hilboost.encoders.encoding import Averaged, Encoder, Encoding, known_numbers, meet
from hilboost.learners.mixed import MixedLearner
from hilboost.model import AdditiveModel
from hilboost.tables.schema import Schema, category_choice, category_columns, place
from hilboost.training.data import TrainingData


def learner_name(learner: Any) -> str:
    """Return the name of a learner for messages."""
    return repr(learner) if isinstance(learner, str) else type(learner).__name__


def nan_refused_by(given: Iterable[Any], instead: str) -> str:
    """Name the first learner object that does not support missing values, and one that does.

    Learners by name and scikit-learn's regressors check their inputs themselves.  The end of a
    message; empty if there is no such learner.
    """
    learners = (part for one in given if isinstance(one, Learner) for part in one.parts)
    for learner in learners:
        if not learner.capabilities.takes_missing_values:
            return (
                f"which {learner_name(learner)} does not support; replace or drop missing values, "
                f"or use learner={instead!r}."
            )
    return ""


def check_learner(learner: Learner, schema: Schema, name: str, instead: str) -> None:
    """Reject category columns if the learner would treat them as numbers, and say what to use."""
    if schema.categories and not learner.capabilities.takes_categories:
        column = schema.columns[schema.categories[0]]
        raise IncompatibleParts(
            f"column {column.name!r} contains categories, but {name} supports only numbers. Encode "
            "it, for instance with scikit-learn's OneHotEncoder or OrdinalEncoder, or "
            f"{instead}."
        )


def check_kernel(kernel: Any, given: object, schema: Schema) -> None:
    """Reject text columns if the kernel would treat their codes as numbers.

    Codes of columns that are listed in ``categorical_features`` are compared by the kernel.
    """
    listed = category_choice(given, len(schema.columns), schema.names) or ()
    others = [k for k in schema.categories if k not in listed]
    if others and not is_auto(kernel):
        column = schema.columns[others[0]]
        raise IncompatibleParts(
            f"column {column.name!r} contains categories, but kernel={kernel!r} compares numbers. "
            "Set kernel='auto', or list the column in categorical_features and use a kernel that "
            "compares codes, such as a product with OnColumns(Delta(), ...)."
        )


def for_table(
    learner: Learner, schema: Schema, encoder: Encoder | None, counts_targets: bool = False
) -> Learner:
    """Adapt each of the learners that each stage chooses from to the columns and the target.

    With ``counts_targets``, hessians count known targets, and leaves require enough of them.
    """
    if isinstance(learner, MixedLearner):
        parts = (for_table(part, schema, encoder, counts_targets) for part in learner.learners)
        return replace(learner, learners=tuple(parts))
    given = next(iter(splits_of(learner)), SplitSettings())
    adapted = given if encoder is None else _encoded(given, encoder, schema)
    if counts_targets:
        least = max(adapted.min_hessian, float(adapted.min_samples_leaf))
        adapted = replace(adapted, min_hessian=least)
    return learner if encoder is None and adapted == given else learner.for_table(adapted)


def _encoded(splits: SplitSettings, encoder: Encoder, schema: Schema) -> SplitSettings:
    """Adapt the settings to the encoded columns, including those whose levels trees split on.

    Statistics have no monotonic direction and belong to the groups of their source columns.
    """
    for column in schema.categories:
        if splits.monotonic and splits.monotonic[column] != 0:
            raise InvalidParameter(
                f"monotonic_cst is not supported for {place(schema.columns[column].name)}, because "
                "categories have no order; set its direction to 0."
            )
    places = list(enumerate(encoder.origins, start=encoder.encoding.n_columns))
    return replace(
        splits,
        categorical=encoder.categorical,
        monotonic=splits.monotonic and splits.monotonic + (0,) * len(places),
        groups=tuple(
            (*group, *(k for k, origin in places if meet(origin, [group])))
            for group in splits.groups
        ),
    )


def encoder_for(
    learner: Learner,
    data: TrainingData,
    averaged: Averaged = known_numbers,
    by_mean: str | bool | None = None,
) -> Encoder | None:
    """Create the encoder of category columns; ``None`` if the learner reads the table as it is.

    By default, trees split on the levels of every column, whatever their number, if they can:
    beyond 255, the rarest share one.  Means of points of an output space do not serve as encoding:
    they have as many columns as the space.
    """
    columns = category_columns(data.schema)
    if not columns or not learner.capabilities.encodes_categories:
        return None
    trees = splits_of(learner)
    requires_means = not all(splits.splits_levels for splits in trees)
    if by_mean is None or (requires_means and is_auto(by_mean)):
        by_mean = requires_means
    groups = trees[0].groups if trees else ()
    return Encoder.of(data.X, columns, data.target, averaged, by_mean, groups)


def placed(encoding: Encoding, member: int, model: AdditiveModel) -> AdditiveModel:
    """Move a member's statistics columns to their places in the whole model."""
    if not encoding.statistics:
        return model
    first = encoding.n_columns + sum(each.width for each in encoding.statistics[:member])
    own = np.arange(first, first + encoding.statistics[member].width)
    columns = np.concatenate([np.arange(encoding.n_columns), own])
    width = encoding.full_width
    shared: dict[int, Any] = {}
    if len(columns) == width:
        return model
    stages = (
        Stage(
            tuple(
                term.with_model(term.model.placed(columns, width, shared)) for term in stage.terms
            )
        )
        for stage in model.stages
    )
    return AdditiveModel(model.initial_raw, tuple(stages))


def check_levels(schema: Schema, codes: Floats) -> None:
    """Reject levels that were not present when a continued fit began."""
    for k in schema.categories:
        if (codes[:, k] == -1).any():
            name = schema.columns[k].name
            raise InvalidData(
                f"warm_start: column {name!r} contains levels that did not occur in the first fit; "
                "set warm_start=False to start a new fit."
            )

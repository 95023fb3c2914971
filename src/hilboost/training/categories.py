"""Category columns: configuration of tree learners, and placement of encoded columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.splitting_learner import SplittingLearner
from hilboost.encoders import Encoder, Encoding, known_numbers, meet
from hilboost.model import AdditiveModel
from hilboost.tables import Schema, category_columns, place
from hilboost.training.data import TrainingData


def with_categories(
    learner: SplittingLearner, encoder: Encoder, schema: Schema
) -> SplittingLearner:
    """Configure a learner for the encoded columns, including those whose levels it splits on.

    Statistics have no monotonic direction and belong to the groups of their source columns.
    """
    for column in schema.categories:
        if learner.monotonic and learner.monotonic[column] != 0:
            raise InvalidParameter(
                f"monotonic_cst is not supported for {place(schema.columns[column].name)}, because "
                "categories have no order; set its direction to 0."
            )
    places = list(enumerate(encoder.origins, start=encoder.encoding.n_columns))
    return learner.with_columns(
        encoder.categorical,
        learner.monotonic and learner.monotonic + (0,) * len(places),
        tuple(
            (*group, *(k for k, origin in places if meet(origin, [group])))
            for group in learner.groups
        ),
    )


def level_encoder(trees: Sequence[SplittingLearner], data: TrainingData) -> Encoder | None:
    """Create the encoder for learners in an output space; ``None`` without category columns.

    Trees split on the levels of every column, whatever their number: beyond 255, the rarest share
    one.  Means of points do not serve as encoding: they have as many columns as the output space.
    """
    columns = category_columns(data.schema)
    if not columns:
        return None
    by_mean = not all(learner.divides_levels for learner in trees)
    groups = trees[0].groups if trees else ()
    return Encoder.of(data.X, columns, data.target, known_numbers, by_mean, groups)


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

"""Category columns: configuration of tree learners, and placement of encoded columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.learner import SplittingLearner
from hilboost.encoders import Encoder, Encoding, meet
from hilboost.model import AdditiveModel
from hilboost.tables import Schema, category_columns, place
from hilboost.training.data import TrainingData


def with_categories(
    learner: SplittingLearner, encoder: Encoder, schema: Schema
) -> SplittingLearner:
    """Configure a learner for the encoded columns, including those whose levels it splits on.

    Statistics have no monotonic direction and belong to the groups of their source columns.

    Raises
    ------
    InvalidParameter
        A category column has a direction, or trees with vector leaves would split on levels.
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


def level_encoder(learner: SplittingLearner, data: TrainingData) -> Encoder | None:
    """Create the encoder for trees in an output space; ``None`` without category columns.

    Trees split on the levels of every column, whatever their number: beyond 255, the rarest share
    one.  Means of points are no encoding, because they have as many columns as the output space.
    """
    columns = category_columns(data.schema)
    if not columns:
        return None
    by_mean = not learner.divides_levels
    return Encoder.of(data.X, columns, data.target, None, by_mean, learner.groups)


def placed(encoding: Encoding, member: int, model: AdditiveModel) -> AdditiveModel:
    """Move a member's statistics columns to their places in the whole model."""
    by = encoding.statistics[member].width * member if encoding.statistics else 0
    if by == 0:
        return model
    stages = (
        Stage(tuple(_shifted(term, encoding.n_columns, by) for term in stage.terms))
        for stage in model.stages
    )
    return AdditiveModel(model.initial_raw, tuple(stages))


def _shifted(term: Term, first: int, by: int) -> Term:
    tree: Any = term.model
    column = np.where(tree.column >= first, tree.column + by, tree.column).astype(np.int32)
    return term.with_model(replace(tree, column=column))


def check_levels(schema: Schema, codes: Floats) -> None:
    """Reject levels that were not present when a continued fit began."""
    for k in schema.categories:
        if (codes[:, k] == -1).any():
            name = schema.columns[k].name
            raise InvalidData(
                f"warm_start: column {name!r} contains levels that did not occur in the first fit; "
                "set warm_start=False to start a new fit."
            )

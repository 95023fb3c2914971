"""Importances of columns, from the base models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.model.fitted import FittedModel


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

"""The automatic learner: trees, to which a kernel machine may be added."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hilboost.core.learner import Learner
from hilboost.learners.metric_kernel import MetricKernelLearner
from hilboost.learners.mixed import MixedLearner
from hilboost.model.parts import ModelPart
from hilboost.tables import DenseTable
from hilboost.training.recipe import Recipe
from hilboost.validation.choices import is_name

_FEWEST_ROWS, _MOST_ROWS = 200, 100_000  # of tables on which a kernel machine is tried
_MOST_OUTPUTS = 100
_FEWEST_CENTERS, _FEW_CENTERS, _FEW_CENTERS_ROWS = 2500, 3000, 20_000
_CENTERS_OF_ROOT = 30  # times the square root of the number of rows
_MANY_CENTERS, _MOST_OPERATIONS = 4000, 6e11


def as_trees(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a fit of trees instead of the automatic learner's parameters."""
    p = dict(parameters)
    return p | {"learner": "tree"} if is_name(p["learner"], "auto") else p


def kernel_part(p: Mapping[str, Any], recipe: Recipe) -> MetricKernelLearner | None:
    """Return the kernel machine that may be added to the trees, if the fit allows one."""
    data = recipe.data
    is_judged = recipe.n_folds > 1 or data.held_out is not None
    constrained = p["monotonic_cst"] is not None or p["interaction_cst"] is not None
    possible = (
        recipe.stopping is not None
        and is_judged
        and recipe.loss.joins_kernel_machine
        and recipe.n_outputs <= _MOST_OUTPUTS
        and not recipe.metrics
        and data.target.share is None
        and data.target.groups is None
        and data.target.offset is None
        and _FEWEST_ROWS <= len(data.X) <= _MOST_ROWS
        and isinstance(data.X, np.ndarray | DenseTable)
        and not (constrained or p["warm_start"] or recipe.shards.at_start > 1)
    )
    if not possible:
        return None
    columns = () if recipe.encoder is None else recipe.encoder.categorical
    return MetricKernelLearner(_n_centers(len(data.X)), categorical=columns)


def _n_centers(n: int) -> int:
    """More rows support more centers, as long as the ``n m²`` operations take seconds."""
    if n <= _FEW_CENTERS_ROWS:
        return int(min(max(_CENTERS_OF_ROOT * math.sqrt(n), _FEWEST_CENTERS), _FEW_CENTERS))
    return int(min(_MANY_CENTERS, math.sqrt(_MOST_OPERATIONS / n)))


def with_stored_part(trees: Learner, parts: Mapping[str, ModelPart] | None) -> Learner:
    """Return the learner of a model read from a file, with the record of its parts."""
    if parts is None or not parts["kernel"].weight:
        return trees
    return MixedLearner((trees, MetricKernelLearner()), ("tree", "kernel"))

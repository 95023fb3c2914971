"""Choice of the learner of an output space by the error on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import draw_rows
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.learners.kernel_machine.kernel_learner import tuned_briefly
from hilboost.reductions.row_splits import Split, in_turn, parts
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.train import train

FEWEST_ROWS = 100
MOST_ROWS = 20_000
"""Tables of fewer or more rows are not compared on."""

_ROWS_COMPARED = 1000
_FOLDS = 2
_CLEAR = 2.0  # standard errors


def can_compare(data: TrainingData) -> bool:
    """Whether the number of rows is neither too small nor too large for kernel machines."""
    return FEWEST_ROWS <= len(data.X) <= MOST_ROWS


def best_learner(
    # for each learner, a function that creates its recipe for some training rows
    recipes: Mapping[str, Callable[[TrainingData], Recipe]],
    # measures the distance between true and predicted points, the same for all learners
    error: Loss,
    data: TrainingData,  # held-out rows of the caller are not used
    seed: int,  # draws the rows
    n_threads: int,
) -> str:
    """Return the learner with the smallest mean error on held-out rows; the first of equal ones.

    The comparison uses at most 1,000 rows, each of which is held out once.  If half of them are
    enough, because the difference exceeds two standard errors, the others are not held out.
    Kernels are chosen among fewer families than in a fit.
    """
    part = replace(_some_rows(data, seed), validation=())
    errors = dict.fromkeys(recipes, 0.0)
    for split in _halves(part, key_of(seed, Purpose.FOLDS_COMPARED)):
        learned, held = (part.rows(rows) for rows in split)
        found = {}
        for name, recipe_of in recipes.items():
            recipe = recipe_of(learned)
            config = replace(recipe.config, learner=tuned_briefly(recipe.config.learner))
            recipe = replace(recipe, config=config)
            result = train(recipe, n_threads)
            if result.interrupt is not None:
                raise result.interrupt
            values = error.value(held.target, result.fitted.predict_raw(held.X, n_threads))
            found[name] = values if held.target.weight is None else held.target.weight * values
            errors[name] += float(np.sum(found[name]))
        best = min(errors, key=errors.__getitem__)
        if all(_is_clear(found[name] - found[best]) for name in recipes if name != best):
            break
    return best


def _halves(data: TrainingData, key: np.uint64) -> list[Split]:
    """Hold out each half of the rows in turn: of the groups, or of the later half by time."""
    dependence = data.target.dependence
    if dependence is not None and dependence.divides:
        return in_turn(key, _FOLDS, dependence)
    folds = parts(key, _FOLDS, data.target)
    return [Split(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(_FOLDS)]


def _is_clear(excess: Floats) -> bool:
    """Whether the sum of (n,) differences exceeds two of its standard errors."""
    return float(np.sum(excess)) > _CLEAR * float(np.sqrt(np.sum(excess**2)))


def _some_rows(data: TrainingData, seed: int) -> TrainingData:
    n = len(data.X)
    if n <= _ROWS_COMPARED:
        return data
    drawn = draw_rows(key_of(seed, Purpose.ROWS_COMPARED), n, _ROWS_COMPARED, ThreadTeam())
    return data.rows(np.sort(drawn).astype(np.intp))

"""Recipes of output kernel models: boosting any learner in an output space, and forests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilboost.boosting import EarlyStopping, RowSampling
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Target
from hilboost.core.output_space import Embedding
from hilboost.learners.tree import VectorTreeLearner
from hilboost.losses import SquaredError
from hilboost.model.resolved import is_auto
from hilboost.training.begin import start
from hilboost.training.compatibility import check_learner, learner_name
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.validation.weights import warn_of_light_weights

_SKETCHED_ABOVE = 32
_SKETCH = 16


@dataclass(frozen=True)
class PreimageError(SquaredError):
    """Squared error evaluated on the decoded labels, for early stopping."""

    embedding: Embedding
    way: str

    def value(self, target: Target, raw: Floats) -> Floats:
        """Half the squared distance between the points of the true and the decoded labels."""
        decoded = self.embedding.encode(self.embedding.decode(raw, self.way))
        return super().value(target, decoded)


def output_recipe(
    p: Mapping[str, Any], learner: Learner, loss: SquaredError, data: TrainingData, seed: int
) -> Recipe:
    """Create the recipe of a fit in an output space.

    Parameters
    ----------
    p : mapping
        Parameters of ``OutputKernelBoostingRegressor``.
    learner : Learner
    loss : SquaredError
    data : TrainingData
    seed : int

    Raises
    ------
    InvalidParameter, IncompatibleParts, InvalidData
        The parameters are incompatible with each other or with the data.
    """
    fitted_loss, initial_raw = start(loss, data)
    if p["early_stopping"] is True and data.held_out is None:
        data = data.hold_out(p["validation_fraction"], seed)
    early = p["early_stopping"] is not False and data.held_out is not None
    check_learner(
        learner, data.schema, f"learner {learner_name(p['learner'])}", "set learner='kernel'"
    )
    warn_of_light_weights(data.target.weight, learner.min_samples_leaf)
    n_stages, rate = pace(p, learner)
    return Recipe(
        loss=fitted_loss,
        initial_raw=initial_raw,
        learner=learner,
        data=data,
        seed=seed,
        n_stages=n_stages,
        learning_rate=rate,
        sampling=RowSampling(p["subsample"]),
        stopping=EarlyStopping(p["n_iter_no_change"], 0.0) if early else None,
    )


def pace(p: Mapping[str, Any], learner: Learner) -> tuple[int, float]:
    """Return the number of stages and the learning rate."""
    if learner.penalizes:
        n_stages, rate = 20, 1.0
    elif learner.constant_on_leaves:
        n_stages, rate = 500, 0.02
    else:
        n_stages, rate = 100, 0.1
    if not is_auto(p["n_estimators"]):
        n_stages = int(p["n_estimators"])
    return n_stages, rate if is_auto(p["learning_rate"]) else float(p["learning_rate"])


def vector_trees(p: Mapping[str, Any], random_cuts: bool, n_outputs: int) -> VectorTreeLearner:
    """Create the tree learner for boosting in an output space."""
    features: float | str = "sqrt" if random_cuts else 1.0
    sketch = p["sketch"]
    if is_auto(sketch):
        sketch = _SKETCH if n_outputs > _SKETCHED_ABOVE and not random_cuts else None
    return VectorTreeLearner(
        max_splits=p["max_splits"],
        min_samples_leaf=p["min_samples_leaf"],
        max_features=features if is_auto(p["max_features"]) else p["max_features"],
        random_cuts=random_cuts,
        sketch=None if sketch is None else int(sketch),
    )


def forest_trees(p: Mapping[str, Any]) -> VectorTreeLearner:
    """Create the tree learner for a forest in an output space."""
    max_features, random_cuts = p["max_features"], p["splitter"] == "random"
    if is_auto(max_features):
        max_features = "sqrt" if random_cuts else 1.0
    return VectorTreeLearner(
        max_splits=p["max_splits"],
        max_depth=p["max_depth"],
        min_samples_leaf=p["min_samples_leaf"],
        max_features=max_features,
        random_cuts=random_cuts,
        sketch=p["sketch"],
    )

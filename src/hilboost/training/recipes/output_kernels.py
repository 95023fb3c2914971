"""Recipes of output kernel models: boosting any learner in an output space, and forests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig, EarlyStopping
from hilboost.boosting.sampling import RowSampling, StageKey
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner, splits_of
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import AdaptiveLoss
from hilboost.core.output_space import Embedding
from hilboost.core.plain_values import is_auto
from hilboost.core.target import Target
from hilboost.learners.tree import VectorTreeLearner
from hilboost.model import AdditiveModel
from hilboost.model.fitted import FittedModel
from hilboost.training.categories import encoder_for, for_table
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import start_of
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.kernel_machines import penalty_choice
from hilboost.training.recipes.table_learners import check_parts
from hilboost.training.recipes.tables import table_rules
from hilboost.validation.weights import warn_of_light_weights

_TOTAL_RATE = 10.0
"""Sum of the learning rates of all stages, unless the caller sets the rate."""


@dataclass(frozen=True)
class _LossOfLabels(Loss):
    """A loss of decoded labels, for early stopping; its gradients are those for the points."""

    loss: Loss
    embedding: Embedding
    way: str

    def initial_raw(self, target: Target) -> Floats:
        """Same as for the loss of the points."""
        return self.loss.initial_raw(target)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Same as for the loss of the points."""
        return self.loss.gradients(target, raw)


@dataclass(frozen=True)
class PreimageLoss(_LossOfLabels, AdaptiveLoss):
    """A loss evaluated on the decoded labels."""

    def adapted(self, target: Target, raw: Floats) -> Loss:
        """Return it with the parameter that the loss of the points has at ``raw``."""
        if not self.loss.adaptive:
            return self
        return replace(self, loss=self.loss.adapted(target, raw))

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of the points of the true and the decoded labels, (n,)."""
        if not len(raw):  # one of several workers without held-out rows
            return np.empty(0)
        decoded = self.embedding.encode(self.embedding.decode(raw, self.way))
        return self.loss.value(target, decoded)


@dataclass(frozen=True)
class MetricLoss(_LossOfLabels):
    """Minus the agreement of decoded and true labels."""

    agreement: Callable[[Any, Any], Floats]

    def value(self, target: Target, raw: Floats) -> Floats:
        """Minus the agreement of each row, (n,)."""
        if not len(raw):
            return np.empty(0)
        labels = self.embedding.labels_of(target.y[:, : raw.shape[1]])
        return -self.agreement(labels, self.embedding.decode(raw, self.way))


def output_recipe(
    p: Mapping[str, Any],  # parameters of ``OutputKernelBoostingRegressor``
    learner: Learner,
    loss: Loss,
    data: TrainingData,
    seed: int,
    metric: Loss | None = None,
) -> Recipe:
    """Create the recipe of a fit in an output space.

    Raises
    ------
    InvalidParameter, IncompatibleParts, InvalidData
        The parameters are incompatible with each other or with the data.
    """
    begun = start_of(loss, data, uses_units=not loss.quadratic)  # a sum of squares needs none
    data, initial_raw = begun.data, begun.initial_raw
    if p["early_stopping"] is True and data.held_out is None:
        data = data.hold_out(p["validation_fraction"], seed)
    early = p["early_stopping"] is not False and data.held_out is not None
    check_parts(p["learner"], learner, data.schema, "set learner='kernel'")
    encoder = encoder_for(learner, data)
    learner = for_table(learner, data.schema, encoder)
    for splits in splits_of(learner):
        warn_of_light_weights(data.target, splits.min_samples_leaf)
    n_stages, rate = pace(p, learner, loss.quadratic)
    searches_penalty = learner.capabilities.penalizes and not loss.quadratic
    config = BoostingConfig(
        loss=begun.loss,
        learner=learner,
        seed=seed,
        n_stages=n_stages,
        rules=() if loss.quadratic else table_rules("auto", begun.loss, learner),
        learning_rate=rate,
        sampling=RowSampling(p["subsample"]),
        stopping=EarlyStopping(p["n_iter_no_change"], 0.0) if early else None,
        units=begun.units,
        metric=metric,
    )
    choice = penalty_choice(begun.loss, data, initial_raw) if searches_penalty else None
    return Recipe(config, initial_raw, data, encoder=encoder, choose_penalty=choice)


def pace(p: Mapping[str, Any], learner: Learner, quadratic: bool = True) -> tuple[int, float]:
    """Return the number of stages and the learning rate."""
    is_machine = learner.capabilities.penalizes and len(learner.parts) == 1
    if is_machine:
        n_stages = 20 if quadratic else 60
    else:
        n_stages = 500 if learner.capabilities.constant_on_leaves else 100
    if not is_auto(p["n_estimators"]):
        n_stages = int(p["n_estimators"])
    if not is_auto(p["learning_rate"]):
        return n_stages, float(p["learning_rate"])
    return n_stages, 1.0 if is_machine else min(1.0, _TOTAL_RATE / n_stages)


def vector_trees(p: Mapping[str, Any], random_cuts: bool) -> VectorTreeLearner:
    """Create the tree learner for boosting in an output space."""
    features: float | str = "sqrt" if random_cuts else 1.0
    return VectorTreeLearner(
        max_splits=p["max_splits"],
        min_samples_leaf=p["min_samples_leaf"],
        max_features=features if is_auto(p["max_features"]) else p["max_features"],
        random_cuts=random_cuts,
        sketch=p["sketch"],
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


def train_forest(
    learner: VectorTreeLearner,
    loss: Loss,
    data: TrainingData,
    seed: int,
    n_trees: int,
    sampling: RowSampling,  # the rows to which each tree is fitted
    n_threads: int,
) -> FittedModel:
    """Train a forest: the mean of independent trees."""
    warn_of_light_weights(data.target, learner.min_samples_leaf)
    target, X, encoding = data.target, data.X, None
    encoder = encoder_for(learner, data)
    if encoder is not None:
        learner = replace(learner, categorical=encoder.categorical)
        encoding, (X,) = encoder.learn(X, target, [None], seed)
    prepared = learner.prepare(X, target.weight, seed, n_threads)
    several = n_trees >= n_threads

    def tree(number: int) -> Stage:
        rng = np.random.default_rng((seed, number))
        team = ThreadTeam(1) if several else prepared.team
        sample = sampling.draw(target, None, StageKey(seed, number), team)
        (fitted,) = learner.fit(replace(prepared, team=team), Gradients(target.y), sample, rng)
        return Stage((fitted.term,))

    try:
        numbers = range(n_trees)
        trees = prepared.team.map(tree, numbers) if several else [tree(k) for k in numbers]
    finally:
        learner.close(prepared)
    stages = tuple(stage.scaled(1 / n_trees) for stage in trees)
    model = AdditiveModel(np.zeros(target.y.shape[1]), stages)
    return FittedModel(model, loss, learner, data.schema, data.codec, seed, encoding=encoding)

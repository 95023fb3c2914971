"""Averages of independent trees on the points of an output space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.sampling import RowSampling, StageKey
from hilboost.core.base_model import Stage
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.learners.tree import VectorTreeLearner
from hilboost.model import AdditiveModel
from hilboost.model.fitted import FittedModel
from hilboost.training.categories import encoder_for
from hilboost.training.data import TrainingData
from hilboost.validation.weights import warn_of_light_weights


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

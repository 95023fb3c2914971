"""All estimators of tables at their defaults, by the kind of their targets."""

import numpy as np
import pandas as pd

from hilboost import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    ConvexKernelRidge,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    MixtureOfKernelExperts,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
    StackedKernelRidge,
)

LEVELS = np.array([0.1, 0.5, 0.9])  # of quantiles
GROUP = 10  # rows that are ranked
OF_TREES = {
    "squared_error": ("numbers", BoostingRegressor),
    "symmetric": ("numbers", lambda: BoostingRegressor(growth="symmetric")),
    "huber": ("numbers", lambda: BoostingRegressor("huber")),
    "absolute_error": ("medians", lambda: BoostingRegressor("absolute_error")),
    "quantile": ("quantiles", lambda: BoostingRegressor("quantile", quantile=LEVELS)),
    "poisson": ("counts", lambda: BoostingRegressor("poisson")),
    "tweedie": ("counts", lambda: BoostingRegressor("tweedie")),
    "gamma": ("positive", lambda: BoostingRegressor("gamma")),
    "two targets": ("vectors", BoostingRegressor),
    "mixture": ("numbers", lambda: BoostingRegressor(learner=["tree", "kernel"])),
    "log_loss": ("classes", BoostingClassifier),
    "ranker": ("grades", BoostingRanker),
    "survival": ("times", BoostingSurvival),
    "output kernel": ("vectors", OutputKernelBoostingRegressor),
    "output kernel forest": ("vectors", OutputKernelForestRegressor),
    "output kernel tree": ("vectors", OutputKernelTreeRegressor),
}
OF_KERNELS = {
    "stages": ("numbers", lambda: BoostingRegressor(learner="kernel")),
    "kernel regression": ("numbers", KernelBoostingRegressor),
    "sparse regression": ("numbers", SparseKernelRidge),
    "kernel classes": ("classes", KernelBoostingClassifier),
    "kernel log loss": ("classes", lambda: KernelBoostingClassifier("log_loss")),
    "sparse classes": ("classes", SparseKernelClassifier),
    "average": ("numbers", AveragedKernelRidge),
    "convex": ("numbers", ConvexKernelRidge),
    "stacked": ("numbers", StackedKernelRidge),
    "experts": ("numbers", MixtureOfKernelExperts),
    "committee": ("numbers", BayesianCommitteeMachine),
    "votes": ("labels", AdaBoostKernelClassifier),
}
ALL = OF_TREES | OF_KERNELS


def fitted(name, X, y, weight=None):
    """The estimator on one thread, fitted to targets of its kind."""
    kind, make = ALL[name]
    model = make().set_params(random_state=0, n_jobs=1)
    if kind == "grades":
        return model.fit(X, y, sample_weight=weight, groups=np.arange(len(y)) // GROUP)
    if kind == "times":
        y = pd.DataFrame({"event": np.ones(len(y), bool), "time": y})
    return model.fit(X, y, sample_weight=weight)


def predicted(name, model, X):
    """Predictions (n, k): probabilities or indicators of classes, and scores of long times."""
    kind = ALL[name][0]
    if kind == "classes":
        return model.predict_proba(X)
    if kind == "labels":
        return (model.predict(X)[:, None] == model.classes_).astype(float)
    sign = -1 if kind == "times" else 1  # of a risk
    return sign * model.predict(X).reshape(len(X), -1)

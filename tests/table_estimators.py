"""All estimators of tables at their defaults, by the kind of their targets."""

import numpy as np
import pandas as pd

import hilboost

LEVELS = np.array([0.1, 0.5, 0.9])  # of quantiles
GROUP = 10  # rows that are ranked
OF_TREES = {
    "squared_error": ("numbers", hilboost.BoostingRegressor),
    "symmetric": ("numbers", lambda: hilboost.BoostingRegressor(growth="symmetric")),
    "huber": ("numbers", lambda: hilboost.BoostingRegressor("huber")),
    "absolute_error": ("medians", lambda: hilboost.BoostingRegressor("absolute_error")),
    "quantile": ("quantiles", lambda: hilboost.BoostingRegressor("quantile", quantile=LEVELS)),
    "poisson": ("counts", lambda: hilboost.BoostingRegressor("poisson")),
    "tweedie": ("counts", lambda: hilboost.BoostingRegressor("tweedie")),
    "gamma": ("positive", lambda: hilboost.BoostingRegressor("gamma")),
    "two targets": ("vectors", hilboost.BoostingRegressor),
    "mixture": ("numbers", lambda: hilboost.BoostingRegressor(learner=["tree", "kernel"])),
    "log_loss": ("classes", hilboost.BoostingClassifier),
    "ranker": ("grades", hilboost.BoostingRanker),
    "survival": ("times", hilboost.BoostingSurvival),
    "output kernel": ("vectors", hilboost.OutputKernelBoostingRegressor),
    "output kernel forest": ("vectors", hilboost.OutputKernelForestRegressor),
    "output kernel tree": ("vectors", hilboost.OutputKernelTreeRegressor),
}
OF_KERNELS = {
    "stages": ("numbers", lambda: hilboost.BoostingRegressor(learner="kernel")),
    "kernel regression": ("numbers", hilboost.KernelBoostingRegressor),
    "sparse regression": ("numbers", hilboost.SparseKernelRidge),
    "kernel classes": ("classes", hilboost.KernelBoostingClassifier),
    "kernel log loss": ("classes", lambda: hilboost.KernelBoostingClassifier("log_loss")),
    "sparse classes": ("classes", hilboost.SparseKernelClassifier),
    "average": ("numbers", hilboost.AveragedKernelRidge),
    "convex": ("numbers", hilboost.ConvexKernelRidge),
    "stacked": ("numbers", hilboost.StackedKernelRidge),
    "experts": ("numbers", hilboost.MixtureOfKernelExperts),
    "committee": ("numbers", hilboost.BayesianCommitteeMachine),
    "votes": ("labels", hilboost.AdaBoostKernelClassifier),
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

"""Losses and parameters of other libraries: their names, and scikit-learn's loss objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from hilboost.losses import Huber, Quantile, Tweedie

# Names in scikit-learn, XGBoost, LightGBM and CatBoost, without their prefix and in lower case
REGRESSION_LOSSES = {
    "gaussian": "squared_error",
    "l1": "absolute_error",
    "l2": "squared_error",
    "lad": "absolute_error",
    "ls": "squared_error",
    "mae": "absolute_error",
    "mean_absolute_error": "absolute_error",
    "mean_squared_error": "squared_error",
    "absoluteerror": "absolute_error",
    "squarederror": "squared_error",
    "mse": "squared_error",
    "pinball": "quantile",
    "quantileerror": "quantile",
    "multiquantile": "quantile",
    "pseudohubererror": "huber",
    "regression": "squared_error",
    "regression_l1": "absolute_error",
    "regression_l2": "squared_error",
    "rmse": "squared_error",
    "root_mean_squared_error": "squared_error",
    "multirmse": "squared_error",
}
CLASSIFICATION_LOSSES = {
    "adaboost": "exponential",
    "bernoulli": "log_loss",
    "binary": "log_loss",
    "binary_crossentropy": "log_loss",
    "binary_logloss": "log_loss",
    "categorical_crossentropy": "log_loss",
    "cross_entropy": "log_loss",
    "crossentropy": "log_loss",
    "deviance": "log_loss",
    "logistic": "log_loss",
    "logloss": "log_loss",
    "logitraw": "log_loss",
    "multi_logloss": "log_loss",
    "multiclass": "log_loss",
    "multinomial": "log_loss",
    "ova": "log_loss",
    "softmax": "log_loss",
    "softprob": "log_loss",
}
RANKING_LOSSES = {
    "lambdamart": "lambdarank",
    "map": "lambdamap",
    "ndcg": "lambdarank",
    "pairlogit": "pairwise_logistic",
    "pairlogitpairwise": "pairwise_logistic",
    "pairwise": "pairwise_logistic",
    "queryrmse": "query_rmse",
    "querysoftmax": "xendcg",
    "rank_xendcg": "xendcg",
    "ranknet": "pairwise_logistic",
    "xe_ndcg": "xendcg",
    "yetirankpairwise": "yetirank",
}
SURVIVAL_LOSSES = {
    "coxph": "cox",
    "survivalaft": "aft",
}
_PREFIXES = ("reg:", "binary:", "multi:", "count:", "rank:", "survival:")

_HELD_OUT = ("X_val", "y_val")
_OF_KERNELS = frozenset({"coef0", "degree", "gamma", "length_scale", "nu", "sigma"})
_OF_EVENTS = frozenset(
    {"durations", "duration_col", "event", "event_col", "event_observed", "events", "time"}
)
_AMBIGUOUS = frozenset({"alpha"})  # names that could mean several parameters
PARAMETERS: dict[str, tuple[str, ...]] = {
    "aft_loss_distribution": ("distribution",),
    "alpha": ("quantile", "regularization"),
    "auto_class_weights": ("class_weight",),
    "bagging_fraction": ("subsample",),
    "base_estimator": ("learner",),
    "base_learner": ("learner",),
    "base_margin": ("offset",),
    "base_margin_eval_set": ("offset_val",),
    "baseline": ("offset",),
    "booster": ("learner",),
    "boosting_type": ("learner",),
    "border_count": ("max_bins",),
    "C": ("regularization",),
    "cat_features": ("categorical_features",),
    "categorical_feature": ("categorical_features",),
    "class_weights": ("class_weight",),
    "colsample_bylevel": ("max_features",),
    "colsample_bynode": ("max_features",),
    "colsample_bytree": ("max_features_per_tree",),
    "criterion": ("loss",),
    "depth": ("max_depth",),
    "early_stopping_rounds": ("n_iter_no_change",),
    "enable_categorical": ("categorical_features",),
    "estimator": ("learner",),
    "eta": ("learning_rate",),
    "eval_X": _HELD_OUT,
    "eval_fraction": ("validation_fraction",),
    "eval_sample_weight": ("sample_weight_val",),
    "eval_set": _HELD_OUT,
    "eval_y": _HELD_OUT,
    "evals": _HELD_OUT,
    "feature_fraction": ("max_features_per_tree",),
    "feature_fraction_bynode": ("max_features",),
    "gamma": ("min_gain", "length_scale"),
    "grow_policy": ("growth",),
    "init_model": ("warm_start",),
    "init_score": ("offset",),
    "eval_init_score": ("offset_val",),
    "eval_group": ("groups_val",),
    "eval_qid": ("groups_val",),
    "group": ("groups",),
    "group_id": ("groups",),
    "qid": ("groups",),
    "interaction_constraints": ("interaction_cst",),
    "is_unbalance": ("class_weight",),
    "iterations": ("n_estimators",),
    "l2_leaf_reg": ("l2_regularization",),
    "label_gain": ("gain",),
    "lambda_l2": ("l2_regularization",),
    "lambdarank_num_pair_per_sample": ("k",),
    "lambdarank_truncation_level": ("k",),
    "loss_function": ("loss",),
    "max_bin": ("max_bins",),
    "max_iter": ("n_estimators",),
    "max_leaves": ("max_leaf_nodes",),
    "min_child_samples": ("min_samples_leaf",),
    "min_child_weight": ("min_hessian",),
    "min_data_in_leaf": ("min_samples_leaf",),
    "min_gain_to_split": ("min_gain",),
    "min_impurity_decrease": ("min_gain",),
    "min_split_gain": ("min_gain",),
    "min_sum_hessian_in_leaf": ("min_hessian",),
    "monotone_constraints": ("monotonic_cst",),
    "n_iter": ("n_estimators",),
    "ndcg_exp_gain": ("gain",),
    "n_rounds": ("n_estimators",),
    "n_threads": ("n_jobs",),
    "nthread": ("n_jobs",),
    "n_trees": ("n_estimators",),
    "num_boost_round": ("n_estimators",),
    "num_iterations": ("n_estimators",),
    "num_leaves": ("max_leaf_nodes",),
    "num_threads": ("n_jobs",),
    "num_trees": ("n_estimators",),
    "position": ("positions",),
    "objective": ("loss",),
    "od_wait": ("n_iter_no_change",),
    "quantile_alpha": ("quantile",),
    "random_seed": ("random_state",),
    "reg_lambda": ("l2_regularization", "regularization"),
    "sample_weight_eval_set": ("sample_weight_val",),
    "sample_weights": ("sample_weight",),
    "scale_pos_weight": ("class_weight",),
    "seed": ("random_state",),
    "shrinkage": ("learning_rate",),
    "thread_count": ("n_jobs",),
    "valid_sets": _HELD_OUT,
    "verbosity": ("verbose",),
    "weight": ("sample_weight",),
    "xgb_model": ("warm_start",),
}
"""Names in other libraries, and parameters of the same purpose; estimators have some of them."""

PREDICTIONS: dict[str, tuple[str, ...]] = {
    "base_margin": ("{method}(X, offset)",),
    "baseline": ("{method}(X, offset)",),
    "best_iteration": ("first_stages(n).{method}(X)",),
    "init_score": ("{method}(X, offset)",),
    "iteration_range": ("first_stages(n).{method}(X)",),
    "n_estimators": ("first_stages(n).{method}(X)",),
    "ntree_end": ("first_stages(n).{method}(X)",),
    "ntree_limit": ("first_stages(n).{method}(X)",),
    "num_iteration": ("first_stages(n).{method}(X)",),
    "output_margin": ("predict_raw(X)",),
    "pred_contrib": ("shap_values(X)",),
    "pred_contribs": ("shap_values(X)",),
    "pred_leaf": ("apply(X)",),
    "prediction_type": (
        "predict_proba(X), predict_log_proba(X) or predict_raw(X)",
        "predict_raw(X) or predict(X)",
    ),
    "raw_score": ("predict_raw(X)",),
    "return_std": (
        "predict_interval(X) after calibrate(X_held_out, y_held_out)",
        "predict_proba(X)",
    ),
}
"""Arguments of ``predict`` in other libraries, and the methods of the same purpose here."""


_OF_SCIKIT_LEARN: dict[str, Callable[[Any], Any]] = {
    "HalfSquaredError": lambda loss: "squared_error",
    "AbsoluteError": lambda loss: "absolute_error",
    "PinballLoss": lambda loss: Quantile(float(loss.closs.quantile)),
    "HuberLoss": lambda loss: Huber(alpha=float(loss.quantile)),
    "HalfPoissonLoss": lambda loss: "poisson",
    "HalfGammaLoss": lambda loss: "gamma",
    "HalfTweedieLoss": lambda loss: Tweedie(float(loss.closs.power)),
    "HalfBinomialLoss": lambda loss: "log_loss",
    "HalfMultinomialLoss": lambda loss: "log_loss",
    "ExponentialLoss": lambda loss: "exponential",
}


def of_scikit_learn(loss: Any) -> Any:  # other objects are returned unchanged
    """Return the name or the loss that equals an object of ``sklearn._loss``.

    ``loss``: the parameter of an estimator.
    """
    if not type(loss).__module__.startswith("sklearn._loss"):
        return loss
    make = _OF_SCIKIT_LEARN.get(type(loss).__name__)
    return loss if make is None else make(loss)


def same_loss(name: str, known: Collection[str]) -> str | None:
    """Return the name of a loss that another library calls ``name``, if it is one of ``known``."""
    plain = name.lower()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    tables = REGRESSION_LOSSES, CLASSIFICATION_LOSSES, RANKING_LOSSES, SURVIVAL_LOSSES
    candidates = (plain, *(table.get(plain) for table in tables))
    return next((one for one in candidates if one in known), None)


def advice(
    name: str,
    parameters: Collection[str],
    of_fit: Collection[str],
    caller: str,
    others: Sequence[str] = (),
) -> str:
    """Return what to pass instead of an unknown argument, as the end of a sentence.

    ``parameters``: names of the estimator's own. ``of_fit``: arguments of its method ``fit``.
    ``caller``: name of the estimator. ``others``: calls of estimators that have the parameter.

    Returns str: empty if no parameter has a similar name or purpose.
    """
    same = PARAMETERS.get(name, (name,))
    own = [one for one in same if one in parameters]
    if own:
        return f"set {_joined(own, name)} in {caller}(...)"
    passed = [one for one in same if one in of_fit]
    if passed:
        return f"pass {_joined(passed, name)} to fit"
    if name in _OF_KERNELS and "kernel" in parameters:
        return "pass a kernel object as kernel, such as hilboost.kernels.Gaussian(length_scale=2.0)"
    if name in _OF_EVENTS and "strata" in of_fit:
        return "pass events and times together as y, such as frame[['event', 'time']]"
    if "class_weight" in same:
        return "only classifiers have weights of classes; pass sample_weight to fit"
    if others:
        return f"use {' or '.join(others[:2])}"
    near = get_close_matches(name, [*parameters, *of_fit], n=3, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return ""


def _joined(names: Iterable[str], elsewhere: str) -> str:
    return (" or " if elsewhere in _AMBIGUOUS else " and ").join(names)

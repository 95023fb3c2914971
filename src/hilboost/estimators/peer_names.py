"""Losses and parameters of other libraries: their names, and scikit-learn's loss objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from hilboost import losses
from hilboost.core.discovery import by_word

# Names in scikit-learn, XGBoost, LightGBM and CatBoost, without their prefix and in lower case
REGRESSION_LOSSES = by_word(
    {
        "absolute_error": "l1 lad mae mean_absolute_error absoluteerror regression_l1",
        "huber": "pseudohubererror",
        "quantile": "pinball quantileerror multiquantile",
        "squared_error": (
            "gaussian l2 ls mean_squared_error squarederror mse regression regression_l2 rmse "
            "root_mean_squared_error multirmse"
        ),
    }
)
CLASSIFICATION_LOSSES = by_word(
    {
        "exponential": "adaboost",
        "log_loss": (
            "bernoulli binary binary_crossentropy binary_logloss categorical_crossentropy "
            "cross_entropy crossentropy deviance logistic logloss logitraw multi_logloss "
            "multiclass multinomial ova softmax softprob"
        ),
    }
)
RANKING_LOSSES = by_word(
    {
        "lambdamap": "map",
        "lambdarank": "lambdamart ndcg",
        "pairwise_logistic": "pairlogit pairlogitpairwise pairwise ranknet",
        "query_rmse": "queryrmse",
        "xendcg": "querysoftmax rank_xendcg xe_ndcg",
        "yetirank": "yetirankpairwise",
    }
)
SURVIVAL_LOSSES = by_word({"aft": "survivalaft", "cox": "coxph"})
_PREFIXES = ("reg:", "binary:", "multi:", "count:", "rank:", "survival:")

_OF_KERNELS = frozenset({"coef0", "degree", "gamma", "length_scale", "nu", "sigma"})
_OF_EVENTS = frozenset(
    {"durations", "duration_col", "event", "event_col", "event_observed", "events", "time"}
)
_AMBIGUOUS = frozenset({"alpha"})  # names that could mean several parameters
_BY_PARAMETER = {
    "categorical_features": "cat_features categorical_feature enable_categorical",
    "class_weight": "auto_class_weights class_weights is_unbalance scale_pos_weight",
    "device": "device_type task_type",
    "distribution": "aft_loss_distribution",
    "gain": "label_gain ndcg_exp_gain",
    "groups": "group group_id qid",
    "groups_val": "eval_group eval_qid",
    "growth": "grow_policy",
    "interaction_cst": "interaction_constraints",
    "k": "lambdarank_num_pair_per_sample lambdarank_truncation_level",
    "l2_regularization": "l2_leaf_reg lambda_l2",
    "l2_regularization regularization": "reg_lambda",
    "learner": "base_estimator base_learner booster boosting_type estimator",
    "learning_rate": "eta shrinkage",
    "loss": "criterion loss_function objective",
    "max_bins": "border_count max_bin",
    "max_depth": "depth",
    "max_features": "colsample_bylevel colsample_bynode feature_fraction_bynode",
    "max_features_per_tree": "colsample_bytree feature_fraction",
    "max_leaf_nodes": "max_leaves num_leaves",
    "min_gain": "min_gain_to_split min_impurity_decrease min_split_gain",
    "min_gain length_scale": "gamma",
    "min_hessian": "min_child_weight min_sum_hessian_in_leaf",
    "min_samples_leaf": "min_child_samples min_data_in_leaf",
    "monotonic_cst": "monotone_constraints",
    "n_estimators": (
        "iterations max_iter n_iter n_rounds n_trees num_boost_round num_iterations num_trees"
    ),
    "n_iter_no_change": "early_stopping_rounds od_wait",
    "n_jobs": "n_threads nthread num_threads thread_count",
    "offset": "base_margin baseline init_score",
    "offset_val": "base_margin_eval_set eval_init_score",
    "positions": "position",
    "quantile": "quantile_alpha",
    "quantile regularization": "alpha",
    "random_state": "random_seed seed",
    "regularization": "C",
    "sample_weight": "sample_weights weight",
    "sample_weight_val": "eval_sample_weight sample_weight_eval_set",
    "subsample": "bagging_fraction",
    "validation_fraction": "eval_fraction",
    "verbose": "verbosity",
    "warm_start": "init_model xgb_model",
    "X_val y_val": "eval_X eval_set eval_y evals valid_sets",
}
PARAMETERS = {peer: tuple(names.split()) for peer, names in by_word(_BY_PARAMETER).items()}
"""Names in other libraries, and parameters of the same purpose; estimators have some of them."""

_WITHOUT_COUNTERPART = {
    "importance_type": (
        "max_depth",
        "feature_importances_ holds the gains; shap_values(X) and "
        "sklearn.inspection.permutation_importance give other importances",
    ),
    "lambda_l1": ("l2_regularization", "there is no L1 penalty, so set l2_regularization"),
    "reg_alpha": ("l2_regularization", "there is no L1 penalty, so set l2_regularization"),
    **dict.fromkeys(
        ("power", "tweedie_variance_power", "variance_power"),
        (
            "quantile",
            "in Python, set it in the loss, such as loss=hilboost.losses.Tweedie(power=1.5)",
        ),
    ),
    **dict.fromkeys(
        ("exposure", "exposures"),
        ("offset", "pass offset=np.log(exposure) to fit and to predict, with loss='poisson'"),
    ),
}
# Parameters in other libraries: a parameter or an argument of fit with an answer, and the answer.

_BY_METHOD = {
    "{method}(X, offset)": "base_margin baseline init_score",
    "{method}(X, offset=np.log(exposure))": "exposure exposures",
    "first_stages(n).{method}(X)": (
        "best_iteration iteration_range n_estimators ntree_end ntree_limit num_iteration"
    ),
    "predict_raw(X)": "output_margin raw_score",
    "shap_values(X)": "pred_contrib pred_contribs",
    "apply(X)": "pred_leaf",
    "predict_proba(X)[:, 1] > threshold": "threshold",
}
PREDICTIONS: dict[str, tuple[str, ...]] = {
    **{peer: (method,) for peer, method in by_word(_BY_METHOD).items()},
    "prediction_type": (
        "predict_proba(X), predict_log_proba(X) or predict_raw(X)",
        "predict_raw(X) or predict(X)",
    ),
    "alpha": ("predict_interval(X, coverage=1 - alpha)", "predict_set(X, coverage=1 - alpha)"),
    "return_std": (
        "predict_interval(X), after calibrate(X_held_out, y_held_out) if the fit had no folds",
        "predict_proba(X)",
    ),
}
"""Arguments of ``predict`` in other libraries, and the methods of the same purpose here."""

_BY_ATTRIBUTE = {
    "apply(X)": "calc_leaf_indexes",
    "feature_importances_": (
        "feature_importance feature_importances get_feature_importance get_fscore get_score"
    ),
    "feature_names_in_": "feature_name feature_name_ feature_names feature_names_",
    "get_params()": "get_all_params get_xgb_params",
    "fit with all rows, or hilboost.stream.fit for tables on disk": "partial_fit",
    "hilboost.load(path)": "load_model",
    "hilboost.plot_tree(model)": "create_tree_digraph plot_tree",
    "hilboost.tree_table(model)": "dump_model get_dump trees_to_dataframe",
    "history_, the loss and metrics after each stage": (
        "best_score best_score_ eval_results evals_result evals_result_ get_best_score "
        "get_evals_result train_score_ validation_score_"
    ),
    "len(classes_)": "n_classes n_classes_",
    "loss_": "objective_",
    "model_, or save(path) to write a model file": "booster booster_ get_booster",
    "model_": "estimators_",
    "n_estimators_, the number of stages that early stopping kept": (
        "best_iteration best_iteration_ best_n_estimators_ best_ntree_limit current_iteration "
        "get_best_iteration n_iter_ num_boosted_rounds num_trees tree_count_"
    ),
    "n_features_in_": "n_features n_features_ num_feature num_features",
    "predict_raw(X)": "decision_function",
    "sklearn.inspection.permutation_importance(model, X, y)": "feature_importances_",
    "save(path)": "dump_json save_model",
}
ATTRIBUTES = by_word(_BY_ATTRIBUTE)
"""Attributes and methods of other estimators, and what to use where a class does not have them."""

COUNTERPARTS = {
    "predict_interval": ("predict_set(X)", "predict_survival_function(X)"),
    "predict_proba": (
        "predict_survival_function(X)",
        "predict_interval(X), or BoostingClassifier for classes",
        "predict_set(X)",
    ),
    "predict_quantile": (
        "predict_median(X), or predict_survival_function(X) for other quantiles",
        "predict_interval(X), or predict(X) with loss='quantile'",
    ),
    "predict_set": ("predict_interval(X)", "predict_survival_function(X)"),
}
"""Methods for other kinds of targets, and the methods of a class with the same purpose."""


_OF_SCIKIT_LEARN: dict[str, Callable[[Any], Any]] = {
    "HalfSquaredError": lambda loss: "squared_error",
    "AbsoluteError": lambda loss: "absolute_error",
    "PinballLoss": lambda loss: losses.Quantile(float(loss.closs.quantile)),
    "HuberLoss": lambda loss: losses.Huber(alpha=float(loss.quantile)),
    "HalfPoissonLoss": lambda loss: "poisson",
    "HalfGammaLoss": lambda loss: "gamma",
    "HalfTweedieLoss": lambda loss: losses.Tweedie(float(loss.closs.power)),
    "HalfBinomialLoss": lambda loss: "log_loss",
    "HalfMultinomialLoss": lambda loss: "log_loss",
    "ExponentialLoss": lambda loss: "exponential",
}


def of_scikit_learn(loss: Any) -> Any:  # other objects are returned unchanged
    """Return the name or the loss that equals an object of ``sklearn._loss``."""
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
    """Say what to pass instead of an unknown argument, as the end of a sentence; empty if unknown.

    ``others`` are calls of estimators that have the parameter.
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
    needed, answer = _WITHOUT_COUNTERPART.get(name, ("", ""))
    if needed in parameters or needed in of_fit:
        return answer
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

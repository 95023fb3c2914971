"""Parameters of estimators: how rows are held out, and the ranges of the parameters of trees."""

from __future__ import annotations

from datetime import timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from hilboost.core.metric import Metric

_SPLITTER = HasMethods(["split", "get_n_splits"])
BY_GROUPS: dict[str, list[Any]] = {
    "validation": [StrOptions({"auto", "random", "groups"}), _SPLITTER],
    "validation_gap": [None],
}
BY_GROUPS_OR_TIME: dict[str, list[Any]] = {
    "validation": [StrOptions({"auto", "random", "groups", "time"}), _SPLITTER],
    "validation_gap": [timedelta, np.timedelta64, Interval(Real, 0, None, closed="left"), None],
}


_AUTO = StrOptions({"auto"})
OF_TREES = (
    "max_leaf_nodes",
    "max_depth",
    "growth",
    "min_samples_leaf",
    "min_hessian",
    "l2_regularization",
    "min_gain",
    "max_features",
    "max_features_per_tree",
    "max_bins",
    "multi_output",
    "sketch",
    "target_encoding",
)
WITHOUT: dict[str, Any] = {
    "multi_output": "separate",
    "sketch": None,
    "n_shards": 1,
    "target_encoding": False,
}
"""Parameters that estimators of one output, or of targets without a mean, do not have."""

CONSTRAINTS: dict[str, list[Any]] = {
    "learning_rate": [_AUTO, Interval(Real, 0, None, closed="neither")],
    "n_estimators": [_AUTO, Interval(Integral, 1, None, closed="left")],
    "max_leaf_nodes": [_AUTO, Interval(Integral, 2, None, closed="left"), None],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "growth": [StrOptions({"auto", "best_first", "symmetric"})],
    "min_samples_leaf": [_AUTO, Interval(Real, 0, None, closed="neither")],
    "min_hessian": [Interval(Real, 0, None, closed="left")],
    "l2_regularization": [_AUTO, Interval(Real, 0, None, closed="left")],
    "min_gain": [Interval(Real, 0, None, closed="left")],
    "max_features": [_AUTO, Interval(Real, 0, 1, closed="right")],
    "max_features_per_tree": [Interval(Real, 0, 1, closed="right")],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "subsample": [_AUTO, Interval(Real, 0, 1, closed="right")],
    "bootstrap": ["boolean"],
    "n_shards": [_AUTO, Interval(Integral, 1, None, closed="left")],
    "multi_output": [StrOptions({"separate", "shared"})],
    "sketch": [Interval(Integral, 1, None, closed="left"), None],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [StrOptions({"pairwise", "no_interactions"}), list, tuple, None],
    "categorical_features": [str, "array-like", None],
    "target_encoding": [_AUTO, "boolean"],
    "line_search": [_AUTO, "boolean"],
    "early_stopping": [_AUTO, "boolean"],
    "cv_folds": [_AUTO, Interval(Integral, 1, None, closed="left")],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
    **BY_GROUPS_OR_TIME,
    "n_iter_no_change": [_AUTO, Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
    "eval_metric": [str, Metric, type, callable, list, tuple, None],
    "warm_start": ["boolean"],
    "device": [str, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}

"""Parameters of estimators: their types, with the constraints that scikit-learn checks."""

from __future__ import annotations

from datetime import timedelta
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from hilboost.core.dtypes import Seed
from hilboost.core.metric import Metric

AUTO = StrOptions({"auto"})
COUNT = Interval(Integral, 1, None, closed="left")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
_SHARE = Interval(Real, 0, 1, closed="right")
_PART = Interval(Real, 0, 1, closed="neither")
_SPLITTER = HasMethods(["split", "get_n_splits"])

Count = Annotated[int, COUNT]
CountOrAuto = Annotated[int | str, AUTO, COUNT]
CountOrNone = Annotated[int | None, COUNT, None]
NotNegative = Annotated[float, _NOT_NEGATIVE]
NotNegativeOrAuto = Annotated[float | str, AUTO, _NOT_NEGATIVE]
Positive = Annotated[float, _POSITIVE]
PositiveOrAuto = Annotated[float | str, AUTO, _POSITIVE]
PositiveOrNone = Annotated[float | None, _POSITIVE, None]
Share = Annotated[float, _SHARE]
ShareOrAuto = Annotated[float | str, AUTO, _SHARE]
ShareOrRoot = Annotated[float | str, _SHARE, StrOptions({"sqrt"})]
ShareRootOrAuto = Annotated[float | str, _SHARE, StrOptions({"sqrt", "auto"})]
Part = Annotated[float, _PART]
PartOrNone = Annotated[float | None, _PART, None]
Flag = Annotated[bool, "boolean"]
FlagOrAuto = Annotated[bool | str, AUTO, "boolean"]
Text = Annotated[str, str]
TextOrNone = Annotated[str | None, str, None]
Columns = Annotated[Any, str, "array-like", None]
RandomState = Annotated[Seed, "random_state"]
Jobs = Annotated[int | None, Integral, None]
Verbose = Annotated[int | bool, "verbose"]
HeldOutByGroups = Annotated[Any, StrOptions({"auto", "random", "groups"}), _SPLITTER]
HeldOut = Annotated[Any, StrOptions({"auto", "random", "groups", "time"}), _SPLITTER]
Gap = Annotated[Any, timedelta, np.timedelta64, _NOT_NEGATIVE, None]
Leaves = Annotated[int | str | None, AUTO, Interval(Integral, 2, None, closed="left"), None]
Growth = Annotated[str, StrOptions({"auto", "best_first", "symmetric"})]
Bins = Annotated[int, Interval(Integral, 2, 255, closed="both")]
Monotonic = Annotated[Any, "array-like", dict, None]
Interactions = Annotated[Any, StrOptions({"pairwise", "no_interactions"}), list, tuple, None]
MultiOutput = Annotated[str, StrOptions({"separate", "shared"})]
EvalMetric = Annotated[Any, str, Metric, type, callable, list, tuple, None]
Tuning = Annotated[str, StrOptions({"auto", "marginal_likelihood", "mean_distance"})]
Precision = Annotated[str, StrOptions({"auto", "float32", "float64"})]
Splitter = Annotated[str, StrOptions({"best", "random"})]

OF_TREES = (  # which other learners ignore
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
    "target_encoding": False,
}
"""Parameters that estimators of one output, or of targets without a mean, do not have."""

"""Parameters that say by what rows are held out."""

from __future__ import annotations

from datetime import timedelta
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

_SPLITTER = HasMethods(["split", "get_n_splits"])
BY_GROUPS: dict[str, list[Any]] = {
    "validation": [StrOptions({"auto", "random", "groups"}), _SPLITTER],
    "validation_gap": [None],
}
BY_GROUPS_OR_TIME: dict[str, list[Any]] = {
    "validation": [StrOptions({"auto", "random", "groups", "time"}), _SPLITTER],
    "validation_gap": [timedelta, np.timedelta64, Interval(Real, 0, None, closed="left"), None],
}

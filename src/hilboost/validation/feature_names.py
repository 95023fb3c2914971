"""Number and names of columns, following scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidData, first_few, warn_caller

_NAMES_SHOWN = 20


def check_columns(estimator: Any, names: Sequence[str] | None, d: int, *, reset: bool) -> None:
    """Store the names and number of columns in a fit, and compare them in later calls."""
    if reset:
        estimator.n_features_in_ = d
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        else:
            vars(estimator).pop("feature_names_in_", None)
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    name = type(estimator).__name__
    if fitted is None and names is not None:
        warn_caller(
            f"X has feature names, but {name} was fitted without feature names", UserWarning
        )
    elif fitted is not None and names is None:
        warn_caller(
            f"X does not have valid feature names, but {name} was fitted with feature names",
            UserWarning,
        )
    elif fitted is not None and names is not None:
        _compare(fitted.tolist(), list(names))
    if d != estimator.n_features_in_:
        raise InvalidData(
            f"X has {d} features, but {name} is expecting {estimator.n_features_in_} features as "
            "input."
        )


def _compare(fitted: list[str], names: list[str]) -> None:
    if fitted == names:
        return
    unseen, missing = set(names) - set(fitted), set(fitted) - set(names)
    parts = [
        *([f"lacks {_columns(missing)} of the fit"] if missing else []),
        *([f"has {_columns(unseen)}, which the fit did not have"] if unseen else []),
    ]
    advice = "pass the columns in model.feature_names_in_"
    if not missing:
        advice = "pass X[list(model.feature_names_in_)]"
    message = f"X {' and '.join(parts)}; {advice}.\n" if parts else ""
    # The tests of scikit-learn expect these lines.
    message += "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
    if not unseen and not missing:
        message += (
            "Feature names must be in the same order as they were in fit.\n"
            "Use X[list(model.feature_names_in_)].\n"
        )
    raise InvalidData(message)


def _columns(names: Iterable[str]) -> str:
    listed = sorted(names)
    return f"column{'s' if len(listed) > 1 else ''} {first_few(listed)}"


def _listed(names: Iterable[str]) -> str:
    lines = [f"- {name}\n" for name in sorted(names)]
    more = ["- ...\n"] if len(lines) > _NAMES_SHOWN else []
    return "".join(lines[:_NAMES_SHOWN] + more)

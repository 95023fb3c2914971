"""Names of classes for tools that load objects only of classes that are trusted, such as skops."""

from __future__ import annotations

from dataclasses import is_dataclass

from sklearn.base import BaseEstimator

from hilboost.core.discovery import classes_in
from hilboost.persistence.values import PARTS

_PACKAGES = (
    *("core", "encoders", "engine", "estimators", "kernels", "learners", "losses"),
    *("metrics", "model", "network", "outputs", "tables", "validation"),
)


def trusted_types() -> list[str]:
    """Return the names of all classes that fitted estimators consist of.

    ``skops.io.load(path, trusted=hilboost.trusted_types())`` loads any estimator of this package
    without your own classes.  Creating objects of these classes executes no code.  The list belongs
    to the installed version; it is not a fixed interface.

    Returns
    -------
    list of str
        Such as ``"hilboost.estimators.regressor.BoostingRegressor"``.
    """
    return sorted(
        f"{one.__module__}.{one.__qualname__}"
        for package in _PACKAGES
        for one in classes_in(f"hilboost.{package}", object)
        if is_dataclass(one) or issubclass(one, (BaseEstimator, *PARTS))
    )

"""Comparison of parameters with their defaults."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature

from sklearn.base import BaseEstimator


def changed(estimator: BaseEstimator, names: Iterable[str]) -> list[str]:
    """List the parameters among ``names`` that differ from their default values."""
    plain = signature(type(estimator).__init__).parameters
    own = (name for name in names if name in plain)  # a subclass may have fewer
    return [name for name in own if bool(getattr(estimator, name) != plain[name].default)]

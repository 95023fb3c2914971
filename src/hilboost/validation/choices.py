"""Checks of parameters that take a name or an object."""

from __future__ import annotations

from typing import Any


def is_name(value: Any, name: str) -> bool:
    """Return whether a parameter, which may also be an array or any object, is this name."""
    return isinstance(value, str) and value == name


def is_regressor(value: Any) -> bool:
    """Return whether a parameter is an object that fits and predicts, rather than a class."""
    return not isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "predict")

"""Checks of parameters that can be a name or an object."""

from __future__ import annotations

from typing import Any


def is_name(value: Any, name: str) -> bool:
    """Return whether a parameter is this name; it may also be an array or another object."""
    return isinstance(value, str) and value == name


def is_regressor(value: Any) -> bool:
    """Return whether a parameter is an object with ``fit`` and ``predict``, not a class."""
    return not isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "predict")

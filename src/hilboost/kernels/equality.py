"""Equality of kernels by their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hilboost.kernels.base import Kernel


def first_of_equals(kernels: Sequence[Kernel]) -> tuple[int, ...]:
    """Position of the first equal kernel, for each kernel of a list.

    Returns tuple of int: ``k`` at position ``k`` if no earlier kernel is equal.
    """
    return tuple(
        next(j for j, earlier in enumerate(kernels) if are_equal(earlier, kernel))
        for kernel in kernels
    )


def are_equal(a: Any, b: Any) -> bool:  # ``False`` for equal formulas in different terms
    """Whether two kernels, or parameters of kernels, are of one class and have equal values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(are_equal, a, b))
    if is_dataclass(a) and not isinstance(a, type):
        names = [field.name for field in fields(a)]
        return all(are_equal(getattr(a, name), getattr(b, name)) for name in names)
    return bool(a == b)

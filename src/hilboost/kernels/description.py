"""Kernels as plain data for files: nested dicts, lists, numbers and names.

A description is ``{"type": name, field: value, …}``; the fields are the parameters of the class.
Floats are restored bit for bit, also from JSON, whose decimal digits identify every float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.core.plain_values import is_number
from hilboost.kernels.base import FieldKind, Kernel
from hilboost.kernels.registry import kernel_classes

Description = dict[str, Any]


def to_description(kernel: Kernel) -> Description:
    """Convert a kernel to a description; :func:`from_description` is the inverse.

    Parameters
    ----------
    kernel : Kernel

    Returns
    -------
    dict
        Serializable to JSON.

    Raises
    ------
    IncompatibleParts
        The kernel, or a part of it, is a function, a scikit-learn kernel, a Gram matrix or an
        instance of a user-defined class.
    """
    name = vars(type(kernel)).get("file_name")
    if name is not None and kernel_classes().get(name) is type(kernel):
        values = {
            key: _KINDS[kind].write(getattr(kernel, key))
            for key, kind in kernel.file_fields.items()
        }
        return {"type": name, **values}
    raise IncompatibleParts(
        f"model files support only built-in kernels, not {type(kernel).__name__}. Save this model "
        "with pickle or joblib, and load it only if you trust the file."
    )


def is_described(kernel: Kernel) -> bool:
    """Return whether :func:`to_description` supports the kernel."""
    try:
        to_description(kernel)
    except IncompatibleParts:
        return False
    return True


def from_description(description: object) -> Kernel:
    """Create the kernel of a description, without executing any code from it.

    Parameters
    ----------
    description : dict
        From :func:`to_description`, or from a file.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        The type is unknown, fields are missing or unexpected, or a value has the wrong type.
    """
    try:
        return _read_kernel(description)
    except RecursionError:
        raise ValueError("the description of a kernel is nested too deeply") from None


def _read_kernel(description: object) -> Kernel:
    if not isinstance(description, dict):
        raise ValueError(f"a kernel is described by a dict; got {type(description).__name__}")
    name = description.get("type")
    types = kernel_classes()
    if not isinstance(name, str) or name not in types:
        raise ValueError(f"unknown kernel type {name!r}; valid types: {', '.join(sorted(types))}")
    make: Callable[..., Kernel] = types[name]
    fields = types[name].file_fields
    if set(description) != {"type", *fields}:
        raise ValueError(
            f"the kernel {name!r} must have the fields {sorted(fields)}; got "
            f"{sorted(map(str, set(description) - {'type'}))}"
        )
    values = {}
    for key, kind in fields.items():
        try:
            values[key] = _KINDS[kind].read(description[key])
        except TypeError as error:
            raise ValueError(f"field {key!r} of the kernel {name!r}: {error}") from error
    return make(**values)


def _read_float(value: object) -> float:
    if not is_number(value):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise ValueError(f"expected a finite number, got {number}")
    return number


def _read_integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"expected an integer, got {type(value).__name__}")
    return value


@dataclass(frozen=True)
class _Kind:
    """Writer and reader of one type of field."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def listed(self) -> _Kind:
        """Return the type for nonempty lists of such values."""

        def read(values: object) -> list[Any]:
            if not isinstance(values, list) or not values:
                raise TypeError("expected a nonempty list")
            return [self.read(value) for value in values]

        return _Kind(lambda values: [self.write(value) for value in values], read)


_FLOAT = _Kind(float, _read_float)
_INTEGER = _Kind(int, _read_integer)
_KERNEL = _Kind(to_description, _read_kernel)
_KINDS: Mapping[FieldKind, _Kind] = {
    "integer": _INTEGER,
    "integers": _INTEGER.listed(),
    "kernel": _KERNEL,
    "kernels": _KERNEL.listed(),
    "matrix": _FLOAT.listed().listed(),
    "number": _FLOAT,
    "numbers": _FLOAT.listed(),
}

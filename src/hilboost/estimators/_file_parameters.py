"""Parameters of estimators to and from the headers of model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.estimators._shell import Shell
from hilboost.estimators.constraints import plain_constraint
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.kernels import Kernel
from hilboost.model.files.checks import require
from hilboost.model.files.expansions import describe, read_kernel
from hilboost.model.files.values import PLAIN, ValueReader, ValueWriter

_LISTS = ("quantile", "categorical_features", "length_scale_factors")
_CONSTRAINTS = ("monotonic_cst", "interaction_cst")
_OF_THE_FIT = ("random_state", "class_weight")
_PARTS = ("loss", "learner", "output")


def write_parameters(model: Shell, writer: ValueWriter) -> dict[str, Any]:
    """Parameters as JSON takes them.

    Raises
    ------
    IncompatibleParts
        One is of a type that files do not hold.
    """
    return {
        name: _written(name, value, writer) for name, value in model.get_params(deep=False).items()
    }


def _written(name: str, value: Any, writer: ValueWriter) -> Any:
    if isinstance(value, np.integer | np.floating | np.bool_):
        value = value.item()
    if isinstance(value, PLAIN):
        return value
    if name in _LISTS:
        value = sorted(value) if isinstance(value, set | frozenset) else value
        return np.asarray(value).tolist()
    if name in _CONSTRAINTS:
        return plain_constraint(value)
    if name in _OF_THE_FIT:
        return None
    if name == "kernel" and isinstance(value, Kernel):
        return describe(value, writer)
    if name == "learner" and type(value) is KernelBoostingRegressor:
        return {"machine": write_parameters(value, writer)}
    if name in _PARTS:
        return writer.write(value, name)
    raise IncompatibleParts(
        f"model files hold losses and learners by name and hilboost's own kernels; {name} is of "
        f"type {type(value).__name__}. Keep such a model with pickle or joblib, where you trust "
        "the file."
    )


def read_parameters(written: Any, n_features: int, reader: ValueReader) -> dict[str, Any]:
    """The parameters; estimators check their values.

    Raises
    ------
    KeyError, ValueError, TypeError, OverflowError
        One is of no type that it may have.
    """
    require(isinstance(written, dict), "parameters")
    return {name: _read(name, value, n_features, reader) for name, value in written.items()}


def _read(name: str, value: Any, n_features: int, reader: ValueReader) -> Any:
    if name in _CONSTRAINTS:
        require(value == plain_constraint(value), name)
        return value
    if name == "kernel" and isinstance(value, dict):
        return read_kernel(value, n_features, reader)
    if name == "learner" and isinstance(value, dict) and set(value) == {"machine"}:
        machine = KernelBoostingRegressor(**read_parameters(value["machine"], n_features, reader))
        machine._validate_params()
        return machine
    if name in _PARTS and isinstance(value, dict):
        return reader.read(value)
    require(isinstance(value, PLAIN) or (name in _LISTS and isinstance(value, list)), name)
    return value

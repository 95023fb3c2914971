"""Conversion of estimator parameters to and from the headers of model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.core.plain_values import as_python, is_plain
from hilboost.kernels import Kernel
from hilboost.persistence.kernel_expansions import describe, read_kernel
from hilboost.persistence.require import require, require_kind, require_list
from hilboost.persistence.values import PICKLE, ValueReader, ValueWriter
from hilboost.validation.constraints import plain_constraint

_LISTS = ("quantile", "categorical_features", "length_scale_factors")
_CONSTRAINTS = ("monotonic_cst", "interaction_cst")
_OF_THE_FIT = ("random_state", "class_weight", "eval_metric", "validation", "validation_gap")
_PARTS = ("loss", "learner", "output")
# Values in files of earlier versions that no longer exist; prediction does not depend on them.
_WITHDRAWN = {("sketch", "auto"): None, ("validation", None): "auto"}
# Parameter names in files of earlier versions.
_RENAMED = {"standardise": "standardize", "target_statistics": "target_encoding"}


def write_parameters(
    parameters: Mapping[str, Any], writer: ValueWriter, machine: object
) -> dict[str, Any]:
    """Convert the parameters of an estimator to JSON values."""
    return {name: _written(name, value, writer, machine) for name, value in parameters.items()}


def _written(name: str, value: Any, writer: ValueWriter, machine: object) -> Any:
    value = as_python(value)
    if is_plain(value):
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
    if name in ("kernel", "learner") and isinstance(value, list | tuple):
        return [_written(name, one, writer, machine) for one in value]
    if name == "learner" and type(value) is machine:
        return {"machine": write_parameters(value.get_params(deep=False), writer, machine)}
    if name in _PARTS:
        return writer.write(value, name)
    raise IncompatibleParts(
        f"{name} is of type {type(value).__name__}, which model files do not support. {PICKLE}"
    )


def read_parameters(
    written: Any, n_features: int, reader: ValueReader, machine: object
) -> dict[str, Any]:
    """Read what :func:`write_parameters` wrote; estimators validate the values."""
    require_kind(written, dict, "parameters")
    named = {_RENAMED.get(name, name): value for name, value in written.items()}
    return {name: _read(name, value, n_features, reader, machine) for name, value in named.items()}


def _read(name: str, value: Any, n_features: int, reader: ValueReader, machine: Any) -> Any:
    if name in _CONSTRAINTS:
        require(value == plain_constraint(value), name)
        return value
    if isinstance(value, list):
        require(name in ("kernel", "learner", *_LISTS), name)
        listed = value if name in _LISTS else require_list(value, (dict, str), name)
        return [_read(name, one, n_features, reader, machine) for one in listed]
    if isinstance(value, dict):
        require(name in ("kernel", *_PARTS), name)
        if name == "kernel":
            return read_kernel(value, n_features, reader)
        if name != "learner" or set(value) != {"machine"}:
            return reader.read(value)
        made = machine(**read_parameters(value["machine"], n_features, reader, machine))
        made._validate_params()
        return made
    require(is_plain(value), name)
    return _WITHDRAWN.get((name, value), value)

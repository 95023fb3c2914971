"""What kernel estimators and output kernel models know besides their model, in model files."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from hilboost.core.contracts import Learner
from hilboost.core.errors import unknown_name
from hilboost.estimators._output_kernel import BaseOutputKernel
from hilboost.estimators._sparse_kernel import BaseSparseKernel
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.learners.kernel_machine import (
    BlockLearner,
    FullLearner,
    KernelExpansion,
    SparseLearner,
)
from hilboost.losses import SquaredError
from hilboost.model.files import outputs
from hilboost.model.files.checks import Arrays, require, require_array, require_finite
from hilboost.model.files.expansions import describe, read_kernel
from hilboost.model.files.values import ValueReader, ValueWriter
from hilboost.outputs import as_output

_STAGES: dict[type, str] = {FullLearner: "full", SparseLearner: "sparse", BlockLearner: "block"}


def write_machine(model: Any, writer: ValueWriter) -> tuple[dict[str, Any], Arrays]:
    """Fields and arrays of a kernel estimator."""
    kernel, regularization = model.kernel_, model.regularization_
    machine: dict[str, Any] = {
        "kernel": None if kernel is None else describe(kernel, writer),
        "regularization": None if regularization is None else float(regularization),
        "amplitude": float(model.amplitude_),
    }
    arrays: Arrays = {}
    if isinstance(model, BaseSparseKernel):
        machine["path"], machine["n_iter"] = model.path_.tolist(), int(model.n_iter_)
    else:
        machine["stages"] = _STAGES[type(model.learner_)]
    if model._noise is not None and model.n_estimators_ and type(model.loss_) is SquaredError:
        arrays["noise"] = np.ascontiguousarray(model._noise)
        if hasattr(model, "_scores"):
            arrays["scores"] = np.ascontiguousarray(model._scores)
    return machine, arrays


def read_machine(model: Any, machine: Any, arrays: Arrays, reader: ValueReader) -> None:
    """What :func:`write_machine` wrote."""
    require(isinstance(machine, dict), "machine")
    d = model.n_features_in_
    description, regularization = machine["kernel"], machine["regularization"]
    model.kernel_ = None if description is None else read_kernel(description, d, reader)
    if regularization is not None:
        regularization = float(regularization)
        require(0 <= regularization < np.inf, "regularization")
    model.regularization_ = regularization
    model.amplitude_ = positive(machine["amplitude"], "amplitude")
    model._noise = model._variance = None
    if isinstance(model, BaseSparseKernel):
        path = machine["path"]
        require(isinstance(path, list) and len(path) == model.n_estimators_, "path")
        require(all(type(size) is int and 0 < size < 2**31 for size in path), "path")
        model.path_ = np.array(path, dtype=np.int64)
        model.n_basis_ = path[-1] if path else 0
        model.n_iter_ = int(machine["n_iter"])
        model.learner_ = model._make_learner(1, model._schema.categories)
    else:
        require(machine["stages"] in _STAGES.values(), "stages")
        chosen = clone(model).set_params(stages=machine["stages"])
        model.learner_ = chosen._make_learner(1, model._schema.categories)
    if "noise" in arrays:
        first = model.model_.stages[0].parts[0].model
        noise = require_finite(arrays, "noise")
        require(isinstance(first, KernelExpansion) and noise.shape == (len(first.basis),), "noise")
        require(bool((noise >= 0).all()) and regularization is not None, "noise")
        model._noise = noise
    if "scores" in arrays:
        scores = require_array(arrays, "scores", np.float64, 2)
        require(len(scores) > 0 and scores.shape[1] == model._n_targets, "scores")
        require(bool((scores >= 0).all()), "scores")
        model._scores = scores


def write_output(model: Any, writer: ValueWriter) -> tuple[dict[str, Any], Arrays]:
    """Fields and arrays of an output kernel model."""
    fields, arrays = outputs.to_arrays(model.output_, model._span, writer)
    learner = getattr(model, "learner", None)
    if learner == "kernel" or isinstance(learner, KernelBoostingRegressor):
        fields["stages"] = _STAGES[type(model.learner_)]
    return fields, arrays


def read_output(model: Any, fields: Any, arrays: Arrays, reader: ValueReader) -> None:
    """What :func:`write_output` wrote."""
    assert isinstance(model, BaseOutputKernel)
    as_output(model.output)
    n_outputs = len(model.model_.start)
    model.output_, model._span = outputs.from_arrays(fields, arrays, n_outputs, reader)
    if model.decode != "auto" and model.decode not in model.output_.ways:
        raise unknown_name("decode", model.decode, ("auto", *model.output_.ways))
    model.learner_ = _stage_learner(model, fields, n_outputs)


def _stage_learner(model: Any, fields: Any, n_outputs: int) -> Learner:
    """What the stages of an output kernel model were fitted by."""
    if not isinstance(model, OutputKernelBoostingRegressor):
        return model._make_learner()
    chosen = clone(model, safe=False)
    if "stages" in fields:
        require(fields["stages"] in _STAGES.values(), "stages")
        machine = KernelBoostingRegressor() if model.learner == "kernel" else clone(model.learner)
        require(isinstance(machine, KernelBoostingRegressor), "stages")
        chosen.set_params(learner=machine.set_params(stages=fields["stages"]))
    return chosen._make_learner(1, n_outputs, model._schema.categories)


def positive(value: Any, name: str) -> float:
    """A number above zero."""
    number = float(value)
    require(0 < number < np.inf, name)
    return number

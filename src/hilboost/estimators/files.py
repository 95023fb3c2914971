"""Fitted estimators to and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hilboost import __version__
from hilboost.core.errors import IncompatibleParts, InvalidModelFile, InvalidType
from hilboost.core.records import History
from hilboost.estimators import category_files
from hilboost.estimators._base import BaseBoosting
from hilboost.estimators._kernel import BaseKernelBoosting
from hilboost.estimators._labels import Classes, Numbers
from hilboost.estimators._shell import Shell
from hilboost.estimators._sparse_kernel import BaseSparseKernel
from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.constraints import plain_constraint
from hilboost.estimators.kernel_classifier import KernelBoostingClassifier
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.regressor import BoostingRegressor
from hilboost.estimators.sparse_kernel_classifier import SparseKernelClassifier
from hilboost.estimators.sparse_kernel_ridge import SparseKernelRidge
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine import (
    BlockLearner,
    FullLearner,
    KernelExpansion,
    SparseLearner,
)
from hilboost.learners.tree import Tree, TreeLearner
from hilboost.losses import OneHotSquaredError, Quantile, SquaredError
from hilboost.model import files
from hilboost.model.files.checks import Arrays, require, require_array, require_finite
from hilboost.model.files.expansions import describe, read_kernel

_CLASSES: dict[str, type[Shell]] = {
    cls.__name__: cls
    for cls in (
        BoostingClassifier,
        BoostingRegressor,
        KernelBoostingClassifier,
        KernelBoostingRegressor,
        SparseKernelClassifier,
        SparseKernelRidge,
    )
}
_PLAIN = (str, int, float, bool, type(None))
_LISTS = ("quantile", "categorical_features", "length_scale_factors")
_CONSTRAINTS = ("monotonic_cst", "interaction_cst")
_STAGES: dict[type, str] = {FullLearner: "full", SparseLearner: "sparse", BlockLearner: "block"}
_TEXT_BYTES = 2**24  # of class labels, which all take as much memory as the longest


def save(model: Shell, path: str | Path) -> None:
    """Write a fitted estimator to one file, without pickle.

    Parameters
    ----------
    model : estimator
        Fitted: ``BoostingRegressor`` or ``BoostingClassifier`` with a loss and a learner given by
        name; ``KernelBoostingRegressor``, ``KernelBoostingClassifier``, ``SparseKernelRidge`` or
        ``SparseKernelClassifier`` with a loss given by name and hilboost's own kernels.
    path : str or Path

    Raises
    ------
    IncompatibleParts
        A loss or a learner was given as an object; a kernel is a function, scikit-learn's or a Gram
        matrix; an estimator is not among these.
    OSError
        The file cannot be written; an old file of this name stays as it was.
    """
    if type(model) not in _CLASSES.values():
        if isinstance(model, Shell):
            raise IncompatibleParts(
                f"model files hold {', '.join(_CLASSES)}; this is a {type(model).__name__}. Keep "
                "it with pickle or joblib, where you trust the file."
            )
        raise InvalidType(f"save takes a hilboost estimator; got {type(model).__name__}.")
    check_is_fitted(model)
    fitted: Any = model
    history = fitted.history_
    header: dict[str, Any] = {
        "class": type(model).__name__,
        "version": __version__,
        "parameters": _parameters(model),
        "n_features_in": int(fitted.n_features_in_),
        "seed": fitted._fitted_seed,
        "train": history.train.tolist(),
        "validation": None if history.validation is None else history.validation.tolist(),
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    if isinstance(model, Classes):
        header["classes"] = model.classes_.tolist()
        header["classes_dtype"] = _label_dtype(model.classes_).str
    elif isinstance(model, Numbers):
        header["n_targets"], header["flat"] = model._n_targets, model._flat
    if type(fitted.loss_) is OneHotSquaredError:
        header["sharpness"] = float(fitted.loss_.sharpness)
    arrays: Arrays = {}
    if isinstance(model, BaseKernelBoosting):
        header["machine"], arrays = _machine(fitted)
    elif isinstance(model, BaseBoosting) and fitted._levels is not None:
        header["categories"], arrays = category_files.to_file(fitted._levels, fitted._encoding)
    files.write(path, fitted.model_, header, arrays)


def _parameters(model: Shell) -> dict[str, Any]:
    """Parameters as JSON takes them."""
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (np.integer, np.floating, np.bool_)):
            value = value.item()
        if name in _LISTS and value is not None:
            value = np.asarray(value).tolist()
        elif isinstance(value, Kernel):
            value = describe(value)
        elif name in _CONSTRAINTS:
            value = plain_constraint(value)
        elif name in ("random_state", "class_weight") and not isinstance(value, _PLAIN):
            value = None  # used while fitting only
        elif not isinstance(value, _PLAIN):
            raise IncompatibleParts(
                f"model files hold losses and learners by name and hilboost's own kernels; {name} "
                f"is of type {type(value).__name__}. Keep such a model with pickle or joblib, "
                "where you trust the file."
            )
        parameters[name] = value
    return parameters


def _label_dtype(classes: Any) -> np.dtype[Any]:
    """The dtype of class labels, text no longer than it is."""
    dtype: np.dtype[Any] = classes.dtype
    if dtype.kind != "U" or classes.nbytes <= _TEXT_BYTES:
        return dtype
    shortest: np.dtype[Any] = np.array(classes.tolist()).dtype
    if shortest.itemsize * len(classes) > _TEXT_BYTES:
        raise IncompatibleParts(
            f"model files hold class labels of up to {_TEXT_BYTES // 2**20} MiB together; these "
            f"{len(classes)} take more. Give classes shorter names."
        )
    return shortest


def _machine(model: Any) -> tuple[dict[str, Any], Arrays]:
    """What a kernel estimator knows besides its model."""
    kernel, regularization = model.kernel_, model.regularization_
    machine: dict[str, Any] = {
        "kernel": None if kernel is None else describe(kernel),
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


def load(path: str | Path) -> Any:
    """Read an estimator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted; it predicts the same numbers bit for bit.

    Raises
    ------
    InvalidModelFile
        The file is damaged or of another kind.
    OSError
        The file cannot be read.
    """
    additive, header, arrays = files.read(path)
    if header.get("kind") == "checkpoint":
        raise InvalidModelFile(
            f"{path} is the checkpoint of a fit, not a model; fit again with Checkpoint to go on."
        )
    try:
        model: Any = _CLASSES[header["class"]](**_read_parameters(header))
        model._validate_params()
        model.n_features_in_ = int(header["n_features_in"])
        if "feature_names_in" in header:
            names = np.array(header["feature_names_in"], dtype=object)
            require(names.shape == (model.n_features_in_,), "feature_names_in")
            model.feature_names_in_ = names
        if isinstance(model, Classes):
            model.classes_ = _read_classes(header)
        else:
            model._n_targets, model._flat = int(header["n_targets"]), bool(header["flat"])
        model._fitted_seed = int(header["seed"])
        model.loss_ = _read_loss(model, header)
        model.model_ = additive
        model.n_estimators_ = len(additive.stages)
        model.history_ = History(
            _numbers(header["train"], "train"),
            None if header["validation"] is None else _numbers(header["validation"], "validation"),
        )
        model._members = None
        if isinstance(model, BaseKernelBoosting):
            _read_machine(model, header["machine"], arrays)
        else:
            require(model.learner in ("tree", "kernel"), "learner")
            if "categories" in header:
                model._levels, model._encoding = category_files.from_file(
                    header["categories"], arrays, model.n_features_in_
                )
            model.learner_ = TreeLearner() if model.learner == "tree" else SparseLearner()
        _check_model(model)
    except files.DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error
    return model


def _read_parameters(header: dict[str, Any]) -> dict[str, Any]:
    parameters = dict(header["parameters"])
    for name, value in parameters.items():
        if name == "kernel" and isinstance(value, dict):
            parameters[name] = read_kernel(value, int(header["n_features_in"]))
        elif name in _CONSTRAINTS:
            require(value == plain_constraint(value), name)
        else:
            plain = isinstance(value, _PLAIN) or (name in _LISTS and isinstance(value, list))
            require(plain, name)
    return parameters


def _read_classes(header: dict[str, Any]) -> Any:
    labels, name = header["classes"], header["classes_dtype"]
    require(isinstance(labels, list) and all(isinstance(y, _PLAIN) for y in labels), "classes")
    require(isinstance(name, str), "classes_dtype")
    dtype = np.dtype(name)
    require(dtype.kind in "biufUO", "classes_dtype")
    if dtype.kind == "U":
        require(0 < dtype.itemsize * len(labels) <= _TEXT_BYTES, "classes_dtype")
    classes = np.array(labels, dtype=dtype)
    require(len(labels) >= 2 and len(set(classes.tolist())) == len(labels), "classes")
    return classes


def _read_loss(model: Any, header: dict[str, Any]) -> Any:
    loss = model._make_loss()
    if isinstance(loss, OneHotSquaredError) and "sharpness" in header:
        return OneHotSquaredError(loss.n_classes, _positive(header["sharpness"], "sharpness"))
    return loss


def _read_machine(model: Any, machine: dict[str, Any], arrays: Arrays) -> None:
    """What :func:`_machine` wrote."""
    require(isinstance(machine, dict), "machine")
    d = model.n_features_in_
    description, regularization = machine["kernel"], machine["regularization"]
    model.kernel_ = None if description is None else read_kernel(description, d)
    if regularization is not None:
        regularization = float(regularization)
        require(0 <= regularization < np.inf, "regularization")
    model.regularization_ = regularization
    model.amplitude_ = _positive(machine["amplitude"], "amplitude")
    model._noise = model._variance = None
    if isinstance(model, BaseSparseKernel):
        path = machine["path"]
        require(isinstance(path, list) and len(path) == model.n_estimators_, "path")
        require(all(type(size) is int and 0 < size < 2**31 for size in path), "path")
        model.path_ = np.array(path, dtype=np.int64)
        model.n_basis_ = path[-1] if path else 0
        model.n_iter_ = int(machine["n_iter"])
        model.learner_ = model._make_learner(1, d)
    else:
        require(machine["stages"] in _STAGES.values(), "stages")
        chosen = clone(model).set_params(stages=machine["stages"])
        model.learner_ = chosen._make_learner(1, d)
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


def _check_model(model: Any) -> None:
    """Base models of the learner's kind, and as many outputs as loss and labels call for."""
    kind = Tree if isinstance(model.learner_, TreeLearner) else KernelExpansion
    for stage in model.model_.stages:
        require(all(isinstance(part.model, kind) for part in stage.parts), "learner")
    if isinstance(model, Classes):
        n_classes = len(model.classes_)
        expected = 1 if n_classes == 2 else n_classes
    elif isinstance(model.loss_, Quantile):
        expected = len(model.loss_.levels)
    else:
        expected = model._n_targets
    require(len(model.model_.start) == expected, "the number of outputs")


def _numbers(values: Any, name: str) -> Any:
    require(isinstance(values, list), name)
    numbers = np.array(values, dtype=np.float64)
    require(numbers.ndim == 1, name)
    return numbers


def _positive(value: Any, name: str) -> float:
    number = float(value)
    require(0 < number < np.inf, name)
    return number

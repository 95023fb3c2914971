"""Fitted estimators to and from files."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost import __version__
from hilboost.core.contracts import Learner
from hilboost.core.errors import IncompatibleParts, InvalidModelFile, InvalidType
from hilboost.core.records import History
from hilboost.estimators import category_files
from hilboost.estimators._base import BaseBoosting
from hilboost.estimators._file_machines import (
    positive,
    read_machine,
    read_output,
    write_machine,
    write_output,
)
from hilboost.estimators._file_parameters import read_parameters, write_parameters
from hilboost.estimators._kernel import BaseKernelBoosting
from hilboost.estimators._labels import Classes, Numbers
from hilboost.estimators._output_kernel import BaseOutputKernel
from hilboost.estimators._shell import Shell
from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.defaults import Resolved
from hilboost.estimators.kernel_classifier import KernelBoostingClassifier
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.output_kernel_forest import (
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.estimators.regressor import BoostingRegressor
from hilboost.estimators.sparse_kernel_classifier import SparseKernelClassifier
from hilboost.estimators.sparse_kernel_ridge import SparseKernelRidge
from hilboost.learners.kernel_machine import (
    BlockLearner,
    FullLearner,
    KernelExpansion,
    SparseLearner,
)
from hilboost.learners.linear import LinearModel, is_linear
from hilboost.learners.tree import Tree, TreeLearner, VectorTreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses import OneHotSquaredError, Quantile
from hilboost.model import AdditiveModel, files
from hilboost.model.files.checks import Arrays, require
from hilboost.model.files.values import PLAIN, ValueReader, ValueWriter, checked_names, is_hilboost
from hilboost.tables import Level, Schema, category_choice

_CLASSES: dict[str, type[Shell]] = {
    cls.__name__: cls
    for cls in (
        BoostingClassifier,
        BoostingRegressor,
        KernelBoostingClassifier,
        KernelBoostingRegressor,
        OutputKernelBoostingRegressor,
        OutputKernelForestRegressor,
        OutputKernelTreeRegressor,
        SparseKernelClassifier,
        SparseKernelRidge,
    )
}
_TEXT_BYTES = 2**24  # of class labels, which all take as much memory as the longest
# Base models of hilboost's own learners; those of others may be anything.
_BASE_MODELS: dict[type, type] = {
    TreeLearner: Tree,
    VectorTreeLearner: Tree,
    FullLearner: KernelExpansion,
    SparseLearner: KernelExpansion,
    BlockLearner: KernelExpansion,
    WrappedLearner: LinearModel,
}


def save(model: Shell, path: str | Path) -> None:
    """Write a fitted estimator to one file, without pickle.

    Parameters
    ----------
    model : estimator
        Fitted: boosting of trees or kernel machines, one sparse kernel machine, or an output
        kernel model.  Of an object of a class of your own (a loss, a learner, a kernel, an output
        space) the file holds the name that the class is imported by, and the attributes: numbers,
        text, lists and arrays.
    path : str or Path

    Raises
    ------
    IncompatibleParts
        A kernel is a function, scikit-learn's or a Gram matrix; the learner is a scikit-learn
        regressor, but for ``Ridge`` and ``LinearRegression``; labels or attributes are of other
        types; a class cannot be imported by its name.
    InvalidType
        It is no estimator of hilboost.
    OSError
        The file cannot be written; an old file of this name stays as it was.
    """
    if type(model) not in _CLASSES.values():
        if isinstance(model, Shell) or is_hilboost(type(model)):
            raise IncompatibleParts(
                f"model files hold {', '.join(_CLASSES)}; this is a {type(model).__name__}. Keep "
                "it with pickle or joblib, where you trust the file."
            )
        raise InvalidType(f"save takes a hilboost estimator; got {type(model).__name__}.")
    check_is_fitted(model)
    fitted: Any = model
    writer = ValueWriter()
    header: dict[str, Any] = {
        "class": type(model).__name__,
        "version": __version__,
        "parameters": write_parameters(model, writer),
        "n_features_in": int(fitted.n_features_in_),
        "seed": fitted._fitted_seed,
    }
    if hasattr(model, "history_"):
        train, validation = model.history_.train, model.history_.validation
        header["train"] = train.tolist()
        header["validation"] = None if validation is None else validation.tolist()
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    if fitted._schema.categories:
        header["categories"] = [[k, list(levels)] for k, levels in fitted._schema.levels]
    if isinstance(model, Classes):
        header["classes"] = model.classes_.tolist()
        header["classes_dtype"] = _label_dtype(model.classes_).str
    elif isinstance(model, Numbers):
        header["n_targets"], header["flat"] = model._n_targets, model._flat
    if type(fitted.loss_) is OneHotSquaredError:
        header["sharpness"] = float(fitted.loss_.sharpness)
    arrays: Arrays = {}
    if isinstance(model, BaseKernelBoosting):
        header["machine"], arrays = write_machine(fitted, writer)
    elif isinstance(model, BaseOutputKernel):
        header["output"], arrays = write_output(fitted, writer)
    elif isinstance(model, BaseBoosting) and model._encoding is not None:
        header["encoding"], arrays = category_files.to_file(model._encoding)
    if hasattr(model, "_resolved"):  # not of a model that was read from a file without it
        header["chosen"] = fitted._resolved.to_file()
    files.write(path, fitted.model_, header, arrays, writer)


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


def load(path: str | Path, trusted: Collection[str] = ()) -> Any:
    """Read an estimator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
    trusted : list of str
        Classes of your own, ``"module:Class"``, that the file may have imported: exactly these and
        no others.  They are made without a call of ``__init__``, with the attributes that are in
        the file.

    Returns
    -------
    estimator
        Fitted; it predicts the same numbers bit for bit.

    Raises
    ------
    InvalidModelFile
        The file is damaged or of another kind, or needs classes that are not in ``trusted`` or not
        there; the message names them.
    OSError
        The file cannot be read.
    """
    trusted = checked_names(trusted)
    additive, header, arrays = files.read(path, trusted)
    if header.get("kind") == "checkpoint":
        raise InvalidModelFile(
            f"{path} is the checkpoint of a fit, not a model; fit again with Checkpoint to go on."
        )
    try:
        return _built(additive, header, arrays, ValueReader(arrays, trusted))
    except InvalidModelFile as error:
        raise InvalidModelFile(f"{path}: {error}") from error
    except files.DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


def _built(additive: AdditiveModel, header: dict[str, Any], arrays: Arrays, reader: Any) -> Any:
    """The estimator around a model."""
    n_features = int(header["n_features_in"])
    parameters = read_parameters(header["parameters"], n_features, reader)
    model: Any = _CLASSES[header["class"]](**parameters)
    model._validate_params()
    model.n_features_in_ = n_features
    if "feature_names_in" in header:
        names = np.array(header["feature_names_in"], dtype=object)
        require(names.shape == (n_features,), "feature_names_in")
        require(all(isinstance(name, str) for name in names), "feature_names_in")
        model.feature_names_in_ = names
    # Without an encoding, trees may name the columns of the table alone.
    require("encoding" not in header or isinstance(model, BaseBoosting), "encoding")
    model._schema = _read_schema(model, header)
    model._fitted_seed = int(header["seed"])
    model.model_ = additive
    model.n_estimators_ = len(additive.stages)
    model._members = None
    if "train" in header:
        model.history_ = History(
            _numbers(header["train"], "train"),
            None if header["validation"] is None else _numbers(header["validation"], "validation"),
        )
    if isinstance(model, BaseOutputKernel):
        read_output(model, header["output"], arrays, reader)
        model.loss_ = model._make_loss()
    else:
        if isinstance(model, Classes):
            model.classes_ = _read_classes(header)
        else:
            model._n_targets, model._flat = int(header["n_targets"]), bool(header["flat"])
        model.loss_ = _read_loss(model, header)
        if isinstance(model, BaseKernelBoosting):
            read_machine(model, header["machine"], arrays, reader)
        else:
            if "chosen" in header:
                model._resolved = Resolved.from_file(header["chosen"])
            model.learner_ = _read_learner(model)
            if "encoding" in header:
                model._encoding = category_files.from_file(
                    header["encoding"], arrays, model._schema
                )
        _check_outputs(model)
    kind = _BASE_MODELS.get(type(model.learner_))
    parts = (part for stage in additive.stages for part in stage.parts)
    require(kind is None or all(isinstance(part.model, kind) for part in parts), "learner")
    return model


def _read_schema(model: Any, header: dict[str, Any]) -> Schema:
    """Levels of category columns; none in files of format 1."""
    d, entries = model.n_features_in_, header.get("categories", [])
    names = model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None
    chosen = category_choice(model.categorical_features, d, names)
    require(isinstance(entries, list), "categories")
    found: list[tuple[int, tuple[Level, ...]]] = []
    for k, levels in entries:
        require(type(k) is int and (found[-1][0] if found else -1) < k < d, "categories")
        require(isinstance(levels, list), "categories")
        is_text = all(isinstance(level, str) for level in levels)
        require(is_text or all(isinstance(level, (int, float)) for level in levels), "categories")
        require(is_text or all(math.isfinite(level) for level in levels), "categories")
        require(all(a < b for a, b in pairwise(levels)), "categories")
        found.append((k, tuple(levels)))
    schema = Schema(d, None if names is None else tuple(names), tuple(found))
    require(not found or chosen is None or chosen == schema.categories, "categories")
    return schema


def _read_classes(header: dict[str, Any]) -> Any:
    labels, name = header["classes"], header["classes_dtype"]
    require(isinstance(labels, list) and all(isinstance(y, PLAIN) for y in labels), "classes")
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
        return OneHotSquaredError(loss.n_classes, positive(header["sharpness"], "sharpness"))
    return loss


def _read_learner(model: Any) -> Learner:
    if isinstance(model.learner, Learner):
        return model.learner
    if is_linear(model.learner):
        return WrappedLearner(model.learner)
    require(isinstance(model.learner, str) and model.learner in ("tree", "kernel"), "learner")
    if model.learner == "tree" and hasattr(model, "_resolved"):
        made: Learner = model._make_learner(model._resolved)
        return made
    return TreeLearner() if model.learner == "tree" else SparseLearner()


def _check_outputs(model: Any) -> None:
    """As many outputs as loss and labels call for, where the loss is hilboost's."""
    if not is_hilboost(type(model.loss_)):
        return
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

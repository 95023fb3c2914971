"""Saving and loading of fitted estimators, and the types that other loaders may trust."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hilboost import estimators
from hilboost.core.discovery import classes_in
from hilboost.core.errors import (
    IncompatibleParts,
    InvalidModelFile,
    InvalidType,
    TrainingDataWarning,
    refuse_class,
    shown,
    warn_caller,
)
from hilboost.core.plain_values import is_path
from hilboost.core.version import __version__
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.model.fitted import FittedModel
from hilboost.model.scores import n_columns
from hilboost.persistence import container
from hilboost.persistence.fitted import feature_names, from_file, to_file
from hilboost.persistence.parameters import read_parameters, write_parameters
from hilboost.persistence.require import DAMAGE, Arrays, require
from hilboost.persistence.values import PARTS, ValueReader, ValueWriter, checked_names, is_hilboost

Model = TypeVar("Model")

_ALL: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__}
_CLASSES = {name: cls for name, cls in _ALL.items() if cls.supports_files}


def save(model: BoostingEstimator, path: str | Path, *, training_data: bool | None = None) -> None:
    """Save a fitted estimator to a single file, without pickle.

    Parameters
    ----------
    model : estimator
        Fitted estimator: boosted trees or kernel machines, a sparse kernel machine, or an output
        kernel model.  Custom objects (a loss, a learner, a kernel, an output space) are stored as
        the import path of their class and their attributes, which may be numbers, text, lists and
        arrays.
    path : str or Path
    training_data : bool, optional
        Whether the file may contain training data: kernel machines, also those that are added to
        trees by default, contain rows of ``X``, and models of structured outputs the outputs.
        ``True`` saves them, ``False`` raises an error instead, and by default, a
        :class:`~hilboost.core.errors.TrainingDataWarning` says so.  ``False`` also leaves out the
        hashes of up to 1,024 training rows, by which loaded models recognize them.

    Raises
    ------
    IncompatibleParts
        The file would contain training data, and ``training_data=False``; a kernel is a function, a
        scikit-learn kernel or a Gram matrix; the learner is a scikit-learn regressor other than
        ``Ridge`` and ``LinearRegression``; labels or attributes have unsupported types; or a class
        cannot be imported by its name.
    InvalidType
        ``model`` is not a hilboost estimator.
    OSError
        The file cannot be written.  An existing file of this name is left unchanged.
    """
    refuse_class("model", model)
    if type(model) not in _CLASSES.values():
        if isinstance(model, BoostingEstimator) or is_hilboost(type(model)):
            raise IncompatibleParts(
                f"model files do not support {type(model).__name__}, only {', '.join(_CLASSES)}. "
                "Save it with pickle or joblib, and load it only if you trust the file."
            )
        from hilboost.export.estimators import remedy_of

        remedy = remedy_of(
            model,
            "save pipelines with joblib or with skops and hilboost.trusted_types(), or save the "
            "last step, pipeline[-1], alone",
        )
        raise InvalidType(
            f"save requires a hilboost estimator; got {type(model).__name__}{remedy}."
        )
    check_is_fitted(model)
    contained = "" if training_data else training_data_of(model)
    if contained and training_data is not None:
        raise IncompatibleParts(f"with training_data=False, a file cannot contain {contained}.")
    model._complete()
    writer = ValueWriter()
    parameters = model.get_params(deep=False)
    header: dict[str, Any] = {
        "class": type(model).__name__,
        "version": __version__,
        "parameters": write_parameters(parameters, writer, KernelBoostingRegressor),
    }
    names = model.fitted_.schema.names
    if names is not None:
        header["feature_names_in"] = list(names)
    fitted = model.fitted_
    if training_data is False:
        fitted = replace(fitted, marks=None)
    facts, arrays = to_file(fitted, writer)
    container.write(path, model.fitted_.model, header | facts, arrays, writer)
    if contained:
        warn_caller(
            f"the model file contains {contained}; save with training_data=True to accept this.",
            TrainingDataWarning,
        )


def training_data_of(model: BoostingEstimator) -> str:
    """Say which training data the file of a model contains, and how to avoid it."""
    fitted = model.fitted_
    found = ["outputs of the training data"] if fitted.codec.kind == "structured" else []
    n_rows = fitted.model.n_basis if model.is_additive else 0
    if n_rows:
        found.append(f"training rows ({n_rows} centers of kernel machines)")
    remedy = ", which learner='tree' avoids" if n_rows and fitted.parts is not None else ""
    return " and ".join(found) + remedy


def load(path: str | Path, trusted: Collection[str] = ()) -> Any:
    """Load an estimator written by :func:`save`, without executing code from the file.

    Parameters
    ----------
    path : str or Path
    trusted : list of str
        Custom classes that the file may import, as ``"module:Class"``.  No other custom classes
        are imported.  Their objects are created without calling ``__init__``, and receive the
        attributes stored in the file.

    Returns
    -------
    estimator
        Fitted estimator; its predictions are bit for bit the same as before.

    Raises
    ------
    InvalidModelFile
        The file is damaged or of another type, or requires classes that are not in ``trusted`` or
        cannot be imported.  The message names these classes.
    InvalidType
        ``path`` is not a path.
    OSError
        The file cannot be read.
    """
    if not is_path(path):
        raise InvalidType(f"path must be the path of a model file; got {shown(path)}.")
    trusted = checked_names(trusted)
    additive, header, arrays = container.read(path, trusted)
    if header.get("kind") == "checkpoint":
        raise InvalidModelFile(
            f"{path} is the checkpoint of a fit, not a model; to resume the fit, call fit with "
            "Checkpoint."
        )
    try:
        return _built(additive, header, arrays, ValueReader(arrays, trusted))
    except InvalidModelFile as error:
        raise InvalidModelFile(f"{path}: {error}") from error
    except DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


def load_as(cls: type[Model], path: str | Path, trusted: Collection[str]) -> Model:
    """Load a model of a class."""
    model = load(path, trusted)
    if not isinstance(model, cls):
        found = type(model).__name__
        raise InvalidModelFile(
            f"{path} contains a model of class {found}, not {cls.__name__}; call {found}.load, or "
            "hilboost.load, which loads every class."
        )
    return model


def _built(additive: Any, header: dict[str, Any], arrays: Arrays, reader: ValueReader) -> Any:
    """Build the estimator of a stored model: first its parameters, then the fitted model."""
    n_features = int(header["n_features_in"])
    parameters = read_parameters(header["parameters"], n_features, reader, KernelBoostingRegressor)
    model = _CLASSES[header["class"]](**parameters)
    model._validate_params()
    model.n_features_in_ = n_features
    names = feature_names(header)
    if names is not None:
        model.feature_names_in_ = names
    stored = from_file(additive, header, arrays, reader, model._categories())
    require(stored.codec.kind == model._kind, "the kind of targets")
    loss, learner = model._parts(stored)
    if stored.sharpness is not None:
        loss = loss.with_sharpness(stored.sharpness)
    fitted = stored.fitted(loss=loss, learner=learner)
    require((fitted.kernel_machine is not None) == model._is_machine, "machine")
    # Without an encoding, trees can refer only to columns of the table.
    require(fitted.encoding is None or fitted.kernel_machine is None, "encoding")
    _check_outputs(fitted)
    _check_calibration(fitted)
    for term in (term for stage in additive.stages for term in stage.terms):
        require(0 <= (term.learner or 0) < len(learner.parts), "learner")
        kind = learner.parts[term.learner or 0].capabilities.base_model
        require(kind is None or isinstance(term.model, kind), "learner")
    model.fitted_ = fitted
    return model


def _check_outputs(fitted: FittedModel) -> None:
    """Check that the number of outputs matches a built-in loss and the labels."""
    if not is_hilboost(type(fitted.loss)):
        return
    expected = fitted.codec.n_outputs(fitted.loss)
    require(expected in (None, len(fitted.model.initial_raw)), "the number of outputs")


def _check_calibration(fitted: FittedModel) -> None:
    """Check that there is one column of scores per interval, and a group per class."""
    calibration, codec = fitted.calibration, fitted.codec
    if calibration is None:
        return
    expected = 1
    if codec.kind == "numbers":
        expected = n_columns(fitted.loss, codec.of_numbers().n_targets)
    require(calibration.scores.shape[1] == expected, "calibration.scores")
    require(calibration.folds is None or codec.kind != "structured", "calibration.folds")
    require(not calibration.by_class or codec.kind == "classes", "calibration")


_PACKAGES = (
    *("core", "encoders", "engine", "estimators", "kernels", "learners", "losses"),
    *("metrics", "model", "network", "outputs", "tables", "validation"),
)


def trusted_types() -> list[str]:
    """Return the names of all classes that fitted estimators consist of.

    ``skops.io.load(path, trusted=hilboost.trusted_types())`` loads any estimator of this package
    without your own classes.  Creating objects of these classes executes no code.  The list belongs
    to the installed version; it is not a fixed interface.

    Returns
    -------
    list of str
        Such as ``"hilboost.estimators.regressor.BoostingRegressor"``.
    """
    return sorted(
        f"{one.__module__}.{one.__qualname__}"
        for package in _PACKAGES
        for one in classes_in(f"hilboost.{package}", object)
        if is_dataclass(one) or issubclass(one, (BaseEstimator, *PARTS))
    )

"""Fitted estimators to and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost import __version__
from hilboost.core.errors import IncompatibleParts, InvalidModelFile, InvalidType
from hilboost.core.records import History
from hilboost.estimators._base import BaseBoosting
from hilboost.estimators._shell import Shell
from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.regressor import BoostingRegressor
from hilboost.learners.tree import TreeLearner
from hilboost.losses import Quantile
from hilboost.model import files

_CLASSES: dict[str, type[BaseBoosting]] = {
    cls.__name__: cls for cls in (BoostingClassifier, BoostingRegressor)
}
_PLAIN = (str, int, float, bool, type(None))


def save(model: BaseBoosting, path: str | Path) -> None:
    """Write a fitted estimator to one file, without pickle.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        Fitted, with the built-in trees and a loss given by name.
    path : str or Path

    Raises
    ------
    IncompatibleParts
        The loss or learner was given as an object.
    OSError
        The file cannot be written; an old file of this name stays as it was.
    """
    if type(model).__name__ not in _CLASSES:
        if isinstance(model, Shell):
            raise IncompatibleParts(
                f"model files hold trees so far; this is a {type(model).__name__}. Keep it with "
                "pickle or joblib, where you trust the file."
            )
        raise InvalidType(f"save takes a hilboost estimator; got {type(model).__name__}.")
    check_is_fitted(model)
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (np.integer, np.floating, np.bool_)):
            value = value.item()
        if name == "quantile":
            value = np.asarray(value).tolist()
        elif name in ("random_state", "class_weight") and not isinstance(value, _PLAIN):
            value = None  # used while fitting only
        elif not isinstance(value, _PLAIN):
            raise IncompatibleParts(
                f"model files hold built-in losses and learners by name; {name} is "
                f"{type(value).__name__}. Keep such a model with pickle or joblib."
            )
        parameters[name] = value
    header: dict[str, Any] = {
        "class": type(model).__name__,
        "version": __version__,
        "parameters": parameters,
        "n_features_in": int(model.n_features_in_),
        "seed": model._fitted_seed,
        "train": model.history_.train.tolist(),
        "validation": None
        if model.history_.validation is None
        else model.history_.validation.tolist(),
    }
    if hasattr(model, "feature_names_in_"):
        header["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    if isinstance(model, BoostingClassifier):
        header["classes"] = model.classes_.tolist()
        header["classes_dtype"] = model.classes_.dtype.str
    elif isinstance(model, BoostingRegressor):
        header["n_targets"], header["flat"] = model._n_targets, model._flat
    files.write(path, model.model_, header)


def load(path: str | Path) -> Any:
    """Read an estimator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    BoostingRegressor or BoostingClassifier
        Fitted; it predicts the same numbers bit for bit.

    Raises
    ------
    InvalidModelFile
        The file is damaged or of another kind.
    OSError
        The file cannot be read.
    """
    additive, header = files.read(path)
    try:
        cls = _CLASSES[header["class"]]
        model = cls(**header["parameters"])
        model._validate_params()
        model.n_features_in_ = int(header["n_features_in"])
        if "feature_names_in" in header:
            names = np.array(header["feature_names_in"], dtype=object)
            if names.shape != (model.n_features_in_,):
                raise ValueError("feature_names_in is inconsistent")
            model.feature_names_in_ = names
        if isinstance(model, BoostingClassifier):
            dtype = np.dtype(header["classes_dtype"])
            if dtype.kind not in "biufUO":
                raise ValueError("classes_dtype is not one of labels")
            model.classes_ = np.array(header["classes"], dtype=dtype)
        elif isinstance(model, BoostingRegressor):
            model._n_targets, model._flat = int(header["n_targets"]), bool(header["flat"])
        model._fitted_seed = int(header["seed"])
        model.loss_ = model._make_loss()
        model.model_ = additive
        _check_outputs(model)
        model.n_estimators_ = len(additive.stages)
        validation = header["validation"]
        model.history_ = History(
            np.array(header["train"], dtype=np.float64),
            None if validation is None else np.array(validation, dtype=np.float64),
        )
        model.learner_ = TreeLearner()
        model._members = None
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error
    return model


def _check_outputs(model: Any) -> None:
    """The model must have as many columns as the loss and the labels call for."""
    if isinstance(model, BoostingClassifier):
        labels = model.classes_.tolist()
        if model.classes_.ndim != 1 or len(labels) < 2 or len(set(labels)) < len(labels):
            raise ValueError("classes are inconsistent")
        expected = 1 if len(labels) == 2 else len(labels)
    elif isinstance(model.loss_, Quantile):
        expected = len(model.loss_.levels)
    else:
        expected = model._n_targets
    if len(model.model_.start) != expected:
        raise ValueError("the number of outputs is inconsistent")

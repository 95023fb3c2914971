"""Defaults that follow the size of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.boosting.effective_size import WeightScale
from hilboost.model.resolved import ResolvedParameters, is_auto

_SMALLEST_EARLY = 200
_LARGE = 50_000


def resolve(
    parameters: Mapping[str, Any],
    n: float,
    d: int,
    n_trees: int,
    held_out: bool,
    leaf_loss: bool,
    two_classes: bool,
) -> ResolvedParameters:
    """Replace ``"auto"`` by what suits data of this size.

    Parameters
    ----------
    parameters : mapping
        The estimator's.  With ``learner="kernel"`` the defaults are 20 full steps; with a learner
        object, 100 plain stages.
    n : float
        Number of rows that the data count as: see :mod:`hilboost.boosting.effective_size`.
    d : int
        Number of columns.
    n_trees : int
        Trees a stage.
    held_out : bool
        The caller gave validation data.
    leaf_loss : bool
        The loss sets leaf values itself (medians, quantiles), where L2 cannot steady small leaves.
    two_classes : bool
        Binary target with a probabilistic loss, whose hessian is at most 1/4 in a row.

    Notes
    -----
    Three regimes.  Below 200 rows nothing can be held out reliably: 100 plain stages.  Up to 50,000
    rows accuracy costs seconds: slow learning, strong L2, rows drawn at random, a committee over
    folds.  Beyond, one model with one held-out part, and faster learning.
    """
    learner = parameters["learner"]
    trees = isinstance(learner, str) and learner == "tree"
    kernel = isinstance(learner, str) and learner == "kernel"
    early = parameters["early_stopping"]
    if early == "auto":
        early = held_out or (trees and n >= _SMALLEST_EARLY)
    large = n > _LARGE
    careful = early and not large
    automatic = 20 if kernel else (1000 if large else 1500) if early else 100
    n_estimators = _or(parameters["n_estimators"], automatic)
    chosen = {
        "learning_rate": 1.0 if kernel else 0.08 if careful and n_estimators > 300 else 0.1,
        "n_estimators": n_estimators,
        "max_leaf_nodes": 63 if large and early else 15 if careful and two_classes else 31,
        "min_samples_leaf": 20 if leaf_loss or large else 1 if careful else 5,
        "l2_regularization": 10.0 if careful and not two_classes else 1.0,
        "max_features": 1.0,
        "subsample": 0.8 if careful and not two_classes else 1.0,
        "cv_folds": _n_folds(n * n_trees * d),
        "n_iter_no_change": 30 if careful else 20,
    }
    chosen = {name: _or(parameters[name], value) for name, value in chosen.items()}
    if chosen["max_leaf_nodes"] is None:
        chosen["max_leaf_nodes"] = int(max(2, np.ceil(n / chosen["min_samples_leaf"])))
    return ResolvedParameters(**chosen, early_stopping=early)


def in_rows(parameters: dict[str, Any], scale: WeightScale) -> dict[str, Any]:
    """Parameters whose sums of weights are numbers of rows, as :func:`resolve` takes them."""
    return parameters | {
        "min_samples_leaf": scale.in_rows(parameters["min_samples_leaf"]),
        "l2_regularization": scale.in_rows(parameters["l2_regularization"]),
    }


def in_given_weights(
    chosen: ResolvedParameters, parameters: dict[str, Any], scale: WeightScale
) -> ResolvedParameters:
    """Parameters whose numbers of rows are sums of weights; those that were given stay so."""
    smallest, l2 = parameters["min_samples_leaf"], parameters["l2_regularization"]
    return replace(
        chosen,
        min_samples_leaf=_or(smallest, scale.of_rows(chosen.min_samples_leaf)),
        l2_regularization=_or(l2, scale.of_rows(chosen.l2_regularization)),
    )


def in_fit_weights(chosen: ResolvedParameters, scale: WeightScale) -> ResolvedParameters:
    """Parameters whose sums of weights are sums of divided ones."""
    return replace(
        chosen,
        min_samples_leaf=scale.in_fit(chosen.min_samples_leaf),
        l2_regularization=scale.in_fit(chosen.l2_regularization),
    )


def _or(value: Any, automatic: Any) -> Any:
    return automatic if is_auto(value) else value


def _n_folds(n_cells: float) -> int:
    """Members of a committee; powers of two keep their mean exact."""
    return 4 if n_cells <= 1_000_000 else 2 if n_cells <= 2_000_000 else 1

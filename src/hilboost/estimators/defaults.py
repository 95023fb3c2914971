"""Parameters that follow the size of the data where the user chose nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Resolved:
    """Parameters with every ``"auto"`` replaced."""

    learning_rate: float
    n_estimators: int
    max_leaf_nodes: int
    min_samples_leaf: float
    l2_regularization: float
    max_features: float
    subsample: float
    early_stopping: bool
    cv_folds: int
    n_iter_no_change: int


def resolve(parameters: dict[str, Any], n: float, d: int, n_trees_a_stage: int) -> Resolved:
    """Replace ``"auto"`` by what suits data of this size.

    Parameters
    ----------
    parameters : dict
        The estimator's.
    n : float
        Total weight: the number of rows, where there are no weights.
    d : int
        Number of columns.
    n_trees_a_stage : int
        Outputs that have a tree of their own.
    """
    early = parameters["early_stopping"]
    automatic = {
        "learning_rate": 0.1,
        "n_estimators": 100,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2_regularization": 0.0,
        "max_features": 1.0,
        "subsample": 1.0,
        "early_stopping": n > 10_000,
        "cv_folds": 1,
        "n_iter_no_change": 10,
    }
    chosen = {
        name: value if isinstance(parameters[name], str) else parameters[name]
        for name, value in automatic.items()
    }
    chosen["early_stopping"] = automatic["early_stopping"] if early == "auto" else early
    if chosen["max_leaf_nodes"] is None:
        chosen["max_leaf_nodes"] = int(max(2, np.ceil(n / max(1, chosen["min_samples_leaf"]))))
    return Resolved(**chosen)

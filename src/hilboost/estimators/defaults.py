"""Parameters that follow the size of the data where the user chose nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

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

    def fill(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Parameters with ``"auto"`` replaced by these values; ``n_estimators`` stays as it is."""
        chosen = {**asdict(self), "n_estimators": parameters["n_estimators"]}
        return {name: _or(value, chosen.get(name, value)) for name, value in parameters.items()}

    def to_file(self) -> dict[str, Any]:
        """As plain values by their names."""
        kinds = get_type_hints(Resolved)
        return {
            name: value if type(value) is int else kinds[name](value)
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_file(cls, entry: Any) -> Resolved:
        """What :meth:`to_file` made.

        Raises
        ------
        ValueError
            Other names, other types, or values that no fit can have chosen.
        """
        kinds = get_type_hints(cls)
        if not isinstance(entry, dict) or set(entry) != set(kinds):
            raise ValueError("chosen is inconsistent")
        for name, kind in kinds.items():
            value = entry[name]
            known = type(value) is kind or (kind is float and type(value) is int)
            if not known or not 0 <= value < np.inf:
                raise ValueError(f"{name} of chosen is inconsistent")
        return cls(**entry)


_SMALLEST_EARLY = 200
_LARGE = 50_000


def resolve(
    parameters: dict[str, Any],
    n: float,
    d: int,
    n_trees: int,
    held_out: bool,
    learner: Any,
    cells: bool,
    two_classes: bool,
) -> Resolved:
    """Replace ``"auto"`` by what suits data of this size.

    Parameters
    ----------
    parameters : dict
        The estimator's.
    n : float
        Total weight: the number of rows, where there are no weights.
    d : int
        Number of columns.
    n_trees : int
        Trees a stage.
    held_out : bool
        The caller gave validation data.
    learner : str or object
        The estimator's.  With ``"kernel"``, 20 full steps; with another object, 100 plain stages.
    cells : bool
        The loss sets leaf values itself (medians, quantiles), where L2 cannot steady small leaves.
    two_classes : bool
        The loss is one of the chances of two classes, whose hessian is 1/4 a row at most.

    Notes
    -----
    Three regimes.  Below 200 rows nothing can be held out reliably: 100 plain stages.  Up to 50,000
    rows accuracy costs seconds: slow learning, strong L2, rows drawn at random, a committee over
    folds.  Beyond, one model with one held-out part, and faster learning.
    """
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
        "min_samples_leaf": 20 if cells or large else 1 if careful else 5,
        "l2_regularization": 10.0 if careful and not two_classes else 1.0,
        "max_features": 1.0,
        "subsample": 0.8 if careful and not two_classes else 1.0,
        "cv_folds": _n_folds(n * n_trees * d),
        "n_iter_no_change": 30 if careful else 20,
    }
    chosen = {name: _or(parameters[name], value) for name, value in chosen.items()}
    if chosen["max_leaf_nodes"] is None:
        chosen["max_leaf_nodes"] = int(max(2, np.ceil(n / chosen["min_samples_leaf"])))
    return Resolved(**chosen, early_stopping=early)


def _or(value: Any, automatic: Any) -> Any:
    return automatic if isinstance(value, str) and value == "auto" else value


def _n_folds(n_cells: float) -> int:
    """Members of a committee; powers of two keep their mean exact."""
    return 4 if n_cells <= 1_000_000 else 2 if n_cells <= 2_000_000 else 1

"""Values of automatic parameters in a fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hilboost.validation.choices import is_name


@dataclass(frozen=True)
class ResolvedParameters:
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
    n_shards: int = 1
    symmetric: bool = False

    def fill(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Replace ``"auto"`` by these values, except for ``n_estimators``."""
        chosen = {**asdict(self), "n_estimators": parameters["n_estimators"]}
        return {
            name: chosen.get(name, value) if is_auto(value) else value
            for name, value in parameters.items()
        }


def is_auto(value: object) -> bool:
    """Whether the library chooses the value of a parameter."""
    return is_name(value, "auto")

"""What a fitted model records of its fit: automatic values, the state, and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hilboost.core.dtypes import Floats
from hilboost.core.plain_values import is_auto


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
        automatic = [name for name, value in parameters.items() if is_auto(value)]
        return parameters | {name: chosen[name] for name in automatic if name in chosen}


@dataclass(frozen=True, eq=False)
class FitSnapshot:
    """The state of a fit after some stages, for each member of the ensemble."""

    n_stages: int
    # (n, r) float64 each: raw predictions for all rows of the table, in units of the fit.  They
    # differ in rounding from predictions of the stages, which are added in another order.
    raw: tuple[Floats, ...]
    learners: tuple[Any, ...]  # results of :meth:`~hilboost.core.learner.Learner.snapshot`
    # hashes of the learner, the loss and the data, by name; ``None`` while the fit runs
    belongs_to: Mapping[str, str] | None = None


_MOST_LISTED = 4  # weights in words


@dataclass(frozen=True)
class ModelPart:
    """One learner of a mixture, as judged by the rows that it was not fitted to."""

    # factor of its outputs, the mean of several targets; 0 if the part was left out
    weight: float
    # decrease of the held-out loss by this part, as a fraction: for trees, of the loss of the best
    # constant; for other parts, of the loss of the trees
    gain: float
    standard_error: float  # standard error of the gain
    # share of the part in the total gain of the mixture: the mean of its gain alone and its gain
    # beside the other part (Shapley 1953).  The shares add up to one.
    share: float
    seconds: float  # duration of its fit; not stored in model files
    n_centers: int = 0  # number of training rows that the model contains for this part
    # kernel of the machine, that of the first member: ``"matern52"``, ``"rotated matern52"`` (of
    # linear combinations of the columns) or ``"additive"``; empty for other parts
    kernel: str = ""
    weights: tuple[float, ...] = ()  # factor of the output of each of several targets

    @property
    def text(self) -> str:
        """The weights in words."""
        if not self.weights:
            return f"weight {self.weight:.2f}"
        if len(self.weights) <= _MOST_LISTED:
            return "weights " + ", ".join(f"{weight:.2f}" for weight in self.weights)
        return f"weights from {min(self.weights):.2f} to {max(self.weights):.2f}"


_NAMES = {"tree": "trees", "kernel": "a kernel machine", "linear": "a linear function"}


def _named(name: str, part: ModelPart) -> str:
    return "an additive kernel machine" if part.kernel == "additive" else _NAMES.get(name, name)


def described(parts: Mapping[str, ModelPart] | None) -> str | None:
    """Describe a mixture in words; ``None`` if it is none, or has trees only."""
    if parts is None or not any(part.weight for name, part in parts.items() if name != "tree"):
        return None
    used = [f"{_named(name, part)} with {part.text}" for name, part in parts.items() if part.weight]
    text = " and ".join(used)
    return text if parts["tree"].weight else f"{text}, without trees"

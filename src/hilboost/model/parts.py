"""The parts of a model that mixes learners by weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

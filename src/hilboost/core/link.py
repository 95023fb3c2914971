"""Inverse links as records, which losses declare and exports can write."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Link:
    """Base class of records that describe ``Loss.inverse_link`` as a function of ``raw`` (n, r)."""

    gives_probabilities: ClassVar[bool] = True
    """Whether a classifier's predictions are probabilities rather than scores."""

    smallest: ClassVar[float] = -math.inf
    """Smallest possible target, or minus infinity, at which intervals end."""

    @property
    def n_outputs(self) -> int | None:
        """Number of columns ``r`` of ``raw``; ``None`` if it depends on the target."""
        return None

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels of the predicted columns; empty for other predictions."""
        return ()


@dataclass(frozen=True)
class IdentityLink(Link):
    """Identity: predictions are ``raw``."""


@dataclass(frozen=True)
class LogLink(Link):
    """Mean of a positive target, ``exp(clip(raw, -bound, bound))``.

    Attributes
    ----------
    bound : float
        Bound on the absolute value of ``raw``.
    """

    smallest = 0.0
    bound: float


@dataclass(frozen=True)
class LogitLink(Link):
    """Probabilities ``expit(-factor raw)`` and ``expit(factor raw)`` of two classes.

    Attributes
    ----------
    factor : float
        Factor of the scores.
    """

    factor: float = 1.0

    @property
    def n_outputs(self) -> int:
        """One column for two classes."""
        return 1


@dataclass(frozen=True)
class SoftmaxLink(Link):
    """Probabilities ``softmax(factor raw)``, one column per class.

    Attributes
    ----------
    n_classes : int
    factor : float
        Factor of the scores.
    """

    n_classes: int
    factor: float = 1.0

    @property
    def n_outputs(self) -> int:
        """One column per class."""
        return self.n_classes


@dataclass(frozen=True)
class SortedLink(Link):
    """Non-crossing quantiles: each row of ``raw``, sorted in the order of the quantile levels.

    Attributes
    ----------
    quantiles : tuple of float
        Quantile level of each column.
    """

    quantiles: tuple[float, ...]

    @property
    def n_outputs(self) -> int:
        """One column per level."""
        return len(self.quantiles)

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile level of each column."""
        return self.quantiles


@dataclass(frozen=True)
class ScoresLink(Link):
    """Scores of classes: ``-raw`` and ``raw`` for two classes, otherwise ``raw``.

    Attributes
    ----------
    n_classes : int
    """

    gives_probabilities = False
    n_classes: int

    @property
    def n_outputs(self) -> int:
        """One column for two classes, otherwise one per class."""
        return 1 if self.n_classes == 2 else self.n_classes


@dataclass(frozen=True)
class DistributionLink(Link):
    """Parameters of a distribution, which ``inverse_link`` converts to its mean.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters.
    kinds : tuple of (str, float)
        For each parameter, the function of ``raw`` ("identity", "log" for the exponential or
        "logit" for the logistic function), and a number that is added to it.
    least : float
        Smallest possible target.
    """

    names: tuple[str, ...]
    kinds: tuple[tuple[str, float], ...]
    least: float

    @property
    def smallest(self) -> float:  # type: ignore[override]
        """Smallest possible target."""
        return self.least

    @property
    def n_outputs(self) -> int:
        """One column per parameter."""
        return len(self.names)

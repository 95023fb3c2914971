"""Inverse links as records: what a loss declares, and what exports write without Python code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """What ``Loss.inverse_link`` computes from ``raw`` (n, r)."""

    @property
    def n_outputs(self) -> int | None:
        """Number of columns ``r`` of ``raw``; ``None`` where the target decides."""
        return None

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels of the predicted columns; none for other predictions."""
        return ()

    @property
    def gives_probabilities(self) -> bool:
        """Whether a classifier's predictions are probabilities rather than scores."""
        return True


@dataclass(frozen=True)
class IdentityLink(Link):
    """``raw`` itself."""


@dataclass(frozen=True)
class LogLink(Link):
    """``exp(clip(raw, -bound, bound))``: the mean of a positive target.

    Attributes
    ----------
    bound : float
    """

    bound: float


@dataclass(frozen=True)
class LogitLink(Link):
    """Probabilities ``expit(-factor raw)`` and ``expit(factor raw)`` of two classes.

    Attributes
    ----------
    factor : float
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
    """

    n_classes: int
    factor: float = 1.0

    @property
    def n_outputs(self) -> int:
        """One column per class."""
        return self.n_classes


@dataclass(frozen=True)
class SortedLink(Link):
    """Each row sorted, in the order of the quantile levels.

    Attributes
    ----------
    quantiles : tuple of float
        Level of each column.
    """

    quantiles: tuple[float, ...]

    @property
    def n_outputs(self) -> int:
        """One column per level."""
        return len(self.quantiles)

    @property
    def levels(self) -> tuple[float, ...]:
        """Those of the columns."""
        return self.quantiles


@dataclass(frozen=True)
class ScoresLink(Link):
    """Scores of classes: ``-raw`` and ``raw`` for two classes, else ``raw``.

    Attributes
    ----------
    n_classes : int
    """

    n_classes: int

    @property
    def n_outputs(self) -> int:
        """One column for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def gives_probabilities(self) -> bool:
        """They are no probabilities."""
        return False

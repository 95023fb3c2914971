"""Interfaces of metrics: of predictions on held-out rows after each stage, and of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.target import Target

if TYPE_CHECKING:
    from hilboost.core.distribution import Distribution


@dataclass(frozen=True)
class MetricParts:
    """Values whose weighted mean is a metric.

    Attributes
    ----------
    values : (m,) float64
        One for each row, for each group, or for all rows together.
    weight : (m,) float64 or None
        Weights of the values; ``None`` means one for each.
    """

    values: Floats
    weight: Floats | None = None


class Metric(ABC):
    """Base class of metrics: weighted means of values of rows, of groups, or of all rows together.

    Sums of rows are exact, so that a mean depends neither on the order of the rows nor on the
    number of threads.
    """

    names: ClassVar[tuple[str, ...]] = ()
    """Names in ``eval_metric``: the first one is used in the history, the others are aliases."""

    kind: ClassVar[str] = "numbers"
    """Targets that the metric supports: "numbers", "classes", "groups" or "survival"."""

    higher_is_better: ClassVar[bool] = False
    """Whether early stopping maximizes the metric."""

    couples_rows: ClassVar[bool] = False
    """Whether rows are compared with each other, which is only done between rows that are
    predicted by the same member of a cross-validated ensemble."""

    divides_rows: ClassVar[bool] = False
    """Whether the values of some rows are computed from these rows alone, so that each of several
    workers computes the values of its rows.  Otherwise, each of them computes all values."""

    of_distributions: ClassVar[bool] = False
    """Whether predicted distributions are scored, by :meth:`parts_of_distribution`."""

    scores_bounds: ClassVar[bool] = False
    """Whether targets may be bounds, (n, 4), of censored or truncated rows."""

    @property
    def name(self) -> str:
        """Name in the history."""
        return self.names[0] if self.names else type(self).__name__

    @abstractmethod
    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Compute the values whose mean is the metric.

        Parameters
        ----------
        target : Target
            Encoded targets (n, c) in their original units: numbers, or class codes.
        predicted : (n, r) float64
            Predictions, or probabilities of all classes.

        Returns
        -------
        MetricParts

        Raises
        ------
        InvalidData, IncompatibleParts
            The metric is not defined for these targets or predictions.
        """

    def parts_of_distribution(self, target: Target, predicted: Distribution) -> MetricParts:
        """Compute the values whose mean is the metric, if it declares ``of_distributions``.

        Parameters
        ----------
        target : Target
        predicted : Distribution

        Returns
        -------
        MetricParts

        Raises
        ------
        IncompatibleParts
            The metric does not score distributions.
        """
        raise IncompatibleParts(f"the metric {self.name!r} does not score distributions.")

    def of_mean(self, mean: float) -> float:
        """Convert the mean of the values to the metric; by default, it is the metric.

        Parameters
        ----------
        mean : float

        Returns
        -------
        float
        """
        return mean


@dataclass(frozen=True)
class OutputMetric:
    """A measure of the agreement of labels, and the decoding method that serves it best.

    Parameters
    ----------
    way : str
        One of the decoding methods of the embedding: the decision with the largest expected
        agreement, as far as the predicted points determine it.
    agreement : callable
        ``agreement(labels, predicted)`` compares two sequences of n labels and returns (n,)
        float64; larger is better.  Distances have a negative sign.
    """

    way: str
    agreement: Callable[[Any, Any], Floats]

"""Shapley values and interaction values of raw predictions, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hilboost.core.brief_repr import brief_repr
from hilboost.core.dtypes import Floats
from hilboost.core.packages import required


@dataclass(frozen=True)
class ShapValues:
    """Shapley values of raw predictions.

    Attributes
    ----------
    values : (n, d) or (n, d, r) float64
        Contribution of each column of ``X`` to each raw prediction.
    base_values : (n,) or (n, r) float64
        The mean raw prediction of the background, for every row.  Together with the values of a
        row, it adds up to the raw prediction of the row.
    data : (n, d) array
        The rows.
    feature_names : list of str
    standard_errors : array of the shape of ``values``, or None
        Of the values of stages that are neither trees nor sums over columns, which are estimated;
        ``None`` if there are none, and all values are exact.
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]
    standard_errors: Floats | None = None

    __repr__ = brief_repr

    def explanation(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of shap.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        MissingPackage
            The package shap is not installed.
        """
        shap = required("shap", "explanation()")
        return shap.Explanation(
            self.values, self.base_values, self.data, feature_names=self.feature_names
        )


@dataclass(frozen=True)
class ShapInteractions:
    """Shapley interaction values of raw predictions.

    Attributes
    ----------
    values : (n, d, d) or (n, d, d, r) float64
        Symmetric.  Outside of the diagonal, half of what two columns contribute together beyond
        their single contributions; on the diagonal, what a column contributes alone.  The sum over
        one of the columns is the Shapley value of the other.
    base_values : (n,) or (n, r) float64
        The mean raw prediction of the background, for every row.
    data : (n, d) array
        The rows.
    feature_names : list of str
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]

    __repr__ = brief_repr

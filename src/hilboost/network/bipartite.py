"""Links between two kinds of vertices, such as drugs and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.output_kernel_forest import OutputKernelForestRegressor
from hilboost.kernels import Gaussian
from hilboost.network.curves import LinkCurves, link_curves


class BipartiteNetwork(BaseEstimator):
    """Predicts the links of new rows (drugs, say) with the known columns (their targets).

    Models predict the profile of a row, its links with all columns, from its features.  Columns
    that are alike share what is predicted: the score of a column is the predicted profile's inner
    product with the column in the feature space ``⟨y, y'⟩ = y' M y`` with
    ``M = I + smoothing · S``, where the rows of ``S`` are the similarities of columns to the power
    ``power``, divided by their sums.

    For new columns exchange the roles: ``fit(columns, links.T)``.  For new rows and new columns at
    once see :meth:`predict_new`.

    Parameters
    ----------
    models : regressor or sequence of regressors, optional
        Their predicted profiles are averaged.  By default a kernel machine and extra-trees.
    similarity : array-like (p, p) or "profile"
        Of the columns; ``"profile"`` is a Gaussian kernel of the known links of the columns.
    smoothing : float
        0 leaves predicted profiles as they are.
    power : float

    Attributes
    ----------
    models_ : list of estimators
    mixing_ : (p, p) float64
        ``M``.
    n_columns_ : int

    References
    ----------
    Y. Yamanishi et al., *Prediction of drug-target interaction networks*, 2008;
    T. van Laarhoven, S. Nabuurs, E. Marchiori, *Gaussian interaction profile kernels*, 2011.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        models: Any = None,
        *,
        similarity: Any = "profile",
        smoothing: float = 1.0,
        power: float = 2.0,
    ) -> None:
        self.models = models
        self.similarity = similarity
        self.smoothing = smoothing
        self.power = power

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the known rows.

        Parameters
        ----------
        X : array-like (n, d)
            Features of the rows.
        y : array-like (n, p)
            Links: not zero where row and column are linked; may be weighted.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Links that are missing or negative, or none at all; similarities of the wrong size.
        """
        self._validate_params()
        links = np.asarray(y, dtype=np.float64)
        if links.ndim != 2:
            raise InvalidData(f"links must be a matrix, rows by columns; got shape {links.shape}.")
        bad = ~(np.isfinite(links) & (links >= 0)).all(axis=1)
        if bad.any():
            raise InvalidData(
                f"links has a negative, missing or infinite entry in row "
                f"{int(np.flatnonzero(bad)[0])}."
            )
        if not links.any():
            raise InvalidData("there are no links to learn from.")
        self.n_columns_ = links.shape[1]
        self.mixing_ = self._mixing(links)
        self.models_ = [clone(model).fit(X, links) for model in self._models()]
        return self

    def _models(self) -> Sequence[Any]:
        if self.models is None:
            return [
                OutputKernelBoostingRegressor(learner="kernel", random_state=0),
                OutputKernelForestRegressor(min_samples_leaf=2, random_state=0),
            ]
        return self.models if isinstance(self.models, list | tuple) else [self.models]

    def _mixing(self, links: Floats) -> Floats:
        p = links.shape[1]
        if self.smoothing == 0:
            return np.eye(p)
        if isinstance(self.similarity, str):
            if self.similarity != "profile":
                raise InvalidParameter(
                    f"similarity must be 'profile' or a ({p}, {p}) matrix; got {self.similarity!r}."
                )
            similar = profile_kernel(links.T)
        else:
            similar = np.asarray(self.similarity, dtype=np.float64)
            if similar.shape != (p, p) or not np.isfinite(similar).all():
                raise InvalidData(
                    f"similarity must be a finite ({p}, {p}) matrix, a row for each column of the "
                    f"links; got shape {similar.shape}."
                )
        similar = np.clip(similar, 0.0, None) ** self.power
        np.fill_diagonal(similar, np.maximum(similar.diagonal(), 1.0))
        return np.eye(p) + self.smoothing * similar / similar.sum(axis=1, keepdims=True)

    def predict_profiles(self, X: Any) -> Floats:
        """Predicted links with the known columns, before smoothing.

        Parameters
        ----------
        X : array-like (m, d)

        Returns
        -------
        (m, p) float64
        """
        check_is_fitted(self)
        return np.mean([np.asarray(model.predict(X)) for model in self.models_], axis=0)

    def predict(self, X: Any) -> Floats:
        """Scores of the links between new rows and the known columns.

        Parameters
        ----------
        X : array-like (m, d)

        Returns
        -------
        (m, p) float64
            Higher for pairs more likely to be linked.
        """
        return self.predict_profiles(X) @ self.mixing_.T

    def predict_new(self, X: Any, column_weights: Any) -> Floats:
        """Scores of the links between new rows and new columns.

        Parameters
        ----------
        X : array-like (m, d)
        column_weights : array-like or sparse (q, p)
            New columns as combinations of the known ones, such as ``predict_weights`` of an output
            kernel model fitted to the columns, ``fit(columns, links.T)``.

        Returns
        -------
        (m, q) float64
        """
        weights = np.asarray(
            column_weights.toarray() if hasattr(column_weights, "toarray") else column_weights
        )
        if weights.ndim != 2 or weights.shape[1] != self.n_columns_:
            raise InvalidData(
                f"column_weights must have {self.n_columns_} columns, one for each known column; "
                f"got shape {weights.shape}."
            )
        return self.predict(X) @ weights.T

    def curves(self, X: Any, links: Any) -> LinkCurves:
        """ROC and precision-recall curves of new rows.

        Parameters
        ----------
        X : array-like (m, d)
        links : array-like (m, p)

        Returns
        -------
        LinkCurves
        """
        return link_curves(links, self.predict(X))

    def score(self, X: Any, y: Any) -> float:
        """Area under the ROC curve.

        Parameters
        ----------
        X : array-like (m, d)
        y : array-like (m, p)

        Returns
        -------
        float
        """
        return self.curves(X, y).auroc


def profile_kernel(profiles: Any) -> Floats:
    """Gaussian kernel of interaction profiles, its width from their mean squared length.

    Parameters
    ----------
    profiles : array-like (p, n)

    Returns
    -------
    (p, p) float64
        ``exp(-|y_i - y_j|² / mean |y|²)``; ones where all profiles are empty.
    """
    Y = np.asarray(profiles, dtype=np.float64)
    mean = float((Y**2).sum(axis=1).mean())
    if mean == 0:
        return np.ones((len(Y), len(Y)))
    return np.asarray(Gaussian(np.sqrt(mean / 2)).block(Y, Y))

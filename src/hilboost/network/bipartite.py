"""Links between two kinds of vertices, such as drugs and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.output_kernel_forest import OutputKernelForestRegressor
from hilboost.kernels import Gaussian
from hilboost.network.curves import LinkCurves, link_curves
from hilboost.network.validation import (
    as_matrix,
    first_uneven_pair,
    refuse_negative,
    refuse_unfinished,
)

_SYMMETRIC = 1e-8  # of the largest similarity
_RANK = 1e-8  # of the largest singular value; what is less is rounding


class BipartiteNetwork(BaseEstimator):
    """Predicts the links of new rows (drugs, say) with the known columns (their targets).

    Models predict the profile of a row, its links with all columns, from its features.  Predicted
    profiles are then smoothed: columns that are alike share what is predicted.  The score of
    column ``j`` is

        ``p_j + smoothing · Σ_k s_jk p_k / Σ_k s_jk``,

    its own predicted link and a mean of those of all columns, weighted by their similarities to
    it, to the power ``power``.

    For new columns exchange the roles, ``fit(columns, links.T)``.  For new rows and new columns at
    once give ``column_features`` to :meth:`fit`, and to :meth:`predict_new`.

    Parameters
    ----------
    models : regressor or sequence of regressors, optional
        Their predicted profiles are averaged.  By default a kernel machine and extra-trees.
    column_models : regressor or sequence of regressors, optional
        Of the profiles of columns, where these have features; by default as ``models``.
    similarity : array-like (p, p) or "profile"
        Of the columns, symmetric; ``"profile"`` is a Gaussian kernel of the known links of the
        columns.  Negative similarities count as 0.  That of a column to itself counts as 1 where
        it is less.
    smoothing : float
        0 leaves predicted profiles as they are.
    power : float
        Higher ones leave less to columns that are less alike.
    random_state : int, RandomState or None
        Of the default models; models that are given have their own.

    Attributes
    ----------
    models_ : list of estimators
    column_models_ : list of estimators or None
    mixing_ : (p, p) float64
        ``M = I + smoothing · D⁻¹ S``, ``S`` the similarities to the power and ``D`` their row sums;
        the scores are ``p M'``.
    n_columns_ : int

    References
    ----------
    Y. Yamanishi et al., *Prediction of drug-target interaction networks*, 2008;
    T. van Laarhoven, S. Nabuurs, E. Marchiori, *Gaussian interaction profile kernels*, 2011.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        models: Any = None,
        *,
        column_models: Any = None,
        similarity: Any = "profile",
        smoothing: float = 1.0,
        power: float = 2.0,
        random_state: Any = 0,
    ) -> None:
        self.models = models
        self.column_models = column_models
        self.similarity = similarity
        self.smoothing = smoothing
        self.power = power
        self.random_state = random_state

    def fit(self, X: Any, y: Any, column_features: Any = None) -> Self:
        """Learn from the known rows.

        Parameters
        ----------
        X : array-like (n, d)
            Features of the rows.
        y : array-like or sparse (n, p)
            Links: not zero where row and column are linked; may be weighted.
        column_features : array-like (p, c), optional
            Features of the columns, from which new ones are predicted.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Links that are missing or negative, or none at all; similarities of the wrong size or
            not symmetric; features of another number of columns.
        """
        self._validate_params()
        links = as_matrix(y, "links")
        refuse_negative(links, "links")
        if not links.any():
            raise InvalidData("there are no links to learn from.")
        self.n_columns_ = links.shape[1]
        if column_features is not None and _num_samples(column_features) != self.n_columns_:
            raise InvalidData(
                f"column_features has {_num_samples(column_features)} rows and links has "
                f"{self.n_columns_} columns; give one row for each column."
            )
        self.mixing_ = self._mixing(links)
        self.models_ = [clone(model).fit(X, links) for model in self._models(self.models)]
        self.column_models_ = None
        if column_features is not None:
            models = self._models(self.models if self.column_models is None else self.column_models)
            self.column_models_ = [clone(model).fit(column_features, links.T) for model in models]
            self._links = links
        return self

    def _models(self, models: Any) -> Sequence[Any]:
        if models is None:
            return [
                OutputKernelBoostingRegressor(learner="kernel", random_state=self.random_state),
                OutputKernelForestRegressor(min_samples_leaf=2, random_state=self.random_state),
            ]
        return models if isinstance(models, list | tuple) else [models]

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
            similar = _similarities(self.similarity, p)
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
        return _mean_prediction(self.models_, X)

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

    def predict_new(
        self, X: Any, column_weights: Any = None, *, column_features: Any = None
    ) -> Floats:
        """Scores of the links between new rows and new columns.

        Parameters
        ----------
        X : array-like (m, d)
        column_weights : array-like or sparse (q, p), optional
            New columns as combinations of the known ones, such as ``predict_weights`` of an output
            kernel model fitted to the columns, ``fit(columns, links.T)``.
        column_features : array-like (q, c), optional
            Features of new columns in place of weights, where the known ones had such.

        Returns
        -------
        (m, q) float64

        Raises
        ------
        ValueError, TypeError
            Not exactly one of the two, weights of another number of columns, features where the
            fit had none.
        """
        check_is_fitted(self)
        if (column_weights is None) == (column_features is None):
            raise InvalidData("give either column_weights or column_features of the new columns.")
        if column_features is not None:
            return self.predict(X) @ self.predict_column_weights(column_features).T
        weights = as_matrix(column_weights, "column_weights")
        if weights.shape[1] != self.n_columns_:
            raise InvalidData(
                f"column_weights must have {self.n_columns_} columns, one for each known column; "
                f"got shape {weights.shape}."
            )
        refuse_unfinished(weights, "column_weights")
        return self.predict(X) @ weights.T

    def predict_column_weights(self, column_features: Any) -> Floats:
        """New columns as combinations of the known ones.

        Parameters
        ----------
        column_features : array-like (q, c)

        Returns
        -------
        (q, p) float64
            The least weights with which the profiles of the known columns come nearest to the
            predicted profiles of the new ones.

        Raises
        ------
        InvalidData
            The fit had no features of columns.
        """
        check_is_fitted(self)
        if self.column_models_ is None:
            raise InvalidData(
                "this network knows no features of columns; give column_features to fit, or "
                "column_weights."
            )
        profiles = _mean_prediction(self.column_models_, column_features)
        return np.asarray(np.linalg.lstsq(self._links, profiles.T, rcond=_RANK)[0].T)

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


def _mean_prediction(models: Sequence[Any], X: Any) -> Floats:
    return np.mean([np.asarray(model.predict(X)) for model in models], axis=0)


def _similarities(similarity: Any, p: int) -> Floats:
    """A symmetric matrix (p, p) of finite numbers."""
    similar = as_matrix(similarity, "similarity")
    if similar.shape != (p, p):
        raise InvalidData(
            f"similarity must be a ({p}, {p}) matrix, a row for each column of the links; got "
            f"shape {similar.shape}."
        )
    refuse_unfinished(similar, "similarity")
    uneven = first_uneven_pair(similar, _SYMMETRIC * float(np.abs(similar).max()))
    if uneven is not None:
        i, j = uneven
        raise InvalidData(
            f"similarity is not symmetric: entry ({i}, {j}) is {similar[i, j]:g} and ({j}, {i}) is "
            f"{similar[j, i]:g}. Give (S + S.T) / 2."
        )
    return similar


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

"""Link prediction between two kinds of vertices, such as drugs and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from hilboost.core.dtypes import Floats, Seed
from hilboost.core.errors import InvalidData, InvalidParameter, counted, shown
from hilboost.core.plain_values import as_list
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.output_kernel_forest import OutputKernelForestRegressor
from hilboost.estimators.signatures import ExplainedParameters, public_prediction, with_parameters
from hilboost.kernels import Gaussian
from hilboost.network.curves import LinkCurves, link_curves
from hilboost.network.link_sets import LinkSets
from hilboost.network.validation import (
    as_matrix,
    first_uneven_pair,
    refuse_negative,
    refuse_unfinished,
    without_sparse,
)

_SYMMETRIC = 1e-8  # tolerance relative to the largest similarity
_RANK = 1e-8  # rank tolerance relative to the largest singular value


@with_parameters
class BipartiteNetwork(LinkSets, ExplainedParameters):
    """Predict the links between new rows (such as drugs) and known columns (their targets).

    The models predict the profile of a row, that is its links with all columns, from its features.
    The predicted profiles are then smoothed over similar columns.  The score of column ``j`` is

        ``p_j + smoothing · Σ_k s_jk p_k / Σ_k s_jk``,

    the sum of its own predicted link and the mean link of all columns, weighted by their
    similarities to column ``j``, raised to ``power``.

    To predict links of new columns, swap the roles with ``fit(columns, links.T)``.  To predict
    links between new rows and new columns, pass ``column_features`` to :meth:`fit` and to
    :meth:`predict_new`.

    Parameters
    ----------
    models : regressor or sequence of regressors, optional
        Models of the row profiles, whose predictions are averaged.  By default a kernel machine
        and extra-trees.
    column_models : regressor or sequence of regressors, optional
        Models of the column profiles, used with ``column_features``; same as ``models`` by
        default.
    similarity : array-like (p, p) or "profile"
        Symmetric similarities of the columns; ``"profile"`` is a Gaussian kernel of their known
        links.  Negative similarities are set to 0.  The similarity of a column to itself is at
        least 1.
    smoothing : float
        Smoothing strength; 0 disables smoothing.
    power : float
        Exponent of the similarities; higher values reduce the influence of less similar columns.
    random_state : int, RandomState or None
        Seed of the default models; not used for ``models`` that you pass.

    Attributes
    ----------
    models_ : list of estimators
    column_models_ : list of estimators or None
    mixing_ : (p, p) float64
        ``M = I + smoothing · D⁻¹ S``, where ``S`` contains the similarities raised to ``power`` and
        ``D`` their row sums; the scores are ``p M'``.
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

    models: Any = None
    _: KW_ONLY
    column_models: Any = None
    similarity: Any = "profile"
    smoothing: float = 1.0
    power: float = 2.0
    random_state: Seed = 0

    def fit(self, X: Any, y: object, column_features: Any = None) -> Self:
        """Fit the models to the known rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Features of the rows.  Sparse matrices are converted to dense arrays, here and in all
            predictions.
        y : array-like or sparse (n, p)
            Links: nonzero if row and column are linked; may be weighted.
        column_features : array-like, data frame or sparse matrix (p, c), optional
            Features of the columns, needed to predict links of new columns.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If links are missing or negative, or there are none; if similarities have the wrong
            shape or are not symmetric; if ``column_features`` has the wrong number of rows.
        """
        self._validate_params()
        X = without_sparse(X, "X")
        column_features = without_sparse(column_features, "column_features")
        links = as_matrix(y, "links")
        refuse_negative(links, "links")
        if not links.any():
            raise InvalidData("links has no nonzero entries; pass at least one link.")
        self.n_columns_ = links.shape[1]
        if column_features is not None and _num_samples(column_features) != self.n_columns_:
            raise InvalidData(
                f"column_features has {counted(_num_samples(column_features), 'row')} but links "
                f"has {counted(self.n_columns_, 'column')}; pass one row per column."
            )
        self.mixing_ = self._mixing(links)
        self.models_ = [clone(model).fit(X, links) for model in self._models(self.models)]
        self.column_models_ = None
        self.calibration_ = None
        if column_features is not None:
            models = self._models(self.models if self.column_models is None else self.column_models)
            self.column_models_ = [clone(model).fit(column_features, links.T) for model in models]
            self._links = links
        return self

    def _models(self, models: object) -> Sequence[Any]:
        if models is None:
            return [
                OutputKernelBoostingRegressor(learner="kernel", random_state=self.random_state),
                OutputKernelForestRegressor(min_samples_leaf=2, random_state=self.random_state),
            ]
        return as_list(models)

    def _mixing(self, links: Floats) -> Floats:
        p = links.shape[1]
        if self.smoothing == 0:
            return np.eye(p)
        if isinstance(self.similarity, str):
            if self.similarity != "profile":
                raise InvalidParameter(
                    f"similarity must be 'profile' or a ({p}, {p}) matrix; "
                    f"got {shown(self.similarity)}."
                )
            similar = profile_kernel(links.T)
        else:
            similar = _similarities(self.similarity, p)
        similar = np.clip(similar, 0.0, None) ** self.power
        np.fill_diagonal(similar, np.maximum(similar.diagonal(), 1.0))
        return np.eye(p) + self.smoothing * similar / similar.sum(axis=1, keepdims=True)

    def _fitted_models(self) -> Sequence[Any]:
        return self.models_

    def _link_scores(self, X: object) -> Floats:
        return self.predict(X)

    def predict_profiles(self, X: object) -> Floats:
        """Predict the links with the known columns, before smoothing.

        Parameters
        ----------
        X : array-like (m, d)

        Returns
        -------
        (m, p) float64
        """
        check_is_fitted(self)
        return _mean_prediction(self.models_, without_sparse(X, "X"))

    @public_prediction
    def predict(self, X: object) -> Floats:
        """Predict scores of the links between new rows and the known columns.

        Parameters
        ----------
        X : array-like (m, d)

        Returns
        -------
        (m, p) float64
            Higher scores mean more likely links.
        """
        return self.predict_profiles(X) @ self.mixing_.T

    def predict_new(
        self, X: object, column_weights: object = None, *, column_features: object = None
    ) -> Floats:
        """Predict scores of the links between new rows and new columns.

        Parameters
        ----------
        X : array-like (m, d)
        column_weights : array-like or sparse (q, p), optional
            New columns as combinations of the known ones, such as ``predict_weights`` of an output
            kernel model fitted to the columns, ``fit(columns, links.T)``.
        column_features : array-like (q, c), optional
            Features of the new columns, as an alternative to ``column_weights``; needs
            ``column_features`` in :meth:`fit`.

        Returns
        -------
        (m, q) float64

        Raises
        ------
        ValueError, TypeError
            If not exactly one of the two is given, if the weights have the wrong number of
            columns, or if the model was fitted without ``column_features``.
        """
        check_is_fitted(self)
        if (column_weights is None) == (column_features is None):
            raise InvalidData("pass either column_weights or column_features of the new columns.")
        if column_features is not None:
            return self.predict(X) @ self.predict_column_weights(column_features).T
        weights = as_matrix(column_weights, "column_weights")
        if weights.shape[1] != self.n_columns_:
            raise InvalidData(
                f"column_weights must have {counted(self.n_columns_, 'column')}, one per known "
                f"column; got shape {weights.shape}."
            )
        refuse_unfinished(weights, "column_weights")
        return self.predict(X) @ weights.T

    def predict_column_weights(self, column_features: Any) -> Floats:
        """Express new columns as combinations of the known ones.

        Parameters
        ----------
        column_features : array-like (q, c)

        Returns
        -------
        (q, p) float64
            Minimum-norm least-squares weights that approximate the predicted profiles of the new
            columns by the profiles of the known columns.

        Raises
        ------
        InvalidData
            If the model was fitted without ``column_features``.
        """
        check_is_fitted(self)
        if self.column_models_ is None:
            raise InvalidData(
                "this network was fitted without features of the columns; pass column_features to "
                "fit, or pass column_weights."
            )
        column_features = without_sparse(column_features, "column_features")
        profiles = _mean_prediction(self.column_models_, column_features)
        return np.asarray(np.linalg.lstsq(self._links, profiles.T, rcond=_RANK)[0].T)

    def curves(self, X: object, links: object) -> LinkCurves:
        """Compute the ROC and precision-recall curves of new rows.

        Parameters
        ----------
        X : array-like (m, d)
        links : array-like (m, p)

        Returns
        -------
        LinkCurves
        """
        return link_curves(links, self.predict(X))

    def score(self, X: object, y: object) -> float:
        """Compute the area under the ROC curve.

        Parameters
        ----------
        X : array-like (m, d)
        y : array-like (m, p)

        Returns
        -------
        float
        """
        return self.curves(X, y).auroc


def _mean_prediction(models: Sequence[Any], X: object) -> Floats:
    return np.mean([np.asarray(model.predict(X)) for model in models], axis=0)


def _similarities(similarity: object, p: int) -> Floats:
    """Validate similarities: a symmetric matrix (p, p) of finite numbers."""
    similar = as_matrix(similarity, "similarity")
    if similar.shape != (p, p):
        raise InvalidData(
            f"similarity must be a ({p}, {p}) matrix, with one row per column of the links; got "
            f"shape {similar.shape}."
        )
    refuse_unfinished(similar, "similarity")
    uneven = first_uneven_pair(similar, _SYMMETRIC * float(np.abs(similar).max()))
    if uneven is not None:
        i, j = uneven
        raise InvalidData(
            f"similarity is not symmetric: entry ({i}, {j}) is {similar[i, j]:g} and ({j}, {i}) is "
            f"{similar[j, i]:g}; pass (S + S.T) / 2."
        )
    return similar


def profile_kernel(profiles: object) -> Floats:
    """Gaussian kernel of profiles (p, n), as wide as their root mean squared norm."""
    Y = np.asarray(profiles, dtype=np.float64)
    mean = float((Y**2).sum(axis=1).mean())
    if mean == 0:
        return np.ones((len(Y), len(Y)))
    return np.asarray(Gaussian(np.sqrt(mean / 2)).block(Y, Y))

"""Sets of links of new vertices, calibrated on other vertices that the fit has not seen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.conformal import warn_of_training_rows
from hilboost.model.conformal import Calibration
from hilboost.network.validation import as_matrix, refuse_unfinished, without_sparse


class LinkSets:
    """Mixin of models that score the links between new rows and known columns."""

    calibration_: Calibration | None

    @abstractmethod
    def _fitted_models(self) -> Sequence[Any]:
        """The models of the rows, which may be any regressors."""

    @abstractmethod
    def _link_scores(self, X: object) -> Floats:
        """Scores (m, n) of the links of new rows; higher scores mean more likely links."""

    def calibrate(self, X: object, links: object) -> Self:
        """Calibrate sets of links on held-out vertices.

        Parameters
        ----------
        X : array-like (m, d)
            Features of vertices that were not used to fit the model.
        links : array-like or sparse (m, n)
            Their links with the known vertices; nonzero entries are links.

        Returns
        -------
        self

        Raises
        ------
        InvalidData
            The links do not match the scores, or an entry is missing.

        Notes
        -----
        The model keeps one number per link.  A new ``fit`` discards the calibration.
        """
        scores = self._link_scores(X)
        table = as_matrix(links, "links")
        if table.shape != scores.shape:
            raise InvalidData(
                f"links must have one row per row of X and one column per known vertex, "
                f"{scores.shape}; got {table.shape}."
            )
        refuse_unfinished(table, "links")
        for model in self._fitted_models()[:1]:
            if isinstance(model, BoostingEstimator):
                warn_of_training_rows(model.fitted_, model._checked(without_sparse(X, "X")))
        linked = table != 0
        degree = linked.sum(axis=1)
        rows, columns = np.nonzero(linked)
        # A vertex without links loses none: its only score is below all others.
        alone = int((degree == 0).sum())
        values = np.concatenate([-scores[rows, columns], np.full(alone, -np.inf)])
        weight = np.concatenate([1 / degree[rows], np.ones(alone)])
        self.calibration_ = Calibration(values[:, None], weight)
        return self

    def predict_set(self, X: object, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Predict sets that contain, on average, at least the given fraction of a vertex's links.

        The sets hold all links whose scores reach one threshold.  It is chosen such that the
        expected fraction of the links of a new vertex that are in its set is at least
        ``coverage``, if the calibrating and the new vertices are exchangeable (conformal risk
        control).  A vertex without links counts as covered.

        Parameters
        ----------
        X : array-like (m, d)
        coverage : float in (0, 1), default 0.9

        Returns
        -------
        (m, n) bool

        Raises
        ------
        InvalidData
            The model is not calibrated, or with too few vertices for this coverage.
        InvalidParameter
            ``coverage`` is not between 0 and 1.

        References
        ----------
        Angelopoulos, Bates, Fisch, Lei & Schuster, *Conformal risk control*, ICLR 2024, eq. 4.
        """
        check_is_fitted(self)
        if self.calibration_ is None:
            raise InvalidData(
                "predict_set needs vertices the model was not fitted to: call "
                "calibrate(X_held_out, links_held_out) first."
            )
        threshold = self.calibration_.threshold(check_coverage(coverage))
        return -self._link_scores(X) <= threshold

"""Views of a fitted model of trees: leaves, column importances, and the values it chose."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.estimators.preparation import FitArguments, training_data
from hilboost.estimators.signatures import public_methods
from hilboost.model.fitted import FittedModel
from hilboost.model.importances import column_gains, squared_scales
from hilboost.model.parts import ModelPart
from hilboost.model.resolved import ResolvedParameters
from hilboost.model.summary import not_of_trees
from hilboost.training.data import TrainingData
from hilboost.training.refit import refit_leaves


@public_methods
class FittedTrees:
    """Mixin for models of trees on tables."""

    fitted_: FittedModel
    n_features_in_: int
    n_jobs: int | None
    _checked: Any

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf index of each row in each tree.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, n_trees) int32
            Columns are the trees in the order of fitting; within a stage, one per output.  A kernel
            machine that was added to the trees has no leaves.

        Raises
        ------
        InvalidData
            The model has no trees: its learner is another one, or ``learner="auto"`` chose a kernel
            machine alone.
        """
        X = self._checked(X)  # says so if the model is not fitted
        if self._is_mixture() and not self.fitted_.part("tree").n_stages:
            raise InvalidData(
                f"apply requires a model of trees, but {not_of_trees(self.fitted_)}; use "
                "learner='tree'."
            )
        X = self.fitted_.encode_inputs(X)
        sums = self._trees().model.summations()
        if not sums:
            return np.empty((len(X), 0), dtype=np.int32)
        return sums[0].leaves(X, threads_for(self.n_jobs, len(X) * sums[0].cost_per_row))

    def refit_leaves(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
        keep: float = 0.5,
    ) -> Self:
        """Return a model with the same splits, and leaf values of other rows.

        For data that change over time: new rows, even a few, move the predictions
        without a new fit.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,) or (n, c)
        sample_weight : array-like (n,), optional
        groups : array-like (n,), optional
            For :class:`BoostingRanker`.
        offset : array-like (n,) or (n, r), optional
            Known part of ``predict_raw``, as in ``fit``.
        keep : float, default=0.5
            Fraction of the old leaf values in the new ones.  Leaves without new rows keep theirs.

        Returns
        -------
        estimator
            Fitted, without prediction intervals; ``history_`` is that of the first fit.

        Raises
        ------
        NotFittedError
            The model is not fitted.
        IncompatibleParts
            The model contains other learners than trees, or monotonic constraints.
        InvalidParameter
            ``keep`` is not between 0 and 1.
        """
        return self._refitted(FitArguments(X, y, sample_weight, groups, offset), keep)

    def _refitted(self, rows: FitArguments, keep: float) -> Self:
        check_is_fitted(self)
        data = training_data(self, rows, FitArguments(None, None), self.fitted_)
        found = copy(self)
        fitted = refit_leaves(self.fitted_, data, keep, threads_for(self.n_jobs, data.X.size))
        found.fitted_ = self._completed(replace(fitted, marks=data.marks), data)
        return found

    def _completed(self, fitted: FittedModel, data: TrainingData) -> FittedModel:
        """Estimate what a model requires beside its leaf values."""
        return fitted

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of the total gain of all splits that is due to each column, (d,).

        If a kernel machine was added to the trees, the mean of this fraction and of the column's
        fraction of the squared scales in the metric, weighted by the shares in ``parts_``.
        """
        check_is_fitted(self)
        fitted = self.fitted_
        encoding = fitted.encoding
        width = self.n_features_in_ if encoding is None else encoding.full_width
        attributed = (lambda gains: gains) if encoding is None else encoding.attributed
        found = _fractions(attributed(column_gains(self._trees().model.stages, width)))
        if not self._is_mixture():
            return found
        assert fitted.parts is not None
        metric = _fractions(attributed(squared_scales(fitted.part("kernel").model.stages, width)))
        return fitted.parts["tree"].share * found + fitted.parts["kernel"].share * metric

    def _is_mixture(self) -> bool:
        """Whether a kernel machine was added to the trees."""
        return self.fitted_.mixes_kernels

    def _trees(self) -> FittedModel:
        """Return the record of the trees; reject models of other learners."""
        fitted = self.fitted_.part("tree") if self._is_mixture() else self.fitted_
        if not fitted.learner.capabilities.resumable:
            raise InvalidData(
                f"apply and feature_importances_ require a model of trees, but "
                f"{not_of_trees(fitted)}; use learner='tree'."
            )
        return fitted

    @property
    def resolved_(self) -> ResolvedParameters:
        """Values of the parameters that may be ``"auto"``, as the fit used them.

        Raises
        ------
        AttributeError
            The model was read from a file that does not contain them.
        """
        check_is_fitted(self)
        if self.fitted_.resolved is None:
            raise AttributeError("resolved_ is not known, because the model file does not have it.")
        return self.fitted_.resolved

    @property
    def parts_(self) -> dict[str, ModelPart]:
        """Weights, gains and seconds of the learners that ``learner="auto"`` compared.

        Raises
        ------
        AttributeError
            There was no comparison.
        """
        check_is_fitted(self)
        if self.fitted_.parts is None:
            raise AttributeError(
                "parts_ is defined only if learner='auto' compared trees with a kernel machine; "
                "see the guide on the automatic learner."
            )
        return self.fitted_.parts


def _fractions(values: Floats) -> Floats:
    total = values.sum()
    return values / total if total > 0 else values

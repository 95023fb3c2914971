"""Models of some of the stages of a fitted model."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from hilboost.core.errors import InvalidParameter, InvalidType, shown
from hilboost.estimators.signatures import available_if, public_methods
from hilboost.model.fitted import FittedModel
from hilboost.model.stage_learners import StageLearners


@public_methods
class StageSelection:
    """Mixin for models of the first stages, or of the stages of one of several learners."""

    fitted_: FittedModel
    get_params: Any
    set_params: Any
    is_additive: ClassVar[bool]

    @available_if(lambda self: self.is_additive)
    def first_stages(self, n_estimators: int) -> Self:
        """Return the model of the first stages.

        It predicts as ``staged_predict`` after ``n_estimators`` stages, and it can be
        saved, explained and exported like any other.  With ``warm_start=True``, its fit adds stages
        as it would to a fit of ``n_estimators`` stages, unless the model has a kernel machine.

        Parameters
        ----------
        n_estimators : int
            Number of stages, at most ``n_estimators_``.

        Returns
        -------
        estimator
            Fitted, without the calibration of intervals and sets, which belongs to all stages.

        Raises
        ------
        InvalidParameter
            The model has fewer stages, or survival functions, which belong to all stages.
        """
        check_is_fitted(self)
        n = self.fitted_.n_stages
        if isinstance(n_estimators, bool) or not isinstance(n_estimators, Integral):
            raise InvalidType(f"n_estimators must be an integer; got {shown(n_estimators)}.")
        if not 0 <= n_estimators <= n:
            raise InvalidParameter(
                f"n_estimators must be between 0 and {n}, the number of stages of the model; got "
                f"{n_estimators}."
            )
        found = copy(self)
        found.fitted_ = self.fitted_.first(int(n_estimators))
        return found

    @property
    def learners_(self) -> StageLearners:
        """The learner of each stage, for models with a list of learners.

        Raises
        ------
        AttributeError
            The model has a single learner.
        """
        return self.fitted_.learners

    def learner_part(self, name: str) -> Self:
        """Return the model of the stages that one of several learners fitted.

        The part with trees can be inspected like any model of trees, for instance by
        ``feature_importances_``, :func:`hilboost.tree_table` and :func:`hilboost.to_xgboost_json`
        for SHAP values.

        Parameters
        ----------
        name : str
            One of ``learners_.names``.

        Returns
        -------
        estimator
            Fitted.  The raw predictions of all parts add up to this model's predictions; the part
            of the first learner includes the start value.

        Raises
        ------
        AttributeError
            The model has a single learner.
        InvalidParameter
            No learner has this name.
        """
        check_is_fitted(self)
        fitted = self.fitted_.part(name)
        k = self.learners_.names.index(name)
        part: Self = copy(self).set_params(learner=self._learner_of_part(k))
        part.fitted_ = fitted
        return part

    def _learner_of_part(self, k: int) -> Any:
        """The parameter ``learner`` of the model of one of several learners."""
        return self.get_params(deep=False)["learner"][k]

"""The fitted model of an estimator: its parts, its first stages, and reports on it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hilboost.core.callback import History
from hilboost.core.dtypes import PerRow
from hilboost.core.errors import InvalidParameter, InvalidType, shown
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_integer
from hilboost.estimators.peer_names import peers
from hilboost.estimators.signatures import available_if, public_methods
from hilboost.model.fitted import FittedModel, StageLearners
from hilboost.model.summary import is_forest, summary
from hilboost.validation.offsets import warn_without


@public_methods
class FittedProperties:
    """Mixin for the parts and views of the fitted model."""

    fitted_: FittedModel
    is_additive: ClassVar[bool]
    # Of estimators, for the mixins that predict
    loss: Any
    n_jobs: int | None
    get_params: Any
    set_params: Any
    predict_raw: Any
    _raw_beside: Any
    _staged_raw: Any
    _checked: Any

    if not TYPE_CHECKING:  # every name would be known to type checkers

        def __getattr__(self, name: str) -> Any:
            """Name what to use instead of an attribute of other estimators, or before a fit."""
            own = type(self).__name__
            if name == "fitted_":
                raise AttributeError(f"this {own} is not fitted yet; call its method fit first.")
            calls, instead = peers("counterparts").get(name, ""), peers("attributes").get(name)
            known = dir(type(self)) if calls or instead else [name]
            others = (one for one in calls.split("|") if one.partition("(")[0] in known)
            instead = next(others, instead)
            if name not in known and instead is not None:
                raise AttributeError(f"{own} has no attribute {name!r}; use {instead}.")
            return object.__getattribute__(self, name)  # raises the error of this attribute

    def __str__(self) -> str:
        """Return the parameters and, after a fit of trees or kernels, a line about the model."""
        fitted = self.__dict__.get("fitted_")
        if fitted is None or not self.is_additive:
            return repr(self)
        if fitted.history is None and fitted.kernel_machine is None and not is_forest(fitted):
            return repr(self)
        return f"{self!r}\n{summary(fitted)}"

    @property
    def model_(self) -> Any:
        """The fitted additive model."""
        return self.fitted_.model

    @property
    def loss_(self) -> Loss:
        """The loss of the fitted model."""
        return self.fitted_.loss

    @property
    def learner_(self) -> Learner:
        """The base learner of the fitted model."""
        return self.fitted_.learner

    @property
    def n_estimators_(self) -> int:
        """Number of stages in the model."""
        return self.fitted_.n_stages

    @property
    def history_(self) -> History:
        """Mean loss on the training and validation rows after each stage.

        With several numeric targets, trees measure each in its own unit: squared error, for
        example, is divided by the variance of the target.

        Raises
        ------
        AttributeError
            The model was not fitted by boosting.
        """
        if self.fitted_.history is None:
            raise AttributeError(
                f"{type(self).__name__} has no history_, because it is not fitted by boosting."
            )
        return self.fitted_.history

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
        if not is_integer(n_estimators):
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

    def report(
        self,
        X: object,
        y: object,
        path: str | Path | None = None,
        title: str | None = None,
        *,
        positive_class: object = None,
        sample_weight: PerRow = None,
        X_train: Any = None,
        groups: PerRow = None,
        strata: PerRow = None,
        entry: PerRow = None,
        times: ArrayLike | None = None,
        offset: PerRow = None,
    ) -> Any:
        """Create a report on the fitted model: errors, feature importances and parameters.

        Tables are sorted by a click on a heading, and charts show their values next to the pointer.

        Parameters
        ----------
        X : array-like (n, d)
            Rows that were not used to fit the model.
        y : array-like (n,), (n, c), or sequence of n labels
            True labels of these rows.
        path : str or Path, optional
            Path of a self-contained HTML file to write.
        title : str, optional
        positive_class : label, optional
            The class, of two, that calibration, curves, thresholds and partial dependence are
            about; by default the second of ``classes_``.
        sample_weight : array-like (n,), optional
            Weights of the rows in scores, means and curves.
        X_train : array-like (m, d), optional
            Rows of the training data.  The report shows how the distributions of columns and
            predictions differ, and counts the rows of ``X`` that also occur in ``X_train``.
        groups : array-like (n,), optional
            Label of the group of each row of a ranking.
        strata, entry : array-like (n,), optional
            Strata and entry times of survival times, as in ``fit``.
        times : array-like (k,), optional
            Times of the calibration of survival models, instead of quartiles of the times of
            events.
        offset : array-like (n,) or (n, r), optional
            Known part of the predictions, as in ``fit``.  Contributions, partial dependence and
            drift refer to the model without offsets.

        Returns
        -------
        hilboost.report.page.Report
            Renders itself in a notebook.  Its attributes are ``facts`` and ``html``.

        Raises
        ------
        InvalidData, InvalidParameter
            ``y`` or ``X_train`` does not match ``X``, ``positive_class`` is not one of two
            classes, the model has no groups or strata or supports no weights, or the file ``path``
            cannot be created.
        MissingPackage
            The packages of the extra ``report`` are not installed.

        Notes
        -----
        A report takes about as long as predicting 200,000 rows, mostly for the permutation
        importances.
        """
        from hilboost.report import report

        more = {"groups": groups, "strata": strata, "entry": entry, "offset": offset}
        more |= {"sample_weight": sample_weight, "X_train": X_train, "times": times}
        model = self._without_offsets(offset)
        return report(model, X, y, path, title=title, positive_class=positive_class, **more)

    def report_facts(
        self,
        X: object,
        y: object,
        *,
        groups: PerRow = None,
        strata: PerRow = None,
        entry: PerRow = None,
        times: ArrayLike | None = None,
        offset: PerRow = None,
    ) -> dict[str, Any]:
        """Return the facts of :meth:`report` as a JSON-serializable dict.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,), (n, c), or sequence of n labels
        groups, strata, entry, times, offset : array-like, optional
            See :meth:`report`.

        Returns
        -------
        dict
        """
        from hilboost.report import facts

        model = self._without_offsets(offset)
        return facts(
            model, X, y, groups=groups, strata=strata, entry=entry, times=times, offset=offset
        )

    def _without_offsets(self, offset: PerRow) -> Self:
        """Return a copy that predicts without offsets in silence, as reports do in parts."""
        check_is_fitted(self)
        warn_without(offset, self.fitted_.beside_offsets)
        found = copy(self)
        found.fitted_ = replace(self.fitted_, beside_offsets=False)
        return found

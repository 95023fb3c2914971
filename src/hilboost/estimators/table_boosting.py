"""Base class of the tree boosting estimators: parameters and recipes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for
from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import as_list, is_name
from hilboost.estimators import parameter_types as types
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.preparation import FitArguments, training_data
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import changed, public_fit, public_methods, with_parameters
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner
from hilboost.losses.registry import regression_loss
from hilboost.model.codecs import TargetCodec
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.model.fitted import FittedModel, importances
from hilboost.model.summary import not_of_trees
from hilboost.persistence.stored import StoredModel
from hilboost.tables.schema import Schema
from hilboost.training.categories import nan_refused_by
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.table_learners import LEARNERS, names, stored_learner
from hilboost.training.recipes.tables import table_recipe, work
from hilboost.training.refit import refit_leaves
from hilboost.validation.inputs import Expected

_OF_TREES: Mapping[str, tuple[Any, ...]] = {"learner": ("tree", "auto"), "n_shards": (1,)}


@public_methods
@with_parameters
class TableBoosting(ShapleyValues, BoostingEstimator):
    """Base class for boosting trees or other learners on tables."""

    is_tabular = True
    takes_offsets = True
    _resumes = True
    supported_by_workers: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **BoostingEstimator.supported_by_workers,
        **_OF_TREES,
        **dict.fromkeys(("device", "sketch"), (None,)),
    }
    supported_on_disk: ClassVar[Mapping[str, Any]] = {**_OF_TREES, "warm_start": (False,)}
    _learner_names = LEARNERS

    loss: str | Loss | type[Loss]
    _: KW_ONLY
    learner: str | Learner | Any = "auto"
    learning_rate: types.PositiveOrAuto = "auto"
    n_estimators: types.CountOrAuto = "auto"
    max_leaf_nodes: types.Leaves = "auto"
    max_depth: types.CountOrNone = None
    growth: types.Growth = "auto"
    min_samples_leaf: types.PositiveOrAuto = "auto"
    min_hessian: types.NotNegative = 1e-3
    l2_regularization: types.NotNegativeOrAuto = "auto"
    min_gain: types.NotNegative = 0.0
    max_features: types.ShareOrAuto = "auto"
    max_features_per_tree: types.Share = 1.0
    max_bins: types.Bins = 255
    subsample: types.ShareOrAuto = "auto"
    bootstrap: types.Flag = False
    monotonic_cst: types.Monotonic = None
    interaction_cst: types.Interactions = None
    categorical_features: types.Columns = "from_dtype"
    line_search: types.FlagOrAuto = "auto"
    early_stopping: types.FlagOrAuto = "auto"
    cv_folds: types.CountOrAuto = "auto"
    validation_fraction: types.PartOrNone = 0.1
    validation: types.HeldOut = "auto"
    validation_gap: types.Gap = None
    n_iter_no_change: types.CountOrAuto = "auto"
    tol: types.NotNegative = 0.0
    time_budget: types.PositiveOrNone = None
    eval_metric: types.EvalMetric = None
    warm_start: types.Flag = False
    device: types.TextOrNone = None
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None
    verbose: types.Verbose = 0

    def _for_workers(self) -> Self:
        return self.set_params(learner="tree")

    @public_fit
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        time: object = None,
        offset: PerRow = None,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: PerRow = None,
        offset_val: PerRow = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Inputs.  NaN marks missing values, which trees and kernel machines with
            ``kernel="auto"`` support.  Trees support infinity, too, and accept sparse matrices.
            Text columns are categorical by default (see ``categorical_features``).
        y : array-like (n,) or (n, c)
            Targets.  Some of several targets of a row may be NaN.  Trees support this if the loss
            is a sum over them (squared error, Poisson, gamma, Tweedie), and use the others.  With a
            continuous distribution, bounds in a structured array or a frame: see its guide.
        sample_weight : array-like (n,), optional
            A row with weight 2 is equivalent to two rows.  Rows with zero weight are ignored.
        groups, time : array-like (n,), optional
            Group of each row, such as a patient, for predictions of other groups, or time, numbers
            or dates, for predictions of later rows; see ``validation``.
        offset : array-like (n,) or (n, r), optional
            Known part of ``predict_raw``, such as the logarithm of an exposure, ``np.log(years)``,
            with ``loss="poisson"``, or the predictions of another model.  The model learns the
            rest.  Pass it to ``predict``, too.
        X_val, y_val, sample_weight_val, offset_val : array-like, optional
            Validation data for early stopping, used instead of held-out rows of ``X``.  Passing
            them enables early stopping unless ``early_stopping=False``.  Dicts with the same names
            are several validation sets; the first one decides; the losses and metrics of
            the others are in ``history_.metrics``.
        callbacks : sequence of callables
            Called with an :class:`~hilboost.core.callback.Event` after each stage.  A callback that
            returns ``True`` stops the fit.  See :mod:`hilboost.callbacks`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the problem and suggests a fix.
        KeyboardInterrupt
            The fit was interrupted.  If at least one stage is complete, the estimator is fitted
            with the completed stages, and a warning reports their number.
        """
        held_out = FitArguments(X_val, y_val, sample_weight_val, None, offset_val)
        rows = FitArguments(X, y, sample_weight, groups, offset, time=time)
        return self._fit(rows, held_out, callbacks)

    @abstractmethod
    def _make_loss(self, codec: TargetCodec) -> Loss:
        """Create the loss from the parameters."""

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        learner = self._learners(len(data.X), data.schema.categories)
        parameters = {**self._all_parameters(), "learner": learner}
        loss = self._make_loss(data.codec)
        recipe = table_recipe(parameters, loss, data, seed, continuation)
        self._check_tree_parameters()
        return recipe

    def _learners(self, n: int, categorical: tuple[int, ...], stages: str | None = None) -> Any:
        """The learner or learners; kernel machines have the settings of a single stage."""
        if isinstance(self.learner, str):
            return self.learner
        from hilboost.estimators.kernel_boosting import chosen_learners  # not for trees alone

        return chosen_learners(self, self.learner, n, categorical, stages)

    def _check_tree_parameters(self) -> None:
        """Reject tree parameters that another learner would ignore."""
        grows = names(self.learner, "tree") or is_name(self.learner, "auto")
        ignored = [] if grows else changed(self, types.OF_TREES)
        if ignored:
            raise InvalidParameter(
                f"{', '.join(ignored)} is only supported by the built-in trees, but learner is "
                f"{shown(self.learner)}; remove these parameters, or set learner='tree'."
            )

    def _grows_trees(self) -> bool:
        """Whether all stages are built-in trees, except for a kernel machine added to them."""
        given = self._given()
        return len(given) == 1 and is_name(given[0], "tree")

    def _work(self, recipe: Recipe) -> int:
        return work(recipe, self._all_parameters()["multi_output"])

    def _all_parameters(self) -> dict[str, Any]:
        return {**types.WITHOUT, **self._own_parameters(), **self.get_params(deep=False)}

    def _own_parameters(self) -> dict[str, Any]:
        """Values of parameters that an estimator sets itself."""
        return {}

    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        columns = stored.schema.categories
        chosen = self._learners(1, columns, stored.stages)
        parameters = {**self._all_parameters(), "learner": chosen}
        learner = stored_learner(parameters, stored.resolved, stored.schema, stored.parts)
        return self._make_loss(stored.codec), learner

    def _declares(self, capability: str) -> bool:
        """Whether all learners are Learner objects, or names of learners, that declare it."""
        known: dict[Any, Learner] = {"tree": TreeLearner(), "linear": RidgeLearner()}
        learners = [known.get(one, one) if isinstance(one, str) else one for one in self._given()]
        declared = (one.capabilities for one in learners if isinstance(one, Learner))
        found = [bool(getattr(one, capability)) for one in declared]
        return len(found) == len(learners) and all(found)

    def _given(self) -> list[Any]:
        """The learners of the parameter, which may still be invalid."""
        if is_name(self.learner, "auto"):
            return ["tree"]
        return as_list(self.learner)

    def _continued(self) -> FittedModel | None:
        before = super()._continued()
        if before is not None and self.fitted_.mixes_kernels:
            raise InvalidData(
                "warm_start: the model contains a kernel machine, after which no stages can be "
                "added; set warm_start=True before the first fit, or learner='tree'."
            )
        return before

    def _learner_of_part(self, k: int) -> Any:
        if is_name(self.learner, "auto"):
            return ("tree", self.fitted_.learner.parts[k])[k]
        return super()._learner_of_part(k)

    def _takes_missing_targets(self) -> bool:
        if not (self._grows_trees() or self._declares("takes_missing_targets")):
            return False
        loss: Any = self.loss
        if isinstance(loss, str):
            loss = regression_loss(loss)
        return bool(getattr(loss, "additive_over_targets", False))

    def _takes_sparse(self) -> bool:
        """Whether the learner accepts sparse matrices."""
        return self._grows_trees() or self._declares("takes_sparse")

    def _expected(self, schema: Schema | None) -> Expected:
        infinite = self._grows_trees() or self._declares("takes_infinity")
        return replace(super()._expected(schema), sparse=self._takes_sparse(), infinite=infinite)

    def _refuses_nan(self) -> str:
        return nan_refused_by(self._given(), "tree")

    def _reads_blocks(self) -> bool:
        return is_name(self.learner, "tree") or is_name(self.learner, "auto")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._declares("takes_missing_values")
        tags.input_tags.sparse = self._takes_sparse()
        return tags

    # Views of a fitted model

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
        if self.fitted_.mixes_kernels and not self.fitted_.part("tree").n_stages:
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
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        offset: PerRow = None,
        keep: float = 0.5,
    ) -> Self:
        """Return a model with the same splits, and leaf values of other rows.

        For data that change over time: even a few new rows move the predictions without a new fit.

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
        data = training_data(self, rows, FitArguments(None, None), self.fitted_, divides=False)
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
        fraction of the effects on the kernel machine, weighted by the shares in ``parts_``.  An
        effect is the mean squared change of its outputs where the column takes the value of another
        row; 200 rows are compared, fewer if there are more than 40 columns.
        """
        check_is_fitted(self)
        return importances(self.fitted_, self._trees())

    def _trees(self) -> FittedModel:
        """Return the record of the trees; reject models of other learners."""
        fitted = self.fitted_.part("tree") if self.fitted_.mixes_kernels else self.fitted_
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
            reason = "see the guide on the automatic learner."
            if "kernel" in self.fitted_.cut_short:
                reason = "the time_budget left no room for one; set a larger time_budget."
            raise AttributeError(
                "parts_ is defined only if learner='auto' compared trees with a kernel machine; "
                + reason
            )
        return self.fitted_.parts

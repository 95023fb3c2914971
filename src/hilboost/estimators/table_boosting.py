"""Base class of the tree boosting estimators: parameters and recipes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from hilboost.core.callback import Callback
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.metric import Metric
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.fitted_trees import FittedTrees
from hilboost.estimators.preparation import FitArguments
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import changed, public_fit, public_methods
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner
from hilboost.losses.registry import regression_losses
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.persistence.stored import StoredModel
from hilboost.training.compatibility import nan_refused_by
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.mixed import names
from hilboost.training.recipes.table_learners import stored_learner
from hilboost.training.recipes.tables import table_recipe, work
from hilboost.validation.choices import is_name

_AUTO = StrOptions({"auto"})
_OF_TREES = (
    "max_leaf_nodes",
    "max_depth",
    "growth",
    "min_samples_leaf",
    "min_hessian",
    "l2_regularization",
    "min_gain",
    "max_features",
    "max_features_per_tree",
    "max_bins",
    "multi_output",
    "sketch",
    "target_encoding",
)
_WITHOUT = {
    "multi_output": "separate",
    "sketch": None,
    "n_shards": 1,
    "target_encoding": False,
}
"""Parameters that estimators of one output, or of targets without a mean, do not have."""


@public_methods
class TableBoosting(FittedTrees, ShapleyValues, BoostingEstimator):
    """Base class for boosting trees or other learners on tables."""

    is_tabular = True
    takes_offsets = True
    _resumes = True
    supported_by_workers: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **BoostingEstimator.supported_by_workers,
        "learner": ("tree", "auto"),
        "n_shards": (1,),
        "sketch": (None,),
        "growth": ("best_first", "auto"),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "n_estimators": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "max_leaf_nodes": [_AUTO, Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "growth": [StrOptions({"auto", "best_first", "symmetric"})],
        "min_samples_leaf": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "min_hessian": [Interval(Real, 0, None, closed="left")],
        "l2_regularization": [_AUTO, Interval(Real, 0, None, closed="left")],
        "min_gain": [Interval(Real, 0, None, closed="left")],
        "max_features": [_AUTO, Interval(Real, 0, 1, closed="right")],
        "max_features_per_tree": [Interval(Real, 0, 1, closed="right")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "subsample": [_AUTO, Interval(Real, 0, 1, closed="right")],
        "bootstrap": ["boolean"],
        "n_shards": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "multi_output": [StrOptions({"separate", "shared"})],
        "sketch": [Interval(Integral, 1, None, closed="left"), None],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [StrOptions({"pairwise", "no_interactions"}), list, tuple, None],
        "categorical_features": [str, "array-like", None],
        "target_encoding": [_AUTO, "boolean"],
        "line_search": [_AUTO, "boolean"],
        "early_stopping": [_AUTO, "boolean"],
        "cv_folds": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "n_iter_no_change": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "eval_metric": [str, Metric, type, callable, list, tuple, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _for_workers(self) -> Self:
        return self.set_params(learner="tree")

    @public_fit
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        offset_val: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Inputs.  NaN marks missing values; trees support them and infinity, kernel machines do
            not.  Text columns are categorical by default (see ``categorical_features``).  Trees
            accept sparse matrices.
        y : array-like (n,) or (n, c)
            Targets.  With several targets, some targets of a row may be NaN.  Trees support this
            if the loss is a sum over the targets (squared error, Poisson, gamma, Tweedie), and
            use the other targets of the row.
        sample_weight : array-like (n,), optional
            A row with weight 2 is equivalent to two rows.  Rows with zero weight are ignored.
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
        rows = FitArguments(X, y, sample_weight, None, offset)
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
        ignored = [] if grows else changed(self, _OF_TREES)
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
        return {**_WITHOUT, **self._own_parameters(), **self.get_params(deep=False)}

    def _own_parameters(self) -> dict[str, Any]:
        """Values of parameters that an estimator sets itself."""
        return {}

    def _parts(
        self, codec: TargetCodec, n_outputs: int, stored: StoredModel
    ) -> tuple[Loss, Learner]:
        columns = stored.schema.categories
        chosen = self._learners(1, columns, stored.stages)
        parameters = {**self._all_parameters(), "learner": chosen}
        learner = stored_learner(parameters, stored.resolved, stored.schema, stored.parts)
        return self._make_loss(codec), learner

    def _declares(self, capability: str) -> bool:
        """Whether all learners are Learner objects, or names of learners, that declare it."""
        known: dict[Any, Learner] = {"tree": TreeLearner(), "linear": RidgeLearner()}
        learners = [known.get(one, one) if isinstance(one, str) else one for one in self._given()]
        return all(
            isinstance(one, Learner) and bool(getattr(one.capabilities, capability))
            for one in learners
        )

    def _given(self) -> list[Any]:
        """The learners of the parameter, which may still be invalid."""
        if is_name(self.learner, "auto"):
            return ["tree"]
        return list(self.learner) if isinstance(self.learner, list | tuple) else [self.learner]

    def _continued(self) -> FittedModel | None:
        before = super()._continued()
        if before is not None and self._is_mixture():
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
            loss = regression_losses().get(loss)
        return bool(getattr(loss, "additive_over_targets", False))

    def _takes_sparse(self) -> bool:
        return self._grows_trees() or self._declares("takes_sparse")

    def _takes_infinity(self) -> bool:
        return self._grows_trees() or self._declares("takes_infinity")

    def _refuses_nan(self) -> str:
        return nan_refused_by(self._given(), "tree")

    def _reads_blocks(self) -> bool:
        return is_name(self.learner, "tree") or is_name(self.learner, "auto")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._declares("takes_missing_values")
        tags.input_tags.sparse = self._takes_sparse()
        return tags

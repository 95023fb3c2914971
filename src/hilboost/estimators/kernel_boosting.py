"""Base classes of kernel machine estimators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam, threads_for_kernels
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown, with_article
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_auto
from hilboost.estimators import parameter_types as types
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import changed, public_methods, with_parameters
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.basis import SELECTIONS
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.model.codecs import TargetCodec
from hilboost.persistence.stored import StoredModel
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.kernel_machines import (
    KernelParameters,
    kernel_learner,
    kernel_recipe,
)
from hilboost.training.recipes.table_learners import listed

Selection = Annotated[str, StrOptions(set(SELECTIONS))]
_OF_THE_LOOP = (
    "n_estimators",
    "learning_rate",
    "subsample",
    "early_stopping",
    "validation_fraction",
    "validation",
    "validation_gap",
    "n_iter_no_change",
)


SUN_YAO_2006: dict[str, Any] = {
    "tuning": "marginal_likelihood",
    "stages": "sparse",
    "n_estimators": 150,
    "n_basis": 200,
    "subset_size": 2000,
    "selection": "information_gain",
    "solver": "conjugate_gradient",
    "cg_iterations": 50,
    "penalty": "ensemble",
}
"""Settings of section 4 of Sun & Yao (2006)."""


class KernelMachineEstimator(BoostingEstimator):
    """Base class of all kernel machines."""

    classifier = "SparseKernelClassifier"
    _merges_equal_rows = True
    _is_machine = True

    @abstractmethod
    def _make_loss(self, codec: TargetCodec) -> Loss:
        """Create the loss from the parameters."""

    def _work(self, recipe: Recipe) -> int:
        return len(recipe.data.X) ** 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = is_auto(self.get_params(deep=False)["kernel"])
        return tags

    @property
    def _summary(self) -> KernelMachineSummary:
        summary = self.fitted_.kernel_machine
        assert summary is not None
        return summary

    @property
    def kernel_(self) -> Kernel | None:
        """The kernel; length scales are in units of the standardized columns, maybe warped."""
        return self._summary.kernel

    @property
    def regularization_(self) -> float | None:
        """Regularization strength λ."""
        return self._summary.regularization

    @property
    def amplitude_(self) -> float:
        """Maximum-likelihood factor of the kernel and the noise."""
        return self._summary.amplitude


@public_methods
@with_parameters
class KernelBoosting(ShapleyValues, KernelMachineEstimator):
    """Base class of boosted kernel machines."""

    classifier = "KernelBoostingClassifier"
    divides = "kernel values"
    _resumes = True
    loss: str | Loss | type[Loss]
    _: KW_ONLY
    kernel: Any = "auto"
    stages: Annotated[str, StrOptions({"auto", "full", "sparse", "block"})] = "auto"
    n_estimators: types.CountOrAuto = "auto"
    regularization: types.NotNegativeOrAuto = "auto"
    tuning: types.Tuning = "auto"
    n_basis: types.CountOrAuto = "auto"
    subset_size: types.CountOrNone = None
    selection: Selection = "residual"
    n_candidates: types.CountOrNone = 59
    solver: Annotated[str, StrOptions({"closed_form", "conjugate_gradient"})] = "closed_form"
    cg_iterations: types.Count = 50
    penalty: Annotated[str, StrOptions({"ensemble", "stage"})] = "ensemble"
    reweight: types.Flag = False
    refit_every: types.CountOrNone = None
    length_scale_factors: Annotated[Sequence[float] | None, "array-like", None] = None
    learning_rate: types.Positive = 1.0
    subsample: types.Share = 1.0
    standardize: types.FlagOrAuto = "auto"
    categorical_features: types.Columns = "from_dtype"
    early_stopping: types.FlagOrAuto = "auto"
    validation_fraction: types.Part = 0.1
    validation: types.HeldOut = "auto"
    validation_gap: types.Gap = None
    n_iter_no_change: types.Count = 5
    tol: types.NotNegative = 3e-3
    time_budget: types.PositiveOrNone = None
    memory_budget: types.PositiveOrAuto = "auto"
    precision: types.Precision = "auto"
    device: types.TextOrNone = None
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None
    verbose: types.Verbose = 0

    @property
    def kernel_(self) -> Any:
        """The kernel, or a tuple of kernels for a list; length scales as in ``kernel``."""
        listed = self._summary.stage_kernels
        return super().kernel_ if listed is None else listed.kernels

    @property
    def kernels_(self) -> NDArray[np.int64]:
        """Position in ``kernel`` of the kernel that made each stage, (n_stages,)."""
        listed = self._summary.stage_kernels
        return np.zeros(self.n_estimators_, np.int64) if listed is None else listed.chosen

    @property
    def kernel_weights_(self) -> Floats:
        """Share of each kernel in the squared norms of their functions, (n_kernels,)."""
        listed = self._summary.stage_kernels
        if listed is None:
            return np.ones(1) if self.n_estimators_ else np.zeros(1)
        return listed.weights

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        p = KernelParameters.of(self.get_params(deep=False))
        return kernel_recipe(p, self._make_loss(data.codec), data, seed)

    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        p = KernelParameters.of(self.get_params(deep=False), stages=stored.stages)
        return self._make_loss(stored.codec), kernel_learner(p, 1, stored.schema.categories)

    def _complete(self) -> None:
        """Compute the scale of the standard deviations, so that it is in the file."""
        if self._has_std():
            model, weights = self._expansion()
            n_threads = threads_for_kernels(self.n_jobs, len(model.basis))
            with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
                self._summary.fit_to_residuals(model, weights, team)

    def _has_std(self) -> bool:
        """Whether the model is a Gaussian process, which has standard deviations."""
        fitted, noise = self.fitted_, self._summary.noise
        return fitted.n_stages > 0 and noise is not None and fitted.loss.gaussian

    def _std(self, X: Any) -> Floats:
        """Standard deviation (n, r) or (n, 1) of a new observation, including noise."""
        check_is_fitted(self)
        fitted, summary = self.fitted_, self._summary
        if fitted.n_stages == 0 and fitted.cut_from is not None:
            raise InvalidData(
                "standard deviations are not available, because first_stages(0) is a constant; "
                "keep at least one stage."
            )
        if fitted.n_stages == 0:
            raise InvalidData(
                "standard deviations are not available, because early stopping kept no stage and "
                "the model is a constant; use more rows, or set early_stopping=False."
            )
        if not self._has_std():
            raise InvalidData(
                "standard deviations require loss='squared_error' and full stages (up to about "
                f"60,000 rows), but this model has loss={shown(self.loss)} and "
                f"{fitted.learner.name} stages; set loss='squared_error' and stages='full'."
            )
        X = self._checked(X)
        model, weights = self._expansion()
        n_threads = threads_for_kernels(self.n_jobs, max(len(X), len(model.basis)))
        with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
            return np.sqrt(summary.variance(model, weights, X, team))

    def _expansion(self) -> tuple[KernelExpansion, Floats]:
        """A full stage, which contains all training rows, and the weights of all stages."""
        terms = [term for stage in self.fitted_.model.stages for term in stage.terms]
        model: Any = terms[0].model
        return model, np.sum([term.coefficient * term.model.weights for term in terms], axis=0)


def kernel_stages(
    owner: BaseEstimator,  # the estimator that runs the boosting loop
    learner: Any,  # objects other than kernel machines are returned unchanged
    n: int,  # number of rows
    categorical: tuple[int, ...],  # indices of the categorical columns
    stages: str | None = None,  # kind of the stages of a fitted model with one learner
    several: bool = False,  # whether it is one of several learners
) -> Any:
    """Convert a kernel machine estimator that is used as learner to the learner of a stage."""
    if not isinstance(learner, KernelBoosting):
        return learner
    learner._validate_params()
    if learner.loss != "squared_error":
        raise InvalidParameter(
            f"{with_article(type(learner).__name__)} as learner must have loss='squared_error', "
            "because stages are fitted to the gradients by squared error; got "
            f"loss={learner.loss!r}."
        )
    ignored = changed(learner, _OF_THE_LOOP)
    if ignored:
        raise InvalidParameter(
            f"{', '.join(ignored)} of the {type(learner).__name__} passed as learner has no "
            f"effect; set it on the {type(owner).__name__}, or remove it."
        )
    p = KernelParameters.of(learner.get_params(deep=False))
    if several:  # sparse stages support row samples, so that proposals are compared by other rows
        stages = "sparse" if is_auto(p.stages) else p.stages
    return kernel_learner(p if stages is None else replace(p, stages=stages), n, categorical)


def chosen_learners(
    owner: BaseEstimator, learner: Any, n: int, categorical: tuple[int, ...], stages: str | None
) -> Any:
    """Return the learner of the parameter ``learner``, or a list, made by :func:`kernel_stages`."""
    given = listed(learner)
    several = len(given) > 1
    made = [kernel_stages(owner, one, n, categorical, stages, several) for one in given]
    return made if several else made[0]

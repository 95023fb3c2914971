"""Base classes of kernel machine estimators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam, threads_for_kernels
from hilboost.core.dtypes import Floats, Seed
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.words import with_article
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import changed, public_methods, with_parameters
from hilboost.estimators.tree_parameters import BY_GROUPS_OR_TIME
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.basis import SELECTIONS
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.model.codecs import TargetCodec
from hilboost.model.fit_facts import is_auto
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

_AUTO = StrOptions({"auto"})
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
        """The kernel, with length scales in units of the standardized columns."""
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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "stages": [StrOptions({"auto", "full", "sparse", "block"})],
        "n_estimators": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "tuning": [StrOptions({"auto", "marginal_likelihood", "mean_distance"})],
        "regularization": [_AUTO, Interval(Real, 0, None, closed="left")],
        "n_basis": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "subset_size": [Interval(Integral, 1, None, closed="left"), None],
        "selection": [StrOptions(set(SELECTIONS))],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"closed_form", "conjugate_gradient"})],
        "cg_iterations": [Interval(Integral, 1, None, closed="left")],
        "penalty": [StrOptions({"ensemble", "stage"})],
        "reweight": ["boolean"],
        "refit_every": [Interval(Integral, 1, None, closed="left"), None],
        "length_scale_factors": ["array-like", None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "standardize": ["boolean", _AUTO],
        "categorical_features": [str, "array-like", None],
        "early_stopping": [_AUTO, "boolean"],
        **BY_GROUPS_OR_TIME,
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "memory_budget": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "device": [str, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    loss: str | Loss | type[Loss]
    _: KW_ONLY
    kernel: Any = "auto"
    stages: str = "auto"
    n_estimators: int | str = "auto"
    regularization: float | str = "auto"
    tuning: str = "auto"
    n_basis: int | str = "auto"
    subset_size: int | None = None
    selection: str = "residual"
    n_candidates: int | None = 59
    solver: str = "closed_form"
    cg_iterations: int = 50
    penalty: str = "ensemble"
    reweight: bool = False
    refit_every: int | None = None
    length_scale_factors: Sequence[float] | None = None
    learning_rate: float = 1.0
    subsample: float = 1.0
    standardize: bool | str = "auto"
    categorical_features: Any = "from_dtype"
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    validation: Any = "auto"
    validation_gap: Any = None
    n_iter_no_change: int = 5
    tol: float = 3e-3
    time_budget: float | None = None
    memory_budget: float | str = "auto"
    precision: str = "auto"
    device: str | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int | bool = 0

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
        model = terms[0].model
        assert isinstance(model, KernelExpansion)
        return model, np.sum([term.coefficient * term.model.weights for term in terms], axis=0)


def kernel_stages(
    owner: BaseEstimator,  # the estimator that runs the boosting loop
    learner: Any,  # objects other than kernel machines are returned unchanged
    n: int,  # number of rows
    categorical: tuple[int, ...],  # indices of the categorical columns
    stages: str | None = None,  # kind of the stages of a model read from a file
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
    return kernel_learner(p if stages is None else replace(p, stages=stages), n, categorical)


def chosen_learners(
    owner: BaseEstimator,
    learner: Any,
    n: int,
    categorical: tuple[int, ...],
    stages: str | None = None,  # the kind of stages of a fitted model with one learner
) -> Any:
    """Return the learner of the parameter ``learner``, or the list of learners of a list.

    Kernel machines become the learners of a single stage, as in :func:`kernel_stages`.  In a list
    of several learners, automatic stages are sparse.  Sparse stages support row samples, so that
    proposals can be compared by other rows.
    """
    given = listed(learner)
    if len(given) == 1:
        return kernel_stages(owner, given[0], n, categorical, stages)
    return [kernel_stages(owner, one, n, categorical, stages_beside(one)) for one in given]


def stages_beside(learner: Any) -> str | None:
    """Return the kind of stages of a kernel machine beside other learners."""
    automatic = isinstance(learner, KernelBoosting) and is_auto(learner.stages)
    return "sparse" if automatic else None

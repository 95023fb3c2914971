"""What the kernel regressor and the kernel classifier share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.team import Team
from hilboost.boosting import EarlyStopping, Plan, Progress, RowSampling
from hilboost.core.contracts import Callback, Learner, Loss, Rule
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Event, Floats, Target
from hilboost.estimators._shell import Shell
from hilboost.estimators.checks import check_kernel
from hilboost.estimators.fitting import boost_until_interrupted, pass_interrupt_on
from hilboost.estimators.printing import with_printer
from hilboost.kernels import Kernel, as_kernel
from hilboost.learners.kernel_machine import (
    SELECTIONS,
    BlockLearner,
    FullLearner,
    KernelExpansion,
    Setting,
    SparseLearner,
    Workspace,
)
from hilboost.learners.kernel_machine.variance import PosteriorVariance
from hilboost.learners.kernel_machine.workspace import DIRECT_UP_TO, free_memory
from hilboost.losses import BinomialLogLoss, MultinomialLogLoss, OneHotSquaredError, SquaredError
from hilboost.rules import LineSearch, Shrinkage

_AUTO = StrOptions({"auto"})
_FULL_UP_TO = 60_000
_FULL_WITHOUT_KEEPING_UP_TO = 20_000
_OF_SPARSE_STAGES: dict[str, Any] = {
    "subset_size": None,
    "selection": "residual",
    "n_candidates": 59,
    "solver": "closed_form",
    "cg_iterations": 50,
    "penalty": "ensemble",
    "reweight": False,
    "refit_every": None,
    "length_scale_factors": None,
}
# Losses with a bound on the hessian, or none but a constant: a full step always descends.
_QUADRATIC = (SquaredError, OneHotSquaredError)
_SURE_STEPS = (*_QUADRATIC, BinomialLogLoss, MultinomialLogLoss)


class BaseKernelBoosting(Shell):
    """The shell around kernel stages; not to be used by itself."""

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
        "standardise": ["boolean", _AUTO],
        "categorical_features": [str, "array-like", None],
        "early_stopping": [_AUTO, "boolean"],
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

    def __init__(
        self,
        loss: str | Loss | type[Loss],
        *,
        kernel: Any = "auto",
        stages: str = "auto",
        n_estimators: int | str = "auto",
        regularization: float | str = "auto",
        tuning: str = "auto",
        n_basis: int | str = "auto",
        subset_size: int | None = None,
        selection: str = "residual",
        n_candidates: int | None = 59,
        solver: str = "closed_form",
        cg_iterations: int = 50,
        penalty: str = "ensemble",
        reweight: bool = False,
        refit_every: int | None = None,
        length_scale_factors: Sequence[float] | None = None,
        learning_rate: float = 1.0,
        subsample: float = 1.0,
        standardise: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 3e-3,
        time_budget: float | None = None,
        memory_budget: float | str = "auto",
        precision: str = "auto",
        device: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.stages = stages
        self.n_estimators = n_estimators
        self.regularization = regularization
        self.tuning = tuning
        self.n_basis = n_basis
        self.subset_size = subset_size
        self.selection = selection
        self.n_candidates = n_candidates
        self.solver = solver
        self.cg_iterations = cg_iterations
        self.penalty = penalty
        self.reweight = reweight
        self.refit_every = refit_every
        self.length_scale_factors = length_scale_factors
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.standardise = standardise
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        began = time.monotonic()
        fit = self._started(X, target, held_out)
        if self.early_stopping is True and held_out is None:
            fit = fit.hold_out(self.validation_fraction)
        loss, target, n = fit.loss, fit.target, len(fit.X)
        check_kernel(self.kernel, self.categorical_features, self._schema)
        learner = self._make_learner(n, self._schema.categories)
        n_threads = self._n_threads(n * n)
        data = learner.prepare(fit.X, target.weight, fit.seed, n_threads)
        plan = Plan(
            loss=loss,
            learner=learner,
            rules=self._make_rules(loss, learner),
            n_stages=self._n_stages(loss, learner),
            sampling=RowSampling(self.subsample),
            stopping=self._stopping(fit.held_out is not None),
            callbacks=(
                *with_printer(callbacks, self.verbose),
                Ending(data, began, self.time_budget),
            ),
            seed=fit.seed,
        )
        given = data.is_tuned and self.tuning == "auto"
        begun = fit.begin(plan, n_threads)
        progress, validation = begun.progress, begun.validation
        with Team(n_threads) as team:
            try:
                boost_until_interrupted(plan, data, target, progress, team, validation)
            finally:
                learner.close(data)
        self._noise = data.noise if isinstance(learner, FullLearner) else None
        self._variance: PosteriorVariance | None = None
        self.__dict__.pop("_scores", None)
        self.amplitude_ = 1.0 if given else data.amplitude(target.y - fit.start)
        self.kernel_ = data.kernel
        self.regularization_ = data.regularization
        if isinstance(loss, OneHotSquaredError) and data.trial is not None:
            rows, outputs = data.trial
            plan = replace(plan, loss=loss.sharpened(target.rows(rows), fit.start + outputs))
        self._keep(plan, progress)
        pass_interrupt_on(progress, self.n_estimators_)

    def _std(self, X: Any) -> Floats:
        """Standard deviation of a new observation."""
        check_is_fitted(self)
        if self.n_estimators_ == 0:
            raise InvalidData(
                "the model is a constant: early stopping kept no stage, so that there is no "
                "standard deviation. Give more rows, or set early_stopping=False."
            )
        if self._noise is None or type(self.loss_) is not SquaredError:
            raise InvalidData(
                "a standard deviation needs loss='squared_error' and full stages; this model has "
                f"{type(self.loss_).__name__} and {type(self.learner_).__name__}. Set "
                "stages='full' (at most about 60,000 rows)."
            )
        X = self._checked(X)
        with Team(self._n_threads(len(X) * 2000)) as team:
            if self._variance is None:
                # Every full stage has all training rows, repeated ones too.
                model = self.model_.stages[0].parts[0].model
                assert isinstance(model, KernelExpansion)
                assert self._noise is not None
                assert self.regularization_ is not None
                noise = float(self.regularization_)
                self._variance = PosteriorVariance.of(model, self._noise, noise, team)
            variance = self._variance(np.asarray(X, dtype=np.float64), team)
        return np.sqrt(self.amplitude_ * variance)

    def _make_learner(
        self, n: int, categorical: tuple[int, ...]
    ) -> FullLearner | SparseLearner | BlockLearner:
        kernel = self.kernel
        if not isinstance(kernel, Kernel) and not (isinstance(kernel, str) and kernel == "auto"):
            kernel = as_kernel(kernel)
        setting = Setting(
            kernel=kernel,
            regularization=self.regularization,
            standardise=self.standardise,
            categorical=categorical,
            memory_budget=self.memory_budget,
            precision=self.precision,
            device=self.device,
            tuning=self.tuning,
            tuning_seconds=None if self.time_budget is None else 0.35 * self.time_budget,
        )
        stages = self._stages(n)
        if self.tuning == "mean_distance" and (isinstance(kernel, Kernel) or setting.categorical):
            raise InvalidParameter(
                "tuning='mean_distance' is a Gaussian of all columns; set kernel='auto' and "
                "categorical_features=None, or another tuning."
            )
        if stages == "full":
            return FullLearner(setting, tolerance=self.tol)
        if stages == "block":
            return BlockLearner(setting, 2000 if self.n_basis == "auto" else int(self.n_basis))
        factors = _checked_factors(self.length_scale_factors)
        return SparseLearner(
            setting,
            n_basis=1000 if self.n_basis == "auto" else int(self.n_basis),
            subset_size=self.subset_size,
            selection=self.selection,
            n_candidates=self.n_candidates,
            solver=self.solver,
            cg_iterations=self.cg_iterations,
            penalty=self.penalty,
            reweight=self.reweight,
            refit_every=self.refit_every,
            length_scale_factors=factors,
        )

    def _stages(self, n: int) -> str:
        """Kernel stages on all rows where their Gram matrix can be afforded."""
        changed = [name for name, plain in _OF_SPARSE_STAGES.items() if self._differs(name, plain)]
        if self.stages != "auto":
            if self.stages != "sparse" and changed:
                raise InvalidParameter(
                    f"{', '.join(changed)} is about sparse stages and does nothing with "
                    f"stages={self.stages!r}; set stages='sparse', or leave it out."
                )
            return str(self.stages)
        if changed or self.n_basis != "auto" or self.subsample < 1:
            return "sparse"
        memory = free_memory() if self.memory_budget == "auto" else float(self.memory_budget)
        if n <= DIRECT_UP_TO and 32.0 * n * n <= memory:
            return "full"
        bytes_kept = 2.0 * n * n + 6e8
        fits = n <= _FULL_UP_TO and bytes_kept <= memory
        evaluates = n <= _FULL_WITHOUT_KEEPING_UP_TO and 4.0 * n * 2500 + 4e8 <= memory
        return "full" if fits or evaluates else "sparse"

    def _differs(self, name: str, plain: Any) -> bool:
        value = getattr(self, name)
        return value is not plain and not (isinstance(value, type(plain)) and value == plain)

    def _stopping(self, held_out: bool) -> EarlyStopping | None:
        """When to stop, with held-out rows."""
        if not held_out or self.early_stopping is False:
            return None
        return EarlyStopping(self.n_iter_no_change, 0.0)

    def _n_stages(self, loss: Loss, learner: Learner) -> int:
        if not isinstance(self.n_estimators, str):
            return int(self.n_estimators)
        if isinstance(learner, FullLearner):
            return 20 if type(loss) in _QUADRATIC else 30
        return 20

    def _make_rules(self, loss: Loss, learner: Learner) -> list[Rule]:
        rules: list[Rule] = []
        if type(loss) not in _SURE_STEPS:
            rules.append(LineSearch())
        if self.learning_rate != 1:
            rules.append(Shrinkage(float(self.learning_rate)))
        plain = not rules and type(loss) is SquaredError and self.subsample == 1
        if not plain and isinstance(learner, SparseLearner) and learner.reweight:
            raise InvalidParameter(
                "reweight=True sets the weights of all stages itself, for squared error on all "
                "rows; set loss='squared_error', learning_rate=1, subsample=1, or reweight=False."
            )
        for rule in rules:
            rule.check(loss, learner)
        return rules


def _checked_factors(factors: Sequence[float] | None) -> tuple[float, ...]:
    """Positive multiples of length scales."""
    try:
        numbers = np.array([] if factors is None else factors, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if numbers.ndim != 1 or not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise InvalidParameter(
            f"length_scale_factors must be positive finite numbers; got {factors!r}."
        )
    return tuple(numbers.tolist())


@dataclass
class Ending:
    """Ends a fit that has converged, or whose time would not suffice for one more stage."""

    data: Workspace
    began: float
    time_budget: float | None
    last: float | None = None

    def __call__(self, event: Event) -> bool:
        """Whether to stop after this stage."""
        if self.data.converged:
            return True
        if self.time_budget is None:
            return False
        now = time.monotonic()
        # The first stage also sets up the linear system: it says nothing of the next.
        a_stage = 0.0 if self.last is None else now - self.last
        self.last = now
        return now - self.began + 1.2 * a_stage > 0.98 * self.time_budget

"""Recipes of kernel machines: full, sparse and block stages, and a machine of nested bases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from hilboost.boosting.config import BoostingConfig, EarlyStopping
from hilboost.boosting.sampling import RowSampling
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_auto, positive_numbers
from hilboost.core.rule import Rule
from hilboost.kernels import Kernel, as_kernels
from hilboost.kernels.base import first_of_equals
from hilboost.kernels.registry import kernel_or_name
from hilboost.learners.kernel_machine.config import DIRECT_UP_TO, KernelMachineConfig, memory_budget
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.kernel_learner import BlockLearner
from hilboost.learners.kernel_machine.nested import NestedLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.reductions.rows import count_distinct
from hilboost.rules import PenalizedLineSearch
from hilboost.training.categories import check_kernel
from hilboost.training.data import TrainingData
from hilboost.training.defaults import SHARE_OF_TUNING
from hilboost.training.initial_state import start_of
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.kernel_finish import KernelFinish, NestedFinish
from hilboost.training.regularization import HeldOutPenalty

_FULL_UP_TO = 60_000
_FULL_WITHOUT_KEEPING_UP_TO = 20_000
_ENDLESS = 2**31 - 1  # stages: the learner stops by itself
_OF_SPARSE_STAGES = [
    field.name for field in fields(SparseLearner) if field.name not in ("setting", "n_basis")
]


@dataclass(frozen=True)
class KernelParameters:
    """Parameters of kernel stages with their defaults, as documented in the estimators."""

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
    length_scale_factors: Any = None
    learning_rate: float = 1.0
    subsample: float = 1.0
    standardize: bool | str = "auto"
    categorical_features: Any = "from_dtype"
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 3e-3
    max_iter: int = 1
    time_budget: float | None = None
    memory_budget: float | str = "auto"
    precision: str = "auto"
    device: str | None = None
    row_weight: float = 1.0  # of the data, not of the estimator

    @classmethod
    def of(cls, parameters: Mapping[str, Any], **others: Any) -> KernelParameters:
        """Create them from an estimator's parameters and others that it does not have."""
        known = {field.name for field in fields(cls)}
        own = {name: value for name, value in parameters.items() if name in known}
        return cls(**{**own, **others})

    @property
    def is_given(self) -> bool:
        """Whether the user specified both the kernel and the regularization."""
        automatic = is_auto(self.kernel) or is_auto(self.regularization)
        return is_auto(self.tuning) and not automatic

    @cached_property
    def listed(self) -> tuple[Kernel, ...]:
        """The kernels of a list."""
        return as_kernels(self.kernel) if isinstance(self.kernel, list | tuple) else ()

    @property
    def of_sparse_stages(self) -> list[str]:
        """Names of non-default parameters that apply to sparse stages only."""
        return [
            field.name
            for field in fields(self)
            if field.name in _OF_SPARSE_STAGES
            and not _equal(getattr(self, field.name), field.default)
        ]


def _equal(value: object, default: object) -> bool:
    return value is default or (isinstance(value, type(default)) and bool(value == default))


def kernel_recipe(p: KernelParameters, loss: Loss, data: TrainingData, seed: int) -> Recipe:
    """Create the recipe of kernel stages that run until convergence.

    Raises
    ------
    InvalidParameter, IncompatibleParts, InvalidData
        The parameters are incompatible with each other or with the data.
    """
    begun = start_of(loss, data, uses_units=data.target.y.shape[1] > 1)
    loss, data, initial_raw, units = begun.loss, begun.data, begun.initial_raw, begun.units
    p = replace(p, row_weight=data.row_weight)
    if p.early_stopping is True and data.held_out is None:
        data = data.hold_out(p.validation_fraction, seed)
    check_kernel(p.kernel, p.categorical_features, data.schema)
    learner = kernel_learner(p, count_distinct(data.X), data.schema.categories)
    firsts = first_of_equals(p.listed)
    early = data.held_out is not None and p.early_stopping is not False
    n_stages = _n_stages(p, loss, learner, max(1, len(set(firsts))))
    config = BoostingConfig(
        loss=loss,
        learner=learner,
        seed=seed,
        n_stages=n_stages,
        rules=_rules(p, loss, learner),
        learning_rate=float(p.learning_rate),
        sampling=RowSampling(p.subsample),
        stopping=EarlyStopping(p.n_iter_no_change, 0.0) if early else None,
        units=units,
    )
    return Recipe(
        config,
        initial_raw,
        data,
        time_budget=p.time_budget,
        choose_penalty=penalty_choice(loss, data, initial_raw),
        finish=KernelFinish(
            p.is_given,
            is_auto(p.regularization),
            firsts,
            sizes=None if units is None else units.size,
            enough=n_stages if is_auto(p.n_estimators) and not early else None,
            samples=p.subsample < 1,
        ),
    )


def nested_recipe(p: KernelParameters, loss: Loss, data: TrainingData, seed: int) -> Recipe:
    """Create the recipe of steps on one machine of nested bases; they stop by themselves."""
    p = replace(p, stages="sparse", row_weight=data.row_weight)
    recipe = kernel_recipe(p, loss, data, seed)
    loss = recipe.config.loss
    search = HeldOutPenalty(loss, recipe.data.target, recipe.initial_raw)
    config = replace(
        recipe.config,
        learner=nested_learner(p, data.schema.categories),
        n_stages=_ENDLESS,
        rules=() if loss.quadratic else (PenalizedLineSearch(),),
        # The number of steps on one machine never triggers early stopping.
        stopping=EarlyStopping(_ENDLESS, 0.0) if recipe.data.held_out is not None else None,
    )
    return replace(
        recipe,
        config=config,
        choose_penalty=None if loss.quadratic else search.of_basis,
        finish=NestedFinish(p.is_given, is_auto(p.regularization)),
    )


def nested_learner(p: KernelParameters, categorical: tuple[int, ...]) -> NestedLearner:
    """Create the learner of one machine of nested bases."""
    sparse = _sparse_learner(p, _config(p, categorical))
    return NestedLearner(sparse, float(p.tol), int(p.max_iter))


def kernel_learner(p: KernelParameters, n: int, categorical: tuple[int, ...]) -> Learner:
    """Create the learner of the stages that the parameters specify, for n distinct rows.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    kernels = tuple(p.listed[k] for k in sorted(set(first_of_equals(p.listed))))
    if kernels:
        p = replace(p, kernel=kernels[0])
    config, stages = _config(p, categorical), _stages(p, n, max(1, len(kernels)))
    if len(kernels) > 1:
        config = replace(config, kernels=kernels)
    if stages == "full":
        return FullLearner(config, tolerance=p.tol)
    if stages == "block":
        size = 2000 if is_auto(p.n_basis) else int(p.n_basis)
        return BlockLearner(config, size)
    return _sparse_learner(p, config)


def _config(p: KernelParameters, categorical: tuple[int, ...]) -> KernelMachineConfig:
    """Create the settings that all kinds of stages share."""
    kernel = kernel_or_name(p.kernel, "auto")
    if p.tuning == "mean_distance" and (categorical or not is_auto(kernel)):
        raise InvalidParameter(
            "tuning='mean_distance' requires kernel='auto' and categorical_features=None, because "
            "it uses a Gaussian kernel on all columns; set these, or use another tuning."
        )
    return KernelMachineConfig(
        kernel=kernel,
        regularization=p.regularization,
        standardize=p.standardize,
        categorical=categorical,
        memory_budget=p.memory_budget,
        precision=p.precision,
        device=p.device,
        tuning=p.tuning,
        tuning_seconds=None if p.time_budget is None else SHARE_OF_TUNING * p.time_budget,
        row_weight=p.row_weight,
    )


def _sparse_learner(p: KernelParameters, config: KernelMachineConfig) -> SparseLearner:
    own = {name: getattr(p, name) for name in _OF_SPARSE_STAGES}
    own["length_scale_factors"] = _checked_factors(p.length_scale_factors)
    return SparseLearner(config, 1000 if is_auto(p.n_basis) else int(p.n_basis), **own)


def _stages(p: KernelParameters, n: int, n_kernels: int) -> str:
    """Use kernel stages on all rows if their Gram matrices are affordable."""
    changed = p.of_sparse_stages
    if not is_auto(p.stages):
        if p.stages != "sparse" and changed:
            raise InvalidParameter(
                f"{', '.join(changed)} applies only to sparse stages and has no effect with "
                f"stages={p.stages!r}; set stages='sparse', or remove it."
            )
        return str(p.stages)
    if changed or not is_auto(p.n_basis) or p.subsample < 1:
        return "sparse"
    memory = memory_budget(p.memory_budget) / n_kernels
    if n <= DIRECT_UP_TO and 32.0 * n * n <= memory:
        return "full"
    bytes_kept = 2.0 * n * n + 6e8
    fits = n <= _FULL_UP_TO and bytes_kept <= memory
    evaluates = n <= _FULL_WITHOUT_KEEPING_UP_TO and 4.0 * n * 2500 + 4e8 <= memory
    return "full" if fits or evaluates else "sparse"


def _checked_factors(factors: object) -> tuple[float, ...]:
    """Validate the positive multiples of length scales."""
    numbers = positive_numbers([] if factors is None else factors)
    if numbers is None or numbers.ndim != 1:
        raise InvalidParameter(
            f"length_scale_factors must be positive finite numbers; got {shown(factors)}."
        )
    return tuple(numbers.tolist())


def penalty_choice(
    loss: Loss, data: TrainingData, initial_raw: Floats
) -> Callable[..., tuple[float, float]] | None:
    """Return the function that selects λ by the held-out loss, for losses that require it."""
    return None if loss.bounded_hessian else HeldOutPenalty(loss, data.target, initial_raw).of_rows


def _n_stages(p: KernelParameters, loss: Loss, learner: Learner, n_kernels: int) -> int:
    if not is_auto(p.n_estimators):
        return int(p.n_estimators)
    if not loss.bounded_hessian:
        # Most fits stop earlier, when the penalized loss no longer decreases.
        return 60 * n_kernels
    return (30 if learner.name == "full" else 20) * n_kernels


def _rules(p: KernelParameters, loss: Loss, learner: Learner) -> tuple[Rule, ...]:
    search = PenalizedLineSearch(keeps_whole_steps=loss.bounded_hessian)
    rules = () if loss.quadratic else (search,)
    is_plain = loss.quadratic and loss.sharpness is None and p.learning_rate == p.subsample == 1
    if p.reweight and not is_plain:  # which implies sparse stages
        raise InvalidParameter(
            "reweight=True requires loss='squared_error', learning_rate=1 and subsample=1, because "
            "it computes the weights of all stages on all rows; set these, or reweight=False."
        )
    for rule in rules:
        rule.check(loss, learner)
    return rules

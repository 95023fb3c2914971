"""Learners of tabular data: built-in ones by name, the automatic one, lists, and users' own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hilboost.core.errors import InvalidParameter, InvalidType, unknown_name
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import as_list, is_name
from hilboost.core.rule import Rule
from hilboost.encoders.encoding import Encoder
from hilboost.engine import TreeSettings
from hilboost.learners.mixed import MixedLearner
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.rules import LineSearch, PenalizedLineSearch, SearchByTerm
from hilboost.tables.blocks import as_table
from hilboost.tables.schema import Schema, category_columns
from hilboost.training.categories import check_learner, for_table, learner_name
from hilboost.training.defaults import SHARE_OF_TUNING, FitTraits, resolve
from hilboost.training.recipe import Recipe
from hilboost.validation.choices import check_regressor
from hilboost.validation.constraints import interaction_groups, monotonic_directions

if TYPE_CHECKING:
    from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner


def listed(learner: Any) -> list[Any]:
    """Return the learners that the parameter ``learner`` lists; one learner is a list of one."""
    given = as_list(learner)
    if not given:
        raise InvalidParameter("learner is an empty list; it must contain at least one learner.")
    if any(isinstance(one, list | tuple) for one in given):
        raise InvalidType("learner contains a nested list; put all learners into one list.")
    if given[0] is not learner and any(is_name(one, "auto") for one in given):
        raise InvalidParameter(
            "learner is a list that contains 'auto', which chooses its own learners; set "
            "learner='auto', or list 'tree' instead."
        )
    return given


def names(learner: Any, name: str) -> bool:
    """Return whether the parameter is this name, or a list that contains it."""
    return any(is_name(one, name) for one in listed(learner))


def mixed(given: Sequence[Any], make: Callable[[Any], Learner]) -> Learner:
    """Create the learner of a list of names and objects; a list of one gives the learner itself."""
    if len(given) == 1:
        return make(given[0])
    learners = tuple(make(one) for one in given)
    pairs = zip(given, learners, strict=True)
    return MixedLearner(learners, _distinct([_name(one, learner) for one, learner in pairs]))


def learner_of(given: Any, names: tuple[str, ...], together: bool = False) -> Learner:
    """Return a learner as it is, and wrap a regressor; ``names`` name the other learners."""
    if isinstance(given, Learner):
        return given
    check_regressor(given, names)
    from hilboost.learners.wrapped import WrappedLearner

    return WrappedLearner(given, together=together)


def _name(given: object, learner: Learner) -> str:
    """Return the name of a learner in ``learners_``."""
    if isinstance(given, str):
        return given
    return type(given).__name__ if learner.name is None else learner.name


def _distinct(found: list[str]) -> tuple[str, ...]:
    """Number the repetitions of a name."""
    return tuple(
        name if name not in found[:k] else f"{name}-{1 + found[:k].count(name)}"
        for k, name in enumerate(found)
    )


def check_parts(given: object, learner: Learner, schema: Schema, instead: str) -> None:
    """Reject category columns if one of the learners would treat them as numbers."""
    listing = listed(given)
    parts = learner.parts if len(listing) == len(learner.parts) else (learner,)
    for one, part in zip(listing, parts, strict=True):
        check_learner(part, schema, f"learner {learner_name(one)}", instead)


def mixed_rules(line_search: bool | str, loss: Loss) -> tuple[Rule, ...]:
    """Return the line search of a mixed learner, according to the terms of each stage."""
    if line_search is True:
        return (LineSearch(),)
    if line_search is False:
        return ()
    plain = LineSearch(skip_leaves=loss.has_leaf_values)
    return (SearchByTerm(None if loss.quadratic else PenalizedLineSearch(), plain),)


_BASIS_BESIDE_OTHERS = 300  # of many short stages, each with basis vectors of its own


@dataclass(frozen=True)
class LearnerSettings:
    """Settings that determine the learner of a table."""

    parameters: Mapping[str, Any]
    resolved: ResolvedParameters  # masses are sums of divided weights
    schema: Schema
    row: float = 1.0  # the weight that counts as one row, in divided weights
    counts_targets: bool = False  # whether hessians count known targets
    encoder: Encoder | None = None


def table_learner(settings: LearnerSettings) -> Learner:
    """Create the learner that the settings specify.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    given = listed(settings.parameters["learner"])
    if len(given) > 1 or not names(given, "tree"):
        for name in ("monotonic_cst", "interaction_cst"):
            if settings.parameters[name] is not None:
                raise InvalidParameter(
                    f"{name} is only supported by the built-in trees; set learner='tree', or "
                    f"{name}=None."
                )
    if settings.parameters["device"] is not None and not (
        names(given, "tree") or names(given, "kernel")
    ):
        raise InvalidParameter(
            "device is only supported by the built-in trees and kernel machines; set "
            "learner='tree', or device=None."
        )

    def learner_from(one: object) -> Learner:
        if isinstance(one, str):
            if one not in _BY_NAME:
                raise unknown_name("learner", one, LEARNERS)
            return _BY_NAME[one](settings)
        return learner_of(one, LEARNERS)

    learner = mixed(given, learner_from)
    return for_table(learner, settings.schema, settings.encoder, settings.counts_targets)


def stored_learner(
    p: Mapping[str, Any],
    resolved: ResolvedParameters | None,
    schema: Schema,
    parts: Mapping[str, ModelPart] | None = None,
) -> Learner:
    """Create the learner of a model read from a file; old files do not have ``resolved``."""
    p = as_trees(p)
    if resolved is None and is_name(p["learner"], "tree"):
        return TreeLearner()
    if resolved is None:
        resolved = resolve(p, FitTraits(1.0, 1, schema.n_columns))
    return with_stored_part(table_learner(LearnerSettings(p, resolved, schema)), parts)


def _kernel_machine(settings: LearnerSettings) -> Learner:
    from hilboost.learners.kernel_machine.config import KernelMachineConfig
    from hilboost.learners.kernel_machine.sparse import SparseLearner

    columns = tuple(column for column, _ in category_columns(settings.schema))
    config = KernelMachineConfig(
        categorical=columns,
        device=settings.parameters["device"],
        tuning_seconds=_seconds_of_tuning(settings),
        row_weight=settings.row,
    )
    if len(listed(settings.parameters["learner"])) > 1:
        return SparseLearner(config, n_basis=_BASIS_BESIDE_OTHERS)
    return SparseLearner(config)


def _seconds_of_tuning(settings: LearnerSettings) -> float | None:
    """Time of each member for its choice of a kernel."""
    time_budget, resolved = settings.parameters.get("time_budget"), settings.resolved
    n_members = resolved.cv_folds if resolved.early_stopping else 1
    return None if time_budget is None else SHARE_OF_TUNING * time_budget / n_members


def _tree_learner(settings: LearnerSettings) -> TreeLearner:
    p, resolved, schema = settings.parameters, settings.resolved, settings.schema
    shared = p["multi_output"] == "shared"
    if p["sketch"] is not None and not shared:
        raise InvalidParameter(
            "sketch is only supported by shared trees; set multi_output='shared', or sketch=None."
        )
    monotonic = monotonic_directions(p["monotonic_cst"], schema.n_columns, schema.names)
    if monotonic and p["sketch"] is not None:
        raise InvalidParameter(
            "monotonic_cst is not supported with sketch, which grows trees on combinations of the "
            "outputs; set sketch=None."
        )
    return TreeLearner(
        max_leaf_nodes=resolved.max_leaf_nodes,
        max_depth=p["max_depth"],
        min_samples_leaf=resolved.min_samples_leaf,
        min_hessian=p["min_hessian"] * settings.row,
        l2_regularization=resolved.l2_regularization,
        min_gain=p["min_gain"],
        max_features=resolved.max_features,
        max_features_per_tree=p["max_features_per_tree"],
        max_bins=p["max_bins"],
        device=p["device"],
        symmetric=resolved.symmetric,
        shared=shared,
        sketch=p["sketch"],
        monotonic=monotonic,
        groups=interaction_groups(p["interaction_cst"], schema.n_columns, schema.names),
        level_smoothing=TreeSettings.level_smoothing * settings.row,
        min_samples_level=min(
            TreeSettings.min_samples_level * settings.row, resolved.min_samples_leaf
        ),
        level_l2=TreeSettings.level_l2 * settings.row,
    )


_BY_NAME: Mapping[str, Callable[[LearnerSettings], Learner]] = MappingProxyType(
    {
        "tree": _tree_learner,
        "kernel": _kernel_machine,
        "linear": lambda _: RidgeLearner(),
    }
)
LEARNERS = ("auto", *_BY_NAME)

_FEWEST_ROWS, _MOST_ROWS = 40, 100_000  # of tables on which a kernel machine is tried
_FEWEST_LEARNED = 20  # by each member
_MOST_OUTPUTS = 100
_FEWEST_CENTERS, _FEW_CENTERS, _FEW_CENTERS_ROWS = 2500, 3000, 20_000
_CENTERS_OF_ROOT = 30  # times the square root of the number of rows
_MANY_CENTERS, _MOST_OPERATIONS = 4000, 6e11


def as_trees(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a fit of trees instead of the automatic learner's parameters."""
    p = dict(parameters)
    return p | {"learner": "tree"} if is_name(p["learner"], "auto") else p


def kernel_part(p: Mapping[str, Any], recipe: Recipe) -> MetricKernelLearner | None:
    """Return the kernel machine that may be added to the trees, if the fit allows one."""
    data, table = recipe.data, as_table(recipe.data.X)
    is_judged = recipe.n_folds > 1 or data.held_out is not None
    constrained = p["monotonic_cst"] is not None or p["interaction_cst"] is not None
    possible = (
        recipe.config.stopping is not None
        and is_judged
        and recipe.config.loss.joins_kernel_machine
        and recipe.n_outputs <= _MOST_OUTPUTS
        and not recipe.config.metrics
        and not data.target.is_divided
        and data.target.groups is None
        and data.target.offset is None
        and _FEWEST_ROWS <= len(data.X) <= _MOST_ROWS
        and all(len(split.learned) >= _FEWEST_LEARNED for split in recipe.splits)
        and not (table.is_sparse or table.is_on_disk)
        and not (constrained or p["warm_start"] or recipe.rotation.at_start > 1)
    )
    if not possible:
        return None
    from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner

    columns = () if recipe.encoder is None else recipe.encoder.categorical
    return MetricKernelLearner(_n_centers(len(data.X)), categorical=columns)


def _n_centers(n: int) -> int:
    """More rows support more centers, as long as the ``n m²`` operations take seconds."""
    if n <= _FEW_CENTERS_ROWS:
        return int(min(max(_CENTERS_OF_ROOT * math.sqrt(n), _FEWEST_CENTERS), _FEW_CENTERS))
    return int(min(_MANY_CENTERS, math.sqrt(_MOST_OPERATIONS / n)))


def with_stored_part(trees: Learner, parts: Mapping[str, ModelPart] | None) -> Learner:
    """Return the learner of a model read from a file, with the record of its parts."""
    if parts is None or not parts["kernel"].weight:
        return trees
    from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner

    return MixedLearner((trees, MetricKernelLearner()), ("tree", "kernel"))

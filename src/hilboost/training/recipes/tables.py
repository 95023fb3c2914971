"""Recipes for tabular data: trees by default, or any other learner by name or as an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.boosting.config import BoostingConfig, EarlyStopping
from hilboost.boosting.effective_size import WeightScale, warn_of_uneven_weights
from hilboost.boosting.offsets import steps_beside_offsets
from hilboost.boosting.rotation import RotationPlan
from hilboost.boosting.sampling import RowSampling
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import Learner, splits_of
from hilboost.core.loss import Loss
from hilboost.core.metric import Metric
from hilboost.core.plain_values import is_auto, is_name
from hilboost.core.rule import Rule
from hilboost.core.target import Target
from hilboost.losses.registry import gives_probabilities
from hilboost.model.fit_facts import ResolvedParameters
from hilboost.reductions.row_splits import Split, has_roles, last_is_model, splits_of_members
from hilboost.reductions.sums import total_weight
from hilboost.rules import LineSearch, PenalizedLineSearch, ReestimateLeaves
from hilboost.tables.schema import category_columns
from hilboost.training.categories import encoder_for
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.defaults import (
    FEWEST_EQUAL,
    FitTraits,
    in_fit_weights,
    in_given_weights,
    in_rows,
    is_designed,
    is_hidden,
    resolve,
)
from hilboost.training.initial_state import Start, start_of
from hilboost.training.locations import location_first
from hilboost.training.recipe import OpenChoices, Recipe
from hilboost.training.recipes.candidates import candidates
from hilboost.training.recipes.table_learners import (
    LearnerSettings,
    as_trees,
    check_parts,
    kernel_part,
    mixed_rules,
    table_learner,
)
from hilboost.validation.weights import warn_of_light_weights

_LITTLE_PENALTY = 0.01  # hessians of ordered pairs are far smaller than one
_MOST_OF_HIDDEN = 0.9  # larger samples find the leaves of few rows
_SHARE_OF_FOLDS = 0.1  # of the rows, in blocks of time without a validation_fraction
_EXTENSION = 1.5  # of the best number of stages of members, whose mean overfits groups later
_ENTRIES_BESIDES = 8
"""Other work on a row of a tree, in entries."""
_ROWS_OF_SEARCH = 2500
"""For how many rows the sums of a tree take as long as its search for splits, roughly."""
_ENTRIES_WORTH_SHARING, _SHARED = 2**21, 2
"""Entries of one tree from which on threads share it, and how many more these need each."""


def table_recipe(
    parameters: Mapping[str, Any],  # parameters of ``BoostingRegressor`` or ``BoostingClassifier``
    loss: Loss,
    data: TrainingData,
    seed: int,
    # A continued fit keeps the values that the first one chose for automatic parameters
    continuation: Continuation | None,
) -> Recipe:
    """Create the recipe of a fit to tabular data.

    Raises
    ------
    InvalidParameter, InvalidType, IncompatibleParts, InvalidData
        The parameters are incompatible with each other or with the data.
    """
    p, given = as_trees(parameters), data
    if p["validation_fraction"] is None and is_auto(p["cv_folds"]) and not has_roles(data.target):
        p = p | {"cv_folds": 1}  # no rows are to be held out
    scale = _weight_scale(p, data)
    data = replace(data, target=scale.divided(data.target))
    begun = start_of(loss, data, continuation=continuation)
    loss, data, initial_raw = begun.loss, begun.data, begun.initial_raw
    if continuation is not None and continuation.resolved is not None:
        p = continuation.resolved.fill(p)
    resolved = _resolved(p, begun, scale)
    settings = LearnerSettings(
        *(p, in_fit_weights(resolved, scale), data.schema, scale.row),
        counts_targets=loss.hessian_counts_targets,
    )
    learner = table_learner(settings)  # it decides about the rows and the encoding
    if is_auto(p["subsample"]):
        resolved = replace(resolved, subsample=_share_of_rows(resolved, learner, begun))
    _check_learner(p, learner, data)
    metrics = _metrics(p, resolved, data)
    data, splits = _with_held_out_rows(p, resolved, learner, data, seed)
    n_folds = max(1, len(splits) - last_is_model(splits, data.target))
    rotation = RotationPlan.of(
        *(parameters, resolved, learner, data.target.n_rows, max(1, len(splits))),
        None if continuation is None else continuation.resolved or resolved,
    )
    if (order := rotation.order(len(data.X), seed)) is not None:
        data = data.rows(order, _may_stay_in_place(learner, data))
    resolved = replace(rotation.resolved(resolved), cv_folds=n_folds)
    _warn_of_weights(p, learner, scale, resolved, data)
    encoder = encoder_for(learner, data, _averaged(begun, data), p["target_encoding"])
    learner = table_learner(settings := replace(settings, encoder=encoder))
    recipe = Recipe(
        _config(p, begun, learner, resolved, data, metrics, seed),
        initial_raw,
        data,
        splits=splits,
        rotation=rotation,
        encoder=encoder,
        resolved=resolved,
        choose_penalty=_penalty_choice(loss, learner, data, initial_raw),
        time_budget=p["time_budget"],
    )
    choices = OpenChoices(learning_rate=is_auto(p["learning_rate"]))
    if is_name(parameters["learner"], "auto"):
        choices = replace(choices, kernel_part=kernel_part(p, recipe))
        if rotation.at_start == 1 and not given.target.is_divided:
            first = location_first(table_recipe, parameters, given, recipe, seed)
            recipe = replace(recipe, location_first=first)
    choices = replace(choices, candidates=candidates(settings, recipe, resolved))
    return replace(recipe, choices=choices)


def _config(
    p: Mapping[str, Any],
    begun: Start,
    learner: Learner,
    resolved: ResolvedParameters,
    data: TrainingData,
    metrics: tuple[Metric, ...],
    seed: int,
) -> BoostingConfig:
    return BoostingConfig(
        loss=begun.loss,
        learner=learner,
        seed=seed,
        n_stages=resolved.n_estimators,
        rules=table_rules(p["line_search"], begun.loss, learner),
        learning_rate=float(resolved.learning_rate),
        sampling=RowSampling(resolved.subsample, p["bootstrap"]),
        stopping=_early_stopping(p, begun.loss, resolved, data),
        units=begun.units,
        metrics=metrics,
    )


def _averaged(begun: Start, data: TrainingData) -> Callable[..., Target]:
    """Return the function of the target whose means encode categories."""
    steps = data.target.offset is not None or data.codec.has_bounds(data.target)
    if steps and data.codec.kind != "survival" and not begun.loss.couples_rows:
        return partial(steps_beside_offsets, begun.loss, begun.initial_raw)
    return data.codec.averaged


def _resolved(p: dict[str, Any], begun: Start, scale: WeightScale) -> ResolvedParameters:
    """Choose the automatic parameters, in the units of the user's weights."""
    loss, data = begun.loss, begun.data
    two_classes = data.codec.n_classes == 2 and not loss.quadratic and gives_probabilities(loss)
    is_survival = data.codec.kind == "survival"
    coupled = loss.couples_rows or (is_survival and not loss.adaptive)
    traits = FitTraits(
        n=total_weight(data.target) / scale.row,
        n_here=data.target.n_rows,
        d=data.X.shape[1],
        n_trees=1 if p["multi_output"] == "shared" else len(begun.initial_raw),
        held_out=data.held_out is not None,
        leaf_loss=loss.has_leaf_values,
        two_classes=two_classes,
        predicts_numbers=not (
            data.codec.n_classes or coupled or is_survival or loss.has_distribution
        ),
        coupled=coupled,
        scaled=loss.adaptive and is_survival,
        distributed=loss.has_distribution and len(begun.initial_raw) > 1,
        symmetric_leaves=_symmetric_leaves(p, data),
        small_hessians=two_classes or (coupled and not loss.bounded_hessian),
        ranks=data.target.groups is not None,
        noisy=loss.counts_positions or data.target.dependence is not None,
    )
    resolved = resolve(in_rows(p, scale), traits)
    if (coupled or loss.has_leaf_values) and is_designed(data, scale.row):
        least = min(FEWEST_EQUAL, resolved.min_samples_leaf)
        resolved = replace(resolved, min_samples_leaf=least)
        if coupled and is_auto(p["l2_regularization"]):
            resolved = replace(resolved, l2_regularization=_LITTLE_PENALTY)
    return in_given_weights(resolved, p, scale)


def _share_of_rows(resolved: ResolvedParameters, learner: Learner, begun: Start) -> float:
    """Share of the rows that each stage learns from: not all where these hide the target."""
    if not learner.capabilities.takes_samples:
        return 1.0
    if resolved.subsample == 1 and splits_of(learner) and is_hidden(begun):
        return min(_MOST_OF_HIDDEN, 1 - 1 / begun.data.target.n_rows)
    return resolved.subsample


def _symmetric_leaves(p: Mapping[str, Any], data: TrainingData) -> int | None:
    """Number of leaves of symmetric trees; ``None`` if trees grow best first.

    By default, trees of rankings and of survival times are symmetric where nothing forbids it.
    """
    constrained = p["monotonic_cst"] is not None or p["interaction_cst"] is not None
    if constrained and p["growth"] == "symmetric":
        raise InvalidParameter(
            "monotonic_cst and interaction_cst are not supported by symmetric trees; set "
            "growth='best_first', or both to None."
        )
    is_survival = data.codec.kind == "survival"
    divided = p["target_encoding"] is False and bool(category_columns(data.schema))
    by_default = (is_survival or data.target.groups is not None) and not (constrained or divided)
    if p["growth"] == "symmetric" or (is_auto(p["growth"]) and by_default):
        return 16 if is_survival else 64
    return None


def _with_held_out_rows(
    p: Mapping[str, Any],
    resolved: ResolvedParameters,
    learner: Learner,
    data: TrainingData,
    seed: int,
) -> tuple[TrainingData, tuple[Split, ...]]:
    """Hold out rows for early stopping if necessary, or return the splits of several members."""
    if not resolved.early_stopping or data.held_out is not None or _stops_on_training_rows(p):
        return data, ()
    _check_splitter(p, data)
    share, key = p["validation_fraction"] or _SHARE_OF_FOLDS, key_of(seed, Purpose.FOLDS)
    if learner.capabilities.works_on_folds:
        splits = splits_of_members(key, data.strata, resolved.cv_folds, share, data.target)
        if splits:
            return data, splits
    return data.hold_out(share, seed, _may_stay_in_place(learner, data)), ()


def _check_splitter(p: Mapping[str, Any], data: TrainingData) -> None:
    dependence, n_folds = data.target.dependence, p["cv_folds"]
    if dependence is None or dependence.roles is None or is_auto(n_folds):
        return
    if n_folds != dependence.roles.shape[1]:  # which a continued fit has
        raise InvalidParameter(
            f"cv_folds={n_folds} and a splitter both set the number of folds; set "
            "cv_folds='auto', or validation='auto'."
        )


def _may_stay_in_place(learner: Learner, data: TrainingData) -> bool:
    """Whether the training rows may remain rows of a larger table; encoders need an array."""
    return learner.capabilities.reads_blocks and not data.schema.categories


def _stops_on_training_rows(p: Mapping[str, Any]) -> bool:
    return p["validation_fraction"] is None and p["cv_folds"] == 1


def _metrics(
    p: Mapping[str, Any], resolved: ResolvedParameters, data: TrainingData
) -> tuple[Metric, ...]:
    """Create the metrics; they are computed on held-out rows."""
    if p.get("eval_metric") is None:
        return ()
    from hilboost.metrics.registry import metrics_of, refuse_bounds_of

    kind = data.codec.kind if data.target.groups is None else "groups"
    metrics = metrics_of(p["eval_metric"], kind)
    if data.codec.has_bounds(data.target):
        refuse_bounds_of(metrics)
    if metrics and data.held_out is None and _stops_on_training_rows(p):
        raise InvalidParameter(
            "eval_metric is computed on held-out rows, and validation_fraction=None holds none "
            "out; pass X_val and y_val, set validation_fraction to a number, or set "
            "eval_metric=None."
        )
    if metrics and data.held_out is None and not resolved.early_stopping:
        raise InvalidParameter(
            "eval_metric is computed on held-out rows, and early_stopping=False holds none out; "
            "pass X_val and y_val, set early_stopping=True, or set eval_metric=None."
        )
    return metrics


def _early_stopping(
    p: Mapping[str, Any], loss: Loss, resolved: ResolvedParameters, data: TrainingData
) -> EarlyStopping | None:
    if not resolved.early_stopping:
        return None
    on_training_rows = data.held_out is None and _stops_on_training_rows(p)
    dependence = data.target.dependence
    of_groups = dependence is not None and dependence.kind == "groups"
    averages = of_groups and resolved.cv_folds > 1 and loss.quadratic
    extension = _EXTENSION if averages else 1.0
    return EarlyStopping(resolved.n_iter_no_change, p["tol"], on_training_rows, extension)


def _penalty_choice(
    loss: Loss, learner: Learner, data: TrainingData, initial_raw: Floats
) -> Callable[..., tuple[float, float]] | None:
    """Select λ by the held-out loss, for kernel machines with losses other than squared error."""
    if (
        loss.quadratic
        or loss.couples_rows
        or not any(part.capabilities.penalizes for part in learner.parts)
    ):
        return None
    from hilboost.training.regularization import HeldOutPenalty  # not for trees

    return HeldOutPenalty(loss, data.target, initial_raw).of_rows


def work(recipe: Recipe, multi_output: str) -> int:
    """Number of entries that a stage processes."""
    n_trees = 1 if multi_output == "shared" else recipe.n_outputs
    n_entries = int(recipe.data.X.size * n_trees * recipe.n_folds)
    one_tree = n_trees * recipe.n_folds == 1 and len(recipe.config.learner.parts) == 1
    n_rows, d = recipe.data.X.shape
    if one_tree:  # which all threads grow together
        n_entries = max(n_rows, _ROWS_OF_SEARCH) * d + n_rows * _ENTRIES_BESIDES
        return n_entries // _SHARED if n_entries >= _ENTRIES_WORTH_SHARING else 0
    return n_entries


def _check_learner(p: Mapping[str, Any], learner: Learner, data: TrainingData) -> None:
    """Check that the learner is compatible with the other parameters and the data."""
    if p["warm_start"] and not learner.capabilities.continues:
        raise InvalidParameter(
            "warm_start is not supported by learners that penalize the norm of the whole model "
            "and whose state cannot be kept; set warm_start=False, or use another learner."
        )
    _check_classes(learner, data)
    check_parts(p["learner"], learner, data.schema, "set learner='tree'")


def _check_classes(learner: Learner, data: TrainingData) -> None:
    """Check that monotonic directions are used with two classes: they refer to the second one."""
    n_classes = data.codec.n_classes
    if n_classes in (None, 2):
        return
    if any(splits.monotonic for splits in splits_of(learner)):
        raise InvalidParameter(
            f"monotonic_cst supports two classes; y has {n_classes}, whose "
            "probabilities cannot all increase. Set monotonic_cst=None."
        )


def _weight_scale(p: Mapping[str, Any], data: TrainingData) -> WeightScale:
    """Determine the scale of the weights; only for trees are parameters in numbers of rows."""
    if is_name(p["learner"], "tree"):
        return WeightScale(divisor=data.row_weight)
    return WeightScale(row=data.row_weight)


def _warn_of_weights(
    p: Mapping[str, Any],
    learner: Learner,
    scale: WeightScale,
    resolved: ResolvedParameters,
    data: TrainingData,
) -> None:
    """Warn if no leaf of the only learner can reach the minimum weight."""
    trees = splits_of(learner)
    if not trees or len(learner.parts) > 1:
        return
    if is_auto(p["min_samples_leaf"]):
        warn_of_uneven_weights(scale, data.target, trees[0].min_samples_leaf)
    else:
        warn_of_light_weights(data.target, resolved.min_samples_leaf, scale.divisor)


def table_rules(line_search: bool | str, loss: Loss, learner: Learner) -> tuple[Rule, ...]:
    """Return the rules for leaf values set by the loss and for the line search."""
    rules: list[Rule] = []
    if loss.has_leaf_values:
        rules.append(ReestimateLeaves())
    if len(learner.parts) > 1:
        rules += mixed_rules(line_search, loss)
    elif line_search is True:
        rules.append(LineSearch())
    elif is_auto(line_search) and not _needs_no_search(loss, learner):
        search = LineSearch(skip_leaves=loss.has_leaf_values)
        rules.append(PenalizedLineSearch() if learner.capabilities.penalizes else search)
    for rule in rules:
        rule.check(loss, learner)
    return tuple(rules)


def _needs_no_search(loss: Loss, learner: Learner) -> bool:
    return learner.capabilities.newton_steps or (learner.capabilities.penalizes and loss.quadratic)

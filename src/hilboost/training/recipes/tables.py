"""Recipes for tabular data: trees by default, or any other learner by name or as an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hilboost.boosting import EarlyStopping, RowSampling
from hilboost.boosting.effective_size import (
    WeightScale,
    warn_of_uneven_weights,
    weight_scale,
)
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, InvalidType, unknown_name
from hilboost.core.learner import Learner
from hilboost.core.loss import LeafLoss, Loss
from hilboost.core.rule import Rule
from hilboost.encoders import Encoder
from hilboost.learners.kernel_machine import KernelMachineConfig, SparseLearner
from hilboost.learners.tree import TreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses.masked import MaskedLoss
from hilboost.model.codecs import ClassCodec
from hilboost.model.resolved import ResolvedParameters, is_auto
from hilboost.rules import LineSearch, PenalizedLineSearch, ReestimateLeaves
from hilboost.tables import Schema, category_columns
from hilboost.training.begin import start_in_units
from hilboost.training.categories import with_categories
from hilboost.training.compatibility import check_learner, learner_name
from hilboost.training.data import TrainingData
from hilboost.training.defaults import in_fit_weights, in_given_weights, in_rows, resolve
from hilboost.training.recipe import Candidate, Continuation, Recipe
from hilboost.training.regularization import held_out_penalty
from hilboost.validation.constraints import interaction_groups, monotonic_directions
from hilboost.validation.weights import warn_of_light_weights

_LEARNERS = ("tree", "kernel")
_FEWEST_COLUMNS_TO_DRAW = 4
_MAX_FEATURES_TRIED = (0.5, 1.0)


def table_recipe(
    parameters: Mapping[str, Any],
    loss: Loss,
    data: TrainingData,
    seed: int,
    continuation: Continuation | None,
) -> Recipe:
    """Create the recipe of a fit to tabular data.

    Parameters
    ----------
    parameters : mapping
        Parameters of ``BoostingRegressor`` or ``BoostingClassifier``.
    loss : Loss
    data : TrainingData
    seed : int
    continuation : Continuation or None
        A continued fit keeps the values that the first one chose for automatic parameters.

    Raises
    ------
    InvalidParameter, InvalidType, IncompatibleParts, InvalidData
        The parameters are incompatible with each other or with the data.
    """
    p, held_out = dict(parameters), data.held_out is not None
    scale = _weight_scale(p, data)
    data = replace(data, target=scale.divided(data.target))
    begun = start_in_units(loss, data, continuation)
    loss, data, initial_raw = begun.loss, begun.data, begun.initial_raw
    if continuation is not None and continuation.resolved is not None:
        p = continuation.resolved.fill(p)
    n_trees = 1 if p["multi_output"] == "shared" else len(initial_raw)
    two_classes = isinstance(data.codec, ClassCodec) and len(data.codec.classes) == 2
    resolved = resolve(
        in_rows(p, scale),
        data.target.total_weight() / scale.row,
        data.X.shape[1],
        n_trees,
        held_out,
        isinstance(loss, LeafLoss),
        two_classes and not loss.quadratic,
    )
    resolved = in_given_weights(resolved, p, scale)
    learner = table_learner(p, in_fit_weights(resolved, scale), data.schema)
    if p["warm_start"] and learner.penalizes:
        raise InvalidParameter(
            "warm_start is not supported by kernel machines, which penalize the norm of the whole "
            "model; set warm_start=False, or learner='tree'."
        )
    _check_classes(learner, data)
    name = f"learner {learner_name(p['learner'])}"
    check_learner(learner, data.schema, name, "set learner='tree'")
    early = resolved.early_stopping
    n_folds = min(resolved.cv_folds, len(data.X)) if early and not held_out else 1
    if not learner.works_on_folds:
        n_folds = 1
    if early and not held_out and n_folds == 1:
        data = data.hold_out(p["validation_fraction"], seed)
    learner = _counting_weights(p, learner, scale, resolved, data)
    encoder, learner = _encoded(p, learner, loss, data)
    if isinstance(learner, TreeLearner):
        resolved = replace(resolved, max_features=learner.max_features)
    recipe = Recipe(
        loss=loss,
        initial_raw=initial_raw,
        learner=learner,
        data=data,
        seed=seed,
        n_stages=resolved.n_estimators,
        rules=table_rules(p["line_search"], loss, learner),
        learning_rate=float(resolved.learning_rate),
        sampling=RowSampling(resolved.subsample, p["bootstrap"]),
        stopping=EarlyStopping(resolved.n_iter_no_change, p["tol"]) if early else None,
        n_folds=n_folds,
        encoder=encoder,
        resolved=resolved,
        units=begun.units,
        choose_penalty=_penalty_choice(loss, learner, data, initial_raw),
    )
    if early and is_auto(p["max_features"]) and recipe.width >= _FEWEST_COLUMNS_TO_DRAW:
        return replace(recipe, candidates=_candidates(p, recipe, learner, resolved))
    return recipe


def _penalty_choice(
    loss: Loss, learner: Learner, data: TrainingData, initial_raw: Floats
) -> Callable[..., float] | None:
    """Select λ by the held-out loss, for kernel machines with losses other than squared error."""
    if loss.quadratic or not learner.penalizes:
        return None
    return partial(held_out_penalty, loss, data.target, initial_raw)


def work(recipe: Recipe, multi_output: str) -> int:
    """Number of entries that a stage processes."""
    n_trees = 1 if multi_output == "shared" else recipe.n_outputs
    return int(recipe.data.X.size * n_trees * recipe.n_folds)


def _candidates(
    p: Mapping[str, Any], recipe: Recipe, learner: Learner, resolved: ResolvedParameters
) -> tuple[Candidate, ...]:
    """Tree learners that consider half or all of the columns at each node."""
    if not (isinstance(p["learner"], str) and isinstance(learner, TreeLearner)):
        return ()
    if recipe.data.held_out is None and recipe.n_folds == 1:
        return ()
    return tuple(
        Candidate(replace(learner, max_features=part), replace(resolved, max_features=part))
        for part in _MAX_FEATURES_TRIED
    )


def table_learner(p: Mapping[str, Any], resolved: ResolvedParameters, schema: Schema) -> Learner:
    """Create the learner that the parameters specify.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    learner = p["learner"]
    if not (isinstance(learner, str) and learner == "tree"):
        for name in ("monotonic_cst", "interaction_cst"):
            if p[name] is not None:
                raise InvalidParameter(
                    f"{name} is only supported by the built-in trees; set learner='tree', or "
                    f"{name}=None."
                )
    if isinstance(learner, Learner):
        return learner
    if isinstance(learner, str):
        return _named_learner(learner, p, resolved, schema)
    if isinstance(learner, type) or not (hasattr(learner, "fit") and hasattr(learner, "predict")):
        raise InvalidType(
            "learner must be 'tree', 'kernel', a Learner or a scikit-learn regressor; got "
            f"{learner!r}."
        )
    return WrappedLearner(learner)


def stored_learner(
    p: Mapping[str, Any], resolved: ResolvedParameters | None, schema: Schema
) -> Learner:
    """Create the learner of a model read from a file; old files do not have ``resolved``."""
    if resolved is None and isinstance(p["learner"], str) and p["learner"] == "tree":
        return TreeLearner()
    if resolved is None:
        resolved = resolve(p, 1.0, schema.n_columns, 1, False, False, False)
    return table_learner(p, resolved, schema)


def _named_learner(
    name: str, p: Mapping[str, Any], resolved: ResolvedParameters, schema: Schema
) -> Learner:
    if name not in _LEARNERS:
        raise unknown_name("learner", name, _LEARNERS)
    if name == "kernel":
        columns = tuple(column for column, _ in category_columns(schema))
        return SparseLearner(KernelMachineConfig(categorical=columns))
    return _tree_learner(p, resolved, schema)


def _tree_learner(
    p: Mapping[str, Any], resolved: ResolvedParameters, schema: Schema
) -> TreeLearner:
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
        min_hessian=p["min_hessian"],
        l2_regularization=resolved.l2_regularization,
        min_gain=p["min_gain"],
        max_features=resolved.max_features,
        max_features_per_tree=p["max_features_per_tree"],
        max_bins=p["max_bins"],
        shared=shared,
        sketch=p["sketch"],
        monotonic=monotonic,
        groups=interaction_groups(p["interaction_cst"], schema.n_columns),
    )


def _check_classes(learner: Learner, data: TrainingData) -> None:
    """Check that monotonic directions are used with two classes: they refer to the second one."""
    if not isinstance(data.codec, ClassCodec) or len(data.codec.classes) == 2:
        return
    if isinstance(learner, TreeLearner) and learner.monotonic:
        raise InvalidParameter(
            f"monotonic_cst supports two classes; y has {len(data.codec.classes)}, whose "
            "probabilities cannot all increase. Set monotonic_cst=None."
        )


def _weight_scale(p: Mapping[str, Any], data: TrainingData) -> WeightScale:
    """Determine the scale of the weights; only for trees are parameters in numbers of rows."""
    balanced = isinstance(p.get("class_weight"), str)
    scale = weight_scale(data.X, data.target, balanced)
    if isinstance(p["learner"], str) and p["learner"] == "tree":
        return scale
    return WeightScale(row=scale.plain_row)


def _counting_weights(
    p: Mapping[str, Any],
    learner: Learner,
    scale: WeightScale,
    resolved: ResolvedParameters,
    data: TrainingData,
) -> Learner:
    """Make leaves count weights as rows; warn if no leaf can reach the minimum weight."""
    if not isinstance(learner, TreeLearner):
        return learner
    if learner is not p["learner"]:
        learner = learner.counting(scale.row)
    if is_auto(p["min_samples_leaf"]):
        warn_of_uneven_weights(scale, data.target, learner.min_samples_leaf)
    else:
        warn_of_light_weights(scale.given(data.target), resolved.min_samples_leaf)
    return learner


def _encoded(
    p: Mapping[str, Any], learner: Learner, loss: Loss, data: TrainingData
) -> tuple[Encoder | None, Learner]:
    """Return the encoding of category columns and the tree learner configured for it."""
    if not isinstance(learner, TreeLearner):
        return None, learner
    if isinstance(loss, MaskedLoss) and loss.loss.quadratic:
        # The hessian counts the rows whose target is known; leaves need enough of them.
        fewest = max(learner.min_hessian, float(learner.min_samples_leaf))
        learner = replace(learner, min_hessian=fewest)
    columns = category_columns(data.schema)
    if not columns:
        return None, learner
    n_classes = len(data.codec.classes) if isinstance(data.codec, ClassCodec) else None
    by_mean = True if learner.shared and is_auto(p["target_encoding"]) else p["target_encoding"]
    encoder = Encoder.of(data.X, columns, data.target, n_classes, by_mean, learner.groups)
    return encoder, with_categories(learner, encoder, data.schema)


def table_rules(line_search: bool | str, loss: Loss, learner: Learner) -> tuple[Rule, ...]:
    """Return the rules for leaf values set by the loss and for the line search."""
    rules: list[Rule] = []
    leaf_loss = isinstance(loss, LeafLoss)
    if leaf_loss:
        rules.append(ReestimateLeaves())
    if line_search is True:
        rules.append(LineSearch())
    elif is_auto(line_search) and not _needs_no_search(loss, learner):
        search = LineSearch(skip_leaves=leaf_loss)
        rules.append(PenalizedLineSearch() if learner.penalizes else search)
    for rule in rules:
        rule.check(loss, learner)
    return tuple(rules)


def _needs_no_search(loss: Loss, learner: Learner) -> bool:
    return learner.newton_steps or (learner.penalizes and loss.quadratic)

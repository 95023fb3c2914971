"""Settings of trees that short trial runs compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hilboost.core.plain_values import is_auto
from hilboost.model.fit_facts import ResolvedParameters
from hilboost.training.defaults import is_wide
from hilboost.training.recipe import Candidate, Recipe
from hilboost.training.recipes.table_learners import LearnerSettings, names, table_learner

_FEWEST_COLUMNS_TO_DRAW, _COLUMNS_TO_DRAW_FEW = 4, 8
_L2_FACTORS = (1.0, 0.1, 0.03)  # for more than two classes
_FEW_LEAVES, _FEW_ROWS = 8, 1500
_FEWEST_SHARE = 0.25  # of the columns
_MANY_COLUMNS, _SHARE_OF_MANY = 64, 0.1
_MARGIN = 0.02  # of few leaves for two classes, whose losses on few rows are noisy
_MARGIN_OF_ALL = 0.05  # of the loss: of all columns for two classes, for which few are usual
_MOST_ROWS = 50_000  # for which there are weak penalties and few of many columns


def candidates(
    settings: LearnerSettings, recipe: Recipe, resolved: ResolvedParameters
) -> tuple[Candidate, ...]:
    """Tree learners with other settings in place of ``"auto"``, to compare in trial runs.

    ``resolved``: the parameters in the original weights, which the fitted model shows.
    """
    p = settings.parameters
    if recipe.config.stopping is None or not names(p["learner"], "tree"):
        return ()
    if recipe.data.held_out is None and recipe.n_folds == 1:
        return ()
    if _has_few_rows(recipe) and _is_wide(recipe):
        return ()

    def candidate(leaves: int, factor: float, max_features: float) -> Candidate:
        def with_these(usual: ResolvedParameters) -> ResolvedParameters:
            l2 = usual.l2_regularization * factor
            return replace(
                usual, max_features=max_features, l2_regularization=l2, max_leaf_nodes=leaves
            )

        learner = table_learner(replace(settings, resolved=with_these(settings.resolved)))
        two = _has_two_classes(recipe)
        is_usual = leaves == resolved.max_leaf_nodes
        draws_usual_share = max_features == min(shares) or min(shares) > _FEWEST_SHARE
        return Candidate(
            learner,
            with_these(resolved),
            margin=_MARGIN if two and not is_usual else 0.0,
            margin_of_loss=_MARGIN_OF_ALL if two and not draws_usual_share else 0.0,
        )

    shares = _max_features_tried(p, recipe, resolved)
    found = tuple(
        candidate(leaves, factor, max_features)
        for leaves in _leaves_tried(p, recipe, resolved)
        for factor in _l2_factors_tried(p, recipe)
        for max_features in shares
    )
    return found if len(found) > 1 else ()


def _max_features_tried(
    p: Mapping[str, Any], recipe: Recipe, resolved: ResolvedParameters
) -> tuple[float, ...]:
    squared = recipe.data.target.groups is not None and recipe.config.loss.bounded_hessian
    if squared or not is_auto(p["max_features"]) or recipe.width < _FEWEST_COLUMNS_TO_DRAW:
        return (resolved.max_features,)
    is_large = recipe.data.target.n_rows > _MOST_ROWS
    if _has_two_classes(recipe) and recipe.width >= _MANY_COLUMNS and not is_large:
        return (_SHARE_OF_MANY, 1.0)
    if not _has_few_rows(recipe) or recipe.width < _COLUMNS_TO_DRAW_FEW:
        return (0.5, 1.0)
    return (_FEWEST_SHARE, 1.0) if _has_two_classes(recipe) else (0.5, 1.0, _FEWEST_SHARE)


def _l2_factors_tried(p: Mapping[str, Any], recipe: Recipe) -> tuple[float, ...]:
    """A strong penalty suits few rows per class, a weak one many classes with little noise."""
    several = (recipe.data.codec.n_classes or 0) > 2 and is_auto(p["l2_regularization"])
    return _L2_FACTORS if several and recipe.data.target.n_rows <= _MOST_ROWS else (1.0,)


def _leaves_tried(
    p: Mapping[str, Any], recipe: Recipe, resolved: ResolvedParameters
) -> tuple[int, ...]:
    if is_auto(p["max_leaf_nodes"]) and _has_few_rows(recipe) and not resolved.symmetric:
        return (resolved.max_leaf_nodes, _FEW_LEAVES)
    return (resolved.max_leaf_nodes,)


def _has_few_rows(recipe: Recipe) -> bool:
    """Whether there are few rows of numbers or classes; for others, nothing is known."""
    known = not recipe.config.loss.couples_rows and recipe.data.codec.kind != "survival"
    return known and recipe.data.target.n_rows < _FEW_ROWS


def _is_wide(recipe: Recipe) -> bool:
    """Whether the table was wide before rows were held out: then trees have settings for it."""
    data = recipe.data
    n_held = 0 if data.held_out is None or not data.is_split else data.held_out.target.n_rows
    return is_wide(data.target.n_rows + n_held, data.X.shape[1])


def _has_two_classes(recipe: Recipe) -> bool:
    return recipe.data.codec.n_classes == 2

"""Several learners in one model: their names, checks and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hilboost.core.errors import InvalidParameter, InvalidType
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import Rule
from hilboost.learners.mixed import MixedLearner
from hilboost.rules import LineSearch, PenalizedLineSearch, SearchByTerm
from hilboost.tables.schema import Schema
from hilboost.training.compatibility import check_learner, learner_name
from hilboost.validation.choices import as_list, is_name


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

"""The steps of a fit around the loop: what is held out, where members begin, trial runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from hilboost.backends.team import Team
from hilboost.boosting import (
    Member,
    Plan,
    Progress,
    Validation,
    assign_folds,
    boost,
)
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats, Target
from hilboost.learners.tree import TreeLearner
from hilboost.rules import Shrinkage

_FEWEST_COLUMNS_TO_DRAW = 4
_MAX_FEATURES_TRIED = (0.5, 1.0)
_STAGES_OF_A_TRIAL = 200
_RATE_OF_A_TRIAL = 0.1


def hold_out(
    X: Floats, target: Target, strata: NDArray[Any] | None, fraction: float, seed: int
) -> tuple[Floats, Target, tuple[Floats, Target] | None]:
    """Split a part of the rows off for validation; one row is not split."""
    n = len(X)
    if n < 2:
        return X, target, None
    rows = np.arange(n)
    fraction = min(max(fraction, 1 / n), 1 - 1 / n)
    try:
        learn, hold = train_test_split(rows, test_size=fraction, random_state=seed, stratify=strata)
    except ValueError:  # a class with one row cannot be stratified
        learn, hold = train_test_split(rows, test_size=fraction, random_state=seed)
    return X[learn], target.rows(learn), (X[hold], target.rows(hold))


def begin(
    plan: Plan,
    X: Floats,
    target: Target,
    start: Floats,
    strata: NDArray[Any] | None,
    n_folds: int,
    held_out: bool,
    continued: Progress | None,
    n_threads: int,
) -> Progress:
    """Members with their rows and ``raw``, ready for the first new stage.

    All begin at the start value of the whole target: a part may lack a class.

    Raises
    ------
    InvalidData, InvalidParameter
        A continued fit does not match the model so far.
    """
    folds = None
    rows: list[NDArray[np.uint32] | None] = [None]
    if n_folds > 1:
        if strata is None:
            strata = np.zeros(len(X), dtype=np.int64)
        folds = assign_folds(strata, n_folds, np.random.default_rng(plan.seed))
        rows = [np.flatnonzero(folds != k).astype(np.uint32) for k in range(n_folds)]
    if continued is None:
        progress = Progress([Member(start) for _ in rows])
    else:
        progress = continued
        _check_continued(plan, progress, len(rows), len(start), held_out or n_folds > 1)
    progress.folds = folds
    for member, r in zip(progress.members, rows, strict=True):
        member.rows = r
        member.raw = np.asfortranarray(member.model().predict_raw(X, n_threads))
    return progress


def _check_continued(
    plan: Plan, progress: Progress, n_members: int, n_outputs: int, held_out: bool
) -> None:
    members = progress.members
    if len(members[0].start) != n_outputs or len(members) != n_members:
        raise InvalidData(
            f"warm_start: the model has {len(members)} x {len(members[0].start)} outputs and this "
            f"fit {n_members} x {n_outputs}; set warm_start=False to fit anew."
        )
    if not held_out:
        progress.validation.clear()
    elif len(progress.validation) != len(progress.train):
        raise InvalidData(
            "warm_start: the stages so far were fitted without held-out rows, so that no best one "
            "can be told; set early_stopping=False and give no X_val, or set warm_start=False."
        )
    so_far = len(members[0].stages)
    if so_far > plan.n_stages:
        raise InvalidParameter(
            f"n_estimators={plan.n_stages} is below the {so_far} stages already fitted; with "
            "warm_start=True it must be at least that."
        )


def try_out_max_features(
    plan: Plan,
    data: Any,
    target: Target,
    progress: Progress,
    team: Team,
    validation: Validation | None,
) -> Plan:
    """The plan with the part of the columns per node that does better in a short run.

    Whether nodes should see all columns or half of them depends on the table (one strong
    interaction among noise, or many redundant columns) more than anything else does.  The runs
    share one held-out part.
    """
    learner = plan.learner
    if (
        not isinstance(learner, TreeLearner)
        or len(data.table.n_values) < _FEWEST_COLUMNS_TO_DRAW
        or (validation is None and progress.folds is None)
    ):
        return plan
    best, lowest = learner, np.inf
    for part in _MAX_FEATURES_TRIED:
        candidate = replace(learner, max_features=part)
        first = progress.members[0]
        member = replace(first, raw=first.raw.copy(order="F"), stages=[])
        held = None if validation is None else replace(validation, raw=validation.raw.copy())
        trial = Progress([member], progress.folds)
        short = replace(
            plan,
            learner=candidate,
            n_stages=min(plan.n_stages, _STAGES_OF_A_TRIAL),
            rules=[
                *(rule for rule in plan.rules if not isinstance(rule, Shrinkage)),
                Shrinkage(_RATE_OF_A_TRIAL),
            ],
            callbacks=(),
        )
        boost(short, data, target, trial, team, held)
        if min(trial.validation) < lowest:
            best, lowest = candidate, min(trial.validation)
    return replace(plan, learner=best)

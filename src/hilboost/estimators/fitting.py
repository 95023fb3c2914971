"""The steps of a fit around the loop: what is held out, where members begin, trial runs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
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
from hilboost.core.contracts import Loss
from hilboost.core.errors import FitWarning, InvalidData, InvalidParameter
from hilboost.core.records import Floats, Target
from hilboost.encoders import Encoder, Encoding
from hilboost.estimators.sklearn_callbacks import Relay
from hilboost.learners.tree import TreeLearner
from hilboost.rules import Shrinkage

_FEWEST_COLUMNS_TO_DRAW = 4
_MAX_FEATURES_TRIED = (0.5, 1.0)
_STAGES_OF_A_TRIAL = 200
_RATE_OF_A_TRIAL = 0.1


@dataclass(frozen=True)
class Fit:
    """What every fit begins with.

    Attributes
    ----------
    loss : Loss
    start : (r,) float64
        Its best constant for the whole target: a part may lack a class.
    seed : int
    X : (n, d) array
    target : Target
    held_out : (X, target) or None
    strata : (n,) array or None
        What a split keeps the proportions of.
    encoder : Encoder or None
        Where some columns of ``X`` hold codes of categories.
    """

    loss: Loss
    start: Floats
    seed: int
    X: Floats
    target: Target
    held_out: tuple[Floats, Target] | None
    strata: NDArray[Any] | None
    encoder: Encoder | None = None

    @property
    def width(self) -> int:
        """Columns that a member sees."""
        return self.X.shape[1] if self.encoder is None else self.encoder.width

    def hold_out(self, fraction: float) -> Fit:
        """Split a part of the rows off for validation; one row is not split."""
        n = len(self.X)
        if n < 2:
            return self
        rows, fraction = np.arange(n), min(max(fraction, 1 / n), 1 - 1 / n)
        split = partial(train_test_split, rows, test_size=fraction, random_state=self.seed)
        try:
            learn, hold = split(stratify=self.strata)
        except ValueError:  # a class with one row cannot be stratified
            learn, hold = split()
        return replace(
            self,
            X=self.X[learn],
            target=self.target.rows(learn),
            held_out=(self.X[hold], self.target.rows(hold)),
            strata=None if self.strata is None else self.strata[learn],
        )

    def begin(
        self,
        plan: Plan,
        n_threads: int,
        n_folds: int = 1,
        continued: Progress | None = None,
        encoding: Encoding | None = None,
    ) -> Begun:
        """Members and held-out rows with their ``raw``, ready for the first new stage.

        ``encoding`` is that of the stages so far, where they have one.

        Raises
        ------
        InvalidData, InvalidParameter
            A continued fit does not match the model so far.
        """
        folds = None
        rows: list[NDArray[np.uint32] | None] = [None]
        if n_folds > 1:
            strata = np.zeros(len(self.X)) if self.strata is None else self.strata
            folds = assign_folds(strata, n_folds, np.random.default_rng(plan.seed))
            rows = [np.flatnonzero(folds != k).astype(np.uint32) for k in range(n_folds)]
        if continued is None:
            progress = Progress([Member(self.start) for _ in rows])
        else:
            progress = continued
            holds_out = self.held_out is not None or n_folds > 1
            _check_continued(plan, progress, len(rows), len(self.start), holds_out)
        progress.folds = folds
        before, encoding, seen = encoding, None, [self.X] * len(rows)
        if self.encoder is not None:
            encoding, seen = self.encoder.learn(self.X, self.target, rows, plan.seed)
        if before is not None and not before.equals(encoding):
            # The stages so far must not see other columns than their own, not even once.
            raise InvalidData(
                "warm_start with target statistics of categories needs the rows of the first fit, "
                "and its target_statistics; set warm_start=False to fit anew."
            )
        for member, r, X in zip(progress.members, rows, seen, strict=True):
            member.rows = r
            raw = member.model().predict_raw(X, n_threads)
            member.raw = np.asarray(raw, order=plan.learner.layout)
        if self.held_out is None:
            return Begun(progress, None, seen, encoding)
        held_X, held = self.held_out
        if encoding is not None:
            held_X = encoding.encode(held_X)
        raw = progress.members[0].model().predict_raw(held_X, n_threads)
        return Begun(progress, Validation(held_X, held, raw), seen, encoding)


@dataclass(frozen=True)
class Begun:
    """A fit before its first new stage.

    Attributes
    ----------
    progress : Progress
    validation : Validation or None
    seen : list of (n, …) arrays
        The inputs as every member sees them, often one and the same array.
    encoding : Encoding or None
        From codes of categories to these.
    """

    progress: Progress
    validation: Validation | None
    seen: list[Floats]
    encoding: Encoding | None


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


def boost_until_interrupted(
    plan: Plan,
    data: Any,
    target: Target,
    progress: Progress,
    team: Team,
    validation: Validation | None,
) -> None:
    """Boost; keep an interrupt for later if there are stages that would be lost with it."""
    for callback in plan.callbacks:
        if isinstance(callback, Relay):
            callback.watch(plan, progress)
    try:
        boost(plan, data, target, progress, team, validation)
    except KeyboardInterrupt as interrupt:
        if not progress.members[0].stages:
            raise
        progress.interrupt = interrupt


def pass_interrupt_on(progress: Progress, kept: int) -> None:
    """Raise the interrupt of a fit whose stages are safe, and say how many these are."""
    if progress.interrupt is None:
        return
    warnings.warn(
        f"the fit was interrupted; the estimator is fitted with {kept} stages.",
        FitWarning,
        stacklevel=4,
    )
    raise progress.interrupt


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

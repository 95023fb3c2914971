"""Selection between learners by short trial runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting import BoostingConfig, TrainingState, Validation, boost
from hilboost.core.base_model import Stage
from hilboost.core.rule import Rule
from hilboost.core.target import Target
from hilboost.rules import Shrinkage
from hilboost.training.recipe import Candidate

_STAGES = 200
_RATE = 0.1


def best_candidate(
    candidates: tuple[Candidate, ...],
    rules: tuple[Rule, ...],
    config: BoostingConfig,
    data: Any,
    target: Target,
    state: TrainingState,
    team: ThreadTeam,
    validation: Validation | None,
) -> Candidate:
    """Return the candidate with the lowest held-out loss in a short run.

    For example, the best number of columns per node depends less on the size of the table than on
    its content: a strong interaction among noise columns, or many redundant columns.  All runs use
    the same held-out part: the first fold, or the validation rows.
    """
    best, lowest = candidates[0], np.inf
    for candidate in candidates:
        first = state.members[0]
        learner, own = candidate.learner.for_trials(data if first.data is None else first.data)
        stages: list[Stage] = []
        member = replace(first, raw=first.raw.copy(order="F"), stages=stages, data=own)
        held = None if validation is None else replace(validation, raw=validation.raw.copy())
        shards = [shard.first_member_afresh(stages) for shard in state.shards]
        trial = TrainingState([member], state.folds, shards)
        short = replace(
            config,
            learner=learner,
            n_stages=min(config.n_stages, _STAGES),
            rules=[*rules, Shrinkage(_RATE)],
            callbacks=(),
            takes_snapshots=False,
        )
        boost(short, data, target, trial, team, held)
        least = min(short.watched(trial))
        if least < lowest:
            best, lowest = candidate, least
    return best

"""Stages that the learner fits ahead of the loop, several in one call.

Where the learner supports it, every member fits the next few stages at once, and the loop takes one
after the other from them: losses, callbacks and early stopping follow each stage as usual.  When
the loop ends, the predictions are brought back to the last stage that was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import count_of, is_finite, mass_of, merge_sums, quotient
from hilboost.backends.random_bits import Purpose
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.work_clock import working_seconds
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.evaluate import not_finite
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.sampling import StageKey
from hilboost.boosting.state import TrainingState
from hilboost.core.errors import IncompatibleParts
from hilboost.core.several_stages import FittedStages, StageRequest
from hilboost.core.target import Target

_MOST_STAGES = 32


class KnownLosses(NamedTuple):
    """Mean losses after a stage."""

    train: list[float]  # of the members
    held_out: float  # of the rows that are held out from some member; NaN if there are none


@dataclass
class StagesAhead:
    """Fits stages of all members ahead of the loop, while the learner can."""

    config: BoostingConfig
    target: Target
    members: Sequence[EnsembleMember]
    team: ThreadTeam  # fits several members beside each other
    # whether nothing but the training loss is computed from the predictions of a stage, and the
    # learner has not refused
    is_possible: bool
    _ahead: list[tuple[StageRequest, FittedStages]] = field(default_factory=list)
    _masses: list[NDArray[np.int64]] = field(default_factory=list)
    _n_taken: int = 0
    _seconds: float = 0.0
    _seconds_before: float = 0.0

    @classmethod
    def of(
        cls, config: BoostingConfig, target: Target, state: TrainingState, team: ThreadTeam
    ) -> StagesAhead:
        """Create the object that fits the stages that follow the state."""
        is_possible = (
            config.rate is not None
            and config.loss.compiled_name is not None
            and _is_plain(config, target, state)
        )
        return cls(config, target, state.members, team, is_possible)

    def take(self, number: int) -> KnownLosses | None:
        """Add a stage to every member, and return the losses; ``None`` if it has to be fitted."""
        self._seconds_before = 0.0
        if self._n_taken == (len(self._ahead[0][1].stages) if self._ahead else 0):
            self._fit(number)
        if not self._ahead:
            return None
        taken, self._n_taken = self._n_taken, self._n_taken + 1
        for member, (_, fitted) in zip(self.members, self._ahead, strict=True):
            member.stages.append(fitted.stages[taken])
        return self._losses(taken)

    def seconds(self, elapsed: float) -> float:
        """Return the duration of the last stage: its share of a call, and what came after."""
        return elapsed - self._seconds_before + self._seconds

    def close(self) -> None:
        """Bring the predictions back to the last stage that was taken."""
        taken, self._n_taken = self._n_taken, 0

        def bring_back(k: int) -> None:
            request, fitted = self._ahead[k]
            if taken < len(fitted.stages):
                self.members[k].raw[:] = fitted.before
                if taken > 0:
                    self.config.learner.fit_stages(self.members[k].data, request.first(taken))

        self.team.map(bring_back, range(len(self._ahead)))
        self._ahead = []

    def _fit(self, number: int) -> None:
        """Fit the next stages, unless the learner fits them one by one."""
        self._ahead, self._n_taken, self._seconds = [], 0, 0.0
        if not self.is_possible:
            return
        began = working_seconds()
        n_stages = min(_MOST_STAGES, self.config.n_stages - number)

        def fit(k: int) -> tuple[StageRequest, FittedStages | None]:
            request = self._request(k, number, n_stages)
            return request, self.config.learner.fit_stages(self.members[k].data, request)

        requests, answers = zip(*self.team.map(fit, range(len(self.members))), strict=True)
        fitted = [answer for answer in answers if answer is not None]
        self.is_possible = len(fitted) == len(answers)
        if not self.is_possible:
            for member, answer in zip(self.members, answers, strict=True):
                if answer is not None:
                    member.raw[:] = answer.before
            return
        if len({len(answer.stages) for answer in fitted}) > 1 or not fitted[0].stages:
            raise IncompatibleParts(
                "fit_stages must return as many stages for each member, at least one."
            )
        for member in self.members:
            member.ahead = None
        self._ahead = list(zip(requests, fitted, strict=True))
        self._seconds_before = working_seconds() - began
        self._seconds = self._seconds_before / len(fitted[0].stages)

    def _request(self, member: int, number: int, n_stages: int) -> StageRequest:
        one, sampling = self.members[member], self.config.sampling
        n_pool = len(one.raw) if one.rows is None else len(one.rows)
        n_drawn = sampling.n_drawn(n_pool)
        turns = [StageKey(self.config.seed, number + k, member) for k in range(n_stages)]
        keys = np.zeros(n_stages, dtype=np.uint64)
        if n_drawn < n_pool:
            keys[:] = [turn.key(Purpose.ROWS_OF_STAGE) for turn in turns]
        return StageRequest(
            loss=self.config.loss.compiled_name or "",
            y=self.target.y,
            weight=self.target.weight,
            raw=one.raw,
            rows=one.rows,
            n_drawn=n_drawn if n_drawn < n_pool else None,
            keys=keys,
            generators=[turn.generator for turn in turns],
            rate=self.config.rate or 0.0,
            number=number,
        )

    def _losses(self, taken: int) -> KnownLosses:
        """Divide the sums of the losses after a stage by the weights of the rows."""
        if not self._masses:
            self._masses = [self._mass_of(member) for member in self.members]
        sums = [fitted.losses[taken] for _, fitted in self._ahead]
        if not all(is_finite(total) for both in sums for total in both):
            raise not_finite(self.config.loss)
        of_train = zip(sums, self._masses, strict=True)
        train = [quotient(both[0], masses[0]) for both, masses in of_train]
        held_out, mass = sums[0].copy(), self._masses[0].copy()
        for both, masses in zip(sums[1:], self._masses[1:], strict=True):
            merge_sums(held_out, both)
            merge_sums(mass, masses)
        if self.members[0].rows is None:
            return KnownLosses(train, np.nan)
        return KnownLosses(train, quotient(held_out[1], mass[1]))

    def _mass_of(self, member: EnsembleMember) -> NDArray[np.int64]:
        """Total weights of the rows of a member, and of the others, (2, 5)."""
        inside, weight = member.inside, self.target.weight
        if inside is None:
            return np.array([mass_of(weight, len(member.raw)), count_of(0)])
        if weight is None:
            n_inside = int(inside.sum())
            return np.array([count_of(n_inside), count_of(len(inside) - n_inside)])
        return np.array([mass_of(weight[part], 0) for part in (inside, ~inside)])


def _is_plain(config: BoostingConfig, target: Target, state: TrainingState) -> bool:
    """Whether nothing but the training loss is computed from the predictions of a stage."""
    apart = target.is_divided or target.groups is not None or config.division is not None
    measured = bool(config.metrics) or config.takes_snapshots
    own_loss = config.metric is not None and config.metric is not config.loss
    apart = apart or state.rotation is not None
    apart = apart or (state.folds is not None and not state.divides_all_rows)
    return not (apart or measured or own_loss or config.sampling.bootstrap)

"""Stages of small tables, several of which are fitted in one call.

Between the stages of a small table, Python takes more time than the stages themselves.  Where the
learner supports it, every member fits the next few stages at once, and the loop takes one after the
other from them: losses, callbacks and early stopping follow each stage as usual.  When the loop
ends, the predictions are brought back to the last stage that was taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import count_of, is_finite, mass_of, merge_sums, quotient
from hilboost.backends.random_bits import Purpose
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.evaluate import not_finite
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.sampling import StageKey
from hilboost.boosting.state import TrainingState
from hilboost.core.dtypes import Floats
from hilboost.core.stage_series import FitsSeries, FittedSeries, StageSeries
from hilboost.core.target import Target

_MOST_STAGES = 16
_CELLS = 2**21  # outputs of rows in a series, which takes up to some .05 s
_FEWEST_STAGES = 2


class KnownLosses(NamedTuple):
    """Mean losses after a stage."""

    train: list[float]  # of the members
    held_out: float  # of the rows that are held out from some member; NaN if there are none


@dataclass
class _Ahead:
    """The last series of a member."""

    raw: Floats  # (n, r) float64: predictions before its first stage
    series: StageSeries
    fitted: FittedSeries


@dataclass
class SeriesOfMembers:
    """Fits stages of all members ahead of the loop."""

    config: BoostingConfig
    target: Target
    members: Sequence[EnsembleMember]
    team: ThreadTeam  # fits several members beside each other
    fitting: FitsSeries
    data: list[Any]  # of each member, for the learner
    rate: float  # factor of all stages
    _ahead: list[_Ahead] = field(default_factory=list)
    _masses: list[NDArray[np.int64]] = field(default_factory=list)
    _n_taken: int = 0
    _seconds: float = 0.0
    _seconds_before: float = 0.0

    @classmethod
    def of(
        cls,
        config: BoostingConfig,
        data: Any,
        target: Target,
        state: TrainingState,
        team: ThreadTeam,
    ) -> SeriesOfMembers | None:
        """Return what fits series, or ``None`` if stages have to be fitted one by one."""
        fitting, rate = config.learner.in_series(), _rate(config)
        if fitting is None or rate is None or not _is_plain(config, target, state):
            return None
        members = state.members
        n, r = members[0].raw.shape
        if n * r * _FEWEST_STAGES > _CELLS or config.loss.compiled_name is None:
            return None
        if config.n_stages - (len(state.train) - 1) < _FEWEST_STAGES:
            return None
        of_members = [data if member.data is None else member.data for member in members]
        found = cls(config, target, members, team, fitting, of_members, rate)
        first = zip(of_members, (found._series(k, 0, 1) for k in range(len(members))), strict=True)
        return found if all(fitting.takes_series(*given) for given in first) else None

    def fit_stage(self, number: int) -> KnownLosses:
        """Add a stage to every member, and return the losses after it."""
        n_ahead = len(self._ahead[0].fitted.stages) if self._ahead else 0
        self._seconds_before = 0.0
        if self._n_taken == n_ahead:
            self._fit(number)
        taken, self._n_taken = self._n_taken, self._n_taken + 1
        for member, ahead in zip(self.members, self._ahead, strict=True):
            member.stages.append(ahead.fitted.stages[taken])
        return self._losses(taken)

    def seconds(self, elapsed: float) -> float:
        """Return the duration of the last stage: its share of the series, and what came after."""
        return elapsed - self._seconds_before + self._seconds

    def close(self) -> None:
        """Bring the predictions back to the last stage that was taken."""
        taken, self._n_taken = self._n_taken, 0
        for k, ahead in enumerate(self._ahead):
            raw = self.members[k].raw
            if taken < len(ahead.fitted.stages):
                raw[:] = ahead.raw
                if taken > 0:
                    series = ahead.series.first(taken)
                    self.fitting.fit_series(self.data[k], series)
        self._ahead = []

    def _fit(self, number: int) -> None:
        """Fit the next series."""
        began = time.perf_counter()
        n, r = self.members[0].raw.shape
        left = self.config.n_stages - number
        n_stages = min(_MOST_STAGES, max(_FEWEST_STAGES, _CELLS // (n * r)), left)

        def fit(k: int) -> _Ahead:
            series, raw = self._series(k, number, n_stages), self.members[k].raw.copy(order="F")
            return _Ahead(raw, series, self.fitting.fit_series(self.data[k], series))

        for member in self.members:
            member.ahead = None
        self._ahead, self._n_taken = [], 0
        self._ahead = self.team.map(fit, range(len(self.members)))
        self._seconds_before = time.perf_counter() - began
        self._seconds = self._seconds_before / n_stages

    def _series(self, member: int, number: int, n_stages: int) -> StageSeries:
        one, sampling = self.members[member], self.config.sampling
        n_pool = len(one.raw) if one.rows is None else len(one.rows)
        n_drawn = sampling.n_drawn(n_pool)
        turns = [StageKey(self.config.seed, number + k, member) for k in range(n_stages)]
        keys = np.zeros(n_stages, dtype=np.uint64)
        if n_drawn < n_pool:
            keys[:] = [turn.key(Purpose.ROWS_OF_STAGE) for turn in turns]
        return StageSeries(
            loss=self.config.loss.compiled_name or "",
            y=self.target.y,
            weight=self.target.weight,
            raw=one.raw,
            rows=one.rows,
            n_drawn=n_drawn if n_drawn < n_pool else None,
            keys=keys,
            generators=[turn.generator for turn in turns],
            rate=self.rate,
            number=number,
        )

    def _losses(self, taken: int) -> KnownLosses:
        """Divide the sums of the losses after a stage by the weights of the rows."""
        if not self._masses:
            self._masses = [self._mass_of(member) for member in self.members]
        sums = [ahead.fitted.losses[taken] for ahead in self._ahead]
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


def _rate(config: BoostingConfig) -> float | None:
    """The factor of all stages, if rules do nothing else."""
    rate = 1.0
    for rule in config.rules:
        if rule.factor is None:
            return None
        rate *= rule.factor
    return rate


def _is_plain(config: BoostingConfig, target: Target, state: TrainingState) -> bool:
    """Whether nothing but the training loss is computed from the predictions of a stage."""
    apart = target.share is not None or target.groups is not None or config.division is not None
    measured = bool(config.metrics) or config.takes_snapshots
    own_loss = config.metric is not None and config.metric is not config.loss
    return not (state.shards or apart or measured or own_loss or config.sampling.bootstrap)

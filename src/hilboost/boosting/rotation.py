"""Rotation of the rows: shards from which the stages of a fit learn in turn, and their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, hash_numbers, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import mean_loss
from hilboost.boosting.member import EnsembleMember
from hilboost.core import dtypes
from hilboost.core.capabilities import RowDivision
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_auto
from hilboost.core.target import Target
from hilboost.model.fit_facts import ResolvedParameters

SHARED_GAIN, EXPECTED_GAIN = 0.7, 0.85
"""Least share of the gain of stages that other rows have, too; at once, and with larger shards."""

STAGES_PER_TEST, STAGES_PER_DECISION = 2, 8
_SHORTEST_RUN = 16
_FEWEST_FOR_SHARDS = 500_000
_MOST_SHARDS = 16
_ROWS_PER_LEAF = 2000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class RotationPlan:
    """Numbers of shards: 1 if every stage may learn from all rows."""

    # number of shards at the start of the fit, or of the fit that is continued.  The rows are in
    # the order of these shards.
    at_start: int = 1
    now: int = 1  # number of shards for the next stage
    adapts: bool = False  # whether shards are joined when they are too small

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],  # as given by the user
        resolved: ResolvedParameters,
        learner: Learner,
        n: int,
        n_folds: int,
        before: ResolvedParameters | None,  # of the fit that is continued, after its stages
    ) -> Self:
        """Plan the shards of a fit to n rows."""
        given = parameters.get("n_shards", 1)  # which some estimators do not have
        if not is_auto(given):
            _check(int(given), learner, n)
            return cls(int(given), int(given))
        at_start = 1
        if n_folds == 1 and learner.capabilities.row_division is not None:
            at_start = most_shards(n, resolved.max_leaf_nodes)
        goes_on = before is not None and at_start % before.n_shards == 0
        return cls(at_start, before.n_shards if before and goes_on else at_start, adapts=True)

    def order(self, n: int, seed: int) -> NDArray[np.intp] | None:
        """Rows in the order of their shards, (n,); ``None`` for the given order."""
        return None if self.at_start == 1 else deal_rows(n, self.at_start, seed)

    def resolved(self, parameters: ResolvedParameters) -> ResolvedParameters:
        """Return the parameters with the number of shards for the next stage."""
        return replace(parameters, n_shards=self.now)


def _check(n_shards: int, learner: Learner, n: int) -> None:
    if n_shards == 1:
        return
    if learner.capabilities.row_division is None:
        raise InvalidParameter(
            f"n_shards={n_shards} is only supported by learners that divide their data by rows, "
            f"and {type(learner).__name__} does not; set n_shards=1, or learner='tree'."
        )
    if n < n_shards * _FEWEST_ROWS:
        raise InvalidParameter(
            f"n_shards={n_shards} would divide the {n} training rows into shards of fewer than "
            f"{_FEWEST_ROWS} rows; set it to at most {max(1, n // _FEWEST_ROWS)}."
        )


def most_shards(n: int, max_leaf_nodes: int) -> int:
    """Return the number of shards with which a fit to n rows starts, a power of two.

    A shard has at least 2,000 rows for each leaf of a tree.
    """
    n_shards = 1
    if n >= _FEWEST_FOR_SHARDS:
        while n_shards < _MOST_SHARDS and n >= 2 * n_shards * _ROWS_PER_LEAF * max_leaf_nodes:
            n_shards *= 2
    return n_shards


@dataclass
class Shard:
    """A block of consecutive rows, and the predictions of the members for them.

    The predictions are only updated when the shard is next used.  One pass then adds all stages
    since its last turn.
    """

    rows: slice  # the rows of the table
    target: Target  # target of these rows
    division: RowDivision  # what evaluates base models for the rows of a shard
    # the members, restricted to these rows: they share the stages of the whole members
    members: list[EnsembleMember]
    n_stages: int  # number of stages that ``raw`` of the members contains

    @classmethod
    def of(
        cls,
        rows: slice,
        target: Target,
        inputs: Sequence[Floats],
        members: Sequence[EnsembleMember],
        division: RowDivision,
        n_stages: int,
        n_threads: int,
    ) -> Self:
        """Restrict the members to some rows; ``raw`` contains the first ``n_stages``.

        ``inputs`` holds the inputs of every member, (n, d) each, for all rows.
        """
        models = (member.model().first(n_stages) for member in members)
        own = target.rows(rows)
        restricted = [
            EnsembleMember(
                member.initial_raw,
                _within(member.rows, rows),
                member.stages,
                np.asarray(own.with_offset(model.predict_raw(X[rows], n_threads)), order="F"),
                memory=member.memory,
            )
            for member, model, X in zip(members, models, inputs, strict=True)
        ]
        return cls(rows, own, division, restricted, n_stages)

    def catch_up(self, n_threads: int, n_stages: int | None = None) -> None:
        """Add to ``raw`` the stages that it does not contain yet, all or those up to ``n_stages``.

        O(m · nodes of these stages).
        """
        if n_stages is None:
            n_stages = len(self.members[0].stages)
        for member in self.members:
            missing = member.stages[self.n_stages : n_stages]
            terms = [term for stage in missing for term in stage.terms]
            self.division.add_outputs(member.data, terms, member.raw, n_threads)
        self.n_stages = max(self.n_stages, n_stages)

    def joined(self, following: Shard) -> Shard:
        """Return the shard of the rows of both, which must contain the same stages."""
        n = len(self.target.y)
        members = [
            EnsembleMember(
                one.initial_raw,
                None
                if one.rows is None or other.rows is None
                else np.concatenate([one.rows, other.rows + dtypes.ROW(n)]),
                one.stages,
                np.asarray(np.concatenate([one.raw, other.raw]), order="F"),
                self.division.joined([one.data, other.data]),
                one.memory,
            )
            for one, other in zip(self.members, following.members, strict=True)
        ]
        return replace(
            self,
            rows=slice(self.rows.start, following.rows.stop),
            target=self.target.followed_by(following.target),
            members=members,
        )

    def of_trial(self, member: EnsembleMember) -> Shard:
        """Return the shard for a trial run: the first member with other stages and memory."""
        first = self.members[0]
        raw, stages, memory = first.raw.copy(order="F"), member.stages, member.memory
        return replace(self, members=[replace(first, raw=raw, stages=stages, memory=memory)])


def joined_shards(shards: Sequence[Shard], n_shards: int, n_threads: int) -> list[Shard]:
    """Join neighboring shards until there are ``n_shards``: a half, a quarter, … of them."""
    for shard in shards:
        shard.catch_up(n_threads)
    while len(shards) > n_shards:
        pairs = zip(shards[::2], shards[1::2], strict=True)
        shards = [one.joined(other) for one, other in pairs]
    return list(shards)


@dataclass
class Rotation:
    """The shards of a fit, from which its stages learn in turn.

    If it ``adapts``, every second stage is tested by its gain, which is the decrease of the mean
    loss.  On the shard from which the stage learns, it contains noise that the stage has fitted; on
    the next shard it does not.  Shards are joined when most of the gain is noise.
    """

    shards: list[Shard]
    adapts: bool
    counts: list[int]  # number of shards at the start and after each stage
    # (2,) float64 each: gains of stages on both shards, since the last decision
    gains: list[Floats] = field(default_factory=list)
    _loss: Loss | None = None
    _before: Floats | None = None  # (2,) float64: mean losses on both shards before a tested stage

    @classmethod
    def of(
        cls,
        plan: RotationPlan,
        target: Target,
        inputs: Sequence[Floats],  # of every member, (n, d) each
        members: Sequence[EnsembleMember],
        division: RowDivision,
        n_threads: int,
    ) -> Self:
        """Divide the rows for the stages that the members do not have yet."""
        so_far = len(members[0].stages)
        known = stages_decided(so_far) if plan.adapts else so_far
        shards = [
            Shard.of(rows, target, inputs, members, division, known, n_threads)
            for rows in shard_ranges(len(target.y), plan.now)
        ]
        return cls(shards, plan.adapts, [plan.now] * (so_far + 1))

    def resolved(self, parameters: ResolvedParameters, n_stages: int) -> ResolvedParameters:
        """Return the parameters with the number of shards after some stages."""
        return replace(parameters, n_shards=self.counts[n_stages])

    def divide(self, members: Sequence[EnsembleMember]) -> None:
        """Give each shard its part of the learner's data; the members keep only the first one."""
        rows = [shard.rows for shard in self.shards]
        for k, member in enumerate(members):
            parts = self.shards[0].division.divided(member.data, rows)
            for shard, part in zip(self.shards, parts, strict=True):
                shard.members[k].data = part
            member.data = parts[0]

    def of_trial(self, member: EnsembleMember) -> Self:
        """Return the shards for a trial run: the first member with other stages and memory."""
        shards = [shard.of_trial(member) for shard in self.shards]
        return replace(self, shards=shards, counts=[len(shards)], gains=[])

    def current(self, n_threads: int) -> Shard:
        """Return the shard from which the next stage learns, with all stages so far."""
        shard = self.shards[len(self.shards[0].members[0].stages) % len(self.shards)]
        shard.catch_up(n_threads)
        return shard

    def raw_of(self, member: int, n_threads: int) -> Floats:
        """Predictions of a member for all rows, (n, r)."""
        for shard in self.shards:
            shard.catch_up(n_threads)
        return np.concatenate([shard.members[member].raw for shard in self.shards])

    def resume(self, loss: Loss, train: Sequence[float], team: ThreadTeam) -> None:
        """Repeat the tests by the stages since the last decision, in a fit that is continued.

        ``loss`` measures gains; ``train`` are the mean losses so far.
        """
        self._loss, so_far = loss, len(train) - 1
        for number in range(stages_decided(so_far), so_far):
            self.begin_stage(number, train[number], team)
            self._note_gains(number, team)

    def begin_stage(self, number: int, before: float, team: ThreadTeam) -> None:
        """Begin a test by a stage, if it is its turn; ``before`` is the mean loss on its shard."""
        self._before = None
        if self.adapts and len(self.shards) > 1 and (number + 1) % STAGES_PER_TEST == 0:
            following = self._shard(number + 1)
            following.catch_up(team.n_threads, number)
            self._before = np.array([before, self._mean_loss(following, team)])

    def end_stage(self, number: int, team: ThreadTeam) -> None:
        """Every few stages, continue with fewer shards if tests say so."""
        self._shard(number).n_stages += 1
        self._note_gains(number, team)
        n_shards = len(self.shards)
        if self.gains and stages_decided(number + 1) == number + 1:
            n_shards = number_after(n_shards, self.gains)
            self.gains.clear()
        self.counts.append(n_shards)
        if n_shards < len(self.shards):
            self.shards = joined_shards(self.shards, n_shards, team.n_threads)

    def _note_gains(self, number: int, team: ThreadTeam) -> None:
        if self._before is None:
            return
        both = self._shard(number), self._shard(number + 1)
        for shard in both:
            shard.catch_up(team.n_threads, number + 1)
        self.gains.append(self._before - [self._mean_loss(shard, team) for shard in both])

    def _shard(self, number: int) -> Shard:
        return self.shards[number % len(self.shards)]

    def _mean_loss(self, shard: Shard, team: ThreadTeam) -> float:
        assert self._loss is not None
        losses = [
            mean_loss(self._loss, shard.target, member.raw, team, member.inside)
            for member in shard.members
        ]
        return float(np.mean(losses))


def stages_decided(n_stages: int) -> int:
    """Return the number of stages, of the first ``n_stages``, up to the last decision."""
    return n_stages - n_stages % STAGES_PER_DECISION


def number_after(n_shards: int, gains: Sequence[Floats]) -> int:
    """Return with how many shards to continue after some tests: ``n_shards`` over 1, 2, 4, …

    ``gains`` (2,) are those on the own shard and on the next one.  Unchanged if other rows share
    most of the gains.  The noise is about proportional to the number of shards; otherwise, this is
    the largest number for which most of the gains are expected to be shared.
    """
    own, shared = np.sum(gains, axis=0)
    if shared >= SHARED_GAIN * own:
        return n_shards
    noise = (own - shared) / n_shards
    while n_shards > 1 and shared * (1 / EXPECTED_GAIN - 1) < n_shards * noise:
        n_shards //= 2
    return n_shards


def _within(rows: NDArray[np.uint32] | None, block: slice) -> NDArray[np.uint32] | None:
    """Those of the ascending ``rows`` that lie in the block, numbered from its beginning."""
    if rows is None:
        return None
    first, last = np.searchsorted(rows, [block.start, block.stop])
    return (rows[first:last] - block.start).astype(dtypes.ROW)


def shard_ranges(n: int, n_shards: int) -> list[slice]:
    """Divide n rows into consecutive ranges whose lengths differ by at most one row.

    Two neighboring ranges together are a range of half as many shards.
    """
    ends = [k * n // n_shards for k in range(n_shards + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends)]


def deal_rows(n: int, n_shards: int, seed: int) -> NDArray[np.intp]:
    """Divide the rows among shards at random: the row numbers (n,) of one shard after the other.

    Each run of consecutive rows is dealt to the shards in random order, the same number to each, so
    that a sorted table is stratified.  A run has at least 16 rows, a power of two for each shard;
    the order for up to 16 shards is the same as for half as many, a function of the seed and the
    row numbers.
    """
    length = n_shards
    while length < _SHORTEST_RUN:
        length *= 2
    n_runs, surplus = divmod(n, length)
    keys = np.empty(n, dtype=np.uint64)
    hash_numbers(key_of(seed, Purpose.SHARDS), 0, keys)
    whole = np.argsort(keys[: n_runs * length].reshape(n_runs, length), axis=1)
    whole += length * np.arange(n_runs)[:, None]
    last = n - surplus + np.argsort(keys[n - surplus :])
    rest = [last[block] for block in shard_ranges(surplus, length)]
    return np.concatenate([part for k in range(length) for part in (whole[:, k], rest[k])])

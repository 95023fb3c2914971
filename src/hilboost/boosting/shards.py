"""Rotating shards: parts of the rows from which the stages learn in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, hash_numbers, key_of
from hilboost.boosting.member import EnsembleMember
from hilboost.core import dtypes
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.row_division import RowDivision
from hilboost.core.target import Target
from hilboost.model import AdditiveModel

SHARED_GAIN, EXPECTED_GAIN = 0.7, 0.85
"""Least share of the gain of stages that other rows have, too; at once, and with larger shards."""

STAGES_PER_TEST, STAGES_PER_DECISION = 2, 8
_SHORTEST_RUN = 16


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

        ``inputs`` are those of every member, (n, d) each, for all rows.
        """
        models = (
            AdditiveModel(member.initial_raw, tuple(member.stages[:n_stages])) for member in members
        )
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

    def first_member_afresh(self, stages: list[Stage]) -> Shard:
        """Return the shard for a trial run of the first member, with its own ``stages``."""
        first = self.members[0]
        member = replace(first, raw=first.raw.copy(order="F"), stages=stages)
        return replace(self, members=[member])


def joined_shards(shards: Sequence[Shard], n_shards: int, n_threads: int) -> list[Shard]:
    """Join neighboring shards until there are ``n_shards``: a half, a quarter, … of them."""
    for shard in shards:
        shard.catch_up(n_threads)
    while len(shards) > n_shards:
        pairs = zip(shards[::2], shards[1::2], strict=True)
        shards = [one.joined(other) for one, other in pairs]
    return list(shards)


class GainTest:
    """Measurement of the gain of one stage, on the shard from which it learns and on the next one.

    The gain is the decrease of the mean loss.  On the shard from which the stage learns, it
    contains noise that the stage has fitted; on the next shard it does not.
    """

    def __init__(
        self,
        mean_loss: Callable[[Shard], float],  # mean loss of the members on a shard
        shards: Sequence[Shard],
        number: int,  # number of stages before this one
        before: float,  # mean loss on its shard before it
        n_threads: int,
    ) -> None:
        self._mean_loss, self._number, self._n_threads = mean_loss, number, n_threads
        self._own, self._following = (shards[k % len(shards)] for k in (number, number + 1))
        self._following.catch_up(n_threads, number)
        self._before = np.array([before, mean_loss(self._following)])

    def gains(self) -> Floats:
        """After the stage: its gains on both shards, (2,) float64."""
        for shard in (self._own, self._following):
            shard.catch_up(self._n_threads, self._number + 1)
        return self._before - [self._mean_loss(self._own), self._mean_loss(self._following)]


def stages_decided(n_stages: int) -> int:
    """Return the number of stages, of the first ``n_stages``, up to the last decision."""
    return n_stages - n_stages % STAGES_PER_DECISION


def number_after(n_shards: int, gains: Sequence[Floats]) -> int:
    """Return with how many shards to continue after some tests: ``n_shards`` over 1, 2, 4, …

    Unchanged if other rows share most of the gains.  The noise is about proportional to the number
    of shards; otherwise, this is the largest number for which most of the gains are expected to be
    shared.

    ``gains``: sequence of (2,) float64: results of :meth:`GainTest.gains`.
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
    """Divide the rows among shards at random.

    Each run of consecutive rows is dealt to the shards in random order, the same number to each, so
    that a sorted table is stratified.  A run has at least 16 rows, a power of two for each shard;
    the order for up to 16 shards is the same as for half as many.

    ``seed``: the order within a run is a function of the seed and the row numbers.

    Returns (n,) intp: the row numbers of the first shard, then of the second one, and so on; the
    ranges are those of :func:`shard_ranges`.
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

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

SHARED_GAIN, EXPECTED_GAIN = 0.85, 0.92
"""Least share of the gain of a stage that other rows have, too; at once, and with larger shards."""

STAGES_PER_TEST = 5
_SHORTEST_RUN = 16


@dataclass
class Shard:
    """A block of consecutive rows, and the predictions of the members for them.

    The predictions are only updated when the shard is next used.  One pass then adds all stages
    since its last turn.

    Attributes
    ----------
    rows : slice
        The rows of the table.
    target : Target
        Target of these rows.
    inputs : sequence of (n, d) arrays
        Inputs of every member, for all rows.
    members : list of EnsembleMember
        The members, restricted to these rows: they share the stages of the whole members.
    n_stages : int
        Number of stages that ``raw`` of the members contains.
    """

    rows: slice
    target: Target
    inputs: Sequence[Floats]
    members: list[EnsembleMember]
    n_stages: int

    @classmethod
    def of(
        cls,
        rows: slice,
        target: Target,
        inputs: Sequence[Floats],
        members: Sequence[EnsembleMember],
        n_threads: int,
    ) -> Self:
        """Restrict the members to some rows; ``raw`` contains all stages so far."""
        restricted = [
            EnsembleMember(
                member.initial_raw,
                _within(member.rows, rows),
                member.stages,
                np.asarray(member.model().predict_raw(X[rows], n_threads), order="F"),
            )
            for member, X in zip(members, inputs, strict=True)
        ]
        return cls(rows, target.rows(rows), inputs, restricted, len(members[0].stages))

    def catch_up(self, n_threads: int) -> None:
        """Add to ``raw`` the stages that it does not contain yet; O(m · nodes of these stages)."""
        for member, X in zip(self.members, self.inputs, strict=True):
            missing = AdditiveModel(member.initial_raw, tuple(member.stages[self.n_stages :]))
            for summation in missing.summations():
                summation.add_to(member.raw, X[self.rows], n_threads)
        self.n_stages = len(self.members[0].stages)

    def joined(self, following: Shard, division: RowDivision) -> Shard:
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
                division.joined([one.data, other.data]),
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
        return replace(self, inputs=self.inputs[:1], members=[member])


def joined_shards(
    shards: Sequence[Shard], n_shards: int, division: RowDivision, n_threads: int
) -> list[Shard]:
    """Join neighboring shards until there are ``n_shards``: a half, a quarter, … of them."""
    for shard in shards:
        shard.catch_up(n_threads)
    while len(shards) > n_shards:
        pairs = zip(shards[::2], shards[1::2], strict=True)
        shards = [one.joined(other, division) for one, other in pairs]
    return list(shards)


class GainTest:
    """Test whether the shards are large enough, by one stage.

    The gain of a stage is the decrease of the mean loss.  On the shard from which it learns, the
    gain contains noise that the stage has fitted; on the next shard it does not.  The noise is
    about proportional to the number of shards.

    Parameters
    ----------
    mean_loss : callable
        Mean loss of the members on a shard.
    own, following : Shard
        The shard from which the stage will learn, and the next one.
    n_threads : int
    """

    def __init__(
        self, mean_loss: Callable[[Shard], float], own: Shard, following: Shard, n_threads: int
    ) -> None:
        self._mean_loss, self._own, self._following = mean_loss, own, following
        self._n_threads = n_threads
        self._before = self._losses()

    def _losses(self) -> tuple[float, float]:
        self._following.catch_up(self._n_threads)
        return self._mean_loss(self._own), self._mean_loss(self._following)

    def number_after(self, n_shards: int) -> int:
        """After the stage: the number of shards to continue with, ``n_shards`` over 2, 4, 8, …

        Unchanged if most of the gain is shared by the next shard.  Otherwise, the largest number
        for which this is expected.
        """
        own, following = self._losses()
        gain, shared = self._before[0] - own, self._before[1] - following
        if shared >= SHARED_GAIN * gain:
            return n_shards
        noise = (gain - shared) / n_shards
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

    Parameters
    ----------
    n : int
    n_shards : int
    seed : int
        The order within a run is a function of the seed and the row numbers.

    Returns
    -------
    (n,) intp
        The row numbers of the first shard, then those of the second one, and so on; the ranges are
        those of :func:`shard_ranges`.
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

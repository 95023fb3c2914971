"""Common parts of the losses of rankings, and the effect of the position of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, Self

import numpy as np

from hilboost.backends.drawn_orders import DrawnOrder, GroupDraws
from hilboost.backends.exact_sums import sums_of_groups
from hilboost.backends.ranking import ByPlace, GroupedRows, Positions, RowGradients, group_ndcg
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.loss_kinds import GroupLoss
from hilboost.core.plain_values import is_integer, is_one_of
from hilboost.core.target import Target

_POSITION_STEPS, _LONGEST_POSITION_STEP = 5, 1.0
_RIDGE = 1e-2  # of the mean hessian of a position


def position_effects(
    gradients: Callable[[Target, Floats], Gradients], target: Target, raw: Floats
) -> Floats:  # (n_positions,) float64: zero for the first position
    """Estimate what each position adds to the scores, in a few Newton steps.

    So few steps bound their size by about five, also where positions got no click.
    ``gradients`` do not correct the scores (n, 1) for positions.
    """
    positions = target.positions
    assert positions is not None
    n_positions = int(positions.max()) + 1
    effects = np.zeros(n_positions)
    for _ in range(_POSITION_STEPS):
        found = gradients(target, raw + effects[positions][:, None])
        negative = found.negative_gradient
        hessian = np.ones_like(negative) if found.hessian is None else found.hessian
        top, below = (
            sums_of_groups(
                positions, np.ascontiguousarray(values[:, 0]), target.weight, n_positions
            )
            for values in (negative, hessian)
        )
        if not below.any():
            break
        ridge = _RIDGE * below.mean()
        step = (top - ridge * effects) / (below + ridge)
        effects += np.clip(step, -_LONGEST_POSITION_STEP, _LONGEST_POSITION_STEP)
        effects -= effects[0]
    return effects


GAINS = ("exponential", "linear")
RELEVANT = "relevant"
_LARGEST_EXPONENT = 500.0


@lru_cache(maxsize=16)
def _discounts_of(n_positions: int) -> Floats:
    """``1 / log2(2 + position)`` for each position."""
    return 1 / np.log2(2 + np.arange(n_positions))


def gains_of(target: Target, kind: str) -> Floats:
    """Gains of the rows: ``2 ** y - 1``, ``y``, or 1 for positive ``y`` and else 0, (n,)."""
    y = np.ascontiguousarray(target.y[:, 0])
    if kind == RELEVANT:
        return (y > 0).astype(np.float64)
    return y if kind == "linear" else np.exp2(y) - 1


def check_gains(y: Floats, kind: str) -> None:
    """Check that labels are not negative, and that their gains are finite."""
    if y.min(initial=0) < 0:
        row = int(np.flatnonzero(y[:, 0] < 0)[0])
        raise InvalidData(
            f"y contains {y[row, 0]:g}, but relevance labels must not be negative; add a constant "
            "to all labels, or use loss='pairwise_logistic' or 'query_rmse'."
        )
    if kind == "exponential" and y.max(initial=0) > _LARGEST_EXPONENT:
        raise InvalidData(
            f"y contains {y.max():g}, and the gain 2**y - 1 is too large; set gain='linear'."
        )


@dataclass(frozen=True)
class RankingMemory:
    """Arrays that the loops over groups keep between their calls."""

    sorted_rows: GroupedRows  # in the order of the last call, by which the next one sorts faster
    positions: Positions
    by_place: ByPlace
    drawn: DrawnOrder

    @classmethod
    def of(cls, target: Target, gain: str, k: int) -> RankingMemory:
        """Create the memory for a target, a kind of gains and the positions that count."""
        starts, n, gains = target.starts, len(target.y), gains_of(target, gain)
        longest = int(np.diff(starts).max(initial=0))
        ideals, largest = np.full(len(starts) - 1, np.nan), np.empty(n)
        values, hits, inverses = (np.empty(longest) for _ in range(3))
        return cls(
            GroupedRows(gains, gains, starts, np.arange(n)),
            Positions(k, _discounts_of(longest), ideals, largest),
            ByPlace(*(np.empty(longest) for _ in ByPlace._fields)),
            DrawnOrder(values, np.empty(longest, np.int64), hits, inverses),
        )

    def rows(self, raw: Floats) -> GroupedRows:
        """The rows with their scores (n, 1)."""
        return self.sorted_rows._replace(scores=np.ascontiguousarray(raw[:, 0]))


@contextmanager
def ranking_memory(target: Target, gain: str, k: int = 0) -> Iterator[RankingMemory]:
    """Take the memory of the last call with the target, gains and ``k``, or create it."""
    free = target.memory.setdefault((gain, k), [])
    try:
        found = free.pop()
    except IndexError:
        found = RankingMemory.of(target, gain, k)
    yield found
    free.append(found)


class RankingLoss(GroupLoss):
    """Base class of losses that compare the rows of a group; only differences of ``raw`` count.

    If the target has positions, their effects on the labels are estimated before each stage, at
    five times the cost of the gradients.
    """

    adaptive = True
    corrects_positions = True
    effects: Floats | None = None
    """Contribution of each position to the scores, (n_positions,), if the target has positions."""
    gain: str = ""
    """Kind of the gains of labels; empty for losses without gains, which take any labels."""
    _key: np.uint64 | None = None
    """Key of the random numbers of a stage, for losses that draw them."""

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameters that its class has, such as ``k`` and ``gain``."""
        names = signature(cls).parameters
        return cls(**{name: parameters[name] for name in names if name in parameters})

    def drawn(self, key: np.uint64) -> Self:
        """Return the loss with the random numbers of a stage."""
        found = copy(self)
        found._key = key
        return found

    def adapted(self, target: Target, raw: Floats) -> Self:
        """Return the loss with the effects of the positions, if the target has any."""
        if target.positions is None:
            return self
        plain, found = copy(self), copy(self)
        plain.effects = None
        found.effects = position_effects(plain.gradients, target, raw)
        return found

    def _shown(self, target: Target, raw: Floats) -> Floats:
        """``raw`` plus the effects of the positions at which the rows were shown, (n, 1)."""
        if self.effects is None or target.positions is None:
            return raw
        # Positions without a training row belong to rows with zero weight.
        places = np.minimum(target.positions, len(self.effects) - 1)
        return raw + self.effects[places][:, None]

    def check(self, target: Target) -> None:
        """Check that there is a single column of labels, and that they have gains."""
        if target.y.shape[1] != 1:
            raise InvalidData(
                f"rankings support one column of relevance labels; y has {target.y.shape[1]}."
            )
        if self.gain:
            check_gains(target.y, self.gain)

    def initial_raw(self, target: Target) -> Floats:
        """Zero."""
        return np.zeros(1)


def checked_gain(gain: str) -> str:
    """Return the kind of gains, if there is one of this name."""
    if not is_one_of(gain, GAINS):
        raise InvalidParameter(f"gain must be 'exponential' or 'linear'; got {shown(gain)}.")
    return gain


def checked_positions(k: int) -> int:
    """Return the number of positions that count, if there are any."""
    if not (is_integer(k) and k >= 1):
        raise InvalidParameter(f"k must be an integer of at least 1; got {shown(k)}.")
    return int(k)


def ndcg_losses(target: Target, raw: Floats, k: int, gain: str) -> Floats:
    """``1 - NDCG@k`` of each group, divided equally among its rows, (n,)."""
    result = np.empty(len(target.starts) - 1)
    with ranking_memory(target, gain, k) as memory:
        group_ndcg(memory.rows(raw), memory.positions, result)
    return spread(target, 1 - result)


def draws_of(target: Target, key: np.uint64 | None) -> GroupDraws:
    """Random numbers of the groups, by their numbers in the whole table."""
    groups = target.groups
    numbers = np.zeros(1, np.int64) if groups is None else groups[target.starts[:-1]]
    return GroupDraws(np.uint64(key or 0), numbers)


def spread(target: Target, values: Floats) -> Floats:
    """Divide the value of each group (q,) equally among its rows, (n,)."""
    return np.repeat(values / np.diff(target.starts), np.diff(target.starts))


def empty_gradients(raw: Floats) -> RowGradients:
    """Memory for the gradients of the rows."""
    return RowGradients(np.empty(len(raw)), np.empty(len(raw)))


def in_columns(written: RowGradients) -> Gradients:
    """The gradients as columns, (n, 1)."""
    return Gradients(written.negative[:, None], written.hessian[:, None])

"""Kernel machines of the members of an ensemble, which are weighed against their trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.learners.metric_kernel import (
    MetricExpansion,
    MetricKernelLearner,
    MetricSpace,
    NormalEquations,
    Rows,
    System,
)

MOST_ROWS_OF_OWN_METRICS = 2000
CENTERS_OF_OWN_METRICS = 1500
MOST_ROWS_AT_ONCE = 3000  # with more rows, a fit to some of them comes first
_PARTS = 5  # of the rows, if there are no folds
FEW_ROWS = 1000  # of which a fold is too small to judge a machine
ROWS_PER_CENTER = 1.5  # with fewer, systems of all rows take less time than least squares
_LONGER, _MOST_STEPS = 1.3, 2  # factor of the length scale
_BETTER = 0.998  # by which a longer one must decrease the loss

LossOfRows = Callable[[NDArray[np.integer[Any]], Floats], float]
"""Function of rows (m,) and outputs (m, r)."""


@dataclass(frozen=True)
class Members:
    """Inputs that the kernel machines of all members share."""

    # tuple of (n, d) float64: the columns of each member, often one shared array
    inputs: tuple[Floats, ...]
    # (n,) int64 or None: for each row, the member from which it is held out
    folds: NDArray[np.int64] | None
    # tuple of (d,) float64: for each member, how important the columns are to its trees
    priorities: tuple[Floats, ...]
    seed: int
    team: ThreadTeam
    split_off: Rows | None = None  # rows that were held out from a single member to judge it
    # mean loss of outputs for some rows, where it is another one than that of least squares
    loss_of: LossOfRows | None = None

    def rows_of(self, member: int) -> NDArray[np.uint32]:
        """The training rows of a member."""
        if self.folds is None:
            return np.arange(len(self.inputs[0]), dtype=np.uint32)
        return np.flatnonzero(self.folds != member).astype(np.uint32)

    @property
    def parts(self) -> list[NDArray[np.intp]]:
        """The rows of each fold, or fifths of the rows."""
        if self.folds is None:
            return [np.arange(k, len(self.inputs[0]), _PARTS) for k in range(_PARTS)]
        return [np.flatnonzero(self.folds == k) for k in range(len(self.inputs))]


class Machines(Protocol):
    """The kernel machines of all members."""

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """Fits of the first member, the last of which is that of the whole machine."""
        ...

    def left_out(self) -> Floats | None:
        """Leave-one-out outputs of the first machine for the other folds, if these are small."""
        ...

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        ...

    def models(self, members: Sequence[int]) -> list[MetricExpansion]:
        """Fit the machines of several members."""
        ...

    def n_centers(self, machines: Sequence[MetricExpansion]) -> int:
        """Number of training rows in the mean of the machines."""
        ...

    def final(self, machines: Sequence[MetricExpansion]) -> list[MetricExpansion]:
        """Return the machines of the model, for those that were weighed against the trees."""
        ...


class SharedCenters:
    """Kernel machines of all members on the same centers, with one metric.

    The metric is learned from the rows of the first member, and the members differ by the rows
    that they are fitted to.  A prediction evaluates the kernel once for all of them.  The metric of
    least squares has too short a length scale for a log-loss, so that longer ones are compared.
    """

    def __init__(self, learner: MetricKernelLearner, table: Rows, members: Members) -> None:
        self._learner, self._table, self._members = learner, table, members

    @property
    def _space(self) -> MetricSpace:
        """The features and the ridge of some rows."""
        return self._some.space

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """If there are many rows, a fit that takes little time, and that of the first member."""
        whole = partial(self.model, 0)
        return [whole] if len(self._table) <= MOST_ROWS_AT_ONCE else [self._with_some_rows, whole]

    def left_out(self) -> None:
        """Folds are large enough, or there are none."""

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        centers, solved = self._system
        return self._space.expansion(centers, solved(member), self._table.spread)

    def models(self, members: Sequence[int]) -> list[MetricExpansion]:
        """Fit the machines of several members in turn: threads share each of them."""
        return [self.model(member) for member in members]

    def n_centers(self, machines: Sequence[MetricExpansion]) -> int:
        """All machines have the same centers."""
        return len(machines[0].centers)

    def final(self, machines: Sequence[MetricExpansion]) -> list[MetricExpansion]:
        """Fit a single machine to the rows that were split off, too."""
        rows = self._members.split_off
        return list(machines) if rows is None else [self._with_rows(rows)]

    def _with_rows(self, rows: Rows) -> MetricExpansion:
        table, features = self._table.joined(rows), self._space.features
        if self._has_few_rows:
            centers = features(table.X, self._learner.precision)
            system = System.of(centers, table, self._members.team, self._space.kernel)
            weights, _ = system.solved(np.arange(len(table)), self._ridge)
        else:
            centers, equations, ridge = self._equations
            weights = equations.with_rows(features, centers, rows).solved(None, ridge)
        return self._space.expansion(centers, weights, table.spread)

    @property
    def _has_few_rows(self) -> bool:
        """Whether all rows are centers."""
        return len(self._table) <= ROWS_PER_CENTER * self._learner.n_centers

    @cached_property
    def _system(self) -> tuple[NDArray[Any], Callable[[int], Floats]]:
        """The centers, and a function of the member that returns their coefficients."""
        return self._with_all_rows() if self._has_few_rows else self._by_least_squares()

    def _with_all_rows(self) -> tuple[NDArray[Any], Callable[[int], Floats]]:
        """All rows are centers; the coefficients of those held out from a member are zero."""
        table, members = self._table, self._members
        centers = self._space.features(table.X, self._learner.precision)
        system = System.of(centers, table, members.team, self._space.kernel)
        ridge = self._ridge
        return centers, lambda member: system.solved(members.rows_of(member), ridge)[0]

    def _by_least_squares(self) -> tuple[NDArray[Any], Callable[[int], Floats]]:
        """Some of the rows are centers, whose coefficients are fitted to all rows."""
        centers, equations, ridge = self._equations
        folded = self._members.folds is not None
        return centers, lambda member: equations.solved(member if folded else None, ridge)

    @cached_property
    def _equations(self) -> tuple[NDArray[Any], NormalEquations, float]:
        """The centers, least squares on all rows, and the ridge."""
        table, members, features = self._table, self._members, self._space.features
        every = np.arange(len(table), dtype=np.uint32)
        chosen = self._learner.centers(every, members.seed, members.team)
        centers = features(table.X[chosen], self._learner.precision)
        equations = NormalEquations.of(
            features, centers, table, members.parts, members.team, self._space.kernel
        )
        ridge = self._ridge
        if ridge < self._space.ridge:  # otherwise, more rows than in the search need no less
            ridge = equations.better_ridge(ridge)
        return centers, equations, ridge

    def _with_some_rows(self) -> MetricExpansion:
        """A fit to some rows of the first member."""
        some = self._some
        weights, _ = some.system.solved(np.arange(len(some.rows)), some.space.ridge)
        return some.space.expansion(some.centers, weights, some.rows.spread)

    @cached_property
    def _some(self) -> _SomeRows:
        """Some rows of the first member, which are centers, with the best length scale."""
        n_centers = min(MOST_ROWS_OF_OWN_METRICS, self._learner.n_centers)
        learner, members, table = self._learner, self._members, self._table
        own, seed, team = members.rows_of(0), members.seed, members.team
        drawn = replace(learner, n_centers=n_centers).centers(own, seed, team)
        space = learner.space(table, own, members.priorities[0], seed, team)
        return _with_best_length(space, table, drawn, members, learner.precision)

    @cached_property
    def _ridge(self) -> float:
        """The ridge that suits more rows than the search used."""
        some = self._some
        return some.system.better_ridge(some.held, some.space.ridge)


@dataclass(frozen=True)
class _SomeRows:
    """Rows that are centers, and their system; a fifth of them is held out for comparisons."""

    space: MetricSpace
    rows: Rows
    centers: NDArray[Any]
    system: System
    length: float = 1.0

    @property
    def held(self) -> NDArray[np.intp]:
        """The rows that are held out."""
        return np.arange(len(self.rows))[::_PARTS]

    @property
    def outputs(self) -> Floats:
        """Outputs for the rows that are held out, by a fit to the others."""
        learned = np.flatnonzero(np.arange(len(self.rows)) % _PARTS)
        weights, _ = self.system.solved(learned, self.space.ridge)
        return self.system.K[self.held] @ weights


def _with_best_length(
    space: MetricSpace, table: Rows, drawn: NDArray[np.uint32], members: Members, precision: str
) -> _SomeRows:
    """Compare longer length scales by the loss, if it is not that of least squares."""
    rows, held, loss_of = table.some(drawn), drawn[::_PARTS], members.loss_of

    def fit(space: MetricSpace, length: float) -> _SomeRows:
        centers = space.features(rows.X, precision)
        system = System.of(centers, rows, members.team, space.kernel)
        return _SomeRows(space, rows, centers, system, length)

    best = fit(space, 1.0)
    if loss_of is None:
        return best
    lowest = loss_of(held, best.outputs)
    for _ in range(_MOST_STEPS):
        longer = fit(best.space.longer(_LONGER), best.length * _LONGER)
        loss = loss_of(held, longer.outputs)
        if not loss < _BETTER * lowest:
            break
        best, lowest = longer, loss
    return best


class OwnCenters:
    """Kernel machines with a metric and centers for each member.

    This is more accurate than shared centers, but takes longer to predict.
    """

    def __init__(
        self, learner: MetricKernelLearner, tables: Sequence[Rows], members: Members
    ) -> None:
        self._learner = replace(learner, n_centers=min(learner.n_centers, CENTERS_OF_OWN_METRICS))
        self._tables, self._members = tables, members

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """The fit of the first member."""
        return [partial(self.model, 0)]

    def left_out(self) -> Floats | None:
        """Leave-one-out outputs (m, r) of the first machine for the other folds, one by one."""
        table = self._tables[0]
        if len(table) >= FEW_ROWS:
            return None
        rows = table.some(np.concatenate(self._members.parts[1:]))
        return self._space_of_first.longer(self._length).left_out(rows)

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        members, table, learner = self._members, self._tables[member], self._learner
        space = self._space_of_first if member == 0 else self._space(member)
        rows, seed = table.some(members.rows_of(member)), members.seed + member
        return learner.expansion(space.longer(self._length), rows, seed, ThreadTeam())

    def _space(self, member: int) -> MetricSpace:
        """The features and the ridge of a member; what the first one did not need is not tried."""
        members, table = self._members, self._tables[member]
        own = members.rows_of(member), members.priorities[member]
        like = self._space_of_first if member else None
        return self._learner.space(table, *own, members.seed + member, ThreadTeam(), like)

    @cached_property
    def _space_of_first(self) -> MetricSpace:
        return self._space(0)

    @cached_property
    def _length(self) -> float:
        """The factor of all length scales, by the first member."""
        members, learner = self._members, self._learner
        if members.loss_of is None:
            return 1.0
        drawn = learner.centers(members.rows_of(0), members.seed, ThreadTeam())
        found = self._space_of_first, self._tables[0], drawn, members, learner.precision
        return _with_best_length(*found).length

    def models(self, members: Sequence[int]) -> list[MetricExpansion]:
        """Fit the machines of several members, each on one thread."""
        return self._members.team.map(self.model, members)

    def n_centers(self, machines: Sequence[MetricExpansion]) -> int:
        """Each machine has its own centers."""
        return sum(len(machine.centers) for machine in machines)

    def final(self, machines: Sequence[MetricExpansion]) -> list[MetricExpansion]:
        """Members that leave out folds remain as they are."""
        return list(machines)

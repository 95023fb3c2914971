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
    NormalEquations,
    Rows,
    System,
)

MOST_ROWS_OF_OWN_METRICS = 2000
CENTERS_OF_OWN_METRICS = 1500
MOST_ROWS_AT_ONCE = 3000  # with more rows, a fit to some of them comes first
_PARTS = 5  # of the rows, if there are no folds
ROWS_PER_CENTER = 1.5  # with fewer, systems of all rows take less time than least squares


@dataclass(frozen=True)
class Members:
    """What the kernel machines of all members have in common.

    Attributes
    ----------
    inputs : tuple of (n, d) float64
        The columns of each member, often one shared array.
    folds : (n,) int64 or None
        For each row, the member from which it is held out.
    priorities : tuple of (d,) float64
        For each member, how important the columns are to its trees.
    seed : int
    team : ThreadTeam
    split_off : Rows or None
        Rows that were held out from a single member to judge it.
    """

    inputs: tuple[Floats, ...]
    folds: NDArray[np.int64] | None
    priorities: tuple[Floats, ...]
    seed: int
    team: ThreadTeam
    split_off: Rows | None = None

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

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
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
    that they are fitted to.  A prediction evaluates the kernel once for all of them.
    """

    def __init__(self, learner: MetricKernelLearner, table: Rows, members: Members) -> None:
        self._learner, self._table, self._members = learner, table, members
        own = members.rows_of(0), members.priorities[0]
        self._space = learner.space(table, *own, members.seed, members.team)

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """If there are many rows, a fit that takes little time, and that of the first member."""
        whole = partial(self.model, 0)
        return [whole] if len(self._table) <= MOST_ROWS_AT_ONCE else [self._with_some_rows, whole]

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        centers, solved = self._system
        return MetricExpansion.of(self._space.features, centers, solved(member), self._table.spread)

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
            system = System.of(centers, table, self._members.team)
            weights, _ = system.solved(np.arange(len(table)), self._ridge)
        else:
            centers, equations, ridge = self._equations
            weights = equations.with_rows(features, centers, rows).solved(None, ridge)
        return MetricExpansion.of(features, centers, weights, table.spread)

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
        system, ridge = System.of(centers, table, members.team), self._ridge
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
        equations = NormalEquations.of(features, centers, table, members.parts, members.team)
        ridge = self._ridge
        if ridge < self._space.ridge:  # otherwise, more rows than those of the search need no less
            ridge = equations.better_ridge(ridge)
        return centers, equations, ridge

    def _with_some_rows(self) -> MetricExpansion:
        """A fit to some rows of the first member."""
        rows, centers, system = self._some
        weights, _ = system.solved(np.arange(len(rows)), self._space.ridge)
        return MetricExpansion.of(self._space.features, centers, weights, rows.spread)

    @cached_property
    def _some(self) -> tuple[Rows, NDArray[Any], System]:
        """Some rows of the first member, which are centers, and their system."""
        n_centers = min(MOST_ROWS_OF_OWN_METRICS, self._learner.n_centers)
        learner, members = replace(self._learner, n_centers=n_centers), self._members
        rows = self._table.some(learner.centers(members.rows_of(0), members.seed, members.team))
        centers = self._space.features(rows.X, self._learner.precision)
        return rows, centers, System.of(centers, rows, members.team)

    @cached_property
    def _ridge(self) -> float:
        """The ridge that suits more rows than those of the search."""
        rows, _, system = self._some
        return system.better_ridge(np.arange(len(rows))[::_PARTS], self._space.ridge)


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

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        members, table, learner = self._members, self._tables[member], self._learner
        rows, priorities = members.rows_of(member), members.priorities[member]
        seed, team = members.seed + member, ThreadTeam()
        space = learner.space(table, rows, priorities, seed, team)
        return learner.expansion(space, table.some(rows), seed, team)

    def n_centers(self, machines: Sequence[MetricExpansion]) -> int:
        """Each machine has its own centers."""
        return sum(len(machine.centers) for machine in machines)

    def final(self, machines: Sequence[MetricExpansion]) -> list[MetricExpansion]:
        """Members that leave out folds remain as they are."""
        return list(machines)

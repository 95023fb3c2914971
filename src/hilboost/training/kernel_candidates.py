"""Kernel machines of the members of an ensemble, which are weighed against their trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner, MetricSpace
from hilboost.learners.kernel_machine.metric_systems import JudgedSystem, NormalEquations, System
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.reductions.row_splits import once, parts

MOST_ROWS_OF_OWN_METRICS = 2000
CENTERS_OF_OWN_METRICS = 1500
MOST_ROWS_AT_ONCE = 3000  # with more rows, a fit to some of them comes first
_PARTS = 5  # of the rows, if there are no folds
FEW_ROWS = 1000  # of which a fold is too small to judge a machine
_CENTERS_OF_LITTLE_GAIN = 2500  # of a machine that adds little to the trees
_SHARES = (4, 2)  # of rows that are centers, as one in so many
_AS_GOOD = 1.01  # factor of the error with which these suffice
ROWS_PER_CENTER = 1.5  # with fewer, systems of all rows take less time than least squares
# The same, where a function has little noise: least squares with little more rows than centers
# take what the centers cannot describe for signal.
_ROWS_PER_CENTER_IF_CERTAIN, _RIDGE_IF_CERTAIN = 2.0, 1e-3
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
    learned: tuple[NDArray[np.uint32] | None, ...]  # training rows of each member, or all
    # tuple of (d,) float64: for each member, how important the columns are to its trees
    priorities: tuple[Floats, ...]
    seed: int
    team: ThreadTeam
    split_off: Rows | None = None  # rows that were held out from a single member to judge it
    # mean loss of outputs for some rows, where it is another one than that of least squares
    loss_of: LossOfRows | None = None
    dependent: Target | None = None  # the target of rows that are not divided at random

    def rows_of(self, member: int) -> NDArray[np.uint32]:
        """The training rows of a member."""
        rows = self.learned[member]
        return np.arange(len(self.inputs[0]), dtype=np.uint32) if rows is None else rows

    @property
    def parts(self) -> list[NDArray[np.intp]]:
        """The rows of each fold, or fifths of the rows."""
        if self.folds is None:
            every = np.arange(len(self.inputs[0]), dtype=np.uint32)
            return [self._fifth(every, k) for k in range(_PARTS)]
        return [np.flatnonzero(self.folds == k) for k in range(len(self.inputs))]

    def _fifth(self, rows: NDArray[np.uint32], k: int) -> NDArray[np.intp]:
        """Places of a fifth of some rows: whole groups or a block of time, if rows have these."""
        if self.dependent is None:
            return np.arange(k, len(rows), _PARTS)
        part_of = parts(self._key, _PARTS, self.dependent.rows(rows))
        return np.flatnonzero(part_of == k)

    def held(self, rows: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Places of the rows that judge a fit to the others, about a fifth."""
        dependence = None if self.dependent is None else self.dependent.rows(rows).dependence
        if dependence is None or not dependence.divides:
            return np.arange(0, len(rows), _PARTS)
        return once(self._key, 1 / _PARTS, dependence).held

    @property
    def _key(self) -> np.uint64:
        return key_of(self.seed, Purpose.FOLDS_COMPARED)


class KernelMachines(ABC):
    """The kernel machines of all members."""

    @abstractmethod
    def model(self, member: int) -> KernelExpansion:
        """Fit the machine of a member."""

    @abstractmethod
    def n_centers(self, machines: Sequence[KernelExpansion]) -> int:
        """Number of training rows in the mean of the machines."""

    @property
    @abstractmethod
    def space(self) -> MetricSpace:
        """The features and the kernel of the first machine."""

    def trials(self) -> list[Callable[[], KernelExpansion]]:
        """Fits of the first member, the last of which is that of the whole machine."""
        return [partial(self.model, 0)]

    def left_out(self) -> Floats | None:
        """Leave-one-out outputs of the first machine for the other folds, if these are small."""
        return None

    def models(self, members: Sequence[int]) -> list[KernelExpansion]:
        """Fit the machines of several members."""
        return [self.model(member) for member in members]

    def limit_centers(self) -> None:
        """Let the whole machine have few centers, because it adds little to the trees."""
        return

    def final(self, machines: Sequence[KernelExpansion]) -> list[KernelExpansion]:
        """Return the machines of the model, for those that were weighed against the trees."""
        return list(machines)


class SharedCenters(KernelMachines):
    """Kernel machines of all members on the same centers, with one metric.

    The metric is learned from the rows of the first member, and the members differ by the rows
    that they are fitted to.  A prediction evaluates the kernel once for all of them.  The metric of
    least squares has too short a length scale for a log-loss, so that longer ones are compared.
    """

    def __init__(self, learner: MetricKernelLearner, table: Rows, members: Members) -> None:
        self._learner, self._table, self._members = learner, table, members

    @property
    def space(self) -> MetricSpace:
        """That of all machines."""
        return self._some.space

    def trials(self) -> list[Callable[[], KernelExpansion]]:
        """If there are many rows, a fit that takes little time comes first."""
        few = len(self._table) <= MOST_ROWS_AT_ONCE
        return super().trials() if few else [self._with_some_rows, *super().trials()]

    def limit_centers(self) -> None:
        """Let the whole machine have as many centers as that of a small table."""
        n_centers = min(self._learner.n_centers, _CENTERS_OF_LITTLE_GAIN)
        self._learner = replace(self._learner, n_centers=n_centers)

    def model(self, member: int) -> KernelExpansion:
        """Fit the machine of a member, by least squares if not all rows are centers."""
        if self._has_few_rows:
            centers, system = self._system
            weights = system.solved(self._members.rows_of(member), self._better_ridge[0])
        else:
            centers, equations, ridge = self._equations
            left_out = None if self._members.folds is None else member
            weights = equations.solved(left_out, ridge)
        return self.space.expansion(centers, weights)

    def n_centers(self, machines: Sequence[KernelExpansion]) -> int:
        """All machines have the same centers."""
        return len(machines[0].basis)

    def final(self, machines: Sequence[KernelExpansion]) -> list[KernelExpansion]:
        """Fit a single machine to the rows that were split off, too."""
        rows, space = self._members.split_off, self.space
        if rows is None:
            return list(machines)
        table = self._table.joined(rows)
        if self._has_few_rows:
            centers, system = self._all_rows(table)
            weights = system.solved(np.arange(len(table)), self._better_ridge[0])
        else:
            centers, equations, ridge = self._equations
            weights = equations.with_rows(space.features, centers, rows).solved(None, ridge)
        return [space.expansion(centers, weights)]

    @property
    def _has_few_rows(self) -> bool:
        """Whether all rows are centers; members do without those held out from them."""
        is_certain = self._better_ridge[0] < _RIDGE_IF_CERTAIN
        most = _ROWS_PER_CENTER_IF_CERTAIN if is_certain else ROWS_PER_CENTER
        return len(self._table) <= most * self._n_centers

    @cached_property
    def _n_centers(self) -> int:
        """Half of the rows of the search or all, if a quarter or half of these suffice there."""
        some, most, (ridge, error) = self._some, self._learner.n_centers, self._better_ridge
        for share in _SHARES if len(some.rows) >= MOST_ROWS_OF_OWN_METRICS else ():
            if some.judged.error_of_centers(ridge, share) < _AS_GOOD * error:
                return min(most, 2 * len(some.rows) // share)
        return most

    @cached_property
    def _system(self) -> tuple[NDArray[Any], System]:
        return self._all_rows(self._table)

    def _all_rows(self, table: Rows) -> tuple[NDArray[Any], System]:
        """All rows as centers, and their linear system."""
        space = self.space
        centers = space.features(table.X, self._learner.precision)
        return centers, System.of(centers, table, self._members.team, space.kernel)

    @cached_property
    def _equations(self) -> tuple[NDArray[Any], NormalEquations, float]:
        """Some rows as centers, least squares on all rows, and the ridge."""
        table, members, space = self._table, self._members, self.space
        every = np.arange(len(table), dtype=np.uint32)
        learner = replace(self._learner, n_centers=self._n_centers)
        chosen = learner.centers(every, members.seed, members.team)
        centers = space.features(table.X[chosen], learner.precision)
        ridge, _ = self._better_ridge
        equations = NormalEquations.of(
            space.features, centers, table, members.parts, members.team, space.kernel, ridge
        )
        if ridge < space.ridge:  # otherwise, more rows than in the search need no less
            ridge = equations.better_ridge(ridge)
        return centers, equations, ridge

    def _with_some_rows(self) -> KernelExpansion:
        """A fit to most of some rows of the first member."""
        some = self._some
        return some.space.expansion(some.centers, some.judged.fit(some.space.ridge))

    @cached_property
    def _some(self) -> _SomeRows:
        """Some rows of the first member, which are centers, with the best length scale."""
        n_centers = min(MOST_ROWS_OF_OWN_METRICS, self._learner.n_centers)
        learner, members, table = self._learner, self._members, self._table
        own, seed, team = members.rows_of(0), members.seed, members.team
        drawn = replace(learner, n_centers=n_centers).centers(own, seed, team)
        space = learner.space(table, own, members.priorities[0], seed, team)
        some = _SomeRows(space, table.part(drawn), members.held(drawn), learner.precision, team)
        return some.with_best_length(drawn, members.loss_of)

    @cached_property
    def _better_ridge(self) -> tuple[float, float]:
        """The ridge that suits more rows than the search used, and its error on some of them."""
        some = self._some
        return some.judged.better_ridge(some.space.ridge)


@dataclass(frozen=True)
class _SomeRows:
    """Rows that are centers, and their system; a fifth of them is held out for comparisons."""

    space: MetricSpace
    rows: Rows
    held: NDArray[np.intp]  # places of the rows that are held out
    precision: str
    team: ThreadTeam
    length: float = 1.0  # factor of the length scale

    @cached_property
    def centers(self) -> NDArray[Any]:
        """The features of the rows."""
        return self.space.features(self.rows.X, self.precision)

    @cached_property
    def judged(self) -> JudgedSystem:
        """Fits to most rows, which the others judge."""
        system = System.of(self.centers, self.rows, self.team, self.space.kernel)
        return system.judged_by(self.held)

    @property
    def outputs(self) -> Floats:
        """Outputs for the rows that are held out, by a fit to the others."""
        return self.judged.outputs(self.space.ridge)

    def with_best_length(self, drawn: NDArray[np.uint32], loss_of: LossOfRows | None) -> _SomeRows:
        """Compare longer length scales by the loss of ``drawn`` rows, if it is not least squares.

        ``drawn`` (m,): the places of the rows in the table.
        """
        if loss_of is None:
            return self
        best, lowest = self, loss_of(drawn[self.held], self.outputs)
        for _ in range(_MOST_STEPS):
            space, length = best.space.longer(_LONGER), best.length * _LONGER
            longer = replace(best, space=space, length=length)
            loss = loss_of(drawn[self.held], longer.outputs)
            if not loss < _BETTER * lowest:
                break
            best, lowest = longer, loss
        return best


class OwnCenters(KernelMachines):
    """Kernel machines with a metric and centers for each member.

    This is more accurate than shared centers, but takes longer to predict.
    """

    def __init__(
        self, learner: MetricKernelLearner, tables: Sequence[Rows], members: Members
    ) -> None:
        self._learner = replace(learner, n_centers=min(learner.n_centers, CENTERS_OF_OWN_METRICS))
        self._tables, self._members = tables, members

    def left_out(self) -> Floats | None:
        """Leave-one-out outputs (m, r) of the first machine for the other folds, one by one."""
        table = self._tables[0]
        if len(table) >= FEW_ROWS or self._members.dependent is not None:
            return None
        rows = table.part(np.concatenate(self._members.parts[1:]))
        return self.space.longer(self._length).left_out(rows)

    def model(self, member: int) -> KernelExpansion:
        """Fit the machine of a member."""
        members, table, learner = self._members, self._tables[member], self._learner
        space = self.space if member == 0 else self._space(member)
        rows, seed = table.part(members.rows_of(member)), members.seed + member
        return learner.expansion(space.longer(self._length), rows, seed, members.team)

    def _space(self, member: int) -> MetricSpace:
        """The features and the ridge of a member; what the first one did not need is not tried."""
        members, table = self._members, self._tables[member]
        rows, priorities = members.rows_of(member), members.priorities[member]
        like = self.space if member else None
        seed = members.seed + member
        return self._learner.space(table, rows, priorities, seed, members.team, like)

    @cached_property
    def space(self) -> MetricSpace:
        """That of the first member."""
        return self._space(0)

    @cached_property
    def _length(self) -> float:
        """The factor of all length scales, by the first member."""
        members, learner = self._members, self._learner
        drawn = learner.centers(members.rows_of(0), members.seed, members.team)
        rows = self._tables[0].part(drawn)
        held = members.held(drawn)
        some = _SomeRows(self.space, rows, held, learner.precision, members.team)
        return some.with_best_length(drawn, members.loss_of).length

    def models(self, members: Sequence[int]) -> list[KernelExpansion]:
        """Fit the machines of several members side by side."""
        return self._members.team.map(self.model, members)

    def n_centers(self, machines: Sequence[KernelExpansion]) -> int:
        """Each machine has its own centers."""
        return sum(len(machine.basis) for machine in machines)

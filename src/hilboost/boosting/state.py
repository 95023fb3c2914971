"""The state of a fit between its stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.rotation import Rotation
from hilboost.core.capabilities import RowDivision
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.model.fit_facts import FitSnapshot, ResolvedParameters

_ROUNDING = 1e-9  # losses below it may be rounding errors


@dataclass(frozen=True)
class Validation:
    """Held-out inputs (n, d), their target, and ``raw`` (n, r) so far.

    Sets beside the one that decides about early stopping have a name.  With a ``division``, base
    models are evaluated on ``data``, the same rows prepared for the learner.
    """

    X: Floats
    target: Target
    raw: Floats
    name: str = ""
    division: RowDivision | None = None
    data: Any = None

    def named(self, measure: str) -> str:
        """Name of a loss or metric of these rows in the history."""
        return f"{self.name}: {measure}"


@dataclass
class TrainingState:
    """The state of a fit: everything needed to continue it."""

    members: list[EnsembleMember]  # one member, or one for each fold; the model is their mean
    # (n,) int64 or None: for each row, the member from which it is held out, or -1; a trial may
    # omit the last members
    folds: NDArray[np.int64] | None = None
    # parts of the rows from which the stages learn in turn, with their own ``raw``; ``None`` if
    # every stage may learn from all rows
    rotation: Rotation | None = None
    # mean losses, beginning with that of the initial prediction
    train: list[float] = field(default_factory=list)
    # mean losses, beginning with that of the initial prediction
    validation: list[float] = field(default_factory=list)
    # metrics of the held-out rows, likewise, and loss and metrics of further validation sets
    metrics: dict[str, list[float]] = field(default_factory=dict)
    # duration of each stage; NaN for stages of an earlier fit
    seconds: list[float] = field(default_factory=list)
    # the interrupt that ended the fit early, to be raised once the stages so far are saved
    interrupt: KeyboardInterrupt | None = None
    is_stopped: bool = False  # whether a callback ended the fit
    # that of the last stage, after that of the best stage if it is another one
    snapshots: tuple[FitSnapshot, ...] = ()

    @property
    def n_stages(self) -> int:
        """Number of stages of each member."""
        return len(self.members[0].stages)

    def since(self, n_stages: int) -> TrainingState:
        """Copy what the stages after a number of them have added; all if it is 0."""
        begin = n_stages + 1 if n_stages else 0
        members = [
            EnsembleMember(one.initial_raw, stages=one.stages[n_stages:]) for one in self.members
        ]
        metrics = {name: values[begin:] for name, values in self.metrics.items()}
        return TrainingState(
            members, train=self.train[begin:], validation=self.validation[begin:], metrics=metrics
        )

    def extend(self, later: TrainingState) -> None:
        """Add what the next stages have added."""
        for member, other in zip(self.members, later.members, strict=True):
            member.stages += other.stages
        self.train += later.train
        self.validation += later.validation
        for name, values in later.metrics.items():
            self.metrics[name] += values

    def keep(self, n_stages: int) -> None:
        """Drop everything after a number of stages."""
        for losses in (self.train, self.validation, *self.metrics.values()):
            del losses[n_stages + 1 :]
        del self.seconds[n_stages:]
        if self.rotation is not None:
            del self.rotation.counts[n_stages + 1 :]
        for member in self.members:
            del member.stages[n_stages:]

    def snapshot_of(self, n_stages: int) -> FitSnapshot | None:
        """Return the snapshot after a number of stages, if there is one."""
        return next((found for found in self.snapshots if found.n_stages == n_stages), None)

    def resolved(self, parameters: ResolvedParameters | None) -> ResolvedParameters | None:
        """Return the parameters as they are after the last stage."""
        if parameters is None or self.rotation is None:
            return parameters
        return self.rotation.resolved(parameters, self.n_stages)

    @property
    def growth(self) -> float:
        """Increase of the training loss since the start, relative to its size and decrease."""
        n_first = 1 if self.rotation is None else self.rotation.counts[0]
        start = max(self.train[:n_first])  # the losses of different rows differ
        grown = self.train[-1] - start
        if grown <= 0 or start == 0:
            return 0.0
        return grown / max(abs(start), start - min(self.train), _ROUNDING)

    @cached_property
    def held_out(self) -> list[NDArray[np.intp]]:
        """Rows that are held out from each member, ascending."""
        assert self.folds is not None
        return [np.flatnonzero(self.folds == k) for k in range(len(self.members))]

    @property
    def divides_all_rows(self) -> bool:
        """Whether each member learns from all rows that are not held out from it."""
        sizes = zip(self.members, self.held_out, strict=True)
        n = len(self.members[0].raw)
        return all(one.rows is None or len(one.rows) + len(held) == n for one, held in sizes)

    def raw_of(self, member: int, n_threads: int) -> Floats:
        """Predictions of a member for all rows, (n, r)."""
        if self.rotation is not None:
            return self.rotation.raw_of(member, n_threads)
        return self.members[member].raw

    def current_rows(
        self, target: Target, n_threads: int
    ) -> tuple[Target, Sequence[EnsembleMember]]:
        """The rows from which the next stage learns, and the members restricted to them."""
        if self.rotation is None:
            return target, self.members
        turn = self.rotation.current(n_threads)
        return turn.target, turn.members

    @contextmanager
    def in_whole_stages(self) -> Iterator[None]:
        """Keep only complete stages if the block is interrupted; ``raw`` may be ahead of them."""
        try:
            yield
        except KeyboardInterrupt:
            noted = [x for x in (self.train, self.validation, *self.metrics.values()) if x]
            n_stages = max(0, min((len(losses) for losses in noted), default=0) - 1)
            if self.snapshots:
                n_stages = min(n_stages, self.snapshots[-1].n_stages)
            self.keep(n_stages)
            raise

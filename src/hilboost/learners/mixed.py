"""Several learners in one model: each stage is fitted by the best one that makes a proposal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import Capabilities, of_any
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.tables.blocks import as_table
from hilboost.tables.sparse import SparseTable

_PARTS = 5  # of the rows; one of them compares the proposals of a stage


@dataclass
class Schedule:
    """Schedule that skips learners which are unlikely to win.

    Gains tend to decrease as the model grows.  The last gain of a learner is therefore used as an
    estimate of the next one, as in accelerated greedy selection (Minoux 1978): a learner makes a
    proposal if its last gain exceeds the best gain of this stage.  Because gains can also increase,
    each learner also makes a proposal after an interval of stages, which doubles each time it loses
    and is reset to one when it wins.
    """

    in_files: ClassVar[bool] = True

    stage: int  # number of stages so far
    gains: list[float]  # gain of the last proposal of each learner
    intervals: list[int]
    due: list[int]  # stage in which each learner makes its next proposal at the latest

    @classmethod
    def of(cls, n_learners: int) -> Self:
        """Create the schedule of the first stage, in which all learners make a proposal."""
        return cls(0, [0.0] * n_learners, [1] * n_learners, [0] * n_learners)

    def copied(self) -> Self:
        """Return a copy that later stages do not change."""
        return replace(
            self, gains=list(self.gains), intervals=list(self.intervals), due=list(self.due)
        )

    def winner(self, ask: Callable[[int], float]) -> int:
        """Return the learner whose proposal has the largest gain; the first one of equal gains."""
        asked: dict[int, float] = {}
        for k, due in enumerate(self.due):
            if due <= self.stage:
                asked[k] = ask(k)
        while True:
            waiting = [k for k in range(len(self.due)) if k not in asked]
            best = max(asked.values(), default=-float("inf"))
            rivals = [k for k in waiting if self.gains[k] > best]
            if not rivals:
                break
            k = max(rivals, key=lambda k: (self.gains[k], -k))
            asked[k] = ask(k)
        winner = max(asked, key=lambda k: (asked[k], -k))
        self._note(asked, winner)
        return winner

    def _note(self, asked: dict[int, float], winner: int) -> None:
        for k, gain in asked.items():
            self.gains[k] = gain
            self.intervals[k] = 1 if k == winner else 2 * self.intervals[k]
            self.due[k] = self.stage + self.intervals[k]
        self.stage += 1


@dataclass
class MixedData:
    """The data of each learner, and the schedule of proposals."""

    parts: list[Any]
    weight: Floats | None  # (n,) float64 or None: sample weights
    part_of_row: NDArray[np.uint8]  # (n,) uint8: equal rows are in the same part
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class MixedSnapshot:
    """The schedule after some stages, and a snapshot of each learner."""

    in_files: ClassVar[bool] = True

    schedule: Schedule
    parts: list[Any]


@dataclass(frozen=True)
class Comparison:
    """The rows that the proposals of a stage are fitted to, and those that they are compared on."""

    learned: RowSample
    rows: Any  # (m,) integers or slice
    weight: Floats | None  # (n,) float64 or None
    # whether no proposal was fitted to ``rows``.  Otherwise, the penalty is part of the comparison.
    is_held_out: bool


@dataclass(frozen=True)
class MixedLearner(Learner):
    """Learner whose stages are the best proposals of several learners.

    The gain of a proposal ``f`` is the decrease of the second-order model of the loss,
    ``c Σ w g f - ½ c² Σ w h f²`` with sample weights ``w``, negative gradients ``g`` and curvatures
    ``h``, at the best step length ``c``.  Newton steps and penalized steps have a length of at most
    one; a line search or the loss sets the length of other steps.  The sums are over held-out rows,
    so that a flexible learner does not win by fitting noise:

    * Each member of an ensemble uses its own fold, which it is never fitted to.
    * Otherwise, each stage holds out a fifth of the rows.  The fifths take turns, so that every row
      is used in four of five stages, similar to stochastic gradient boosting.
    * If a learner does not support row samples, proposals are compared on the rows that they were
      fitted to, and the gain includes the change of the penalty.

    Only learners that may win make a proposal (:class:`Schedule`).

    Kernel machines penalize only their own part of the model.  Rows are divided into fifths by
    their contents, so that equal rows stay together.
    """

    learners: tuple[Learner, ...]
    # one for each learner, all different; ``"learner 1"`` and so on by default
    names: tuple[str, ...] = ()

    in_files: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Reject lists that are empty or nested, and equal names."""
        if not self.names:
            numbers = range(1, len(self.learners) + 1)
            object.__setattr__(self, "names", tuple(f"learner {k}" for k in numbers))
        if not self.learners or len(self.learners) != len(self.names):
            raise InvalidParameter(
                "MixedLearner requires at least one learner, and one name per learner."
            )
        if len(set(self.names)) < len(self.names):
            raise InvalidParameter(f"names must be different; got {', '.join(self.names)}.")
        if any(len(learner.parts) > 1 for learner in self.learners):
            raise InvalidParameter(
                "MixedLearner cannot contain another MixedLearner; put all learners into one tuple."
            )

    @property
    def parts(self) -> tuple[Learner, ...]:
        """The learners."""
        return self.learners

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities that all learners have."""
        common = of_any([learner.capabilities for learner in self.learners])
        return replace(common, learner_names=self.names)

    # Fit

    def prepare(
        self, X: Floats | SparseTable, weight: Floats | None, seed: int, n_threads: int
    ) -> MixedData:
        """Prepare every learner."""
        table: Any = X
        parts = [learner.prepare(table, weight, seed, n_threads) for learner in self.learners]
        return MixedData(parts, weight, parts_of_rows(X), Schedule.of(len(parts)))

    def for_members(
        self,
        data: MixedData,
        n_members: int,
        choose_penalty: Callable[..., tuple[float, float]] | None,
    ) -> list[MixedData]:
        """Return data with schedules of their own."""
        parts = [
            learner.for_members(part, n_members, choose_penalty)
            for learner, part in zip(self.learners, data.parts, strict=True)
        ]
        schedules = (Schedule.of(len(parts)) for _ in range(n_members))
        return [
            replace(data, parts=list(own), schedule=schedule)
            for own, schedule in zip(zip(*parts, strict=True), schedules, strict=True)
        ]

    def fit(
        self, data: MixedData, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Return the best proposal; its terms contain the index of the learner."""
        if len(self.learners) == 1:
            return self._proposal(0, data, gradients, sample, rng)
        seeds = rng.integers(2**62, size=len(self.learners))
        comparison = self._comparison(data, sample)
        proposals: dict[int, list[FittedTerm]] = {}

        def ask(k: int) -> float:
            own = np.random.default_rng(int(seeds[k]))
            proposals[k] = self._proposal(k, data, gradients, comparison.learned, own)
            return decrease(proposals[k], gradients, comparison)

        return proposals[data.schedule.winner(ask)]

    def _proposal(
        self,
        k: int,
        data: MixedData,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        learner = self.learners[k]
        if learner.capabilities.fits_curvature and gradients.smooth is not None:
            gradients = gradients.smooth
        sample = replace(sample, rate=None)  # it may not be the best proposal
        terms = learner.fit(data.parts[k], gradients, sample, rng)
        return [replace(fitted, term=replace(fitted.term, learner=k)) for fitted in terms]

    def _comparison(self, data: MixedData, sample: RowSample) -> Comparison:
        if sample.apart is not None and len(sample.apart):
            return Comparison(sample, sample.apart, data.weight, True)
        if self.capabilities.takes_samples:
            inside = np.arange(len(data.part_of_row)) if sample.rows is None else sample.rows
            is_held = data.part_of_row[inside] == data.schedule.stage % _PARTS
            if is_held.any() and not is_held.all():
                learned = inside[~is_held].astype(dtypes.ROW)
                drawn = replace(sample, rows=learned, rate=None)
                return Comparison(drawn, inside[is_held], sample.weight, True)
        rows = slice(None) if sample.rows is None else sample.rows
        return Comparison(sample, rows, sample.weight, False)

    def stage_added(self, data: MixedData, stage: Stage | None) -> None:
        """Inform the learners who fitted the stage."""
        winner = None if stage is None else stage.terms[0].learner
        for k, (learner, part) in enumerate(zip(self.learners, data.parts, strict=True)):
            learner.stage_added(part, stage if k == winner else None)

    def snapshot(self, data: MixedData) -> MixedSnapshot:
        """Return the schedule and the snapshots of the learners."""
        pairs = zip(self.learners, data.parts, strict=True)
        parts = [learner.snapshot(part) for learner, part in pairs]
        return MixedSnapshot(data.schedule.copied(), parts)

    def restore(
        self, data: MixedData, snapshot: MixedSnapshot, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Restore the schedule and each learner."""
        data.schedule = snapshot.schedule.copied()
        restored = list(terms)
        parts = zip(self.learners, data.parts, snapshot.parts, strict=True)
        for k, (learner, part, own) in enumerate(parts):
            places = [place for place, term in enumerate(terms) if term.learner == k]
            found = learner.restore(part, own, [terms[place] for place in places])
            for place, term in zip(places, found, strict=True):
                restored[place] = term
        return restored

    def converged(self, data: MixedData) -> bool:
        """Return whether all learners have converged."""
        pairs = zip(self.learners, data.parts, strict=True)
        return all(learner.converged(part) for learner, part in pairs)

    def close(self, data: MixedData) -> None:
        """Close every learner."""
        for learner, part in zip(self.learners, data.parts, strict=True):
            learner.close(part)


def in_trials(learner: Learner, data: Any) -> tuple[Learner, Any]:
    """Return the learner whose parameters trial runs compare, with its data: the first of trees."""
    if len(learner.parts) == 1:
        return learner, data
    of_trees = [part.capabilities.constant_on_leaves for part in learner.parts]
    k = of_trees.index(True) if any(of_trees) else 0
    return learner.parts[k], data.parts[k]


def decrease(proposal: Sequence[FittedTerm], gradients: Gradients, comparison: Comparison) -> float:
    """Compute the mean decrease of the second-order model; negative for ascent directions."""
    rows, weight = comparison.rows, comparison.weight
    # Without a hessian, losses such as the absolute error set the values of leaves themselves.
    sets_leaves = gradients.hessian is None
    gradients = gradients if gradients.smooth is None else gradients.smooth
    slope, curvature = 0.0, 0.0
    for fitted in proposal:
        columns = fitted.term.columns
        outputs = fitted.term.coefficient * _outputs(fitted, rows)
        weighted = outputs if weight is None else outputs * weight[rows, None]
        slope += float((weighted * gradients.negative_gradient[rows, columns]).sum())
        if gradients.hessian is not None:
            outputs = outputs * gradients.hessian[rows, columns]
        curvature += float((weighted * outputs).sum())
        if not comparison.is_held_out:
            slope, curvature = slope - fitted.penalty[0], curvature + fitted.penalty[1]
    if not curvature > 0:
        return 0.0
    length = abs(slope) / curvature
    if all(_is_whole(fitted, sets_leaves) for fitted in proposal):
        length = min(length, 1.0)
    n_rows = len(gradients.negative_gradient[rows])
    mass = n_rows if weight is None else float(weight[rows].sum())
    return float(np.sign(slope)) * length * (abs(slope) - 0.5 * length * curvature) / mass


def _is_whole(fitted: FittedTerm, sets_leaves: bool) -> bool:
    """Return whether the step length is at most one."""
    return fitted.penalized or (fitted.newton and not (sets_leaves and fitted.leaves is not None))


def _outputs(fitted: FittedTerm, rows: Any) -> Floats:
    if fitted.outputs is not None:
        return fitted.outputs[rows]
    model = fitted.term.model.on_leaves()
    assert model is not None
    assert fitted.leaves is not None
    return model.values[fitted.leaves[rows]]


def parts_of_rows(X: Floats | SparseTable) -> NDArray[np.uint8]:
    """Divide the rows into parts (n,) by their contents; equal rows are in the same part."""
    return (as_table(X).row_hashes() % np.uint64(_PARTS)).astype(np.uint8)

"""Conformal calibration: prediction intervals and sets with a guaranteed coverage.

A *score* says how badly a label agrees with the predictions for its row.  A prediction set holds
all labels whose scores do not exceed the scores of most calibration rows (Vovk, Gammerman &
Shafer 2005; Lei et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, first_few, first_true
from hilboost.distributions import CalibratedDistribution, Distribution
from hilboost.distributions.interpolated import knots_of
from hilboost.model.additive import AdditiveModel, members_of
from hilboost.model.scores import DistanceScale

_ROUNDING = 1e-9
_HALVINGS = 52


@dataclass(frozen=True)
class Ranking:
    """Ascending scores with their cumulative weights."""

    scores: Floats  # (n,) float64
    mass: Floats  # (n + 1,) float64: sums of the weights of the first 0, 1, …, n scores

    @classmethod
    def of(cls, scores: Floats, weight: Floats | None) -> Ranking:
        """Sort scores (n,), leaving out those that are missing."""
        known = np.flatnonzero(~np.isnan(scores))
        order = known[np.argsort(scores[known], kind="stable")]
        ones = np.ones(len(order)) if weight is None else weight[order]
        return cls(scores[order], np.concatenate([[0.0], np.cumsum(ones)]))

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.mass[-1])

    def at_most(self, values: Floats) -> Floats:
        """Weight of the scores that do not exceed each value."""
        return self.mass[np.searchsorted(self.scores, values, side="right")]

    def below(self, values: Floats) -> Floats:
        """Weight of the scores below each value."""
        return self.mass[np.searchsorted(self.scores, values, side="left")]


@dataclass(frozen=True)
class Calibration:
    """Scores of labels that did not influence the predictions they are compared with."""

    # (n, k) float64: one column per target, or per pair of quantile levels; NaN where the target is
    # missing
    scores: Floats = field(repr=False)
    # (n,) float64 or None: the number of rows that each row counts as
    weight: Floats | None = field(default=None, repr=False)
    # (n,) int64 or None: the ensemble member that did not learn from the row and made its
    # prediction.  ``None`` if the whole model made it.
    folds: NDArray[np.int64] | None = field(default=None, repr=False)
    # (n,) int64 or None: numbers of the groups that are calibrated separately (Mondrian)
    groups: NDArray[np.int64] | None = field(default=None, repr=False)
    group_names: NDArray[Any] | None = None  # (g,) array or None
    by_class: bool = False  # whether the groups are the classes of the labels
    # for structured outputs, the expected distance of labels from predicted points
    scale: DistanceScale | None = None
    # (n,) float64 or None: the probability integral transform of the labels, for models that
    # predict distributions
    levels: Floats | None = field(default=None, repr=False)
    _rankings: dict[tuple[str, int, int], Ranking] = field(
        default_factory=dict, repr=False, compare=False
    )
    _members: list[AdditiveModel] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_members(self) -> int:
        """Number of ensemble members that made the predictions; 1 for the whole model."""
        return 1 if self.folds is None else int(self.folds.max()) + 1

    def members(self, model: AdditiveModel) -> list[AdditiveModel]:
        """Split the model into the ensemble members that made the predictions."""
        if not self._members:
            self._members[:] = members_of(model, self.n_members)
        return self._members

    def threshold(self, coverage: float, column: int = 0, group: int | None = None) -> float:
        """Compute the smallest score below which a new one lies with the given probability.

        The scores up to it weigh at least ``coverage (n + 1)``, where ``n`` is the weight of all
        scores of the group and 1 that of the new row.  Without weights, this is the ``ceil(coverage
        (n + 1))``-th smallest score.
        """
        ranking = self._ranking(column, group)
        needed = self._needed(ranking.total, coverage, group)
        return float(ranking.scores[max(1, int(np.searchsorted(ranking.mass, needed))) - 1])

    def thresholds(self, coverage: float, groups: NDArray[np.int64], column: int = 0) -> Floats:
        """Compute the threshold of the group of each row, (n,)."""
        found = np.empty(len(groups))
        for group in np.unique(groups):
            found[groups == group] = self.threshold(coverage, column, int(group))
        return found

    def upper_ends(self, anchors: Floats, coverage: float, column: int = 0) -> Floats:
        """Compute upper ends of intervals (n,) from the ends of each ensemble member.

        These are the smallest ``t`` such that the calibration rows with ``anchor + score <= t``
        weigh enough, where the anchor is that of the member which predicted the row (CV+ of Barber
        et al. 2021), up to rounding.  Bisection between the smallest and the largest anchor plus
        the threshold: O(log n) per member and halving.
        """
        threshold = self.threshold(coverage, column)
        high = anchors.max(axis=0) + threshold
        low = anchors.min(axis=0) + threshold
        if not (low < high).any():
            return high
        parts = list(zip(self._by_member(column), anchors, strict=True))
        needed = self._needed(sum(part.total for part, _ in parts), coverage)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            enough = sum(part.at_most(middle - anchor) for part, anchor in parts) >= needed
            high, low = np.where(enough, middle, high), np.where(enough, low, middle)
        return high

    def accepted(self, scores: Sequence[Floats], coverage: float) -> NDArray[np.bool_]:
        """Tell which labels belong to the prediction sets, (n, c), by the scores under each member.

        The calibration rows with a lower score than such a label weigh too little to leave it out
        (cross-conformal prediction of Vovk 2015).
        """
        rankings = self._by_member(0)
        needed = self._needed(sum(part.total for part in rankings), coverage)
        below = sum(part.below(values) for part, values in zip(rankings, scores, strict=True))
        return np.asarray(below < needed)

    def calibrated(self, distribution: Distribution, groups: NDArray[np.int64]) -> Distribution:
        """Calibrate distributions of new rows, whose groups (n,) are empty if there are none."""
        levels, weight = self.levels, self.weight
        if levels is None:
            return distribution
        of_group: list[Any] = [slice(None)]
        if len(groups):
            assert self.group_names is not None
            of_group = [self.groups == k for k in range(len(self.group_names))]
        knots = [knots_of(levels[k], None if weight is None else weight[k]) for k in of_group]
        return CalibratedDistribution.of(distribution, knots, groups)

    def group_numbers(self, groups: NDArray[Any]) -> NDArray[np.int64]:
        """Convert the groups of new rows to their numbers, (n,)."""
        names = self.group_names
        assert names is not None
        listed, given = names.tolist(), groups.tolist()
        number = {name: k for k, name in enumerate(listed)}
        found = np.array([number.get(group, -1) for group in given], dtype=np.int64)
        if (row := first_true(found < 0)) is not None:
            if self.by_class:
                raise InvalidData(
                    f"class {given[row]!r:.60} has no calibration rows; call calibrate "
                    "with rows of every class."
                )
            raise InvalidData(
                f"row {row} of groups is {given[row]!r:.60}, a group without calibration "
                f"rows; known are {first_few(listed)}. Call calibrate with rows of every group."
            )
        return found

    def _ranking(self, column: int, group: int | None = None) -> Ranking:
        """Rank the scores of one group, or of all rows."""
        if group is None:
            return self._ranked(("all", column, 0), slice(None))
        return self._ranked(("group", column, group), self.groups == group)

    def _by_member(self, column: int) -> list[Ranking]:
        """Rank the scores of the rows that each member has predicted."""
        if self.folds is None:
            return [self._ranking(column)]
        numbers = range(self.n_members)
        return [self._ranked(("member", column, k), self.folds == k) for k in numbers]

    def _ranked(self, key: tuple[str, int, int], rows: Any) -> Ranking:
        if key not in self._rankings:
            weight = None if self.weight is None else self.weight[rows]
            self._rankings[key] = Ranking.of(self.scores[rows, key[1]], weight)
        return self._rankings[key]

    def _needed(self, total: float, coverage: float, group: int | None = None) -> float:
        """Return the weight that a set must cover; refuse what all rows together do not reach."""
        needed = (total + 1) * coverage - _ROUNDING * (1 + 1e-3 * total)
        if needed <= total:
            return needed
        fewest = int(np.ceil(coverage / (1 - coverage) - _ROUNDING))
        of_group = ""
        if group is not None and self.group_names is not None:
            kind = "class" if self.by_class else "group"
            of_group = f" of {kind} {self.group_names.tolist()[group]!r:.60}"
        raise InvalidData(
            f"a coverage of {coverage:g} requires at least {fewest} calibration rows; got "
            f"{total:g}{of_group}. Calibrate with more rows, or lower the coverage."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is needed."""
        return {**self.__dict__, "_rankings": {}, "_members": []}

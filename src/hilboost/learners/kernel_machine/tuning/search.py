"""The search for a kernel among several families.

The marginal likelihood of a few hundred rows gives length scales for each family.  Leave-one-out
errors and held-out errors on a few thousand rows decide between the families, and correct their
length scales and λ: values from a small subset are too large for the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.backends.work_clock import working_seconds
from hilboost.kernels.marginal_likelihood import Effort
from hilboost.learners.kernel_machine.tuning.likelihood import (
    FOLDS,
    ROUGH,
    ROWS_FIRST,
    ROWS_OF_LIKELIHOOD,
    ROWS_PER_SCALE,
    START_NOISE,
    FewRows,
    more_likely,
    most_likely,
    most_likely_map,
    starts_of,
)
from hilboost.learners.kernel_machine.tuning.refined_metrics import by_gradients
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_LEAVE_ONE_OUT,
    Candidate,
    FoldKernels,
    Rows,
    best_lambda,
    best_scale,
    by_error,
    extrapolated,
    held_out,
    leave_one_out,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import (
    FAMILIES,
    MAIN_FAMILIES,
    MOST_COLUMNS_WITH_OWN_SCALES,
    USUAL_FAMILY,
    Columns,
    TableKernel,
)

_ROWS_OF_FOLDS = 1200
_FAMILIES_KEPT = 3
_STEPS_OF_A_FAMILY = 15
_ISOTROPIC_SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 2.0)
_SCALES_OF_INDICATORS = (0.35, 0.5, 0.7, 1.0)
_SECONDS_OF_A_WIDE_SEARCH = 15.0
_SECONDS_OF_A_SEARCH, _SECONDS_OF_A_SCALE = 2.0, 0.1  # of the main families; measured
_ROWS_OF_OWN_SCALES = 50  # more rows for each column determine its length scale
_SMOOTH = 0.3  # largest error, as a share of the variance, with which a map is tried
_WORTH_A_MAP = 0.95  # a map has d² numbers, which also fit noise
_WORTH_COLUMNS = 0.8  # some of many columns, which also suit the noise of the rows
_MANY_TARGETS = 4
_LAMBDA_OF_INDICATORS = 0.03
_USUAL_SHRINKING = -0.08

# The choice in a fraction of a second:
_HASTY_ROWS, _FEWER_ROWS = 400, 200
_HASTY_SCALES = (1.0, 0.5, 2.0, 0.25, 4.0)  # the usual one first
_WORTH_SCALES = 0.95  # leave-one-out errors favor scales that were fitted to the same rows
_SECONDS_OF_FEWER_ROWS = 0.2
_LEFT_FOR_SCALES, _LEFT_FOR_LAMBDA = 0.3, 0.1

Found = list[Candidate[TableKernel]]


class Clock:
    """Measures how much of a time limit is left, without compilation; ``None`` means unlimited."""

    def __init__(self, seconds: float | None) -> None:
        self._began = working_seconds()
        self._seconds = seconds

    @property
    def is_wide(self) -> bool:
        """Whether there is time for every family of kernels."""
        return self.allows(_SECONDS_OF_A_WIDE_SEARCH)

    def allows(self, seconds: float) -> bool:
        """Whether the limit is not below some seconds."""
        return self._seconds is None or self._seconds >= seconds

    def has(self, share: float) -> bool:
        """Whether this share of the time is left; always true without a limit."""
        if self._seconds is None:
            return True
        return working_seconds() - self._began < (1 - share) * self._seconds


@dataclass(frozen=True, eq=False)
class Search:
    """A search for the kernel with the lowest error on rows that it was not fitted to."""

    columns: Columns
    sampled: Rows
    n: float  # number of rows, or of basis vectors if fewer, that the model will have
    floor: float  # smallest λ
    team: ThreadTeam  # evaluates candidates in parallel
    clock: Clock
    is_wide: bool = True  # whether to consider every family of kernels

    @cached_property
    def small(self) -> Rows:
        """Rows for leave-one-out errors."""
        return self.sampled.first(ROWS_OF_LEAVE_ONE_OUT)

    @cached_property
    def few_rows(self) -> FewRows:
        """The comparison of length scales by folds, for few rows."""
        return FewRows(self.columns, self.small, self.floor, self.team)

    @property
    def has_few_rows(self) -> bool:
        """Whether there are too few rows to hold some out."""
        return len(self.sampled) <= 1.5 * ROWS_OF_LEAVE_ONE_OUT

    @cached_property
    def fresh(self) -> Rows:
        """Rows that the likelihood has not seen, if there are enough."""
        m = len(self.small)
        return self.small if self.has_few_rows else self.sampled.part(slice(m, 2 * m))

    @property
    def has_many_targets(self) -> bool:
        """Whether there are so many targets that they are probably indicators of classes."""
        return self.sampled.Y.shape[1] > _MANY_TARGETS

    @property
    def n_scales(self) -> int:
        """Number of length scales of a kernel."""
        d = len(self.columns.numeric) + len(self.columns.categorical)
        return d if d <= MOST_COLUMNS_WITH_OWN_SCALES else 1

    @property
    def _n_likely(self) -> int:
        """Number of rows by whose likelihood length scales are fitted first."""
        return ROWS_FIRST + ROWS_PER_SCALE * self.n_scales

    @cached_property
    def is_hasty(self) -> bool:
        """Whether time is too short for the likelihood of several families."""
        return not self.clock.allows(_SECONDS_OF_A_SEARCH + _SECONDS_OF_A_SCALE * self.n_scales)

    @property
    def can_warp(self) -> bool:
        """Whether warps of the features may be tried."""
        is_open = bool(self.columns.numeric) and self.n_scales > 1 and not self.has_many_targets
        return is_open and not self.has_few_for_scales and self.clock.is_wide

    @cached_property
    def usual(self) -> Candidate[TableKernel]:
        """The most likely kernel of the usual family for some hundred rows."""
        rows = self.sampled.first(self._n_likely)
        return most_likely(starts_of(self.columns, USUAL_FAMILY), rows, self.team)

    def likely(self, family: str, start: Candidate[TableKernel]) -> Candidate[TableKernel]:
        """A more likely kernel of a family, beginning at the length scales of another one."""
        rows = self.sampled.first(self._n_likely)
        begun = replace(start, kernel=start.kernel.like(family))
        return more_likely(begun, rows, Effort(_STEPS_OF_A_FAMILY, ROUGH))

    def best(self) -> Candidate[TableKernel]:
        """The best of several families of kernels."""
        if not self.sampled.Y.any() or len(self.sampled) < 3:
            return Candidate(self.columns.kernel("gaussian", 1.0), 1e-2)
        if self.is_hasty:
            return self._hasty()
        best = self._best()
        is_judged = self.uses_gradients and (self.has_few_for_scales or self.n_scales == 1)
        if is_judged and self.clock.has(0.5):
            best = self._with_gradients(best)
        return best

    def _with_gradients(self, best: Candidate[TableKernel]) -> Candidate[TableKernel]:
        """A kernel by gradients, if it is better on rows that it was not chosen by."""
        rows = self.sampled.part(self.sampled.divided.learned)
        rivals = by_gradients(self.columns, rows, self.team)
        before, *tried = self.team.map(partial(held_out, rows=self.sampled), [best, *rivals])
        rival = min(tried, key=by_error, default=before)
        if not rival.error < before.error:
            return best
        is_clear = rival.error < _WORTH_COLUMNS * before.error
        rival = self._scaled(rival)
        found = best_lambda(rival, self.small, leave_one_out, self.floor, self.team)
        narrow = replace(found, kernel=rivals[0].kernel.narrowed())
        part = replace(self, columns=narrow.kernel.columns)
        if part.has_few_for_scales or not is_clear:
            return found
        return min(found, part._best(narrow), key=by_error)

    @property
    def uses_gradients(self) -> bool:
        """Whether gradients of fitted functions can tell which columns matter."""
        return bool(self.columns.numeric) and not (
            self.has_many_targets or self.columns.categorical
        )

    @property
    def has_few_for_scales(self) -> bool:
        """Whether there are too few rows for a length scale of each column."""
        d = len(self.columns.numeric) + len(self.columns.categorical)
        return len(self.sampled) <= _ROWS_OF_OWN_SCALES * d and self.has_few_rows

    def _best(self, start: Candidate[TableKernel] | None = None) -> Candidate[TableKernel]:
        if self.has_few_for_scales and start is None and not self.has_many_targets:
            start = self.few_rows.compared()
            if start is not None and start.folds is not None:
                return start
        search, found = self._likely(start)
        found, mapped = found[:_FAMILIES_KEPT], Found()
        if len(self.sampled) > ROWS_FIRST and not self.has_many_targets:
            found, mapped = search._refined(found)
        if self.has_many_targets:
            isotropic = self.team.map(self._isotropic, MAIN_FAMILIES)
            found = sorted([*found, *isotropic], key=by_error)
        if self.has_few_rows:
            return best_lambda(found[0], self.small, leave_one_out, self.floor, self.team)
        if not self.clock.has(0.4):
            return self._hurried(found, mapped)
        return self._by_held_out_error(found, mapped)

    def folds_of(self, best: Candidate[TableKernel]) -> FoldKernels | None:
        """The kernel by folds that its length scales do not depend on; ``None`` if there are none.

        Few rows have a kernel for each fold.  Otherwise, the folds are of rows that the likelihood
        has not seen.
        """
        if best.folds is not None or self.is_hasty:
            return best.folds
        if self.has_few_rows:
            is_single = len(self.few_rows.rows) < 2
            if is_single or not best.kernel.scale_groups or self.has_many_targets:
                return None
            family = best.kernel.family
            return self.few_rows.folds_of(family if family in FAMILIES else USUAL_FAMILY)
        rows = self.sampled.rows[ROWS_OF_LIKELIHOOD : ROWS_OF_LIKELIHOOD + _ROWS_OF_FOLDS]
        return FoldKernels(tuple(np.array_split(rows, FOLDS)), (best.kernel.plain,) * FOLDS)

    def _likely(self, start: Candidate[TableKernel] | None) -> tuple[Search, Found]:
        """The most likely kernel of each family with the best scale, in ascending order of errors.

        The families share a start: the length scales of the usual one.  The likelihood of the
        search that is returned divides the noise by the weights if this predicts better.
        """
        searches = [self]
        if np.ptp(self.sampled.weight) > 0:
            searches.append(replace(self, sampled=replace(self.sampled, weighs_noise=True)))

        def usual_of(search: Search) -> Candidate[TableKernel]:
            if start is None:
                return search.usual
            also = replace(start, kernel=start.kernel.like(USUAL_FAMILY))
            rows = search.sampled.first(self._n_likely)
            return most_likely([*starts_of(self.columns, USUAL_FAMILY), also], rows, self.team)

        tried = list(zip(searches, self.team.map(usual_of, searches), strict=True))
        if len(tried) > 1:
            tried.sort(key=lambda one: self._scaled(one[1]).error)
        search, usual = tried[0]

        def likely(family: str) -> Candidate[TableKernel]:
            is_usual = family == USUAL_FAMILY
            return self._scaled(usual if is_usual else search.likely(family, usual))

        def steep() -> Found:
            if not self.uses_gradients or self.n_scales == 1 or self.has_few_for_scales:
                return []
            return self.team.map(self._scaled, by_gradients(self.columns, self.sampled, self.team))

        families: Sequence[str] = MAIN_FAMILIES
        if self.is_wide:  # at the end: steps along columns with scales of their own
            families = list(FAMILIES)[: None if self.n_scales > 1 else -1]
        tasks: list[Callable[[], Any]] = [steep, *(partial(likely, one) for one in families)]
        rivals, *found = self.team.map(lambda task: task(), tasks)  # the longest task is the first
        return search, sorted([*found, *rivals], key=by_error)

    def _scaled(
        self, candidate: Candidate[TableKernel], rows: Rows | None = None
    ) -> Candidate[TableKernel]:
        """The best scale of a candidate, with λ not below the floor."""
        raised = replace(candidate, regularization=max(candidate.regularization, self.floor))
        return best_scale(raised, self.small if rows is None else rows)

    def _refined(self, found: Found) -> tuple[Found, Found]:
        """All candidates with the best refined on more rows, and, if it is better, a linear map."""
        rows, best = self.sampled.first(ROWS_OF_LIKELIHOOD), found[0]
        is_smooth = best.error < _SMOOTH * (rows.Y**2).sum(axis=1).mean()
        starts = [best]
        if is_smooth and not self.has_few_rows:
            # Columns without effect on few rows may have one on more.
            usual = next((one for one in found if one.kernel.family == USUAL_FAMILY), best)
            starts.append(replace(usual, kernel=usual.kernel.shortened()))
        n_steps = int(min(60, 10 + 1.5 * rows.X.shape[1]))  # more length scales need more steps
        effort = Effort(n_steps, team=self.team)
        refined = self.team.map(lambda one: self._scaled(more_likely(one, rows, effort)), starts)
        found = sorted([*found, *refined], key=by_error)
        mappable = [one for one in refined if one.kernel.can_be_mapped]
        if self.has_few_rows or not (is_smooth and mappable):
            return found, []
        start = min(mappable, key=by_error)
        mapped = self._scaled(most_likely_map(start, rows, self.team), self.fresh)
        rival = leave_one_out(found[0], self.fresh)
        return found, [mapped] if mapped.error < rival.error else []

    def _isotropic(self, family: str) -> Candidate[TableKernel]:
        """One length scale for all columns by leave-one-out, for targets that no likelihood suits.

        A Gaussian process takes the indicators of many classes for nearly linear functions.
        """
        lam = max(_LAMBDA_OF_INDICATORS, self.floor)
        tried = [
            leave_one_out(Candidate(self.columns.kernel(family, scale), lam), self.small)
            for scale in _ISOTROPIC_SCALES
        ]
        return min(tried, key=by_error)

    def _hasty(self) -> Candidate[TableKernel]:
        """A family and one length scale for all columns, by errors on a few hundred rows.

        In the time that is left, the likelihood fits length scales of their own.
        """
        clock = self.clock
        few = not clock.allows(_SECONDS_OF_FEWER_ROWS)
        rows = self.sampled.first(_FEWER_ROWS if few else _HASTY_ROWS)
        usual = self.columns.kernel(USUAL_FAMILY, _HASTY_SCALES[0])
        best = leave_one_out(Candidate(usual, max(START_NOISE, self.floor)), rows)
        for family in sorted(MAIN_FAMILIES, key=lambda family: family != USUAL_FAMILY):
            for scale in _HASTY_SCALES:
                if clock.has(0.5):
                    kernel = self.columns.kernel(family, scale)
                    tried = leave_one_out(Candidate(kernel, best.regularization), rows)
                    best = min(best, tried, key=by_error)
        if clock.has(0.5):
            for likely in self._with_own_scales(best.kernel.family, few):
                tried = self._scaled(likely, rows)
                if tried.error < _WORTH_SCALES * best.error:
                    best = tried
        if clock.has(_LEFT_FOR_LAMBDA):
            best = best_lambda(best, rows, leave_one_out, self.floor, self.team)
        return self._for_all_rows(best, len(rows))

    def _with_own_scales(self, family: str, few: bool) -> Iterator[Candidate[TableKernel]]:
        """The most likely length scales of few rows, and if there is time, of more."""
        goes_on = partial(self.clock.has, _LEFT_FOR_SCALES)
        n_rows = _FEWER_ROWS if few else self._n_likely
        first = self.sampled.first(n_rows)
        found = most_likely(starts_of(self.columns, family), first, self.team, goes_on)
        yield found
        if len(self.sampled) > n_rows and goes_on():
            rows = self.sampled.first(ROWS_OF_LIKELIHOOD)
            yield more_likely(found, rows, Effort(_STEPS_OF_A_FAMILY, goes_on=goes_on))

    def _hurried(self, found: Found, mapped: Found) -> Candidate[TableKernel]:
        """The best candidate so far, its length scales shortened by the usual factor."""
        start, rows = (mapped[0], self.fresh) if mapped else (found[0], self.small)
        best = best_lambda(start, rows, leave_one_out, self.floor, self.team)
        return self._for_all_rows(best, len(rows))

    def _for_all_rows(self, best: Candidate[TableKernel], n: int) -> Candidate[TableKernel]:
        """A candidate for ``n`` rows with length scales that are shorter by the usual factor."""
        factor = (self.n / n) ** _USUAL_SHRINKING
        return replace(best, kernel=best.kernel.stretched(factor))

    def _by_held_out_error(self, found: Found, mapped: Found) -> Candidate[TableKernel]:
        """The candidate with the lowest held-out error, with length scales for all rows."""
        by_formula = {candidate.kernel.formula: candidate for candidate in reversed(found)}
        candidates = sorted(by_formula.values(), key=by_error)[:_FAMILIES_KEPT]
        if self.has_many_targets:
            # Few rows of each of many classes suit long length scales, all rows short ones.
            lam = max(_LAMBDA_OF_INDICATORS, self.floor)
            candidates[1:] = [
                Candidate(self.columns.kernel(family, scale), lam)
                for family in ("gaussian", "matern52")
                for scale in _SCALES_OF_INDICATORS
            ]
        tried = self.team.map(partial(held_out, rows=self.sampled), [*candidates, *mapped])
        best = min(tried[: len(candidates)], key=by_error)
        for candidate in tried[len(candidates) :]:
            if candidate.error < _WORTH_A_MAP * best.error:
                best = candidate
        best = best_lambda(best, self.sampled, held_out, self.floor, self.team)
        return extrapolated(best, self.sampled, self.fresh, self.n, self.team)

"""The number of shards of the rows from which the stages of a fit learn in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from hilboost.boosting.shards import deal_rows
from hilboost.boosting.state import TrainingState
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import Learner
from hilboost.model.fit_facts import ResolvedParameters, is_auto
from hilboost.training.data import TrainingData

_FEWEST_FOR_SHARDS = 500_000
_MOST_SHARDS = 16
_ROWS_PER_LEAF = 2000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class ShardPlan:
    """Numbers of shards."""

    # number of shards at the start of the fit, or of the fit that is continued.  The rows are in
    # the order of these shards.  1 if every stage may learn from all rows.
    at_start: int = 1
    now: int = 1  # number of shards for the next stage
    adapts: bool = False  # whether shards are joined when they are too small

    @classmethod
    def of(
        cls,
        n_shards: Any,  # as given by the user
        # for a continued fit, with the number of shards after its stages
        resolved: ResolvedParameters,
        learner: Learner,
        n: int,
        n_folds: int,
        continued: bool,
    ) -> Self:
        """Plan the shards of a fit to n rows."""
        if not is_auto(n_shards):
            _check(int(n_shards), learner, n)
            return cls(int(n_shards), int(n_shards))
        at_start = 1
        if n_folds == 1 and learner.capabilities.row_division is not None:
            at_start = most_shards(n, resolved.max_leaf_nodes)
        goes_on = continued and at_start % resolved.n_shards == 0
        return cls(at_start, resolved.n_shards if goes_on else at_start, adapts=True)

    def arranged(self, data: TrainingData, seed: int, in_place: bool) -> TrainingData:
        """Return the data with the rows in the order of their shards.

        With ``in_place``, the inputs are not copied.
        """
        if self.at_start == 1:
            return data
        return data.rows(deal_rows(len(data.X), self.at_start, seed), in_place)


def _check(n_shards: int, learner: Learner, n: int) -> None:
    if n_shards == 1:
        return
    if learner.capabilities.row_division is None:
        raise InvalidParameter(
            f"n_shards={n_shards} is only supported by learners that divide their data by rows, "
            f"and {type(learner).__name__} does not; set n_shards=1, or learner='tree'."
        )
    if n < n_shards * _FEWEST_ROWS:
        raise InvalidParameter(
            f"n_shards={n_shards} would divide the {n} training rows into shards of fewer than "
            f"{_FEWEST_ROWS} rows; set it to at most {max(1, n // _FEWEST_ROWS)}."
        )


def most_shards(n: int, max_leaf_nodes: int) -> int:
    """Return the number of shards with which a fit to n rows starts, a power of two.

    A shard has at least 2,000 rows for each leaf of a tree.
    """
    n_shards = 1
    if n >= _FEWEST_FOR_SHARDS:
        while n_shards < _MOST_SHARDS and n >= 2 * n_shards * _ROWS_PER_LEAF * max_leaf_nodes:
            n_shards *= 2
    return n_shards


def resolved_after(
    resolved: ResolvedParameters | None, state: TrainingState
) -> ResolvedParameters | None:
    """Return the parameters with the number of shards after the last stage that is kept."""
    if resolved is None or state.rotation is None:
        return resolved
    return replace(resolved, n_shards=state.rotation.counts[state.n_stages])

"""The state of a fit that its stages do not determine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilboost.core.dtypes import Floats


@dataclass(frozen=True, eq=False)
class FitSnapshot:
    """The state of a fit after some stages, for each member of the ensemble."""

    n_stages: int
    # (n, r) float64 each: raw predictions for all rows of the table, in units of the fit.  They
    # differ in rounding from predictions of the stages, which are added in another order.
    raw: tuple[Floats, ...]
    learners: tuple[Any, ...]  # results of :meth:`~hilboost.core.learner.Learner.snapshot`
    # hashes of the learner, the loss and the data, by name; ``None`` while the fit runs
    belongs_to: Mapping[str, str] | None = None

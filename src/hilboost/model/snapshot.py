"""The state of a fit that its stages do not determine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hilboost.core.dtypes import Floats


@dataclass(frozen=True, eq=False)
class MemberSnapshot:
    """The state of one member of an ensemble."""

    # (n, r) float64: raw predictions for all rows of the table, in units of the fit.  They differ
    # in rounding from predictions of the stages, which are added in another order.
    raw: Floats
    learner: Any  # result of :meth:`~hilboost.core.learner.Learner.snapshot`


@dataclass(frozen=True, eq=False)
class FitSnapshot:
    """The state of a fit after some stages."""

    n_stages: int
    members: tuple[MemberSnapshot, ...]


@dataclass(frozen=True, eq=False)
class KeptState:
    """The state of a fit that ``warm_start`` can continue, and what it belongs to."""

    snapshot: FitSnapshot
    belongs_to: Mapping[str, str]  # hashes of the learner, the loss and the data, by name

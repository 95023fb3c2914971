"""Properties of the rows of a report besides inputs and targets, such as groups and offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.report.table import Columns
from hilboost.training.data import in_order_of_groups
from hilboost.validation.groups import check_groups, number_groups
from hilboost.validation.survival import SurvivalLabels


@dataclass(frozen=True)
class Asides:
    """Groups of a ranking, strata and entry times of survival times, weights (n,), and offsets.

    As the user passed them; ``None`` if there are none.
    """

    groups: Any = None
    strata: Any = None
    entry: Any = None
    sample_weight: Any = None
    offset: Any = None

    def check(self, model: Any) -> None:
        """Refuse what the model does not have."""
        survival = model.fitted_.codec.kind == "survival"
        if self.sample_weight is not None and (survival or model.ranks_groups):
            raise InvalidParameter(
                "sample_weight is not supported by reports on rankings and survival times; omit it."
            )
        if model.ranks_groups and self.groups is None:
            raise InvalidParameter(
                "a report on a ranking requires the groups of the rows; pass groups=."
            )
        for name, given, belongs, to in (
            ("groups", self.groups, model.ranks_groups, "rankings"),
            ("strata", self.strata, survival, "survival models"),
            ("entry", self.entry, survival, "survival models"),
            ("offset", self.offset, model.takes_offsets, "boosting on tables"),
        ):
            if given is not None and not belongs:
                raise InvalidParameter(f"{name} is only supported by {to}; omit it.")

    def labels(self, model: Any, y: Any) -> Any:
        """Return the labels as the codec of the model takes them."""
        if model.fitted_.codec.kind != "survival":
            return y
        return SurvivalLabels(y, self.entry, self.strata)

    def names(self, n: int) -> NDArray[Any]:
        """Labels of the groups, sorted."""
        return np.unique(check_groups(self.groups, n))

    def arranged(
        self, model: Any, columns: Columns, raw: Floats, target: Target
    ) -> tuple[Columns, Floats, Target]:
        """Put the rows of each group of a ranking together; others keep their order."""
        if not model.ranks_groups:
            return columns, raw, target
        numbers = number_groups(self.groups, None, len(raw))
        order = np.argsort(numbers, kind="stable")
        raw, target = in_order_of_groups(raw, target, numbers)
        return columns.rows(order), np.ascontiguousarray(raw), target

"""Values of the rows of all workers, in the order of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.exchange import RowShare
from hilboost.core.target import Target


def of_all_rows(values: NDArray[Any], share: RowShare | None) -> NDArray[Any]:
    """Return the values (n, ...) of the rows of all workers, in the order of the table."""
    if share is None:
        return values
    numbers = share.exchange.gathered(share.numbers)
    return share.exchange.gathered(values)[np.argsort(numbers)]


def whole_target(target: Target) -> Target:
    """Return the target of the rows of all workers, in the order of the table."""
    share, weight = target.share, target.weight
    if share is None:
        return target
    return Target(
        of_all_rows(target.y, share), None if weight is None else of_all_rows(weight, share)
    )


def union(numbers: NDArray[np.int64], share: RowShare | None) -> NDArray[np.int64]:
    """Return the distinct numbers (m,) of all workers, ascending, where each passes its own."""
    return numbers if share is None else np.unique(share.exchange.gathered(numbers))

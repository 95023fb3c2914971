"""Validation of groups of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import DataWarning, InvalidData, first_true, shown, warn_caller
from hilboost.core.target import Target
from hilboost.tables.columns import is_missing_value
from hilboost.tables.reading import as_array
from hilboost.validation.choices import check_one_per_row
from hilboost.validation.weights import as_numbers

_LAST_POSITION = 1_000_000


def check_groups(groups: PerRow, n: int) -> NDArray[Any]:
    """Return the group of each row, (n,)."""
    found = np.asarray(as_array(groups, "groups"))
    check_one_per_row(found, n, "groups must hold one label", _advice(found, n))
    if found.dtype.kind not in "biufUO":
        raise InvalidData(
            f"groups must hold text or numbers; got {found.dtype}. Convert the labels to text."
        )
    missing = [i for i, label in enumerate(found.tolist()) if is_missing_value(label)]
    if missing:
        raise InvalidData(f"row {missing[0]} of groups is missing; give every row a group.")
    # Objects become text or numbers, as they would in an array of their own kind.
    return np.array(found.tolist()) if found.dtype.kind == "O" else found


def _advice(found: NDArray[Any], n: int) -> str:
    """Advice for a table, and for the sizes or starts of groups, of other libraries."""
    if found.shape == (n, 1):
        return ' Pass one column, as in groups=table["query"].'
    if found.ndim != 1 or found.dtype.kind not in "iuf" or not len(found):
        return ""
    if found.sum() == n:
        return " Pass sizes of groups as np.repeat(np.arange(len(sizes)), sizes)."
    if found[0] == 0 and found[-1] == n and (np.diff(found) >= 0).all():
        return " Pass starts of groups as np.repeat(np.arange(len(starts) - 1), np.diff(starts))."
    return ""


def warn_of_mistaken_groups(groups: PerRow, y: Floats) -> None:
    """Warn if groups (n,) seem to be their sizes, repeated for each row, or the labels (n,)."""
    found = check_groups(groups, len(y))
    if found.dtype.kind not in "iuf":
        return
    values, counts = np.unique(found, return_counts=True)
    if values[0] > 1 and not (counts % values).any() and (counts > values).any():
        warn_caller(
            f"groups seems to hold the size of the group of each row, as {counts[0]} rows have "
            f"{shown(values[0])}, so that groups of equal size are one; pass a label of the group "
            "of each row, such as the number of its query.",
            DataWarning,
        )
    n_labels = len(np.unique(y))
    if len(values) < n_labels == _n_blocks(y) <= len(y) // 2 and _n_blocks(found) > len(values):
        warn_caller(
            f"y and groups seem to be exchanged: y has {n_labels} values in blocks of rows, and "
            f"groups {len(values)} values in any order; pass fit(X, relevance, groups=query).",
            DataWarning,
        )


def _n_blocks(column: NDArray[Any]) -> int:
    """Return the number of blocks of consecutive equal values (n,)."""
    return 1 + int((column[1:] != column[:-1]).sum())


def require_groups(groups: PerRow) -> None:
    """Reject rankings without groups."""
    if groups is None:
        raise InvalidData(
            "groups is None, but a ranking requires the group of each row, such as the number of "
            "its query; pass groups=... by name: the third argument is sample_weight. In "
            "cross-validation, enable scikit-learn's metadata routing and call "
            "set_fit_request(groups=True) and set_score_request(groups=True); elsewhere, pass "
            "scoring=lambda model, X, y: model.score(X, y, groups=groups)."
        )


def number_groups(groups: PerRow, weight: Floats | None, n: int) -> NDArray[np.int64]:
    """Return the number of the group of each row, (n,), in the order of the sorted labels."""
    require_groups(groups)
    labels, numbers = np.unique(check_groups(groups, n), return_inverse=True)
    if weight is not None:
        first = np.zeros(len(labels))
        first[numbers] = weight
        other = np.flatnonzero(weight != first[numbers])
        if len(other):
            row = int(other[0])
            raise InvalidData(
                f"sample_weight must be the same for all rows of a group; group "
                f"{labels.tolist()[numbers[row]]!r} has {weight[row]:g} and "
                f"{first[numbers[row]]:g}."
            )
    return numbers.astype(np.int64)


def undecided(target: Target) -> NDArray[np.bool_]:
    """Return whether all labels of a group are the same, (q,)."""
    y, starts = target.y[:, 0], target.starts[:-1]
    return np.maximum.reduceat(y, starts) == np.minimum.reduceat(y, starts)


def warn_without_order(target: Target) -> None:
    """Warn if no group has rows of different labels, so that every order is right."""
    if not undecided(target).all():
        return
    alone = target.n_units == len(target.y)
    what = "every group has one row" if alone else "the rows of every group have equal labels"
    warn_caller(
        f"{what}, so that there is nothing to rank; pass the same group for rows that are ranked "
        "together, such as the number of their query.",
        DataWarning,
    )


def check_positions(positions: object, n: int) -> NDArray[np.int64] | None:
    """Return the position of each row, (n,), or ``None`` if there are none.

    Positions are numbered from 0 on; those that no row has are left out.
    """
    if positions is None:
        return None
    found = np.asarray(as_array(positions, "positions"))
    check_one_per_row(found, n, "positions must hold one whole number")
    found = as_numbers(found, "positions")
    bad = ~(found >= 0) | (found != np.rint(found)) | (found > _LAST_POSITION)
    if (row := first_true(bad)) is not None:
        raise InvalidData(
            f"positions must be whole numbers from 0 to {_LAST_POSITION}; row {row} has "
            f"{found[row]:g}."
        )
    numbers: NDArray[np.int64] = np.unique(found, return_inverse=True)[1].reshape(n)
    return numbers.astype(np.int64)

"""Order of rows: pandas objects are matched by position, and neighbors may be similar."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, InvalidData, warn_caller
from hilboost.core.labels import is_pandas
from hilboost.core.plain_values import is_array_or_list
from hilboost.tables.files import column_of

_FEWEST, _PAIRS = 500, 1000
_AGREEMENT = 0.5  # of neighbors, from 0 by chance to 1
_ERRORS = 8.0  # standard errors by which it must exceed chance
_TOLD = (
    "targets of neighboring rows agree far beyond chance, as in rows in order of time or in "
    "groups, so that rows held out at random look too easy; pass time=... or groups=... to fit, or "
    "set validation='random' if the rows are independent."
)


def told_of_ordered_rows(X: Any, y: NDArray[Any], of_classes: bool) -> list[str]:
    """Say that rows seem to depend on their neighbors, from a sample of pairs; y (n,) are encoded.

    Rows that are sorted by the target, or by a column of different values, may be independent.
    """
    n = len(y)
    if n < _FEWEST:
        return []
    first = np.unique(np.linspace(0, n - 2, min(n - 1, _PAIRS)).astype(np.intp))
    pairs = np.stack([y[first], y[first + 1]])
    if of_classes:
        frequency = np.unique(pairs, return_counts=True)[1] / pairs.size
        chance = float(frequency @ frequency)
        found, spread = float((pairs[0] == pairs[1]).mean()), chance * (1 - chance)
        if spread == 0:
            return []
        agreement, error = (found - chance) / (1 - chance), np.sqrt(spread / len(first))
        error /= 1 - chance
    else:
        ranks = _ranks(pairs)
        variance = float(ranks.var())
        if not variance > 0:
            return []
        agreement = 1 - float(np.square(ranks[0] - ranks[1]).mean()) / (2 * variance)
        error = 1 / np.sqrt(len(first))
    if not agreement > max(_AGREEMENT, _ERRORS * error):
        return []
    sample = np.append(first, n - 1)
    is_sorted = _ascends(y[sample]) or _ascends(-y[sample])
    return [] if is_sorted or _has_sorted_column(X[sample]) else [_TOLD]


def _ranks(values: NDArray[Any]) -> Floats:
    """Ranks of numbers; equal ones have the same."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.float64)


def _ascends(values: NDArray[Any]) -> bool:
    return bool((np.diff(values) >= 0).all())


def _has_sorted_column(rows: Any) -> bool:
    """Whether a column of a table (m, d) has ascending or descending values, all different."""
    steps = (np.diff(column_of(rows, k)) for k in range(rows.shape[1]))
    return any((step > 0).all() or (step < 0).all() for step in steps)


_COMPARED = 1000  # rows
_SHARED = 0.1  # part of the rows, above which labels are the same by intention
_FEW = 3  # rows whose labels may differ, or one in a hundred
_OTHER_ORDER = "a part of the index of {} in a different order"
_OTHER_ROWS = "almost no label of the index of {}"
_OTHER_LABELS = "other labels than {{}} in {:.0%} of the rows"
_BEHIND = "the labels of rows before those of {}"
_NEIGHBORS = slice(None, -1), slice(1, None)
_DESCENDING = 0.75  # part of the steps that go down, above which the newest rows come first


def check_order(X: Any, suffix: str = "", **others: Any) -> None:
    """Warn if a series has the index of the table in another order, a part of it, or another one.

    Matched by position, its values belong to other rows.  Tests by permutation do this on purpose.
    A target in the place of the table is an error.  Only pandas objects are checked.
    """
    if _n_columns(X) == 0 and _n_columns(others.get("y")) > 1:
        raise InvalidData(
            f"X{suffix} and y{suffix} seem to be swapped, because X{suffix} has one dimension and "
            f"y{suffix} two; pass the table first and the target second, or a single feature as a "
            "table, such as X.reshape(-1, 1)."
        )
    for name, values in others.items():
        if not (is_pandas(X) and is_pandas(values)) or X.index.equals(values.index):
            continue
        ours, theirs = _index(X), _index(values)
        if not _are_comparable(ours, theirs):
            continue
        some = ours[_some_places(len(ours))]
        n_found = np.count_nonzero(theirs.isin(some))
        if n_found >= len(some) and ours.is_unique and bool(ours.isin(theirs).all()):
            warn_caller(
                f"{name}{suffix} has the index of X{suffix} in a different order, but rows are "
                f"matched by position; pass {name}{suffix}.loc[X{suffix}.index], or an array if "
                "this is intended.",
                DataWarning,
            )
        elif difference := difference_of_rows(X, values, is_target=name == "y"):
            warn_of_other_rows(name + suffix, "X" + suffix, difference)


def _n_columns(values: object) -> int:
    """Number of columns: 0 for one value in each row, and -1 if it is not known."""
    if isinstance(values, list | tuple) and values:
        row = values[0]
        return len(row) if is_array_or_list(row) else -isinstance(row, dict)
    shape = getattr(values, "shape", None)
    if not isinstance(shape, tuple) or not shape:
        return -1
    return 0 if len(shape) == 1 else int(shape[1])


def warn_of_other_rows(name: str, of: str, difference: str) -> None:
    """Warn of a series that belongs to other rows than the table."""
    warn_caller(
        f"{name} has {difference.format(of)}, but rows are matched by position; take {of} and "
        f"{name} from the same rows, or pass an array if this is intended.",
        DataWarning,
    )


def difference_of_rows(X: object, values: Any, is_target: bool = False) -> str:
    """Return how the rows of a series differ from those of a table by their labels, or ``""``.

    A target behind the table would be predicted from its future.
    """
    ours, theirs = _index(X), _index(values)
    if not _are_comparable(ours, theirs):
        return ""
    places = _some_places(len(ours))
    some = ours[places]
    is_found = theirs.isin(some)
    found = theirs[np.flatnonzero(is_found)]
    if not (ours.is_unique and found.is_unique):
        return ""
    is_same_table = len(found) >= _SHARED * len(some)
    is_named = is_same_table and (values.ndim > 1 or values.name is not None)
    if _are_numbered_anew(ours, theirs, is_named):
        return ""
    found_places = places[some.get_indexer(found)]
    rows_ahead = found_places - np.flatnonzero(is_found)
    n_different = len(some) - np.count_nonzero(rows_ahead == 0)
    if len(found) >= len(some) / 2 and _are_lags(rows_ahead, len(ours) / 2):
        is_behind = (rows_ahead[0] < 0) != _is_descending(ours)
        return _BEHIND if is_target and is_behind else ""
    labels_ahead, longest = _labels_ahead(some, theirs[places])
    if _are_lags(labels_ahead, longest):
        return _BEHIND if is_target and labels_ahead.max() < -_longest_step(ours) else ""
    if is_same_table and (np.diff(found_places) < 0).any():
        return _OTHER_ORDER
    if n_different <= max(_FEW, len(some) / 100) or not _are_of_one_kind(ours, theirs):
        return ""
    return _OTHER_LABELS.format(n_different / len(some)) if is_same_table else _OTHER_ROWS


def _are_comparable(ours: Any, theirs: Any) -> bool:
    """Whether there are as many labels, of one kind and number of levels."""
    kinds = {ours.inferred_type, theirs.inferred_type}
    return (len(ours), ours.nlevels) == (len(theirs), theirs.nlevels) and (
        len(kinds) == 1 or kinds <= {"integer", "floating"}
    )


def _are_numbered_anew(ours: object, theirs: object, is_named: bool) -> bool:
    """Whether pandas may have given numbers to the rows of an array, from which rows were taken.

    Rows dropped before leave gaps in ascending labels, and the numbers fall behind more and more.
    A series ``is_named`` if it has the name of a column and labels of the table.
    """
    ascending = [_are_numbers_of_rows(index) for index in (ours, theirs)]
    if all(ascending):
        growth = np.diff(np.asarray(theirs, dtype=np.int64) - np.asarray(ours, dtype=np.int64))
        return bool((growth >= 0).all() or (growth <= 0).all())
    return ascending[0] or (ascending[1] and not is_named)


def _are_lags(ahead: Any, longest: float) -> bool:
    """Whether rows are ahead in one direction, by almost the same distance everywhere."""
    in_one_direction = abs(np.sign(ahead).sum()) == len(ahead) > 0
    n_distances = 1 + min(4, len(ahead) // 10)  # horizons of groups, lengths of months
    return bool(
        in_one_direction and np.abs(ahead).max() <= longest and len(np.unique(ahead)) <= n_distances
    )


def _labels_ahead(ours: Any, theirs: Any) -> tuple[Any, float]:
    """Differences of integers or dates, and half of their range; no difference of other labels."""
    kinds = {index.dtype.kind.replace("u", "i") for index in (ours, theirs)}
    dtype = {"i": "i8", "M": "M8[us]", "m": "m8[us]"}.get(min(kinds))
    if len(kinds) > 1 or dtype is None or ours.hasnans or theirs.hasnans:
        return np.zeros(0), 0
    labels = np.asarray(ours, dtype=dtype).view(np.int64)
    return np.asarray(theirs, dtype=dtype).view(np.int64) - labels, np.ptp(labels) / 2


def _is_descending(index: Any) -> bool:
    """Whether the newest rows come first, also within the groups of an index of several levels."""
    labels = index.get_level_values(-1)
    if labels.inferred_type.startswith(("mixed", "categorical")):
        return False
    return float(np.mean(labels[1:] < labels[:-1])) > _DESCENDING


def _longest_step(index: Any) -> float:
    """Largest distance of integers or dates next to each other: a period of the table."""
    return float(_labels_ahead(*(index.sort_values()[part] for part in _NEIGHBORS))[0].max())


def _are_of_one_kind(ours: Any, theirs: Any) -> bool:
    """Whether labels should be the same: not other keys, or numbers of the rows of an array.

    Unsorted integers of one range are taken from one table; a table of an array has smaller ones.
    """
    if not theirs.is_unique:
        return False
    if ours.dtype.kind in "iu" and theirs.dtype.kind in "iu" and not _are_numbers_of_rows(ours):
        smaller, larger = sorted(1 + int(index.max()) for index in (ours, theirs))
        if larger >= 2 * smaller:
            return False
    same_keys = None in (ours.names[0], theirs.names[0]) or list(ours.names) == list(theirs.names)
    return same_keys and ours.inferred_type == theirs.inferred_type


def _index(table: Any) -> Any:
    """Return the index of a table, also of an index of several levels that has only one."""
    return table.index.get_level_values(0) if table.index.nlevels == 1 else table.index


def _some_places(n: int) -> Any:
    return np.linspace(0, n - 1, min(n, _COMPARED), dtype=np.int64)


def _are_numbers_of_rows(index: Any) -> bool:
    return index.dtype.kind in "iu" and bool(index.is_monotonic_increasing)

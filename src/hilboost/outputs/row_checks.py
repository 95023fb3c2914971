"""Shared validation of structured labels: tables of rows and lists of single labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.outputs.label_checks import as_rows
from hilboost.tables import columns_of, n_rows


def as_table(labels: Any, meaning: str, width: int | None = None, what: str = "Y") -> Floats:
    """Validate labels that are a two-dimensional table of numbers, (n, c) float64.

    ``meaning``: description of a row in error messages. ``width``: required number of columns
    ``c``, if any. ``what``: name of the labels in error messages.
    """
    rows = as_rows(labels, what)
    if np.ndim(labels) != 2:
        raise InvalidData(
            f"each row of {what} must contain {meaning}, so its shape must be (n, c); got shape "
            f"{np.shape(labels)}."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"row 0 of {what} has {rows.shape[1]} numbers; the model was fitted with {width}."
        )
    return rows


def as_objects(labels: Any, meaning: str, what: str = "Y") -> list[Any]:
    """Convert labels that are single objects to a list."""
    refuse_no_list(labels, meaning, what)
    if columns_of(labels) is not None:
        raise InvalidData(f"{what} must be a list of {meaning}, one per row; got a table.")
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def refuse_no_list(labels: Any, meaning: str, what: str = "Y") -> None:
    """Reject empty lists and objects that are not lists."""
    if not count_rows(labels, meaning, what):
        raise InvalidData(f"{what} is empty; it must be a nonempty list of {meaning}.")


def count_rows(labels: Any, meaning: str, what: str = "Y") -> int:
    """Count the labels."""
    n = n_rows(labels)
    if isinstance(labels, str | bytes | Mapping | Set) or n is None:
        raise InvalidData(f"{what} must be a list of {meaning}, one per row; got {labels!r:.60}.")
    return n


def refuse_rows(bad: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
    """Raise an error about the first row that is ``bad``, (n,), with the message ``sentence``."""
    if bad.any():
        raise InvalidData(sentence(int(np.flatnonzero(bad)[0])))


def in_words(numbers: Sequence[Any] | NDArray[Any]) -> str:
    """Format a row for an error message, truncated if long."""
    row = np.asarray(numbers).ravel()
    shown = ", ".join(f"{number:g}" for number in row[:8])
    return f"({shown}{', …' if len(row) > 8 else ''})"


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Reject a parameter value that is not one of the known names."""
    if value not in known:
        raise InvalidParameter(f"{name} must be {' or '.join(map(repr, known))}; got {value!r}.")

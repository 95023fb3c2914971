"""Checks that structured labels share: tables of rows, lists of single labels, first odd rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.outputs.label_checks import as_rows


def as_table(labels: Any, meaning: str, width: int | None = None, what: str = "Y") -> Floats:
    """Labels that are plain rows of numbers, (n, c) float64.

    Parameters
    ----------
    labels : array-like
    meaning : str
        What a row is, for the message.
    width : int or None
        The only ``c`` accepted.
    what : str
        What the labels are called in messages.

    Raises
    ------
    InvalidData
        As :func:`~hilboost.outputs.label_checks.as_rows`, or rows that are single numbers or have
        more dimensions.
    """
    rows = as_rows(labels, what)
    if np.ndim(labels) != 2:
        raise InvalidData(
            f"{what} must hold {meaning} a row, with shape (n, c); got shape {np.shape(labels)}."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"{what} has {rows.shape[1]} numbers a row, from row 0 on; the model was fitted with "
            f"{width}."
        )
    return rows


def as_objects(labels: Any, meaning: str, what: str = "Y") -> list[Any]:
    """Labels that are single objects, as a list.

    Raises
    ------
    InvalidData
        As :func:`refuse_no_list`, or a table.
    """
    refuse_no_list(labels, meaning, what)
    if hasattr(labels, "columns"):
        raise InvalidData(f"{what} must be a list of {meaning}, one a row; got a table.")
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def refuse_no_list(labels: Any, meaning: str, what: str = "Y") -> None:
    """Refuse an empty list, and what is none.

    Raises
    ------
    InvalidData
        As :func:`count_rows`, or an empty list.
    """
    if not count_rows(labels, meaning, what):
        raise InvalidData(f"{what} is empty; give at least one of {meaning}.")


def count_rows(labels: Any, meaning: str, what: str = "Y") -> int:
    """Number of labels.

    Raises
    ------
    InvalidData
        One string, a number or something without an order in place of a list.
    """
    shape = getattr(labels, "shape", None)  # sparse matrices have a shape and no length
    listed = hasattr(labels, "__len__") if shape is None else len(shape) > 0
    if isinstance(labels, str | bytes | Mapping | Set) or not listed:
        raise InvalidData(f"{what} must be a list of {meaning}, one a row; got {labels!r:.60}.")
    return int(len(labels) if shape is None else shape[0])


def refuse_rows(bad: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
    """Refuse the first row that is ``bad``, (n,), with the sentence about it."""
    if bad.any():
        raise InvalidData(sentence(int(np.flatnonzero(bad)[0])))


def in_words(numbers: Sequence[Any] | NDArray[Any]) -> str:
    """A row for a message, cut where it is long."""
    row = np.asarray(numbers).ravel()
    shown = ", ".join(f"{number:g}" for number in row[:8])
    return f"({shown}{', …' if len(row) > 8 else ''})"


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a parameter that is not one of some names."""
    if value not in known:
        raise InvalidParameter(f"{name} must be {' or '.join(map(repr, known))}; got {value!r}.")

"""Checks that structured labels share: tables of rows, lists of single labels, first odd rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats
from hilboost.outputs.checks import as_rows


def as_table(labels: Any, meaning: str, width: int | None = None) -> Floats:
    """Labels that are plain rows of numbers, (n, c) float64.

    Parameters
    ----------
    labels : array-like
    meaning : str
        What a row is, for the message.
    width : int or None
        The only ``c`` accepted.

    Raises
    ------
    InvalidData
        As :func:`~hilboost.outputs.checks.as_rows`, or rows that are single numbers or have more
        dimensions.
    """
    rows = as_rows(labels)
    if np.ndim(labels) != 2:
        raise InvalidData(
            f"Y must hold {meaning} a row, with shape (n, c); got shape {np.shape(labels)}."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"Y has {rows.shape[1]} numbers a row, from row 0 on; the model was fitted with "
            f"{width}."
        )
    return rows


def as_objects(labels: Any, meaning: str) -> list[Any]:
    """Labels that are single objects, as a list.

    Raises
    ------
    InvalidData
        One string, a number or something without an order in place of a list, or an empty list.
    """
    no_list = str | bytes | Mapping | Set
    if isinstance(labels, no_list) or not hasattr(labels, "__iter__"):
        raise InvalidData(f"Y must be a list of {meaning}, one a row; got {labels!r:.60}.")
    objects = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not objects:
        raise InvalidData(f"Y is empty; give at least one of {meaning}.")
    return objects


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

"""Names, kinds and levels of columns, and the columns that options name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hilboost.core.errors import InvalidParameter, counted, first_few, shown
from hilboost.core.plain_values import all_text, is_boolean, is_integer

Level = str | int | float | bool


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str | int  # the column index, from 0, if the table had no names
    kind: Literal["number", "category"] = "number"
    # levels of a category column in fit, ascending; text is ordered by code points.  Level ``i`` is
    # encoded as ``i``.
    levels: tuple[Level, ...] = ()

    @property
    def holds_text(self) -> bool:
        """Return whether the levels are text."""
        return bool(self.levels) and isinstance(self.levels[0], str)

    @cached_property
    def codes(self) -> dict[Level, float]:
        """Codes of the levels."""
        return {level: float(code) for code, level in enumerate(self.levels)}


@dataclass(frozen=True)
class Schema:
    """All columns, in order."""

    n_columns: int
    names: tuple[str, ...] | None = None  # ``None`` if the table had no names
    # tuple of (int, tuple): index and levels of every category column, ascending
    levels: tuple[tuple[int, tuple[Level, ...]], ...] = ()

    @cached_property
    def categories(self) -> tuple[int, ...]:
        """Indices of the category columns."""
        return tuple(k for k, _ in self.levels)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in order."""
        levels = dict(self.levels)
        names: Sequence[str | int] = self.names or range(self.n_columns)
        return tuple(
            Column(name, "category", levels[k]) if k in levels else Column(name)
            for k, name in enumerate(names)
        )


def category_columns(schema: Schema) -> tuple[tuple[int, int], ...]:
    """Return ``(column, n_levels)`` of every category column, ascending.

    These columns of the matrix contain 0 … n_levels - 1, NaN for missing values, and -1 for levels
    not seen in fit.
    """
    return tuple((k, len(levels)) for k, levels in schema.levels)


def united_levels(parts: Iterable[Collection[Level]]) -> tuple[Level, ...]:
    """Return the levels of a column in several parts of its rows, ascending."""
    levels: set[Any] = {level for part in parts for level in part}
    if any(type(level) is float for level in levels):
        levels = set(map(float, levels))
    return tuple(sorted(levels))


def place(name: object) -> str:
    """Format a column for error messages: ``column 3``, ``column 'age'``."""
    return f"column {name!r}"


FROM_DTYPE = "from_dtype"


def meant_columns(wanted: object, names: Sequence[object]) -> str:
    """Say which column an unknown name means, as the end of a sentence."""
    name, folded = fold(wanted), {fold(known): known for known in names}
    if name in folded:
        return f"write {folded[name]!r}: names must match exactly"
    prefixed = [known for fold_of, known in folded.items() if fold_of.endswith(f"__{name}")]
    if prefixed:
        return (
            f"write {prefixed[0]!r}, or set verbose_feature_names_out=False in the "
            "ColumnTransformer"
        )
    near = get_close_matches(name, list(folded), n=3, cutoff=0.5)
    if near:
        return f"similar names are {first_few([folded[one] for one in near])}"
    return f"the columns are {first_few(names)}"


def fold(name: object) -> str:
    """Return a name without case and outer spaces."""
    return str(name).strip().casefold()


def category_choice(given: Any, d: int, names: Sequence[Any] | None) -> tuple[int, ...] | None:
    """Return the category columns, given by names, indices or a mask; ``None`` if dtypes decide."""
    if given is None:
        return ()
    if isinstance(given, str):
        if given == FROM_DTYPE:
            return None
        raise InvalidParameter(
            f"categorical_features={given!r} is not supported; pass a list, such as "
            f"[{given!r}], or 'from_dtype'."
        )
    try:
        entries = list(given)
    except TypeError:
        raise _unknown(given) from None
    if not entries:
        return ()
    if all(map(is_boolean, entries)):
        if len(entries) != d:
            raise InvalidParameter(
                f"categorical_features is a mask of {counted(len(entries), 'column')}; X has {d}, "
                "so pass a mask of that length."
            )
        return tuple(int(k) for k in np.flatnonzero(entries))
    if not all_text(entries) and not all(map(is_integer, entries)):
        raise _unknown(given)
    return tuple(sorted(set(positions("categorical_features", entries, d, names))))


def positions(
    parameter: str, wanted: Iterable[Any], d: int, names: Sequence[str] | None
) -> list[int]:
    """Return the indices of columns that a parameter gives by index or by name."""
    by_name = {name: k for k, name in enumerate(names or ())}
    columns = list(wanted)
    found = [
        column if is_integer(column) and 0 <= column < d else by_name.get(column)
        for column in columns
    ]
    unknown = [one for one, k in zip(columns, found, strict=True) if k is None]
    if not unknown:
        return [int(k) for k in found if k is not None]
    remedy = f"use indices from 0 to {d - 1}"
    if isinstance(unknown[0], str):
        remedy = f"X has no column names; pass X as a data frame, or {remedy}"
        remedy = remedy if names is None else meant_columns(unknown[0], names)
    raise InvalidParameter(
        f"{parameter} contains columns that X does not have: {first_few(unknown)}; {remedy}."
    )


def _unknown(given: object) -> InvalidParameter:
    return InvalidParameter(
        "categorical_features must be 'from_dtype', column names, column indices, or a boolean "
        f"mask over all columns; got {shown(given)}."
    )

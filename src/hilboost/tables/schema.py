"""Names, kinds, and levels of the columns seen in fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

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

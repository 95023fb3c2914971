"""What a fit remembers of the columns of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Level = str | int | float | bool


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str or int
        Its number, from 0, where the table had no names.
    kind : {"number", "category"}
    levels : tuple of str, or of numbers
        Those that a category column had in fit, ascending; text by code points.  Level ``i`` is
        ``i`` in the matrix.
    """

    name: str | int
    kind: Literal["number", "category"] = "number"
    levels: tuple[Level, ...] = ()

    @property
    def holds_text(self) -> bool:
        """Whether the levels are text."""
        return bool(self.levels) and isinstance(self.levels[0], str)


@dataclass(frozen=True)
class Schema:
    """All columns, in their order.

    Attributes
    ----------
    n_columns : int
    names : tuple of str or None
        ``None`` where the table had none.
    levels : tuple of (int, tuple)
        Number and levels of every category column, ascending.
    """

    n_columns: int
    names: tuple[str, ...] | None = None
    levels: tuple[tuple[int, tuple[Level, ...]], ...] = ()

    @cached_property
    def categories(self) -> tuple[int, ...]:
        """Which columns hold categories."""
        return tuple(k for k, _ in self.levels)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All of them."""
        levels = dict(self.levels)
        names: Sequence[str | int] = self.names or range(self.n_columns)
        return tuple(
            Column(name, "category", levels[k]) if k in levels else Column(name)
            for k, name in enumerate(names)
        )


def category_columns(schema: Schema) -> tuple[tuple[int, int], ...]:
    """``(column, n_levels)`` of every category column, ascending.

    The matrix holds 0 … n_levels - 1 there, NaN where the value is missing and -1 where the level
    was not seen in fit.
    """
    return tuple((k, len(levels)) for k, levels in schema.levels)


def place(name: object) -> str:
    """How messages call a column: ``column 3``, ``column 'age'``."""
    return f"column {name!r}"

"""Operators that a part writes to say in another program what it computes."""

from __future__ import annotations

from typing import Any, Protocol


class OperatorGraph(Protocol):
    """A graph of ONNX operators; values are arrays in float64 and go by name."""

    def constant(self, value: Any) -> str:
        """A constant array, or number."""

    def integers(self, *values: int) -> str:
        """A constant list of int64, such as axes."""

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One operator more; the name of its output."""

    def times(self, name: str, factor: float) -> str:
        """A value times a number."""

    def plus(self, name: str, offset: float) -> str:
        """A value plus a number."""

    def row_sums(self, name: str) -> str:
        """(n, 1) from (n, d)."""

    def as_numbers(self, name: str) -> str:
        """As float64; 1 and 0 for true and false."""

"""Interface for adding ONNX operators to a graph."""

from __future__ import annotations

from typing import Any, Protocol


class OperatorGraph(Protocol):
    """A graph of ONNX operators, whose values are float64 arrays identified by name."""

    def constant(self, value: object) -> str:
        """Add a constant array or number, and return its name."""

    def integers(self, *values: int) -> str:
        """Add a constant list of int64, such as axes, and return its name."""

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator, and return the name of its output."""

    def times(self, name: str, factor: float) -> str:
        """Multiply a value by a number, and return the name of the product."""

    def plus(self, name: str, offset: float) -> str:
        """Add a number to a value, and return the name of the sum."""

    def row_sums(self, name: str) -> str:
        """Sum each row of a value (n, d), and return the name of the sums (n, 1)."""

    def as_numbers(self, name: str) -> str:
        """Convert a value to float64, with 1 for true and 0 for false, and return its name."""

    def rounded(self, name: str) -> str:
        """Round a value to float32, and return the name of the float64 values."""

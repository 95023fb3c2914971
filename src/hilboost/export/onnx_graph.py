"""Construction of graphs of ONNX operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
ML = "ai.onnx.ml"


@dataclass
class Graph:
    """Operators in the order of their addition, and constants; values are referred to by name.

    Numbers are float64, codes and indices int64.  Names of internal values begin with a slash.
    """

    nodes: list[tuple[str, tuple[str, ...], tuple[str, ...], str, dict[str, Any]]] = field(
        default_factory=list
    )
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, value: object, dtype: Any = np.float64) -> str:
        """Add a constant array or number."""
        name = f"/{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype=dtype)
        return name

    def add(
        self, operator: str, *inputs: str, domain: str = "", n_outputs: int = 1, **attributes: Any
    ) -> str:
        """Add an operator and return the name of its last output."""
        outputs = tuple(f"/{operator}_{len(self.nodes)}_{k}" for k in range(n_outputs))
        self.nodes.append((operator, inputs, outputs, domain, attributes))
        return outputs[-1]

    def integers(self, *values: int) -> str:
        """Add a constant list of int64, such as axes."""
        return self.constant(values, np.int64)

    def times(self, name: str, factor: float) -> str:
        """Multiply a value by a number."""
        return self.add("Mul", name, self.constant(factor))

    def plus(self, name: str, offset: float) -> str:
        """Add a number to a value."""
        return self.add("Add", name, self.constant(offset))

    def row_sums(self, name: str) -> str:
        """Sum the columns of (n, d), giving (n, 1)."""
        return self.add("ReduceSum", name, self.integers(1), keepdims=1)

    def as_numbers(self, name: str) -> str:
        """Convert to float64, with 1 and 0 for true and false."""
        return self.add("Cast", name, to=_type_number(np.float64))

    def rounded(self, name: str) -> str:
        """Round to float32, stored as float64."""
        return self.as_numbers(self.add("Cast", name, to=_type_number(np.float32)))

    def rename(self, name: str, public: str) -> None:
        """Give a value its public name."""
        self.nodes.append(("Identity", (name,), (public,), "", {}))

    def proto(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """Convert the graph to an ONNX object."""
        from onnx import helper, numpy_helper

        nodes = []
        for operator, sources, results, domain, attributes in self.nodes:
            plain = {
                key: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
                for key, value in attributes.items()
            }
            nodes.append(helper.make_node(operator, sources, results, domain=domain, **plain))
        constants = [numpy_helper.from_array(value, key) for key, value in self.constants.items()]
        return helper.make_graph(nodes, name, inputs, outputs, constants)


def _type_number(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

"""Graphs of ONNX operators, and trees as one ``TreeEnsemble`` operator, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.export.columns import left_codes
from hilboost.export.scalar_trees import ScalarTree

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


_LESS_OR_EQUAL, _MEMBER, _SUM = 0, 6, 1


def add_trees(
    graph: Graph, X: str, trees: list[ScalarTree], n_outputs: int, n_codes: Mapping[int, int]
) -> str | None:
    """Add the sum of all trees with splits, (n, n_outputs); ``None`` if there are none.

    ``n_codes`` contains the numbers of levels of the columns with splits on levels.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _NODES}
    roots, weights, targets = [], [], []
    n_nodes = n_leaves = 0
    for tree in trees:
        if len(tree.values) == 1:
            continue  # a constant, see constants_of
        roots.append(n_nodes)
        for name, values in _nodes(tree, n_nodes, n_leaves, n_codes).items():
            columns[name].append(values)
        weights.append(tree.values)
        targets.append(np.full(len(tree.values), tree.output))
        n_nodes += len(tree.values) - 1
        n_leaves += len(tree.values)
    if not roots:
        return None
    flat = {name: np.concatenate(values) for name, values in columns.items()}
    arrays: dict[str, Any] = {name: flat.pop(name) for name in ("nodes_splits", "nodes_modes")}
    members = flat.pop("membership_values")
    if len(members):
        arrays["membership_values"] = members
    return graph.add(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=n_outputs,
        aggregate_function=_SUM,
        tree_roots=roots,
        **arrays,
        leaf_weights=np.concatenate(weights),
        leaf_targetids=np.concatenate(targets).tolist(),
        **{name: values.tolist() for name, values in flat.items()},
    )


def constants_of(trees: list[ScalarTree], n_outputs: int) -> Floats:
    """Sum the values of the trees with a single leaf, (n_outputs,)."""
    total = np.zeros(n_outputs)
    for tree in trees:
        if len(tree.values) == 1:
            total[tree.output] += tree.values[0]
    return total


_NODES = (
    "nodes_featureids",
    "nodes_splits",
    "nodes_modes",
    "membership_values",
    "nodes_missing_value_tracks_true",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)


def _nodes(
    tree: ScalarTree, first_node: int, first_leaf: int, n_codes: Mapping[int, int]
) -> dict[str, np.ndarray]:
    """List the inner nodes in order; "true" is the left child, ``x <= threshold``.

    Splits on levels do not list unknown levels: "true" is then the side without them.
    """
    nodes, is_leaf = tree.tree, tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    number = np.where(is_leaf, first_leaf + nodes.leaf_number, first_node + np.cumsum(~is_leaf) - 1)
    true, false = nodes.child[inner], nodes.child[inner] + 1
    with_true = ~nodes.missing_right[inner]
    splits, by_level = nodes.threshold[inner], np.zeros(len(inner), dtype=bool)
    members: list[float] = []
    if len(nodes.by_level):
        by_level = nodes.by_level[inner]
    for i in np.flatnonzero(by_level):
        node = int(inner[i])
        goes_left, unseen_left = left_codes(nodes, node, n_codes[int(nodes.column[node])])
        if unseen_left:
            true[i], false[i], with_true[i] = false[i], true[i], not with_true[i]
        listed = np.flatnonzero(goes_left != unseen_left).tolist()
        if listed:
            members += [*listed, np.nan]
        else:  # the split separates missing values from all others
            by_level[i], splits[i] = False, -np.inf
    return {
        "nodes_featureids": nodes.column[inner],
        "nodes_splits": splits,
        "nodes_modes": np.where(by_level, _MEMBER, _LESS_OR_EQUAL).astype(np.uint8),
        "membership_values": np.array(members),
        "nodes_missing_value_tracks_true": with_true.astype(np.int64),
        "nodes_truenodeids": number[true],
        "nodes_trueleafs": is_leaf[true].astype(np.int64),
        "nodes_falsenodeids": number[false],
        "nodes_falseleafs": is_leaf[false].astype(np.int64),
    }

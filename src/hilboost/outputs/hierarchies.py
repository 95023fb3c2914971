"""Nodes of a tree or a forest, such as the classes of a taxonomy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace
from hilboost.core.plain_values import is_number, positive_numbers, real
from hilboost.outputs.agreement import equal, minus_distance
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.label_checks import as_objects, in_order_of
from hilboost.outputs.preimage import CANDIDATE_WAYS


@dataclass(frozen=True)
class Hierarchy(OutputSpace):
    """Output space whose labels are the nodes of a forest.

    The embedding is ``φ(y)_v = √w_v`` if ``v`` is ``y`` or one of its ancestors, else 0.  The
    squared distance between two nodes is the length of the path between them, where the edge above
    node ``v`` has length ``w_v``.  All roots are connected to a common origin.

    Parameters
    ----------
    parents : mapping
        Maps each node (hashable) to its parent.  A node that appears only as a parent, or whose
        parent is ``None``, is a root.
    weights : float or mapping, default=1.0
        Edge lengths ``w``.  A number ``f`` sets ``w_v = f^depth``, with depth 0 at the roots; 1
        gives all edges length 1.  A mapping assigns a positive number to each node.

    Notes
    -----
    Decoding methods: ``"exact"`` chooses among all N nodes of the forest in O(n N), with ties
    resolved in favor of the higher node; ``"nearest"`` and ``"cosine"`` choose among the nodes of
    the training labels.  ``"most_probable"`` chooses the node ``v`` with the largest probability
    ``F_v / √w_v - Σ F_c / √w_c``, where the sum is over the children ``c`` of ``v``.  Predictions
    are a list of nodes.

    Metrics: ``"path"`` is minus the mean length of the path between the nodes (decoded by
    ``"exact"``), ``"accuracy"`` the share of equal nodes (``"most_probable"``).
    """

    in_files = True

    parents: Mapping[Any, Any]
    weights: float | Mapping[Any, float] = 1.0

    def fit(self, labels: object) -> HierarchyEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        depth = _depths(self.parents)
        nodes = tuple(sorted(depth, key=lambda node: depth[node]))  # stable sort keeps their order
        number = {node: j for j, node in enumerate(nodes)}
        parent = np.array([number.get(self.parents.get(node), -1) for node in nodes])
        length = np.sqrt(self._weights(nodes, depth))
        levels = np.array([depth[node] for node in nodes])
        every = HierarchyEmbedding(nodes, parent, levels, length, training=np.arange(len(nodes)))
        return replace(every, training=np.unique(every.checked(labels)))

    def _weights(self, nodes: tuple[Hashable, ...], depth: Mapping[Hashable, int]) -> Floats:
        """Compute the edge lengths, (N,)."""
        given = self.weights
        numbers = in_order_of(nodes, "weights", given, "node")
        if numbers is given:  # not a mapping
            powers = is_number(given) and given > 0
            numbers = [real(given) ** depth[node] for node in nodes] if powers else None
        weight = positive_numbers(numbers)
        if weight is None:
            raise InvalidParameter(
                "weights must be a positive number or a mapping of all nodes to positive numbers; "
                f"got {shown(given)}."
            )
        return weight


@dataclass(frozen=True)
class HierarchyEmbedding(ChoosingEmbedding):
    """Fitted embedding of nodes by their paths to the root."""

    file_name = "hierarchy"

    nodes: tuple[Hashable, ...]  # nodes in order of increasing depth
    parent: Ints  # (N,) int64: index of each node's parent, -1 for roots
    depth: Ints  # (N,) int64: depths of the nodes, in increasing order
    length: Floats  # (N,) float64: ``√w``
    training: Ints  # (c,) int64: the distinct nodes of the training labels
    ways: ClassVar[tuple[str, ...]] = ("exact", *CANDIDATE_WAYS, "most_probable")

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return {node: j for j, node in enumerate(self.nodes)}

    def checked(self, labels: object, what: str = "Y") -> Ints:
        """Look up the indices of nodes, (n,)."""
        objects = as_objects(labels, "nodes", what)
        found = np.empty(len(objects), dtype=np.int64)
        for i, label in enumerate(objects):
            try:
                found[i] = self._number[label]
            except (KeyError, TypeError):
                raise self._unknown(f"row {i} of {what}", label) from None
        return found

    def _unknown(self, where: str, label: object) -> InvalidData:
        near = get_close_matches(str(label), map(str, self.nodes), n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]}?" if near else ""
        return InvalidData(
            f"{where} is {label!r:.60}, which is not one of the {len(self.nodes)} nodes of the "
            f"hierarchy.{hint} Add each label to parents."
        )

    def _formula(self, way: str) -> Callable[[Floats], Ints]:
        return self._most_probable if way == "most_probable" else self._nearest_of_all

    def _as_given(self, labels: Ints) -> list[Any]:
        return [self.nodes[j] for j in labels]

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Length of the path between the nodes, and share of equal nodes."""
        path = OutputMetric("exact", self._minus_path)
        return {"path": path, "accuracy": OutputMetric("most_probable", equal)}

    def _minus_path(self, labels: object, predicted: object) -> Floats:
        return -(minus_distance(self.encode(labels), self.encode(predicted)) ** 2)

    def labels_of(self, codes: Floats) -> list[Any]:
        """Return the nodes at these points."""
        return self._as_given(self._nearest_of_all(codes))

    def points(self, labels: Ints) -> Floats:
        """Encode the indices of nodes as points, (n, N)."""
        numbers, codes = labels, np.zeros((len(labels), len(self.nodes)))
        rows = np.arange(len(numbers))
        while len(rows):
            codes[rows, numbers] = self.length[numbers]
            above = self.parent[numbers]
            rows, numbers = rows[above >= 0], above[above >= 0]
        return codes

    def _nearest_of_all(self, raw: Floats) -> Ints:
        """Find the nearest of all nodes; a node's cost is its parent's cost plus its own term."""
        cost = self.length * (0.5 * self.length - raw)
        for level in range(1, int(self.depth[-1]) + 1):
            here = np.flatnonzero(self.depth == level)
            cost[:, here] += cost[:, self.parent[here]]
        return cost.argmin(axis=1)

    def _most_probable(self, raw: Floats) -> Ints:
        """Find the node with the largest probability of its own, without its descendants."""
        within = raw / self.length
        own = within.copy()
        below = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own.T, self.parent[below], within.T[below])
        return own.argmax(axis=1)


def _depths(parents: Mapping[Any, Any]) -> dict[Hashable, int]:
    """Compute the number of edges from a root to each node, in the order of ``parents``."""
    if not isinstance(parents, Mapping) or not parents:
        raise InvalidParameter(
            f"parents must map each node to its parent, {{child: parent, …}}; got {parents!r:.60}."
        )
    depth: dict[Hashable, int] = {}
    for node in parents:
        path: dict[Hashable, None] = {}  # ordered from the node to the root
        above: Any = node
        while above is not None and above not in depth:
            if above in path:
                members = list(path)
                cycle = " -> ".join(map(repr, [*members[members.index(above) :], above]))
                raise InvalidParameter(
                    f"parents contains a cycle: {cycle}; remove one of its edges."
                )
            path[above] = None
            above = _parent(parents, above)
        top = depth[above] + 1 if above is not None else 0
        for level, member in enumerate(reversed(path)):
            depth[member] = top + level
    if None in parents:
        raise InvalidParameter("parents has the key None; use None only as the parent of roots.")
    return depth


def _parent(parents: Mapping[Any, Any], node: Hashable) -> Any:
    found = parents.get(node)
    try:
        hash(found)
    except TypeError:
        raise InvalidParameter(
            f"the parent of {node!r:.60} is {found!r:.60}, which is not hashable; give each node "
            "one hashable parent, such as a string or a number."
        ) from None
    return found

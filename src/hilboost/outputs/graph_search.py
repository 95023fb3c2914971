"""Search for graphs whose embeddings are near given points, by edits of nodes and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.outputs.label_checks import Graph, in_order

Signature = tuple[int, tuple[int, ...]]
"""Feature of a node, and the sorted features of its neighbors."""


@dataclass(frozen=True)
class Refinement:
    """Numbers of the features of nodes: their labels, then their neighborhoods of growing depth."""

    labels: Mapping[Hashable, int]
    neighborhoods: tuple[Mapping[Signature, int], ...]  # one for each depth

    @property
    def n_features(self) -> int:
        """Number of features of all depths."""
        return len(self.labels) + sum(map(len, self.neighborhoods))

    def count(self, graph: Graph) -> Counter[int]:
        """Count the features of a graph.  Unknown features have negative numbers."""
        unknown: dict[Hashable, int] = {}
        features = [_number(self.labels, label, -1, unknown) for label in graph[0]]
        found = Counter(features)
        for depth, known in enumerate(self.neighborhoods):
            own = signatures(graph, features)
            features = [_number(known, signature, depth, unknown) for signature in own]
            found.update(features)
        return found


def _number(
    known: Mapping[Any, int], feature: Hashable, depth: int, unknown: dict[Hashable, int]
) -> int:
    """Return the number of a feature; a new one gets the next negative number."""
    if feature in known:
        return known[feature]
    return unknown.setdefault((depth, feature), -1 - len(unknown))


def signatures(graph: Graph, features: list[int]) -> list[Signature]:
    """Combine the feature of each node of a graph with its neighbors' features."""
    around: list[list[int]] = [[] for _ in features]
    for i, j in graph[1]:
        around[i].append(features[j])
        around[j].append(features[i])
    return [(own, tuple(sorted(others))) for own, others in zip(features, around, strict=True)]


def refine(graphs: list[Graph], n_iterations: int) -> tuple[Refinement, list[Counter[int]]]:
    """Number the features of graphs, in an order that depends neither on graphs nor on nodes.

    Returns Refinement, list of Counter of int: the features, and their counts in each graph.
    """
    known = in_order({label for graph in graphs for label in graph[0]})
    labels = {label: k for k, label in enumerate(known)}
    features = [[labels[label] for label in graph[0]] for graph in graphs]
    counts = [Counter(own) for own in features]
    neighborhoods, n = [], len(labels)
    for _ in range(n_iterations):
        found = [signatures(graph, own) for graph, own in zip(graphs, features, strict=True)]
        distinct = sorted({signature for own in found for signature in own})
        number = {signature: n + k for k, signature in enumerate(distinct)}
        n += len(number)
        features = [[number[signature] for signature in own] for own in found]
        for count, own in zip(counts, features, strict=True):
            count.update(own)
        neighborhoods.append(number)
    return Refinement(labels, tuple(neighborhoods)), counts


BEAM = 5
"""Number of graphs that are edited in each step."""

_PATIENCE = 2
_MOST_GRAPHS = 5000
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class EditSearch:
    """Beam search over the graphs that edits of known graphs lead to.

    An edit adds or removes an edge, changes the label of a node, removes a node, or adds a node
    without neighbors or with one.
    """

    refinement: Refinement
    alphabet: Sequence[Any]  # labels of nodes
    most_nodes: int  # maximum number of nodes
    normalize: bool  # whether embeddings are divided by their norms

    def best(self, weights: Floats, starts: list[Graph]) -> Graph:
        """Return the graph with the smallest ``|φ(y)|² / 2 - ⟨φ(y), F⟩`` found, from some starts.

        ``weights`` are the parts of each feature in the inner product with the point.  The search
        ends when two steps have not found a better graph, or after 5,000 graphs.
        """
        seen = {graph: self._cost(graph, weights) for graph in starts}
        beam = sorted(seen, key=lambda graph: seen[graph])[:BEAM]
        best, waited = beam[0], 0
        while waited < _PATIENCE and len(seen) < _MOST_GRAPHS:
            new = [graph for one in beam for graph in self.edits(one) if _is_new(graph, seen)]
            for graph in new:
                seen[graph] = self._cost(graph, weights)
            beam = sorted(new, key=lambda graph: seen[graph])[:BEAM]
            if not beam:
                break
            if seen[beam[0]] < seen[best] - _TOLERANCE:
                best, waited = beam[0], 0
            else:
                waited += 1
        return best

    def edits(self, graph: Graph) -> Iterator[Graph]:
        """Yield all graphs at one edit from a graph."""
        nodes, edges = graph
        n = len(nodes)
        present = set(edges)
        for i in range(n):
            for j in range(i + 1, n):
                yield nodes, tuple(sorted(present ^ {(i, j)}))
        for i in range(n):
            for label in self.alphabet:
                if label != nodes[i]:
                    yield (*nodes[:i], label, *nodes[i + 1 :]), edges
        for i in range(n):
            yield _without(graph, i)
        if n < self.most_nodes:
            for label in self.alphabet:
                yield (*nodes, label), edges
                for i in range(n):
                    yield (*nodes, label), tuple(sorted((*edges, (i, n))))

    def _cost(self, graph: Graph, weights: Floats) -> float:
        counts = self.refinement.count(graph)
        product = sum(n * weights[feature] for feature, n in counts.items() if feature >= 0)
        square = sum(n * n for n in counts.values())
        if self.normalize:
            return 0.5 - float(product) / square**0.5 if square else 0.0
        return 0.5 * square - float(product)


def _is_new(graph: Graph, seen: dict[Graph, float]) -> bool:
    """Whether a graph was not seen yet; it is noted so that it is not listed twice."""
    if graph in seen:
        return False
    seen[graph] = np.inf
    return True


def _without(graph: Graph, gone: int) -> Graph:
    """Remove a node and its edges."""
    nodes, edges = graph
    kept = [edge for edge in edges if gone not in edge]
    renumbered = tuple((i - (i > gone), j - (j > gone)) for i, j in kept)
    return (*nodes[:gone], *nodes[gone + 1 :]), renumbered


def alphabet_of(graphs: list[Graph]) -> list[Any]:
    """Return the labels of all nodes, in an order that does not depend on the graphs."""
    return in_order({label for nodes, _ in graphs for label in nodes})

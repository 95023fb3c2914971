"""Labels of nodes and of their neighborhoods: color refinement (Weisfeiler and Lehman)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from hilboost.outputs.graph_checks import Graph
from hilboost.outputs.token_checks import in_order

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
        """Count the features of a graph.  Unknown features have negative numbers.

        ``graph``: (tuple of node labels, tuple of edges).
        """
        unknown: dict[Hashable, int] = {}
        features = [
            self.labels[label] if label in self.labels else _new((-1, label), unknown)
            for label in graph[0]
        ]
        found = Counter(features)
        for depth, known in enumerate(self.neighborhoods):
            features = [
                known[signature] if signature in known else _new((depth, signature), unknown)
                for signature in signatures(graph, features)
            ]
            found.update(features)
        return found


def _new(feature: Hashable, unknown: dict[Hashable, int]) -> int:
    return unknown.setdefault(feature, -1 - len(unknown))


def signatures(graph: Graph, features: list[int]) -> list[Signature]:
    """Combine the feature of each node with its neighbors' features.

    ``graph``: (tuple of node labels, tuple of edges). ``features``: one for each node.
    """
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

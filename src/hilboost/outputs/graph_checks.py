"""Validation of labels that are undirected graphs with labeled nodes."""

from __future__ import annotations

import sys
from collections.abc import Set
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidData
from hilboost.kernels.validation import is_integer
from hilboost.outputs.label_checks import as_objects, as_tokens, is_sequence

Graph = tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]
"""Labels of the nodes, and sorted edges ``(i, j)`` with ``i < j``."""

_EXAMPLE = "(['C', 'O'], [(0, 1)])"


def as_graphs(labels: object, what: str = "Y") -> list[Graph]:  # list of n (tuple, tuple)
    """Validate graphs, which may be networkx's, and sort their edges."""
    objects = as_objects(labels, "graphs", what)
    return [_as_graph(label, f"row {i} of {what}") for i, label in enumerate(objects)]


def _as_graph(label: object, where: str) -> Graph:
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(label, networkx.Graph):
        label = _pair_of(label, where)
    if not isinstance(label, tuple | list) or len(label) != 2 or not is_sequence(label[0]):
        raise InvalidData(
            f"{where} is {label!r:.60} ({type(label).__name__}); each output must be a graph: a "
            f"pair of a list of node labels and a list of edges, such as {_EXAMPLE}."
        )
    nodes = as_tokens(label[0], f"{where} contains the node label", "node labels")
    if not isinstance(label[1], list | tuple | Set | np.ndarray):
        raise InvalidData(
            f"the edges of {where} are {label[1]!r:.60} ({type(label[1]).__name__}); they must be "
            f"a list of pairs of node indices, as in {_EXAMPLE}."
        )
    edges = set()
    for given in label[1]:
        edge = _as_edge(given, len(nodes), where)
        if edge in edges:
            raise InvalidData(
                f"the edge {edge} occurs twice in {where}; list each undirected edge once."
            )
        edges.add(edge)
    return nodes, tuple(sorted(edges))


def _as_edge(given: object, n_nodes: int, where: str) -> tuple[int, int]:
    ends = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(ends, tuple | list) or len(ends) != 2 or not all(map(is_integer, ends)):
        raise InvalidData(
            f"an edge of {where} is {given!r:.60}; each edge must be a pair of node indices."
        )
    i, j = sorted(map(int, ends))
    if i < 0 or j >= n_nodes:
        raise InvalidData(
            f"the edge {(i, j)} of {where} has an end outside its {n_nodes} nodes; number the "
            "nodes from 0."
        )
    if i == j:
        raise InvalidData(
            f"the edge {(i, j)} of {where} joins a node to itself; remove such edges."
        )
    return i, j


def _pair_of(graph: Any, where: str) -> tuple[list[Any], list[tuple[int, int]]]:
    """Convert a networkx graph."""
    if graph.is_directed() or graph.is_multigraph():
        raise InvalidData(
            f"{where} is a networkx {type(graph).__name__}; convert it to an undirected graph with "
            "networkx.Graph(graph)."
        )
    number = {node: i for i, node in enumerate(graph.nodes)}
    labels = [attributes.get("label") for _, attributes in graph.nodes(data=True)]
    return labels, [(number[a], number[b]) for a, b in graph.edges]

"""Inverse links as ONNX operators: from ``raw`` (n, r) to predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.core.link import (
    IdentityLink,
    Link,
    LogitLink,
    LogLink,
    ScoresLink,
    SoftmaxLink,
    SortedLink,
)
from hilboost.core.loss import Loss
from hilboost.export.onnx_graph import Graph


def add_inverse_link(graph: Graph, raw: str, loss: Loss) -> str:
    """Add the operators of ``loss.inverse_link(raw)``."""
    link = loss.link
    write = None if link is None else _LINKS.get(type(link))
    if write is None:
        raise IncompatibleParts(
            f"to_onnx cannot convert {type(loss).__name__}.inverse_link, which is Python code; "
            "declare link in the class, fit with a built-in loss, or remove inverse_link and apply "
            "it to the exported raw outputs."
        )
    return write(graph, raw, link)


def _identity(graph: Graph, raw: str, link: IdentityLink) -> str:
    return raw


def _exponential_mean(graph: Graph, raw: str, link: LogLink) -> str:
    bound = graph.constant(link.bound)
    clipped = graph.add("Clip", raw, graph.add("Neg", bound), bound)
    return graph.add("Exp", clipped)


def _two_classes(graph: Graph, raw: str, link: LogitLink) -> str:
    logits = graph.add("Mul", raw, graph.constant([[-link.factor, link.factor]]))
    return graph.add("Sigmoid", logits)


def _softmax(graph: Graph, raw: str, link: SoftmaxLink) -> str:
    if link.factor != 1:
        raw = graph.add("Mul", raw, graph.constant(link.factor))
    return graph.add("Softmax", raw, axis=1)


def _sorted(graph: Graph, raw: str, link: SortedLink) -> str:
    """Sort each row and reorder it by level, so that quantiles never cross."""
    k = len(link.quantiles)
    graph.add("TopK", raw, graph.integers(k), n_outputs=2, axis=1, largest=0, sorted=1)
    ascending = graph.nodes[-1][2][0]
    rank = np.argsort(np.argsort(link.quantiles))
    return graph.add("Gather", ascending, graph.integers(*rank.tolist()), axis=1)


def _scores(graph: Graph, raw: str, link: ScoresLink) -> str:
    if link.n_classes == 2:
        return graph.add("Mul", raw, graph.constant([[-1.0, 1.0]]))
    return raw


_LINKS: dict[type[Link], Callable[[Graph, str, Any], str]] = {
    IdentityLink: _identity,
    LogLink: _exponential_mean,
    LogitLink: _two_classes,
    ScoresLink: _scores,
    SoftmaxLink: _softmax,
    SortedLink: _sorted,
}

"""Inverse links as ONNX operators: from ``raw`` (n, r) to what the estimator predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.export.onnx_graph import Graph
from hilboost.losses import (
    BinomialLogLoss,
    Exponential,
    Gamma,
    MultinomialLogLoss,
    OneHotSquaredError,
    Poisson,
    Quantile,
    Tweedie,
)
from hilboost.losses._log_link import LARGEST_LOGARITHM
from hilboost.losses.squared_hinge import SquaredHinge


def add_inverse_link(graph: Graph, raw: str, loss: Loss) -> str:
    """What ``loss.inverse_link(raw)`` gives.

    Raises
    ------
    IncompatibleParts
        The loss has an inverse link of its own, which is Python code.
    """
    write = _LINKS.get(type(loss))
    if write is not None:
        return write(graph, raw, loss)
    if type(loss).inverse_link is Loss.inverse_link:
        return raw
    raise IncompatibleParts(
        f"to_onnx writes the links of hilboost's own losses as operators; "
        f"{type(loss).__name__}.inverse_link is Python code. Fit with a built-in loss, or leave "
        "inverse_link out and apply it to the exported raw outputs."
    )


def _exponential_mean(graph: Graph, raw: str, loss: Loss) -> str:
    bound = graph.constant(LARGEST_LOGARITHM)
    clipped = graph.add("Clip", raw, graph.add("Neg", bound), bound)
    return graph.add("Exp", clipped)


def _two_classes(graph: Graph, raw: str, factor: float) -> str:
    logits = graph.add("Mul", raw, graph.constant([[-factor, factor]]))
    return graph.add("Sigmoid", logits)


def _binomial(graph: Graph, raw: str, loss: Loss) -> str:
    return _two_classes(graph, raw, 1.0)


def _adaboost(graph: Graph, raw: str, loss: Loss) -> str:
    return _two_classes(graph, raw, 2.0)


def _softmax(graph: Graph, raw: str, loss: Loss) -> str:
    return graph.add("Softmax", raw, axis=1)


def _sharpened(graph: Graph, raw: str, loss: OneHotSquaredError) -> str:
    if loss.n_classes == 2:
        return _two_classes(graph, raw, 2 * loss.sharpness)
    return _softmax(graph, graph.add("Mul", raw, graph.constant(loss.sharpness)), loss)


def _sorted(graph: Graph, raw: str, loss: Quantile) -> str:
    """Rows in ascending order, then in that of the levels: quantiles never cross."""
    k = len(loss.levels)
    graph.add("TopK", raw, graph.integers(k), n_outputs=2, axis=1, largest=0, sorted=1)
    ascending = graph.nodes[-1][2][0]
    rank = np.argsort(np.argsort(loss.levels))
    return graph.add("Gather", ascending, graph.integers(*rank.tolist()), axis=1)


def _scores(graph: Graph, raw: str, loss: SquaredHinge) -> str:
    if loss.n_classes == 2:
        return graph.add("Mul", raw, graph.constant([[-1.0, 1.0]]))
    return raw


_LINKS: dict[type, Callable[[Graph, str, Any], str]] = {
    BinomialLogLoss: _binomial,
    Exponential: _adaboost,
    Gamma: _exponential_mean,
    MultinomialLogLoss: _softmax,
    OneHotSquaredError: _sharpened,
    Poisson: _exponential_mean,
    Quantile: _sorted,
    SquaredHinge: _scores,
    Tweedie: _exponential_mean,
}

"""The gate of a mixture of experts: a small neural network with a softmax over the experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class Gate:
    """``softmax(V tanh(U x + u) + v)``: the weights of the experts at ``x``."""

    inner: Floats  # (d + 1, h) float64: ``U`` and ``u``
    outer: Floats  # (h + 1, M) float64: ``V`` and ``v``

    def weights(self, X: Floats) -> Floats:  # (n, M) float64
        """Weights of the experts, (n, M): positive, with sum one in every row.

        ``X``: (n, d) float64: standardized.
        """
        return softmax(_with_ones(np.tanh(_with_ones(X) @ self.inner)) @ self.outer, axis=1)

    @classmethod
    def fit(
        cls,
        X: Floats,  # (n, d) float64: standardized
        outputs: Floats,  # (n, M, r) float64: predictions of the experts
        y: Floats,  # (n, r) float64
        weight: Floats | None,  # (n,) float64 or None
        n_hidden: int,
        # factor of the sum of squared weights of the network, relative to the mean square of y
        decay: float,
        max_iter: int,
        rng: np.random.Generator,  # draws the first ``U``
    ) -> Gate:
        """Minimize the squared error of the mixture by L-BFGS, starting with equal weights."""
        n_inputs, n_experts = X.shape[1] + 1, outputs.shape[1]
        share = np.ones(len(X)) if weight is None else weight
        share = share / share.sum()
        size = float(share @ (y**2).sum(axis=1)) or 1.0
        inputs = _with_ones(X)
        first = rng.normal(size=(n_inputs, n_hidden)) / np.sqrt(n_inputs)

        def unpacked(flat: Floats) -> tuple[Floats, Floats]:
            inner, outer = np.split(flat, [first.size])
            return inner.reshape(first.shape), outer.reshape(n_hidden + 1, n_experts)

        def objective(flat: Floats) -> tuple[float, Floats]:
            inner, outer = unpacked(flat)
            hidden = _with_ones(np.tanh(inputs @ inner))
            gate = softmax(hidden @ outer, axis=1)
            mixed = np.einsum("nm,nmr->nr", gate, outputs)
            pull = (2 / size) * share[:, None] * (mixed - y)
            slope = gate * np.einsum("nmr,nr->nm", outputs - mixed[:, None], pull)
            back = (slope @ outer[:-1].T) * (1 - hidden[:, :-1] ** 2)
            error = float(share @ ((mixed - y) ** 2).sum(axis=1)) / size
            gradient = np.concatenate([(inputs.T @ back).ravel(), (hidden.T @ slope).ravel()])
            return error + decay * float(flat @ flat), gradient + 2 * decay * flat

        start = np.concatenate([first.ravel(), np.zeros((n_hidden + 1) * n_experts)])
        options = {"maxiter": max_iter}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        return cls(*unpacked(found.x))


def assign(weights: Floats, capacity: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Give every row to the expert of its largest weight among those with room.

    ``weights``: (n, M) float64. ``capacity``: largest number of rows of an expert.  Rows that find
    no room are left out. ``rng``: draws the order of the rows.

    Returns list of M arrays of int64: sorted rows of every expert, possibly none.
    """
    n, M = weights.shape
    preferred = np.argsort(-weights, axis=1, kind="stable")
    room = np.full(M, capacity)
    owner = np.full(n, -1)
    for row in rng.permutation(n):
        for expert in preferred[row]:
            if room[expert]:
                room[expert] -= 1
                owner[row] = expert
                break
    return [np.flatnonzero(owner == expert) for expert in range(M)]


def _with_ones(X: Floats) -> Floats:
    return np.column_stack([X, np.ones(len(X))])

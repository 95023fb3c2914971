"""Kernel machines by dense algebra on all rows, and a plain loop of stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hilboost.core.base_model import Stage
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target
from hilboost.losses import SquaredError


@dataclass
class Staged:
    """What a learner made of some stages; ``raw`` begins at zero."""

    learner: Any
    X: np.ndarray
    target: Target
    loss: Any = field(default_factory=SquaredError)
    rows: Any = None
    r: int = 1
    seed: int = 0
    n_threads: int = 1

    def __post_init__(self):
        self.raw = np.zeros((len(self.X), self.r))
        self.stages, self.fitted = [], []
        self.data = self.learner.prepare(self.X, self.target.weight, self.seed, self.n_threads)

    def go(self, n_stages=1, factor=1.0):
        """Add stages, each ``factor`` times what the learner proposes."""
        for _ in range(n_stages):
            rng = np.random.default_rng((self.seed, len(self.stages)))
            now = self.loss.gradients(self.target, self.raw)
            fitted = tuple(
                self.learner.fit(self.data, now, RowSample(self.rows, self.target.weight), rng)
            )
            stage = Stage(tuple(f.term for f in fitted)).scaled(factor)
            for part, result in zip(stage.terms, fitted, strict=True):
                self.raw[:, part.columns] += part.coefficient * result.outputs
            self.learner.stage_added(self.data, stage)
            self.stages.append(stage)
            self.fitted.append(fitted)
        return self

    def predicted(self, X):
        """Sum of all parts, one by one."""
        raw = np.zeros((len(X), self.r))
        for stage in self.stages:
            for part in stage.terms:
                raw[:, part.columns] += part.coefficient * part.model.predict_raw(X)
        return raw


def ridge(K, y, regularization, weight=None):
    """Weights of kernel ridge regression, (n, r)."""
    D = regularization / (np.ones(len(K)) if weight is None else weight)
    return np.linalg.solve(K + np.diag(D), y)


def penalized(loss, target, K, alpha, regularization):
    """``sum_i w_i loss_i + ½ λ |f|²`` for ``f = K α``."""
    weight = np.ones(len(K)) if target.weight is None else target.weight
    raw = K @ alpha
    penalty = 0.5 * regularization * np.sum(alpha * raw)
    return float(weight @ loss.value(target, raw)) + penalty


def penalized_optimum(loss, target, K, r, regularization):
    """The values (n, r) on the rows that minimize :func:`penalized`, by L-BFGS."""
    n = len(K)
    weight = np.ones(n) if target.weight is None else target.weight
    values, vectors = np.linalg.eigh(K)
    half = vectors * np.sqrt(np.maximum(values, 0.0))  # f = half b, |f|² = |b|²

    def objective(b):
        b = b.reshape(n, r)
        raw = half @ b
        negative = loss.gradients(target, raw).negative_gradient
        value = weight @ loss.value(target, raw) + 0.5 * regularization * np.sum(b * b)
        return value, (regularization * b - half.T @ (weight[:, None] * negative)).ravel()

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 50}
    found = minimize(objective, np.zeros(n * r), jac=True, method="L-BFGS-B", options=options)
    return half @ found.x.reshape(n, r)

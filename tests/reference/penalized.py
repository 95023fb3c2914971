"""The least penalized loss over all coefficients of a kernel machine, by solvers of its own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from hilboost.core.target import Target


def objective(loss, target, raw, squared_norm, lam):
    """``Σ w_i loss_i + ½ λ |f|²``."""
    weight = np.ones(len(raw)) if target.weight is None else target.weight
    return float(weight @ loss.value(target, raw)) + 0.5 * lam * squared_norm


def in_units_of_fit(loss, target, raw):
    """Loss, target and predictions in the units of kernel machines: spreads of several targets."""
    units = loss.units(target) if target.y.shape[1] > 1 else None
    if units is None:
        return loss, target, raw
    return units.loss, Target(target.y / units.size, target.weight), raw / units.factor


def optimum(loss, target, K, start, lam):
    """The least objective for a differentiable loss; L-BFGS over all coefficients."""
    n, r = len(K), len(start)
    weight = np.ones(n) if target.weight is None else target.weight
    values, vectors = np.linalg.eigh(K)
    half = vectors * np.sqrt(np.maximum(values, 0.0))  # f = half b, |f|² = |b|²

    def value_and_gradient(b):
        b = b.reshape(n, r)
        raw = start + half @ b
        pull = weight[:, None] * loss.gradients(target, raw).negative_gradient
        value = objective(loss, target, raw, np.sum(b * b), lam)
        return value, (lam * b - half.T @ pull).ravel()

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 50}
    found = minimize(
        value_and_gradient, np.zeros(n * r), jac=True, method="L-BFGS-B", options=options
    )
    return float(found.fun)


def _least_within(function, bounds):
    """The least value within bounds; L-BFGS-B starts again where its line search gave up."""
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 50}
    best = OptimizeResult(x=np.zeros(len(bounds)), fun=np.inf)
    for _ in range(50):
        before, best = (
            best,
            minimize(function, best.x, jac=True, method="L-BFGS-B", bounds=bounds, options=options),
        )
        if not best.fun < before.fun - 1e-12 * abs(best.fun):
            break
    return float(best.fun)


def pinball_optimum(levels, scale, target, K, start, lam):
    """The least objective for ``scale`` times pinball losses; L-BFGS-B on the dual problem.

    The dual variables s of a column lie in ``scale w [q - 1, q]``, and the optimum is the largest
    ``s'(y - start) - s'Ks / (2 λ)``.
    """
    weight = np.ones(len(K)) if target.weight is None else target.weight
    total = 0.0
    for k, q in enumerate(levels):
        t = target.y[:, min(k, target.y.shape[1] - 1)] - start[k]

        def dual(s, t=t):
            Ks = K @ s / lam
            return 0.5 * s @ Ks - s @ t, Ks - t

        total -= _least_within(dual, [(scale * w * (q - 1), scale * w * q) for w in weight])
    return float(total)


def hinge_optimum(n_classes, target, K, start, lam):
    """The least objective of the hinge loss; L-BFGS-B on the dual of a machine without bias.

    The dual variables a of a column lie in ``[0, w]``, and the optimum is the largest
    ``a'(1 - s start) - (s a)'K(s a) / (2 λ)``.
    """
    weight = np.ones(len(K)) if target.weight is None else target.weight
    total = 0.0
    for k, bias in enumerate(start):
        signs = np.where(target.y[:, 0] == (1 if n_classes == 2 else k), 1.0, -1.0)

        def dual(a, signs=signs, bias=bias):
            Ka = signs * (K @ (signs * a)) / lam
            return 0.5 * a @ Ka - a @ (1 - signs * bias), Ka - (1 - signs * bias)

        total -= _least_within(dual, [(0.0, w) for w in weight])
    return float(total)


def least(loss, target: Target, K, start, lam):
    """The least objective of any built-in loss, from what it says of itself."""
    if type(loss).__name__ == "AbsoluteError":
        return pinball_optimum([0.5] * len(start), 2.0, target, K, start, lam)
    if type(loss).__name__ == "Quantile":
        return pinball_optimum(loss.levels, 1.0, target, K, start, lam)
    if type(loss).__name__ == "Hinge":
        return hinge_optimum(loss.n_classes, target, K, start, lam)
    return optimum(loss, target, K, start, lam)

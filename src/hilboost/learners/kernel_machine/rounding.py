"""Rounding errors of kernel values, and their effect on linear systems and steps.

A system ``K + D`` tolerates the rounding error ``E`` of ``K`` if the norm of ``D^-½ E D^-½`` is
below one: then ``K + E + D`` is positive definite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.problem import StageProblem

LARGEST_SHARE = 1.0  # norm of D^-½ E D^-½; beyond, the system may be indefinite
_ROWS = 512
_PRODUCTS = 20  # of the power method; an error of a factor of two is harmless
ROWS_CHECKED = 128
# Of predictions from the values computed in the fit, relative to the spread of the function.
_LARGEST_DEVIATIONS = {"float32": 0.01, "float64": 0.5}
_ROUNDINGS = 16  # of the largest residual: harmless if the function is tiny relative to it
_REMEDIES = {"float32": "precision='float64'", "float64": "longer length scales"}
_LARGEST_LOSS = 1e-3  # by single precision, relative to the same spread
_LARGEST_RISE = 1e-10  # of an objective by rounding, relative to the sum of squares


def share_of_rounding(kernel: Kernel, X: Array, D: Floats, seed: int) -> float:
    """Estimate the norm of ``D^-½ E D^-½``, where ``E`` is the rounding error of float32 values.

    ``E`` is evaluated for at most 512 random rows.  Its norm off the diagonal is proportional to
    their number, because whole rows share the errors of the terms of a distance.
    """
    n = X.shape[0]
    rng = np.random.default_rng((seed, 4))
    rows = np.arange(n) if n <= _ROWS else np.sort(rng.choice(n, _ROWS, replace=False))
    A = array_api.to_numpy(X[rows]).astype(np.float32)
    exact = A.astype(np.float64)
    E = kernel.block(A, A) - kernel.block(exact, exact)
    on_diagonal = float(np.abs(E.diagonal()).max())
    np.fill_diagonal(E, 0.0)
    v, size = rng.normal(size=len(rows)), 0.0
    for _ in range(_PRODUCTS):
        v = E @ (v / max(float(np.linalg.norm(v)), 1e-300))
        size = float(np.linalg.norm(v))
    return on_diagonal / float(D.min()) + size / len(rows) * float((1.0 / D).sum())


def loses_digits(kernel: Kernel, A: Array, B: Array, weights: Floats, spread: float) -> bool:
    """Whether the error of ``k(A, B) weights`` in float32 exceeds a thousandth of the spread.

    The spread is that of the function so far, or of the outputs if it is larger.
    """
    A, B = array_api.to_numpy(A), array_api.to_numpy(B)
    exact = evaluate(kernel, A, B) @ weights
    short = evaluate(kernel, A.astype(np.float32), B.astype(np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        found = (short @ weights.astype(np.float32)).astype(np.float64)
        error = np.sqrt(((found - exact) ** 2).mean())
        spread = max(spread, float(np.sqrt((exact**2).mean())))
    return not error <= _LARGEST_LOSS * spread


def unspoilt(step: Descending, problem: StageProblem, allowed: Floats | None = None) -> Descending:
    """The step, shortened if rounding errors made it increase the penalized squared error.

    The step ``o`` changes this error by ``Σ w (½ o² - negative o)`` plus the change of the penalty.
    If that is more than ``allowed`` (r,), or than rounding errors, the length is the best one,
    possibly zero.  The line search takes care of other losses.
    """
    negative, outputs = problem.gradients.negative_gradient, step.outputs
    if problem.gradients.hessian is not None:
        return step
    w = 1.0 if problem.weight is None else problem.weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        slope = step.slope - (w * negative * outputs).sum(axis=0)
        curvature = step.curvature + (w * outputs * outputs).sum(axis=0)
        rise = slope + 0.5 * curvature
        rounding = _LARGEST_RISE * (w * negative * negative).sum(axis=0)
        is_good = rise <= (rounding if allowed is None else np.maximum(allowed, rounding))
        if is_good.all():
            return step
        best = np.where((slope < 0) & (curvature > 0), -slope / curvature, 0.0)
    best[~np.isfinite(best)] = 0.0
    return step.shortened(np.where(is_good, 1.0, np.minimum(best, 1.0)))


def check_predictions(
    predict: Callable[[Floats], Floats],  # maps rows (m, d) to raw predictions (m, r)
    X: Floats,  # (n, d) float64: training rows; 128 of them are checked
    raw: Floats,  # (n, r) float64: values of the model on these rows, as computed in the fit
    start: Floats,  # (r,) float64: initial prediction
    y: Floats,  # (n, r) float64: a deviation of a few rounding errors of their spread is harmless
    precision: str,  # precision of the kernel values
    seed: int,
) -> None:
    """Refuse a model whose predictions differ from the values computed in its fit."""
    rng = np.random.default_rng((seed, 5))
    n = len(X)
    rows = np.arange(n) if n <= ROWS_CHECKED else rng.choice(n, ROWS_CHECKED, replace=False)
    expected = raw[rows] - start
    scale = np.abs(expected).max(initial=0.0) or 1.0
    deviation = (predict(X[rows]) - raw[rows]) / scale
    spread = np.sqrt(((expected / scale) ** 2).mean())
    size = np.abs(start).max(initial=0.0) + _ROUNDINGS * np.abs(y - start).max(initial=0.0)
    floor = float(np.finfo(np.float32).eps * size / scale)
    if not np.sqrt((deviation**2).mean()) <= _LARGEST_DEVIATIONS[precision] * spread + floor:
        raise InvalidData(
            "rounding errors make the kernel machine inaccurate, because rows of X are nearly "
            "equal for this kernel or their weights are very unequal; increase regularization, or "
            f"set {_REMEDIES[precision]}."
        )

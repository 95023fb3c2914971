"""Effects of rounding errors of kernel values on linear systems and steps.

The solution of a system ``K + D`` is reliable if the rounding error ``E`` of ``K`` is small
compared with ``D``.  If the norm of ``D^-½ E D^-½`` is less than one, ``K + E + D`` is positive
definite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.learners.kernel_machine.descending import Descending

LARGEST_SHARE = 1.0  # of rounding in a system; beyond, its solution may be meaningless
_ROWS = 512
_PRODUCTS = 20  # of the power method; a factor of two is good enough
ROWS_CHECKED = 128
# Deviations of predictions from the values that the fit computed, in spreads of the function.
_LARGEST_DEVIATIONS = {"float32": 0.01, "float64": 0.5}
_ROUNDINGS = 16  # rounding errors of the largest residual; harmless if the function is tiny
_REMEDIES = {"float32": "precision='float64'", "float64": "longer length scales"}
_LARGEST_LOSS = 1e-3  # of accuracy in single precision, in spreads of the function
_LARGEST_RISE = 1e-10  # of an objective, relative to the sum of squares; less is rounding error


def share_of_rounding(kernel: Kernel, X: Array, D: Floats, seed: int) -> float:
    """Estimate the norm of ``D^-½ E D^-½``, where ``E`` is the rounding error of float32 values.

    ``E`` is evaluated for at most 512 random rows.  The norm of its off-diagonal part is
    proportional to the number of rows, because errors in the terms of a distance are common to
    whole rows.

    Parameters
    ----------
    kernel : Kernel
    X : (n, d) float32 array
    D : (n,) float64
    seed : int
    """
    n = X.shape[0]
    rng = np.random.default_rng((seed, 4))
    rows = np.arange(n) if n <= _ROWS else np.sort(rng.choice(n, _ROWS, replace=False))
    A = dense.to_numpy(X[rows]).astype(np.float32)
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

    Parameters
    ----------
    kernel : Kernel
    A, B : (a, d), (b, d) float32 arrays
    weights : (b, r) float64
    spread : float
        Root mean square of the function so far; that of the outputs is used if it is larger.
    """
    A, B = dense.to_numpy(A), dense.to_numpy(B)
    exact = evaluate(kernel, A, B) @ weights
    short = evaluate(kernel, A.astype(np.float32), B.astype(np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        found = (short @ weights.astype(np.float32)).astype(np.float64)
        error = np.sqrt(((found - exact) ** 2).mean())
        spread = max(spread, float(np.sqrt((exact**2).mean())))
    return not error <= _LARGEST_LOSS * spread


def unspoilt(
    step: Descending,
    gradients: Gradients,
    weight: Floats | None,
    allowed: Floats | None = None,
) -> Descending:
    """Shorten a step that increases the penalized squared error because of rounding.

    For other losses, the step is returned unchanged, because a line search follows.

    Parameters
    ----------
    step : Descending
    gradients : Gradients
    weight : (n,) float64 or None
    allowed : (r,) float64 or None
        Maximum increase of the error.
    """
    if gradients.hessian is not None:
        return step
    assert step.outputs is not None
    slope, curvature = np.asarray(step.slope), np.asarray(step.curvature)
    length = length_of_descent(
        gradients.negative_gradient, step.outputs, weight, slope, curvature, allowed
    )
    return step if length is None else step.shortened(length)


def length_of_descent(
    negative: Floats,
    outputs: Floats,
    weight: Floats | None,
    slope: Floats,
    curvature: Floats,
    allowed: Floats | None = None,
) -> Floats | None:
    """Compute the length of a step that is inaccurate because of rounding.

    The step ``o`` changes the penalized objective by ``Σ w (½ o² - negative o)`` plus the change of
    the penalty.  If it does not decrease the objective, it is shortened to the best length, which
    may be zero.

    Parameters
    ----------
    negative, outputs : (n, r) float64
    weight : (n,) float64 or None
    slope, curvature : (r,) float64
        Derivatives of the penalty along the step.
    allowed : (r,) float64 or None
        Maximum increase of the objective; ``None`` allows only rounding errors.

    Returns
    -------
    (r,) float64 or None
        ``None`` if the whole step can be used.
    """
    w = np.ones((len(outputs), 1)) if weight is None else weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        slope = slope - (w * negative * outputs).sum(axis=0)
        curvature = curvature + (w * outputs * outputs).sum(axis=0)
        rise = slope + 0.5 * curvature
        rounding = _LARGEST_RISE * (w * negative * negative).sum(axis=0)
        is_good = rise <= (rounding if allowed is None else np.maximum(allowed, rounding))
        if is_good.all():
            return None
        best = np.where((slope < 0) & (curvature > 0), -slope / curvature, 0.0)
    best[~np.isfinite(best)] = 0.0
    return np.where(is_good, 1.0, np.minimum(best, 1.0))


def check_predictions(
    predict: Callable[[Floats], Floats],
    X: Floats,
    raw: Floats,
    start: Floats,
    y: Floats,
    precision: str,
    seed: int,
) -> None:
    """Reject a model whose predictions differ from the values computed during the fit.

    Parameters
    ----------
    predict : callable
        Maps rows (m, d) to raw predictions (m, r).
    X : (n, d) float64
        Training rows, of which 128 are checked.
    raw : (n, r) float64
        Raw predictions for the training rows, as computed during the fit.
    start : (r,) float64
        Initial prediction.
    y : (n, r) float64
        Targets.  Deviations of a few rounding errors of their spread are accepted.
    precision : {"float32", "float64"}
        Precision of the kernel values.
    seed : int

    Raises
    ------
    InvalidData
        If the predictions differ.
    """
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

"""What the rounding of kernel values does to a linear system, and to a step.

A system ``K + D`` keeps its solution where the rounding error ``E`` of ``K`` is small beside ``D``:
where the norm of ``D^-½ E D^-½`` is below one, ``K + E + D`` is still positive definite.
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

LARGEST_SHARE = 1.0  # of rounding in a system; beyond, it may lose its solution
_ROWS = 512
_PRODUCTS = 20  # of the power method; a factor of two is good enough
ROWS_CHECKED = 128
# Of predictions from what the fit computed, in spreads of the function.
_LARGEST_DEVIATIONS = {"float32": 0.01, "float64": 0.5}
_ROUNDINGS = 16  # of the largest residual: harmless where the function is nothing beside it
_REMEDIES = {"float32": "precision='float64'", "float64": "longer length scales"}
_LARGEST_LOSS = 1e-3  # by single precision, in the same unit
_LARGEST_RISE = 1e-10  # of an objective, relative to the sum of squares: less is rounding


def share_of_rounding(kernel: Kernel, X: Array, D: Floats, seed: int) -> float:
    """About the norm of ``D^-½ E D^-½``, where ``E`` is the rounding error of float32 values.

    ``E`` is evaluated for at most 512 random rows.  Off the diagonal its norm grows like their
    number: the errors of a distance's parts are shared by whole rows.

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
    """Whether ``k(A, B) weights`` in single precision is off by a thousandth of the spread.

    Parameters
    ----------
    kernel : Kernel
    A, B : (a, d), (b, d) float32 arrays
    weights : (b, r) float64
    spread : float
        Root mean square of the function so far; that of the outputs counts where it is larger.
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
    """The step, shortened where rounding made it raise the penalized squared error.

    A step under another loss is left to the search for its length.

    Parameters
    ----------
    step : Descending
    gradients : Gradients
    weight : (n,) float64 or None
    allowed : (r,) float64 or None
        How far the error may rise.
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
    """How far to go along a step that rounding has spoilt; ``None`` where it has not.

    The step ``o`` changes the penalized objective by ``Σ w (½ o² - negative o)`` and by that of the
    penalty; one that does not lower it is shortened to the best length, if need be to zero.

    Parameters
    ----------
    negative, outputs : (n, r) float64
    weight : (n,) float64 or None
    slope, curvature : (r,) float64
        Of the penalty.
    allowed : (r,) float64 or None
        How far the objective may rise; ``None`` is not at all, but for rounding.

    Returns
    -------
    (r,) float64 or None
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
    """Refuse a model that does not predict what its fit computed.

    Parameters
    ----------
    predict : (m, d) -> (m, r)
    X : (n, d) float64
        Training rows; 128 of them are tried.
    raw : (n, r) float64
        What the fit took the model to say of them.
    start : (r,) float64
    y : (n, r) float64
        A deviation of a few roundings of their spread is harmless.
    precision : {"float32", "float64"}
        Of kernel values.
    seed : int

    Raises
    ------
    InvalidData
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
            "rows of X are so nearly equal for this kernel, or their weights so unequal, that "
            f"rounding spoils the machine; raise regularization, or set {_REMEDIES[precision]}."
        )

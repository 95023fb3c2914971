"""One correction of the weights of all basis vectors so far."""

from __future__ import annotations

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate, require_memory
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.solvers import ConjugateGradients
from hilboost.learners.kernel_machine.workspace import Workspace

_JITTER = 1e-9


def refit(
    data: Workspace,
    kernel: Kernel,
    gradients: Gradients,
    weight: Floats | None,
    W: Floats | None,
    lam: float,
    iterations: int,
    tolerance: float = 1e-6,
) -> Descending | None:
    """The stage over all earlier basis vectors that brings their weights nearest to optimal.

    Solves ``(K'WK + λ K_SS) δ = K' negative - λ f(S)`` by conjugate gradients from where the stages
    so far have come to.  The preconditioner is Falkon's (Rudi et al. 2017): ``K'WK`` taken for
    ``(sum w / m) K_SS²``.

    Parameters
    ----------
    data : Workspace
    kernel : Kernel
    gradients : Gradients
    weight : (n,) float64 or None
        Sample weights.
    W : (n, 1) float64 or None
        Sample weight times hessian.
    lam : float
    iterations : int
    tolerance : float
        Of the residual, relative to the first.

    Returns
    -------
    Descending or None
        ``None`` before the first stage.

    Notes
    -----
    Cost O(m³) once and O(n m) kernel values a step, for m basis vectors so far.
    """
    n, r = gradients.negative_gradient.shape
    component = data.component(kernel, r)
    rows = np.flatnonzero(component.alpha.any(axis=1))
    m = len(rows)
    if not m:
        return None
    needed = 32.0 * m * m
    require_memory(needed + 2.0**27, data.memory, f"refitting {m} weights")
    points = dense.cast(data.X[rows], "float64")
    K_SS = evaluate(kernel, points, points, data.team)
    T = dense.cholesky(K_SS + 0.0, _JITTER)
    mass = float(n) if W is None else float(W.sum())
    inner = dense.cholesky(dense.add_to_diagonal(T.T @ T * (mass / m), lam))

    def precondition(R: Array) -> Array:
        middle = dense.solve_cholesky(inner, dense.solve_lower(T, R + 0.0))
        return dense.solve_lower(T, middle, transposed=True)

    gram = data.gram(kernel, None, rows, data.memory - needed)
    curvature = None if W is None else dense.like(W[:, 0], data.X, "float64")

    def system(V: Array) -> Array:
        return gram.normal_times(V, curvature) + lam * (K_SS @ V)

    right = (
        gradients.negative_gradient
        if weight is None
        else gradients.negative_gradient * weight[:, None]
    )
    b = gram.transposed_times(dense.like(right, data.X, "float64"))
    b = b - lam * dense.like(component.function[rows], data.X, "float64")
    size = float(np.sqrt((dense.to_numpy(b) ** 2).sum(axis=0)).max())
    delta, _, _ = ConjugateGradients(system, precondition).run(b, iterations, tolerance * size)
    outputs = dense.to_numpy(gram.times(delta))
    delta = dense.to_numpy(delta)
    fitted = data.fitted(kernel, rows, delta, outputs)
    before = component.function[rows]
    return Descending.of(fitted, gradients, weight, lam, delta, before, outputs[rows])

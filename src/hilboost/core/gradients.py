"""Gradients: first and second derivatives of the loss."""

from __future__ import annotations

from dataclasses import dataclass

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class Corners:
    """A loss of the residual ``r = y - F`` that is linear on both sides of a corner at ``r = 0``.

    The loss is ``max(lower r, upper r)``; its subgradients lie between the two slopes.

    Attributes
    ----------
    residual, lower, upper : (n, r) float64
    """

    residual: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Structure:
    """Properties of the derivatives of a loss that their values do not show.

    Attributes
    ----------
    bound : float or None
        Upper bound on the eigenvalues of the hessian of any row at any ``raw`` (Böhning 1992);
        ``None`` if no bound is known.
    isotropic : bool
        Whether all columns of ``hessian`` are equal because a multiple of the identity bounds the
        hessian matrix of each row: one step length and one linear system serve all outputs.
    residual : bool
        Whether a number that is added to ``raw`` is subtracted from the negative gradient, as with
        squared error.
    of_probabilities : bool
        Whether they belong to a log loss: a gradient is the difference of a probability and 0
        or 1, and the hessian is about the variance of the gradient, so that both are at most one
        and small errors do not matter in rows whose gradients are small.
    logistic : bool
        Whether the hessian is ``|g| max(1 - |g|, 0.1)`` with the gradient ``g``, and ``hessian`` is
        not stored: the log loss of two classes, for learners that declare ``derives_hessian``.
    """

    bound: float | None = None
    isotropic: bool = False
    residual: bool = False
    of_probabilities: bool = False
    logistic: bool = False


@dataclass(frozen=True)
class Gradients:
    """First and second derivatives of the loss with respect to ``raw``, without sample weights.

    Attributes
    ----------
    negative_gradient : (n, r) float64
        The *negative* gradient, which is the direction of steepest descent.
    hessian : (n, r) float64 or None
        Diagonal of the hessian, or an upper bound on it; ``None`` means one everywhere.
    structure : Structure
        Properties that the values do not show; by default, none.
    smooth : Gradients or None
        Gradients of :meth:`~hilboost.core.loss.Loss.with_curvature`, if only some of several
        learners are fitted to them; otherwise ``None``.
    corners : Corners or None
        The loss itself, if the gradients belong to a smoothed version of a loss with corners.
    """

    negative_gradient: Floats
    hessian: Floats | None = None
    structure: Structure = Structure()
    smooth: Gradients | None = None
    corners: Corners | None = None

"""A linear combination of kernel machines with a penalty on the squares of its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

import numpy as np
from sklearn.base import RegressorMixin

from hilboost.backends import array_api
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.core.dtypes import Floats
from hilboost.core.plain_values import is_auto
from hilboost.core.target import Target
from hilboost.estimators import parameter_types as types
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.random_subsets import MemberFitter, SubsetEnsemble
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import with_parameters
from hilboost.model import AdditiveModel
from hilboost.reductions.row_splits import Split, in_turn

_FOLDS = 5
_FACTORS = 10.0 ** np.arange(-12.0, 2.5, 0.5)  # of the largest eigenvalue


@with_parameters
class StackedKernelRidge(ShapleyValues, NumberPredictions, RegressorMixin, SubsetEnsemble):
    """Linear combination of kernel ridge regressions on random subsets, with a ridge penalty.

    The weights ``c`` minimize ``½ Σ_i w_i (y_i - Σ_j c_j f_j(x_i))² + ½ µ Σ_j c_j²``, the penalty
    that SY2006 (section 2.1) names as the usual alternative to its own, on ``X_val`` and ``y_val``
    if ``fit`` receives them, else on all training rows.  In the latter case, each member was
    fitted to some of these rows.

    Parameters
    ----------
    n_estimators, subset_size, kernel, regularization, validation, validation_gap : optional
        See :class:`AveragedKernelRidge`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads, which fit the members in parallel.  ``None`` and -1 mean all cores.
    penalty : float or "auto", default="auto"
        µ, in units of the squared target; several targets are divided by their spreads.
        ``"auto"`` minimizes the leave-one-out error of the weights over a grid, with the members as
        they are; a sample weight above 1 counts as that many rows.  Groups are held out in fifths,
        and later rows in blocks.

    Attributes
    ----------
    kernel_, regularization_ : selected kernel and λ
    penalty_ : float
        µ.
    estimator_weights_ : (n_estimators,) float64
    model_ : AdditiveModel
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, and n rows to compute the weights, a fit costs
    O(M m³ + n M m + n M²).

    References
    ----------
    Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.
    Breiman, *Stacked regressions*, Machine Learning 24, 1996.
    """

    _uses_held_out = True
    _: KW_ONLY
    penalty: types.NotNegativeOrAuto = "auto"

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        members = [model for model, _ in self._on_random_subsets(maker)]
        X, target = maker.comparison_data
        root = np.ones(len(X)) if target.weight is None else np.sqrt(target.weight)
        outputs = [f / maker.sizes for f in maker.outputs(members, X)]
        F = np.column_stack([(root[:, None] * f).ravel() for f in outputs])
        with array_api.one_blas_thread():
            residual = (target.y - maker.initial_raw) / maker.sizes
            y = (root[:, None] * residual).ravel()
            copies = np.repeat(np.maximum(root**2, 1), target.y.shape[1])
            turns = held_out_turns(target)
            weights, self.penalty_ = stacked_weights(F, y, self.penalty, copies, turns)
        return self._sum(maker, members, weights)


def held_out_turns(target: Target) -> list[Split]:
    """Parts of the entries of the targets (n, c) that are held out in turn; none by one row."""
    if target.dependence is None or not target.dependence.divides:
        return []
    of_rows = np.arange(target.y.size).reshape(target.y.shape)
    found = in_turn(key_of(0, Purpose.FOLDS_COMPARED), _FOLDS, target.dependence)
    return [Split(*(of_rows[rows].ravel() for rows in split)) for split in found]


def stacked_weights(
    F: Floats,
    y: Floats,
    penalty: float | str,
    copies: Floats | float = 1.0,
    turns: Sequence[Split] = (),
) -> tuple[Floats, float]:
    """Compute the ``c`` (M,) that minimizes ``½ |y - F c|² + ½ µ |c|²``, and µ.

    With ``"auto"``, µ minimizes the error of entries that are held out in ``turns``, or the exact
    leave-one-out error, over multiples of the largest eigenvalue of ``F'F``; of a row that stands
    for ``copies``, one is left out.  Cost O(n M²).
    """
    U, d, Vt = np.linalg.svd(F, full_matrices=False)
    kept = d > np.finfo(float).eps * max(F.shape) * (d[0] if len(d) else 0.0)
    U, d, Vt = U[:, kept], d[kept], Vt[kept]
    if not len(d):
        return np.zeros(F.shape[1]), 0.0 if is_auto(penalty) else float(penalty)
    b = U.T @ y

    def left_out(mu: float) -> float:
        shrunk = d**2 / (d**2 + mu)
        rest = y - U @ (shrunk * b)
        return float(np.sum((rest / np.maximum(1 - U**2 @ shrunk / copies, 1e-12)) ** 2))

    if is_auto(penalty):
        grid = d[0] ** 2 * _FACTORS
        held = [_errors(F, y, turn, grid) for turn in turns]
        errors = np.sum(held, axis=0) if held else np.array([left_out(m) for m in grid])
        mu = float(grid[np.argmin(errors)])
    else:
        mu = float(penalty)
    return Vt.T @ (d / (d**2 + mu) * b), mu


def _errors(F: Floats, y: Floats, turn: Split, grid: Floats) -> Floats:
    """Squared error of held-out entries for each µ of a grid."""
    U, d, Vt = np.linalg.svd(F[turn.learned], full_matrices=False)
    b = U.T @ y[turn.learned]
    weights = Vt.T @ (d[:, None] / (d[:, None] ** 2 + grid) * b[:, None])
    return np.asarray(((y[turn.held, None] - F[turn.held] @ weights) ** 2).sum(axis=0))

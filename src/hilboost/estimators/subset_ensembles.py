"""Ensembles of kernel machines on random subsets, without boosting.

These are the alternative methods discussed in section 1 of SY2006.  The members are full kernel
machines, each fitted to a different subset of the rows, with a common kernel and λ.

* ``AveragedKernelRidge``: the mean of the members.
* ``ConvexKernelRidge``: the best weights that are non-negative and sum to one.
* ``StackedKernelRidge``: the best weights under a penalty on their squares.
* ``MixtureOfKernelExperts``: weights of each row by a neural network, which also moves
  rows to members.
* ``BayesianCommitteeMachine``: weights by the inverse variances of the predictions of each row.
* ``AdaBoostKernelClassifier``: weighted votes; each subset favors rows that earlier members
  misclassify.

SY2006: Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import nnls
from sklearn.base import ClassifierMixin, RegressorMixin

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_auto
from hilboost.estimators import parameter_types as types
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.losses import class_loss
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.random_subsets import (
    SUBSET_SIZES,
    MemberFitter,
    NonAdditiveEnsemble,
    SubsetEnsemble,
)
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import with_parameters
from hilboost.kernels.gram import evaluate, row_blocks
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.model import AdditiveModel
from hilboost.reductions.sums import total_weight
from hilboost.training.data import TrainingData

_SHARE_DRAWN, _FEWEST_DRAWN = 0.03, 100  # rows of a member of AdaBoost
_SMALLEST_VARIANCE = 1e-10  # relative to the prior variance; smaller values are rounding errors


@with_parameters
class AveragedKernelRidge(ShapleyValues, NumberPredictions, RegressorMixin, SubsetEnsemble):
    """Mean of kernel ridge regressions on random subsets.

    Parameters
    ----------
    n_estimators : int, default=20
    subset_size : int or float in (0, 1), default=1000
        Number of rows per member, or fraction of all rows.  Subsets are disjoint as long as enough
        rows are left.
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default="auto"
        Kernel of all members.  Length scales are in units of the standardized columns, and 1 for
        kernels by name.
    regularization : float or "auto", default="auto"
        λ in ``½ Σ_i w_i (y_i - f(x_i))² + ½ λ |f|²``.
    validation : {"auto", "random", "groups", "time"} or scikit-learn splitter, default="auto"
        Which rows are held out together, by the choice of kernel and λ.  ``"groups"`` leaves out
        whole groups, and ``"time"`` predicts blocks of later rows from the rows before them.
        "auto" does either if ``groups`` or ``time`` is passed to ``fit``.
    validation_gap : float, timedelta or None, default=None
        See :class:`BoostingRegressor`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads, which fit the members in parallel.  ``None`` and -1 mean all cores.

    Attributes
    ----------
    kernel_, regularization_ : selected kernel and λ
    estimator_weights_ : (n_estimators,) float64
    model_ : AdditiveModel
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, a fit costs O(M m³), and prediction O(M m) kernel values per row.
    """

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        members = [model for model, _ in self._on_random_subsets(maker)]
        return self._sum(maker, members, np.full(len(members), 1 / len(members)))


@with_parameters
class ConvexKernelRidge(ShapleyValues, NumberPredictions, RegressorMixin, SubsetEnsemble):
    """Convex combination of kernel ridge regressions on random subsets.

    The weights ``c >= 0`` with ``Σ c = 1`` minimize the squared error of ``Σ_j c_j f_j`` on
    ``X_val`` and ``y_val`` if ``fit`` receives them, else on all training rows.  In the latter
    case, each member was fitted to some of these rows.  Several targets are divided by their
    spreads, so that none counts more than another.

    Parameters
    ----------
    n_estimators, subset_size, kernel, regularization, validation, validation_gap, random_state, \
n_jobs : optional
        See :class:`AveragedKernelRidge`.

    Attributes
    ----------
    kernel_, regularization_ : selected kernel and λ
    estimator_weights_ : (n_estimators,) float64
        Non-negative weights that sum to one.
    model_ : AdditiveModel
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, and n rows to compute the weights, a fit costs O(M m³ + n M m).

    References
    ----------
    Yamana, Nakahara, Pontil & Amari, *On different ensembles of kernel machines*, ESANN 2003.
    """

    _uses_held_out = True

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        members = [model for model, _ in self._on_random_subsets(maker)]
        X, target = maker.comparison_data
        root = 1.0 if target.weight is None else np.sqrt(target.weight)[:, None]
        found = maker.outputs(members, X)
        errors = [(maker.initial_raw + f - target.y) / maker.sizes for f in found]
        E = np.column_stack([(root * error).ravel() for error in errors])
        return self._sum(maker, members, convex_weights(E))


def convex_weights(errors: Floats) -> Floats:
    """Compute the ``c >= 0`` (M,) with sum one that minimizes ``|E c|²``, for ``E`` (n, M).

    The solution of ``min |E c|² + (Σ c - 1)²`` over ``c >= 0``, a non-negative least-squares
    problem, lies on the same ray: for ``c = t u`` with ``Σ u = 1`` and the optimal ``t``, the
    objective is ``A / (1 + A)``, which increases with ``A = |E u|²``.
    """
    R = qr(errors, mode="r")[0][: errors.shape[1]]
    size = np.abs(R).max() or 1.0
    M = errors.shape[1]
    c, _ = nnls(np.vstack([R / size, np.ones(M)]), np.append(np.zeros(len(R)), 1.0))
    return c / c.sum()


@with_parameters
class BayesianCommitteeMachine(NumberPredictions, RegressorMixin, NonAdditiveEnsemble):
    """Gaussian processes on random subsets, combined by their inverse predictive variances.

    Let ``m_j(x)`` and ``v_j(x)`` be the posterior mean and variance of member j at ``x``, and
    ``v(x) = k(x, x)`` the prior variance.  The precision is ``p = Σ_j 1/v_j - (M - 1)/v`` and the
    prediction is ``Σ_j m_j / (v_j p)`` (Tresp 2000, eqs. 4 and 5).  Each row is evaluated
    separately, because a joint evaluation would be cubic in the number of rows.

    Parameters
    ----------
    n_estimators : int, default=20
    subset_size : int or float in (0, 1), default=1000
        Number of rows per member, or fraction of all rows.  Subsets are disjoint as long as enough
        rows are left; the method assumes disjoint subsets.
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default="auto"
        Kernel of all members.  Length scales are in units of the standardized columns, and 1 for
        kernels by name.
    regularization : float or "auto", default="auto"
        Noise variance λ, for a function with prior variance ``k(x, x)``.
    validation, validation_gap : optional
        See :class:`AveragedKernelRidge`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads, which fit the members in parallel.  ``None`` and -1 mean all cores.

    Attributes
    ----------
    kernel_, regularization_ : selected kernel and λ
    members_ : list of KernelExpansion
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, a fit costs O(M m³), and prediction O(M m²) per row.  The fitted
    object stores M Cholesky factors of m² numbers each.

    References
    ----------
    Tresp, *A Bayesian committee machine*, Neural Computation 12, 2000.
    """

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        found = self._on_random_subsets(maker)
        self.members_ = [model for model, _ in found]
        self._factors = [factor for _, factor in found]
        return AdditiveModel(maker.initial_raw, ())

    def _combined(self, X: Floats, team: ThreadTeam) -> Floats:
        blocks = row_blocks(len(X))
        return np.concatenate(team.map(lambda rows: self._committee(X[rows]), blocks))

    def _committee(self, X: Floats) -> Floats:
        """Predictions for a block of rows, (n, r)."""
        scaled, kernel = self.members_[0].inputs(X), self.members_[0].kernel
        prior = np.maximum(kernel.diag(scaled), np.finfo(float).tiny)
        precision = -(len(self.members_) - 1) / prior
        total = np.zeros((len(X), len(self.fitted_.model.initial_raw)))
        for model, factor in zip(self.members_, self._factors, strict=True):
            k = evaluate(kernel, scaled, model.basis.astype(np.float64))
            half = array_api.solve_lower(factor, k.T.copy())
            variance = prior - np.einsum("ij,ij->j", half, half)
            inverse = 1 / np.maximum(variance, _SMALLEST_VARIANCE * prior)
            precision += inverse
            total += inverse[:, None] * (k @ model.weights)
        return self.fitted_.model.initial_raw + total / precision[:, None]


@with_parameters
class AdaBoostKernelClassifier(ClassPredictions, ClassifierMixin, NonAdditiveEnsemble):
    """AdaBoost of kernel classifiers, each fitted to a small weighted sample of the rows.

    Each member is a kernel ridge regression of the class indicators, fitted to rows that are drawn
    with replacement in proportion to their current weights.  Its vote has the weight
    ``log((1 - e)/e) + log(C - 1)``, where ``e`` is its weighted error on all rows (SAMME; AdaBoost
    for two classes).  Members not better than chance are discarded.

    Parameters
    ----------
    n_estimators : int, default=20
        Maximum number of members.  The fit stops early at a member without errors.
    subset_size : int, float in (0, 1) or "auto", default="auto"
        Number of rows per member, or fraction of all rows; whole sample weights count as rows.
        ``"auto"`` draws three percent of the rows, but at least 100, or as many as there are.
    kernel, regularization, validation, validation_gap, random_state : optional
        See :class:`AveragedKernelRidge`.
    n_jobs : int or None, default=None
        Number of threads.  ``None`` and -1 mean all cores.
    class_weight : dict, "balanced" or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    kernel_, regularization_ : selected kernel and λ
    members_ : list of KernelExpansion
    estimator_weights_, estimator_errors_ : (n_members,) float64
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, a fit costs O(M m³ + n M m).

    References
    ----------
    Pavlov, Mao & Dom, *Scaling-up support vector machines using boosting algorithm*, ICPR 2000.
    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface 2, 2009.
    """

    _: KW_ONLY
    class_weight: Any = None
    subset_size: Annotated[float | str, *SUBSET_SIZES, types.AUTO] = "auto"

    def _size(self, n: int) -> int:
        if is_auto(self.subset_size):
            return min(n, max(_FEWEST_DRAWN, round(_SHARE_DRAWN * n)))
        return super()._size(n)

    def _n_observed(self, data: TrainingData) -> int:
        """Rows are drawn with replacement, so that equal ones are drawn as often as they occur."""
        return max(1, round(total_weight(data.target) / data.row_weight))

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        X, target = maker.training.X, maker.training.target
        n, n_classes = len(X), maker.training.codec.of_classes().n_classes
        rng = np.random.default_rng(maker.seed)
        codes = target.y[:, 0]
        weight = np.ones(n) if target.weight is None else target.weight.copy()
        size, unit = self._size(self._n_observed(maker.training)), maker.training.row_weight
        self._member_loss = class_loss("squared_error", n_classes)
        self._member_start = maker.initial_raw
        members: list[KernelExpansion] = []
        votes: list[float] = []
        errors: list[float] = []
        for _ in range(self.n_estimators):
            weight /= weight.sum()
            rows, copies = np.unique(rng.choice(n, size, p=weight), return_counts=True)
            model, _ = maker.member(rows, (unit * copies).astype(np.float64))
            wrong = self._winners(model, X) != codes
            error = float(weight[wrong].sum())
            if error >= 1 - 1 / n_classes and members:
                continue
            smallest = 1 / (2 * n)
            share = min(max(error, smallest), 1 - 1 / n_classes - smallest)
            members.append(model)
            errors.append(error)
            votes.append(float(np.log((1 - share) / share) + np.log(n_classes - 1)))
            if error == 0:
                break
            weight[wrong] *= np.exp(votes[-1])
        self.members_ = members
        self.estimator_weights_, self.estimator_errors_ = np.array(votes), np.array(errors)
        return AdditiveModel(maker.initial_raw, ())

    @property
    def loss_(self) -> Loss:
        """Log loss of the votes."""
        return class_loss("log_loss", len(self.classes_))

    def _winners(self, model: KernelExpansion, X: Floats) -> NDArray[np.intp]:
        raw = self._member_start + model.predict_raw(X)
        return self._member_loss.inverse_link(raw).argmax(axis=1)

    def _stages(self, X: object) -> Iterator[Floats]:
        """Yield sums of votes as log-loss scores; a vote is 1 for the winner, else -1/(C - 1)."""
        yield from self._sums(self._checked(X))

    def _combined(self, X: Floats, team: ThreadTeam) -> Floats:
        blocks = row_blocks(len(X))
        return np.concatenate(team.map(lambda rows: [*self._sums(X[rows])][-1], blocks))

    def _sums(self, X: Floats) -> Iterator[Floats]:
        C = len(self.classes_)
        raw = np.zeros((len(X), 1 if C == 2 else C))
        for model, vote in zip(self.members_, self.estimator_weights_, strict=True):
            winners = self._winners(model, X)[:, None]
            if C == 2:
                raw += vote * (2 * winners - 1)
            else:
                raw += vote / (C - 1) * np.where(winners == np.arange(C), 1, -1 / (C - 1))
            yield raw

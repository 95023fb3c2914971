"""A mixture of kernel machines whose weights depend on the row, and its gate."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import RegressorMixin

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.estimators import parameter_types as types
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.random_subsets import MemberFitter, NonAdditiveEnsemble, drawn, outputs
from hilboost.estimators.signatures import with_parameters
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.model import AdditiveModel


@dataclass(frozen=True)
class Gate:
    """``softmax(V tanh(U x + u) + v)``: the weights of the experts at ``x``."""

    inner: Floats  # (d + 1, h) float64: ``U`` and ``u``
    outer: Floats  # (h + 1, M) float64: ``V`` and ``v``

    def weights(self, X: Floats) -> Floats:  # (n, M) float64
        """Weights of the experts for standardized rows, (n, M): positive, with sum one."""
        return softmax(_with_ones(np.tanh(_with_ones(X) @ self.inner)) @ self.outer, axis=1)

    @classmethod
    def fit(
        cls,
        X: Floats,  # (n, d) float64: standardized
        outputs: Floats,  # (n, M, r) float64: predictions of the experts
        target: Target,  # with (n, r) float64
        n_hidden: int,
        # factor of the sum of squared weights of the network, relative to the mean square of y
        decay: float,
        max_iter: int,
        rng: np.random.Generator,  # draws the first ``U``
    ) -> Gate:
        """Minimize the squared error of the mixture by L-BFGS, starting with equal weights."""
        n_inputs, n_experts = X.shape[1] + 1, outputs.shape[1]
        y, weight = target.y, target.weight
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
    """Give every row to the expert of its largest weight (n, M) among those with room.

    Rows, in random order, that find no room are left out.  Returns the sorted rows of every expert.
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


@with_parameters
class MixtureOfKernelExperts(NumberPredictions, RegressorMixin, NonAdditiveEnsemble):
    """Kernel ridge regressions whose weights a gate chooses for every row.

    The prediction is ``Σ_j g_j(x) f_j(x)``, where ``g`` is a neural network with one hidden layer
    and a softmax output.  The first experts are fitted to random subsets.  Then the gate is fitted
    to all training rows, every row moves to the expert to which the gate gives the largest weight
    (as long as it has fewer than ``subset_size`` rows), the experts are fitted anew, and so on
    (Collobert et al. 2002, section 3).

    Parameters
    ----------
    n_estimators : int, default=20
        Number of experts.
    subset_size : int or float in (0, 1), default=1000
        Largest number of rows per expert, or fraction of all rows.
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default="auto"
        Kernel of all members.  Length scales are in units of the standardized columns, and 1 for
        kernels by name.
    regularization : float or "auto", default="auto"
        λ in ``½ Σ_i w_i (y_i - f(x_i))² + ½ λ |f|²``.
    validation, validation_gap : optional
        See :class:`AveragedKernelRidge`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads, which fit the members in parallel.  ``None`` and -1 mean all cores.
    n_rounds : int, default=3
        How often the experts and the gate are fitted; 1 leaves the random subsets.
    n_hidden : int, default=20
        Number of hidden units of the gate.
    decay : float, default=1e-4
        Factor of the sum of squared weights of the gate.
    gate_iterations : int, default=200
        Largest number of L-BFGS steps per fit of the gate, each of which decreases the error of the
        training rows.  Few steps keep the weights close to equal ones.

    Attributes
    ----------
    kernel_, regularization_ : selected kernel and λ
    members_ : list of KernelExpansion
    gate_ : Gate
    errors_ : (n_rounds,) float64
        Mean squared error after each round: on ``X_val`` and ``y_val`` if ``fit`` receives them,
        else on the training rows.  With held-out rows, the best round is kept, else the last one.
        Several targets are divided by their spreads.
    n_features_in_ : int

    Notes
    -----
    With M members of m rows, h hidden units and T steps of the gate, a round costs
    O(M m³ + n M m + T n h (d + M)).  The paper has classifiers with a tanh output in place of
    regressions, and a gate without softmax.

    References
    ----------
    Collobert, Bengio & Bengio, *A parallel mixture of SVMs for very large scale problems*, Neural
    Computation 14, 2002.
    """

    _uses_held_out = True
    _: KW_ONLY
    n_rounds: types.Count = 3
    n_hidden: types.Count = 20
    decay: types.NotNegative = 1e-4
    gate_iterations: types.Count = 200

    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        X, team = maker.training.X, maker.data.team
        rng = np.random.default_rng(maker.seed)
        size = self._size(len(X))
        subsets = drawn(len(X), size, self.n_estimators, rng)
        errors: list[float] = []
        for _ in range(self.n_rounds):
            members = [model for model, _ in maker.members([rows for rows in subsets if len(rows)])]
            gate, weights = self._gate(maker, members, rng)
            errors.append(self._error(maker, members, gate, team))
            if maker.training.held_out is None or errors[-1] == min(errors):
                self.members_, self.gate_ = members, gate
            subsets = assign(weights, size, rng)
        self.errors_ = np.array(errors)
        return AdditiveModel(maker.initial_raw, ())

    def _gate(
        self, maker: MemberFitter, members: list[KernelExpansion], rng: np.random.Generator
    ) -> tuple[Gate, Floats]:
        """Fit the gate to all training rows; also return its weights there, (n, M)."""
        X, target = maker.training.X, maker.training.target
        with array_api.one_blas_thread():
            inputs = members[0].inputs(X)
            gate = Gate.fit(
                inputs,
                np.stack([f / maker.sizes for f in maker.outputs(members, X)], axis=1),
                Target(maker.residual / maker.sizes, target.weight),
                self.n_hidden,
                float(self.decay),
                self.gate_iterations,
                rng,
            )
            return gate, gate.weights(inputs)

    def _error(
        self, maker: MemberFitter, members: list[KernelExpansion], gate: Gate, team: ThreadTeam
    ) -> float:
        X, target = maker.comparison_data
        predicted = maker.initial_raw + _mixed(members, gate, X, team)
        squares = ((target.y - predicted) / maker.sizes) ** 2
        return float(np.average(squares.mean(axis=1), weights=target.weight))

    def expert_weights(self, X: Any) -> Floats:
        """Compute the weights of the experts.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, M) float64
            Positive, with sum one in every row.
        """
        X = self._checked(X)
        with array_api.one_blas_thread():
            return self.gate_.weights(self.members_[0].inputs(X))

    def _combined(self, X: Floats, team: ThreadTeam) -> Floats:
        return self.fitted_.model.initial_raw + _mixed(self.members_, self.gate_, X, team)


def _mixed(members: list[KernelExpansion], gate: Gate, X: Floats, team: ThreadTeam) -> Floats:
    """Weighted sum of the members, (n, r)."""
    parts = outputs(members, X, team)
    with array_api.one_blas_thread():
        weights = gate.weights(members[0].inputs(X))
    total = np.zeros_like(parts[0])
    for column, part in enumerate(parts):
        total += weights[:, [column]] * part
    return total

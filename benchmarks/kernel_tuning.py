"""What the peers of ``kernels.py`` share: scaling, choice of a kernel, ridge regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from kernel_data import Rows

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Fitted:
    """What a fit returns.

    ``predict`` gives values or class numbers, ``proba`` probabilities where the method has them,
    ``staged`` pairs of seconds since the start of the fit and predictions of the model as it was
    then (``cumulative``: each prediction goes on from the one before), and ``rows`` the number of
    rows the final model rests on.
    """

    predict: Predict
    rows: int
    note: str = ""
    proba: Predict | None = None
    staged: Callable[[np.ndarray], Iterator[tuple[float, np.ndarray]]] | None = None
    cumulative: bool = False


class Inputs:
    """Scaling of the inputs: each column, each column by ranks, or one factor for all columns."""

    def __init__(self, kind: str, X: np.ndarray) -> None:
        self._factor: np.ndarray | float = 1.0
        if kind == "ranks":
            self._scaler = QuantileTransformer(
                output_distribution="normal", n_quantiles=min(1000, len(X)), random_state=0
            )
        else:
            self._scaler = StandardScaler(with_std=kind == "columns")
        Z = self._scaler.fit_transform(X)
        if kind == "one factor":
            self._factor = 1 / Z.std()

    def scaled_by(self, factor: np.ndarray | float) -> Inputs:
        self._factor = self._factor * factor
        return self

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self._scaler.transform(X) * self._factor


class Targets:
    """Standardized values, or centered indicators of the classes."""

    def __init__(self, rows: Rows) -> None:
        self._labels = None if rows.regression else np.eye(rows.n_classes)
        coded = self._code(rows)
        self._mean = coded.mean(axis=0)
        self._scale = (coded.std() or 1.0) if rows.regression else 1.0

    def _code(self, rows: Rows) -> np.ndarray:
        return rows.y if self._labels is None else self._labels[rows.y]

    def __call__(self, rows: Rows) -> np.ndarray:
        return (self._code(rows) - self._mean) / self._scale

    def back(self, predicted: np.ndarray) -> np.ndarray:
        """Values, or the number of the largest indicator."""
        values = np.asarray(predicted, np.float64) * self._scale + self._mean
        return values if self._labels is None else values.argmax(axis=1)

    def loss(self, rows: Rows, predicted: np.ndarray) -> float:
        """Squared error; for classes the error rate, ties by the squared error."""
        squared = float(np.mean((self(rows) - predicted) ** 2))
        if self._labels is None:
            return squared
        return float(np.mean(self.back(predicted) != rows.y)) + 1e-3 * squared


CHOICE_ROWS = 3_000
CHOICE_SHARE = 1 / 3
LENGTHS = (0.15, 0.25, 0.4, 0.7, 1.2)
PENALTIES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Kernel:
    """A kernel on scaled inputs (``gamma`` belongs to the Gaussian) and a ridge penalty."""

    inputs: Inputs
    gamma: float
    penalty: float
    matern: bool = False

    def gram(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return Matern(nu=1.5)(A, B) if self.matern else rbf_kernel(A, B, gamma=self.gamma)


def ridge_weights(K: np.ndarray, targets: np.ndarray, penalty: float) -> np.ndarray | None:
    """Solve ``(K + penalty I) w = targets``; None where the matrix is not definite enough."""
    K = K.copy()
    K.flat[:: len(K) + 1] += penalty
    try:
        return linalg.solve(K, targets, assume_a="pos", overwrite_a=True)
    except linalg.LinAlgError:
        return None


def choose_kernel(train: Rows, seed: int, rows: int = CHOICE_ROWS) -> Kernel:
    """Scaling, length scale and penalty of a Gaussian kernel, by ridge regression on a subset."""
    fit, choose = train.sample(rows, seed).held_out(CHOICE_SHARE, seed)
    targets = Targets(fit)
    best, chosen = math.inf, None
    for kind in ("columns", "ranks") if train.regression else ("columns", "one factor"):
        inputs = Inputs(kind, fit.X)
        Z, Z_choose = inputs(fit.X), inputs(choose.X)
        typical = float(np.median(pairwise_distances(Z[:500])))
        for length in LENGTHS:
            kernel = Kernel(inputs, 1 / (2 * (length * typical) ** 2), 1.0)
            K, K_choose = kernel.gram(Z, Z), kernel.gram(Z_choose, Z)
            for penalty in PENALTIES:
                weights = ridge_weights(K, targets(fit), penalty)
                if weights is None:
                    continue
                loss = targets.loss(choose, K_choose @ weights)
                if loss < best:
                    best, chosen = loss, (kind, kernel.gamma, penalty)
    if chosen is None:
        raise ValueError("no kernel could be fitted")
    return Kernel(Inputs(chosen[0], train.X), *chosen[1:])


SCALING_ROWS = 1_500


def chosen_inputs(train: Rows, seed: int) -> Inputs:
    """Scaling with which a Gaussian kernel does best on a small subset."""
    return choose_kernel(train, seed, SCALING_ROWS).inputs


def chosen_penalty(
    K: np.ndarray,
    targets: np.ndarray,
    usual: float,
    K_choose: np.ndarray,
    loss: Callable[[np.ndarray], float],
) -> float:
    """Multiple of the usual penalty with the smallest loss of predictions of other rows."""
    best, penalty = math.inf, usual
    for factor in (10.0, 1.0, 0.1, 0.01, 0.001):
        weights = ridge_weights(K, targets, factor * usual)
        if weights is None:
            break
        if (found := loss(K_choose @ weights)) < best:
            best, penalty = found, factor * usual
    return penalty

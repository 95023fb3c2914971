"""The base model of the kernel part: a kernel expansion of the features of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import BaseModel, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.operators import OperatorGraph
from hilboost.kernels import Additive, Kernel
from hilboost.kernels.base import block_operators
from hilboost.kernels.gram import row_blocks
from hilboost.learners.kernel_machine.expansion import MergedExpansions
from hilboost.learners.kernel_machine.tuning.metric import KERNEL
from hilboost.learners.metric_kernel.features import Features, are_finite

Tiles = Callable[[slice, slice], Floats]
_TILE_ROWS = 256
_TILE_COLUMNS = 1024
_CHANGED, _FEWEST_CHANGED, _MOST_CHANGED = 200, 10, 8192  # rows for each column, and for all


@dataclass(frozen=True, eq=False)
class MetricExpansion(BaseModel):
    """``f(x) = sum_d k(z(x), center_d) weight_d`` with features ``z``.

    The scales of the features contain the metric, so that the kernel has length scale one.
    """

    in_files = True

    features: Features
    # (m, q) float32 or float64: features of training rows.  Kernel values are float64: large
    # weights, or large shares of an additive kernel, multiply the rounding errors.
    centers: NDArray[Any]
    weights: Floats  # (m, r) float64
    # (2,) float64 or None: of main effects and interactions in an additive kernel; ``None`` for a
    # Matérn-5/2 kernel
    shares: Floats | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel of the features."""
        return kernel_with(self.shares)

    @property
    def kernel_name(self) -> str:
        """Short name of the kernel, and how it reads the columns."""
        if self.shares is not None:
            return "additive"
        return "matern52" if self.features.rotation is None else "rotated matern52"

    def predict_raw(self, X: Floats) -> Floats:
        """Compute the outputs (n, r), at a cost of O(n m q)."""
        return self.evaluate(X, ThreadTeam())

    def evaluate(self, X: Floats, team: ThreadTeam) -> Floats:
        """Compute the outputs (n, r) on several threads; the result does not depend on them."""
        return self._outputs(self.features(X), team)

    def _outputs(self, Z: Floats, team: ThreadTeam) -> Floats:
        """Compute the outputs (n, r) of features (n, q)."""
        centers = self.centers.astype(np.float64)
        block = _stationary_tiles(Z, centers) if self.shares is None else self._tiles(Z, centers)
        outputs = np.zeros((len(Z), self.weights.shape[1]))

        def add(rows: slice) -> None:
            for columns in row_blocks(len(centers), _TILE_COLUMNS):
                outputs[rows] += block(rows, columns) @ self.weights[columns]

        with array_api.one_blas_thread():
            team.map(add, row_blocks(len(Z), _TILE_ROWS))
        return outputs

    def _tiles(self, Z: Floats, centers: Floats) -> Tiles:
        """Return a function that computes kernel values of some rows and centers."""
        kernel = self.kernel
        return lambda rows, columns: kernel.block(Z[rows], centers[columns])

    def effects(self, coefficient: Floats) -> tuple[Ints, Floats]:
        """Return the columns that features are made from, and how much each changes the outputs.

        This is the mean squared change, of outputs times ``coefficient`` (r,), where the column of
        a center takes the value of another center: twice its total effect (Jansen 1999).
        """
        origins = self.features.origins
        columns = np.unique(origins)
        n = min(len(self.centers), _CHANGED, max(_FEWEST_CHANGED, _MOST_CHANGED // len(columns)))
        rows = np.linspace(0, len(self.centers) - 1, n).astype(np.intp)
        Z = self.centers[rows].astype(np.float64)
        R = self.features.rotation
        R = np.eye(Z.shape[1]) if R is None else R
        step = np.roll(Z, n // 2, axis=0) - Z
        steps = step @ np.linalg.pinv(R)  # of the features before they are rotated
        moved = [Z + steps[:, own] @ R[own] for own in (origins == k for k in columns)]
        outputs = self._outputs(np.concatenate([Z, *moved]), ThreadTeam())
        before, after = outputs[:n], outputs[n:].reshape(len(moved), n, -1)
        changes = coefficient * (after - before)
        return columns, (changes**2).mean(axis=1).sum(axis=1)

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Return whether the arrays have these sizes and are finite."""
        features, centers = self.features, self.centers
        if not isinstance(features, Features) or not features.is_valid(n_features):
            return False
        if not isinstance(centers, np.ndarray) or centers.dtype not in (np.float32, np.float64):
            return False
        n = len(centers) if centers.ndim == 2 else 0
        sizes = (centers.astype(np.float64), (n, features.width)), (self.weights, (n, n_outputs))
        return n > 0 and features.width > 0 and are_finite(sizes) and self._has_shares()

    def _has_shares(self) -> bool:
        shares = self.shares
        return shares is None or (are_finite([(shares, (2,))]) and bool((shares > 0).all()))

    def placed(self, columns: NDArray[np.intp], width: int, shared: dict[int, Any]) -> BaseModel:
        """Return the same function of the given columns of a wider table."""
        return replace(self, features=self.features.placed(columns))

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the function, in float64."""
        centers = np.asarray(self.centers, dtype=np.float64)
        block = block_operators(self.kernel, graph, self.features.operators(graph, X), centers)
        return graph.add("MatMul", block, graph.constant(self.weights))

    @classmethod
    def sum_of(cls, terms: Sequence[Term[MetricExpansion]]) -> MergedExpansions:
        """Evaluate each kernel value once, if several members have the same centers."""
        groups: dict[bytes, list[Term[MetricExpansion]]] = {}
        for term in terms:
            model = term.model
            own = model.features
            rotation = np.zeros(0) if own.rotation is None else own.rotation
            shares = np.zeros(0) if model.shares is None else model.shares
            arrays = (model.centers, own.origins, own.factors, rotation, shares)
            key = b"".join(array.tobytes() for array in arrays)
            groups.setdefault(key, []).append(term)
        return MergedExpansions(tuple(_merged(group) for group in groups.values()))


def kernel_with(shares: Floats | None) -> Kernel:
    """Return the additive kernel with these shares; without any, the Matérn-5/2 kernel.

    The scales of the features contain the length scales.
    """
    return KERNEL if shares is None else Additive(1.0, *shares.tolist())


def _stationary_tiles(Z: Floats, centers: Floats) -> Tiles:
    """Do the same for a kernel of the distances, in one matrix product."""
    left, right = _augmented(Z), _augmented(centers)
    right[:, -2:] = right[:, :-3:-1]
    right[:, :-2] *= -2

    def tile(rows: slice, columns: slice) -> Floats:
        squares = left[rows] @ right[columns].T
        return KERNEL.profile(np.maximum(squares, 0, out=squares))

    return tile


def _augmented(Z: Floats) -> Floats:
    """Return the rows (n, q) with their squared norms and ones, (n, q + 2).

    With ``[-2 b, 1, |b|²]``, the product of two such rows is their squared distance.
    """
    return np.column_stack([Z, (Z * Z).sum(axis=1), np.ones(len(Z))])


def _merged(terms: list[Term[MetricExpansion]]) -> tuple[MetricExpansion, slice]:
    """Add the weights of expansions with the same centers, times their coefficients."""
    start = min(term.columns.start for term in terms)
    stop = max(term.columns.stop for term in terms)
    total = np.zeros((len(terms[0].model.centers), stop - start))
    for term in terms:
        own = slice(term.columns.start - start, term.columns.stop - start)
        total[:, own] += term.coefficient * term.model.weights
    return replace(terms[0].model, weights=total), slice(start, stop)

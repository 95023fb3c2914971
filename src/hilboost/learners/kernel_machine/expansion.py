"""The base models of kernel machines: ``f(x) = sum_d k(z(x), basis_d) weight_d``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import BaseModel, Summation, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
from hilboost.core.operators import OperatorGraph
from hilboost.core.plain_values import are_finite
from hilboost.kernels import Additive, Kernel
from hilboost.kernels.base import block_operators
from hilboost.kernels.gram import Gram, row_blocks
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.tuning.metric import KERNEL

Tiles = Callable[[slice, slice], Floats]
_TILE_ROWS = 256
_TILE_COLUMNS = 1024
_CHANGED, _FEWEST_CHANGED, _MOST_CHANGED = 200, 10, 8192  # rows for each column, and for all


@dataclass(frozen=True, eq=False)
class KernelExpansion(BaseModel):
    """Base model that is a weighted sum of kernel functions."""

    family: ClassVar[Literal["expansions"]] = "expansions"

    kernel: Kernel
    inputs: FeatureMap
    # (m, d) float32 or float64: scaled basis vectors; their dtype determines that of the kernel
    # values
    basis: NDArray
    weights: Floats  # (m, r) float64
    # (m,) int64 or None: numbers of the training rows that are the basis vectors; ``None`` in a
    # model read from a file
    rows: Ints | None = None

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r); cost O(n m d), in blocks of rows."""
        return self.evaluate(X, ThreadTeam())

    def evaluate(self, X: Floats, team: ThreadTeam) -> Floats:
        """Raw predictions (n, r) on several threads."""
        scaled = self.inputs(X, self.basis.dtype)
        outputs = Gram(self.kernel, scaled, self.basis, team=team).times(self.weights)
        if not np.isfinite(outputs.sum()) and not np.isfinite(outputs).all():
            row = int(np.flatnonzero(~np.isfinite(outputs).all(axis=1))[0])
            raise InvalidData(
                f"row {row} of X is so far from the training rows that the kernel overflows; check "
                "its values."
            )
        return outputs

    def placed(
        self, columns: NDArray[np.intp], width: int, shared: dict[int, Any]
    ) -> KernelExpansion:
        """Return the same function of the given columns of a wider table."""
        key = id(self.inputs)
        if key not in shared:
            shared[key] = self.inputs.placed(columns)
        return replace(self, inputs=shared[key])

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add ``k(x, basis) weights``, (n, r) or (1, r)."""
        rows = self.inputs.operators(graph, X)
        if self.basis.dtype == np.float32:
            rows = graph.rounded(rows)  # as for the basis vectors, so that codes stay equal
        basis = np.asarray(self.basis, dtype=np.float64)
        block = block_operators(self.kernel, graph, rows, basis)
        return graph.add("MatMul", block, graph.constant(self.weights))

    @classmethod
    def sum_of(cls, terms: Sequence[Term[KernelExpansion]]) -> MergedExpansions:
        """Merge expansions with the same kernel, and their equal basis vectors."""
        return MergedExpansions(tuple(merge(terms)))


@dataclass(frozen=True)
class MergedExpansions(Summation):
    """Sum of expansions with different kernels or centers, each with its output columns."""

    # pairs of a model with ``weights`` (m, r) and ``evaluate``, and its output columns
    merged: tuple[tuple[Any, slice], ...]

    @property
    def n_basis(self) -> int:
        """Number of kernel values evaluated per row."""
        return sum(len(model.weights) for model, _ in self.merged)

    @property
    def cost_per_row(self) -> int:
        """One operation per basis vector."""
        return self.n_basis

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Evaluate each kernel once for all its basis vectors."""
        with array_api.one_blas_thread(), ThreadTeam(n_threads) as team:
            for model, columns in self.merged:
                raw[:, columns] += model.evaluate(X, team)


def merge(terms: Sequence[Term[KernelExpansion]]) -> list[tuple[KernelExpansion, slice]]:
    """Merge the terms to one expansion per kernel, with weights multiplied by coefficients."""
    by_kernel = _grouped(terms, lambda model: (id(model.kernel), id(model.inputs)))
    return [_merged(group) for group in by_kernel]


def _grouped(terms: Sequence[Term], key: Callable[[Any], object]) -> list[list[Term]]:
    """Terms of models with equal keys, in the order of first appearance."""
    groups: dict[object, list[Term]] = {}
    for term in terms:
        groups.setdefault(key(term.model), []).append(term)
    return list(groups.values())


def _columns_of(terms: Sequence[Term]) -> slice:
    """The output columns from the first to the last of some terms."""
    return slice(min(t.columns.start for t in terms), max(t.columns.stop for t in terms))


def _total_weights(terms: Sequence[Term], columns: slice) -> Floats:
    """Add the weights of models with the same centers, times their coefficients."""
    total = np.zeros((len(terms[0].model.weights), columns.stop - columns.start))
    for term in terms:
        own = slice(term.columns.start - columns.start, term.columns.stop - columns.start)
        total[:, own] += term.coefficient * term.model.weights
    return total


def _merged(terms: list[Term[KernelExpansion]]) -> tuple[KernelExpansion, slice]:
    """The sum of expansions in one kernel."""
    columns = _columns_of(terms)
    # Most stages of a full machine share one array of basis vectors: add these up first.
    by_basis = _grouped(terms, lambda model: id(model.basis))
    distinct = [(group[0].model, _total_weights(group, columns)) for group in by_basis]
    if len(distinct) == 1:
        model, weights = distinct[0]
        basis, rows = model.basis, model.rows
    else:
        basis = np.concatenate([model.basis for model, _ in distinct])
        weights = np.concatenate([weights for _, weights in distinct])
        numbers = [model.rows for model, _ in distinct if model.rows is not None]
        rows = np.concatenate(numbers) if len(numbers) == len(distinct) else None
    basis, weights, rows = _without_duplicates(basis, weights, rows)
    first = terms[0].model
    return KernelExpansion(first.kernel, first.inputs, basis, weights, rows), columns


def _without_duplicates(
    basis: NDArray, weights: Floats, rows: Ints | None
) -> tuple[NDArray, Floats, Ints | None]:
    """Each basis vector once, in the order of first appearance, with the sum of its weights."""
    keys = np.ascontiguousarray(basis + 0.0)  # -0.0 and 0.0 are one number
    width = keys.shape[1] * keys.itemsize
    names = keys.view(np.dtype((np.void, width))).ravel() if width else np.zeros(len(keys))
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if len(first) == len(basis):
        return basis, weights, rows
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    total = np.zeros((len(first), weights.shape[1]))
    np.add.at(total, place[group.ravel()], weights)
    kept = first[order]
    return basis[kept], total, None if rows is None else rows[kept]


@dataclass(frozen=True, eq=False)
class MetricExpansion(BaseModel):
    """``f(x) = sum_d k(z(x), center_d) weight_d`` with features ``z``.

    The scales of the features contain the metric, so that the kernel has length scale one.
    """

    in_files = True

    features: FeatureMap
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
        kernel = self.kernel

        def tile(rows: slice, columns: slice) -> Floats:
            return kernel.block(Z[rows], centers[columns])

        block = _stationary_tiles(Z, centers) if self.shares is None else tile
        outputs = np.zeros((len(Z), self.weights.shape[1]))

        def add(rows: slice) -> None:
            for columns in row_blocks(len(centers), _TILE_COLUMNS):
                outputs[rows] += block(rows, columns) @ self.weights[columns]

        with array_api.one_blas_thread():
            team.map(add, row_blocks(len(Z), _TILE_ROWS))
        return outputs

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
        if not isinstance(features, FeatureMap) or not features.is_valid(n_features):
            return False
        if not isinstance(centers, np.ndarray) or centers.dtype not in (np.float32, np.float64):
            return False
        n = len(centers) if centers.ndim == 2 else 0
        shapes: list[tuple[Any, tuple[int, ...]]]
        shapes = [(centers.astype(np.float64), (n, features.width)), (self.weights, (n, n_outputs))]
        if self.shares is not None:
            shapes.append((self.shares, (2,)))
        has_shapes = n > 0 and features.width > 0 and are_finite(shapes)
        return has_shapes and (self.shares is None or bool((self.shares > 0).all()))

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

        def centers_of(model: MetricExpansion) -> bytes:
            own, shares = model.features, model.shares
            optional = [np.zeros(0) if one is None else one for one in (own.rotation, shares)]
            arrays = (model.centers, own.origins, own.scale, *optional)
            return b"".join(array.tobytes() for array in arrays)

        merged = []
        for group in _grouped(terms, centers_of):
            columns = _columns_of(group)
            total = _total_weights(group, columns)
            merged.append((replace(group[0].model, weights=total), columns))
        return MergedExpansions(tuple(merged))


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

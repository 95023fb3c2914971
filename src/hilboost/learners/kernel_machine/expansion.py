"""The base models of kernel machines: ``f(x) = sum_d k(z(x), basis_d) weight_d``."""

from __future__ import annotations

from collections.abc import Sequence
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
from hilboost.kernels.base import are_equal, block_operators
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.tuning.metric import KERNEL

_CHANGED, _FEWEST_CHANGED, _MOST_CHANGED = 200, 10, 8192  # rows for each column, and for all


@dataclass(frozen=True, eq=False)
class KernelExpansion(BaseModel):
    """Base model that is a weighted sum of kernel functions."""

    family: ClassVar[Literal["expansions"]] = "expansions"

    kernel: Kernel
    inputs: FeatureMap
    basis: NDArray  # (m, d) float32 or float64: features of the basis vectors
    weights: Floats  # (m, r) float64
    # (m,) int64 or None: numbers of the training rows that are the basis vectors; ``None`` in a
    # model read from a file
    rows: Ints | None = None
    # Whether kernel values are float64 if the basis vectors are not: large weights, or large shares
    # of an additive kernel, multiply the rounding errors.
    in_float64: bool = False

    @property
    def points(self) -> NDArray:
        """The basis vectors in the dtype of the kernel values."""
        return self.basis.astype(np.float64) if self.in_float64 else self.basis

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r); cost O(n m d), in blocks of rows."""
        return self.evaluate(X, ThreadTeam())

    def evaluate(self, X: Floats, team: ThreadTeam) -> Floats:
        """Raw predictions (n, r) on several threads, which do not affect them."""
        points = self.points
        outputs = self._outputs(self.inputs(X, points.dtype), points, team)
        if not np.isfinite(outputs.sum()) and not np.isfinite(outputs).all():
            row = int(np.flatnonzero(~np.isfinite(outputs).all(axis=1))[0])
            raise InvalidData(
                f"row {row} of X is so far from the training rows that the kernel overflows; check "
                "its values."
            )
        return outputs

    def _outputs(self, Z: NDArray, points: NDArray, team: ThreadTeam) -> Floats:
        return Gram(self.kernel, Z, points, team=team).times(self.weights)

    def effects(self, coefficient: Floats) -> tuple[Ints, Floats]:
        """Return the columns that features are made from, and how much each changes the outputs.

        This is the mean squared change, of outputs times ``coefficient`` (r,), where the column of
        a basis vector takes the value of another one: twice its total effect (Jansen 1999).
        """
        origins, R = self.inputs.origins, self.inputs.rotation
        columns = np.unique(origins)
        n = min(len(self.basis), _CHANGED, max(_FEWEST_CHANGED, _MOST_CHANGED // len(columns)))
        rows = np.linspace(0, len(self.basis) - 1, n).astype(np.intp)
        Z = self.points[rows]
        R = np.eye(Z.shape[1]) if R is None else R
        step = np.roll(Z, n // 2, axis=0) - Z
        steps = step @ np.linalg.pinv(R)  # of the features before they are rotated
        moved = [Z + steps[:, own] @ R[own] for own in (origins == k for k in columns)]
        outputs = self._outputs(np.concatenate([Z, *moved]), self.points, ThreadTeam())
        before, after = outputs[:n], outputs[n:].reshape(len(moved), n, -1)
        changes = coefficient * (after - before)
        return columns, (changes**2).mean(axis=1).sum(axis=1)

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Return whether the arrays have these sizes and are finite."""
        n, basis = len(self.basis), self.basis.astype(np.float64)
        is_valid = n > 0 and self.inputs.is_valid(n_features)
        return is_valid and are_finite(
            [(basis, (n, self.inputs.width)), (self.weights, (n, n_outputs))]
        )

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
        if self.points.dtype == np.float32:
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

    merged: tuple[tuple[KernelExpansion, slice], ...]  # and the output columns of each

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
    groups: list[list[Term[KernelExpansion]]] = []
    for term in terms:
        own = (group for group in groups if _can_be_merged(group[0].model, term.model))
        found = next(own, None)
        if found is None:
            groups.append([term])
        else:
            found.append(term)
    return [_merged(group) for group in groups]


def _can_be_merged(one: KernelExpansion, other: KernelExpansion) -> bool:
    """Whether they have the same kernel values at the same basis vectors."""
    if one.in_float64 != other.in_float64 or not are_equal(one.kernel, other.kernel):
        return False
    return are_equal(one.inputs, other.inputs)


def _total_weights(terms: Sequence[Term], columns: slice) -> Floats:
    """Add the weights of models with the same centers, times their coefficients."""
    total = np.zeros((len(terms[0].model.weights), columns.stop - columns.start))
    for term in terms:
        own = slice(term.columns.start - columns.start, term.columns.stop - columns.start)
        total[:, own] += term.coefficient * term.model.weights
    return total


def _merged(terms: list[Term[KernelExpansion]]) -> tuple[KernelExpansion, slice]:
    """The sum of expansions in one kernel."""
    columns = slice(min(t.columns.start for t in terms), max(t.columns.stop for t in terms))
    # Most stages of a full machine share one array of basis vectors: add these up first.
    by_basis: dict[int, list[Term]] = {}
    for term in terms:
        by_basis.setdefault(id(term.model.basis), []).append(term)
    distinct = [(group[0].model, _total_weights(group, columns)) for group in by_basis.values()]
    if len(distinct) == 1:
        model, weights = distinct[0]
        basis, rows = model.basis, model.rows
    else:
        basis = np.concatenate([model.basis for model, _ in distinct])
        weights = np.concatenate([weights for _, weights in distinct])
        numbers = [model.rows for model, _ in distinct if model.rows is not None]
        rows = np.concatenate(numbers) if len(numbers) == len(distinct) else None
    basis, weights, rows = _without_duplicates(basis, weights, rows)
    return replace(terms[0].model, basis=basis, weights=weights, rows=rows), columns


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


def kernel_with(shares: Floats | None) -> Kernel:
    """Return the additive kernel with these shares; without any, the Matérn-5/2 kernel.

    The scales of the features contain the length scales.
    """
    return KERNEL if shares is None else Additive(1.0, *shares.tolist())

"""The base model of a kernel machine: ``f(x) = sum_d k(x, basis_d) weight_d``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import BaseModel, Summation, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.inputs import Inputs, require_complete


@dataclass(frozen=True, eq=False)
class KernelExpansion(BaseModel):
    """Base model that is a weighted sum of kernel functions.

    Attributes
    ----------
    kernel : Kernel
    inputs : Inputs
        Scaling of the columns.
    basis : (m, d) float32 or float64
        Scaled basis vectors; their dtype determines that of the kernel values.
    weights : (m, r) float64
    rows : (m,) int64 or None
        Numbers of the training rows that are the basis vectors; ``None`` in a model read from a
        file.
    """

    family: ClassVar[Literal["expansions"]] = "expansions"

    kernel: Kernel
    inputs: Inputs
    basis: NDArray
    weights: Floats
    rows: NDArray[np.int64] | None = None

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r); cost O(n m d), in blocks of rows."""
        return self._evaluate(X, ThreadTeam())

    def _evaluate(self, X: Floats, team: ThreadTeam) -> Floats:
        require_complete(X)
        scaled = self.inputs(X, dtype=str(self.basis.dtype))
        outputs = Gram(self.kernel, scaled, self.basis, team=team).times(self.weights)
        if not np.isfinite(outputs.sum()) and not np.isfinite(outputs).all():
            row = int(np.flatnonzero(~np.isfinite(outputs).all(axis=1))[0])
            raise InvalidData(
                f"row {row} of X is so far from the training rows that the kernel overflows; check "
                "its values."
            )
        return outputs

    @classmethod
    def sum_of(cls, parts: Sequence[Term]) -> MergedExpansions:
        """Merge expansions with the same kernel, and their equal basis vectors."""
        return MergedExpansions(tuple(merge(parts)))


@dataclass(frozen=True)
class MergedExpansions(Summation):
    """Sum of expansions with different kernels, each with its output columns."""

    merged: tuple[tuple[KernelExpansion, slice], ...]

    @property
    def n_basis(self) -> int:
        """Number of kernel values evaluated per row."""
        return sum(len(model.basis) for model, _ in self.merged)

    @property
    def cost_per_row(self) -> int:
        """One operation per basis vector."""
        return self.n_basis

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Evaluate each kernel once for all its basis vectors."""
        with dense.blas_threads(1), ThreadTeam(n_threads) as team:
            for model, columns in self.merged:
                raw[:, columns] += model._evaluate(X, team)


def merge(parts: Sequence[Term]) -> list[tuple[KernelExpansion, slice]]:
    """Merge the terms to one expansion per kernel, with weights multiplied by coefficients."""
    groups: dict[tuple[int, int], list[Term]] = {}
    for part in parts:
        model = part.model
        assert isinstance(model, KernelExpansion)
        groups.setdefault((id(model.kernel), id(model.inputs)), []).append(part)
    return [_merged(group) for group in groups.values()]


def _merged(parts: list[Term]) -> tuple[KernelExpansion, slice]:
    columns = slice(min(p.columns.start for p in parts), max(p.columns.stop for p in parts))
    width = columns.stop - columns.start
    models = [part.model for part in parts]
    first = models[0]
    assert isinstance(first, KernelExpansion)
    # Most stages of a full machine share one array of basis vectors; add these first.
    by_basis: dict[int, tuple[KernelExpansion, Floats]] = {}
    for part, model in zip(parts, models, strict=True):
        assert isinstance(model, KernelExpansion)
        total = by_basis.setdefault(id(model.basis), (model, np.zeros((len(model.basis), width))))[
            1
        ]
        shifted = slice(part.columns.start - columns.start, part.columns.stop - columns.start)
        total[:, shifted] += part.coefficient * model.weights
    distinct = list(by_basis.values())
    if len(distinct) == 1:
        model, weights = distinct[0]
        basis, rows = model.basis, model.rows
    else:
        basis = np.concatenate([model.basis for model, _ in distinct])
        weights = np.concatenate([weights for _, weights in distinct])
        numbers = [model.rows for model, _ in distinct if model.rows is not None]
        rows = np.concatenate(numbers) if len(numbers) == len(distinct) else None
    basis, weights, rows = _without_duplicates(basis, weights, rows)
    return KernelExpansion(first.kernel, first.inputs, basis, weights, rows), columns


def _without_duplicates(
    basis: NDArray, weights: Floats, rows: NDArray[np.int64] | None
) -> tuple[NDArray, Floats, NDArray[np.int64] | None]:
    keys = np.ascontiguousarray(basis + 0.0)  # -0.0 and 0.0 are equal
    width = keys.shape[1] * keys.itemsize
    names = keys.view(np.dtype((np.void, width))).ravel() if width else np.zeros(len(keys))
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if len(first) == len(basis):
        return basis, weights, rows
    order = np.argsort(first)  # keep the order of first appearance
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    total = np.zeros((len(first), weights.shape[1]))
    np.add.at(total, place[group.ravel()], weights)
    kept = first[order]
    return basis[kept], total, None if rows is None else rows[kept]

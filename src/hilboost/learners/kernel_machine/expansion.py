"""The base model of a kernel machine: ``f(x) = sum_d k(x, basis_d) weight_d``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import BaseModel, Summation, Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
from hilboost.kernels import Kernel, OnColumns
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.inputs import Inputs


@dataclass(frozen=True, eq=False)
class KernelExpansion(BaseModel):
    """Base model that is a weighted sum of kernel functions."""

    family: ClassVar[Literal["expansions"]] = "expansions"

    kernel: Kernel
    inputs: Inputs  # scaling of the columns
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
        scaled = self.inputs(X, dtype=str(self.basis.dtype))
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
        """Return the same expansion, with a kernel on the given columns of a wider table."""

        def once(part: object, make: Callable[[], Any]) -> Any:
            if id(part) not in shared:
                shared[id(part)] = make()
            return shared[id(part)]

        own, inputs, basis = self.kernel, self.inputs, self.basis
        completion, places, wide_width = inputs.completion, columns, width
        if completion is not None:
            places = completion.places(columns, width)
            wide_width = width + len(completion.indicated)
            completion = completion.placed(columns, width)

        def widened(rows: NDArray, fill: float) -> NDArray:
            wide = np.full((*rows.shape[:-1], wide_width), fill, dtype=rows.dtype)
            wide[..., places] = rows
            return wide

        return KernelExpansion(
            once(own, lambda: OnColumns(own, places.tolist())),
            once(inputs, lambda: inputs.placed(widened, completion)),
            once(basis, lambda: widened(basis, 0.0)),
            self.weights,
            self.rows,
        )

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
    by_kernel: dict[tuple[int, int], list[Term[KernelExpansion]]] = {}
    for term in terms:
        key = (id(term.model.kernel), id(term.model.inputs))
        by_kernel.setdefault(key, []).append(term)
    return [_merged(group) for group in by_kernel.values()]


def _merged(terms: list[Term[KernelExpansion]]) -> tuple[KernelExpansion, slice]:
    """The sum of expansions in one kernel."""
    columns = slice(min(t.columns.start for t in terms), max(t.columns.stop for t in terms))
    width = columns.stop - columns.start
    # Most stages of a full machine share one array of basis vectors: add these up first.
    by_basis: dict[int, tuple[KernelExpansion, Floats]] = {}
    for term in terms:
        model = term.model
        if id(model.basis) not in by_basis:
            by_basis[id(model.basis)] = (model, np.zeros((len(model.basis), width)))
        _, total = by_basis[id(model.basis)]
        shifted = slice(term.columns.start - columns.start, term.columns.stop - columns.start)
        total[:, shifted] += term.coefficient * model.weights
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

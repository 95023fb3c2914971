"""Ridge regression as a base learner: each stage is one Newton step of a linear model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.core.base_model import BaseModel, Term
from hilboost.core.capabilities import Capabilities, SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.operators import OperatorGraph
from hilboost.core.plain_values import are_finite, are_tables
from hilboost.core.row_sample import RowSample
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.inputs import with_scales

_FARTHEST = 1e15  # in standard deviations, as for kernel machines
LevelWeights = tuple[tuple[int, Floats], ...]


@dataclass(frozen=True, eq=False)
class RidgeModel(BaseModel):
    """A linear function of standardized columns and of category levels.

    Missing numbers are replaced by the mean of their column.  Missing and unknown levels add
    nothing.
    """

    in_files = True

    center: Floats  # (d,) float64: mean and scale of each column; 0 and 1 for category columns
    scale: Floats  # (d,) float64: mean and scale of each column; 0 and 1 for category columns
    # (d, r) float64: weights of the standardized columns; zero for category columns
    weights: Floats
    intercept: Floats  # (r,) float64
    # tuple of (column, (n_levels, r) float64): outputs that each level of a category column adds
    levels: LevelWeights = ()

    def predict_raw(self, X: Floats) -> Floats:
        """Compute the outputs (n, r), at a cost of O(n d r)."""
        with array_api.one_blas_thread():
            outputs = standardized(X, self.center, self.scale) @ self.weights + self.intercept
        for column, table in self.levels:
            codes, known = _known(X[:, column], len(table))
            outputs[known] += table[codes[known]]
        return outputs

    def column_effects(self, X: Floats) -> Floats:
        """Return what each column adds to the outputs, (n, d, r)."""
        effects = standardized(X, self.center, self.scale)[:, :, None] * self.weights
        for column, table in self.levels:
            codes, known = _known(X[:, column], len(table))
            effects[known, column] += table[codes[known]]
        return effects

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Return whether the arrays have these sizes and are finite."""
        d, r = n_features, n_outputs
        numbers = (self.center, (d,)), (self.scale, (d,)), (self.weights, (d, r))
        return (
            are_finite([*numbers, (self.intercept, (r,))])
            and bool((self.scale > 0).all())
            and are_tables(self.levels, d, (r,))
        )

    def placed(self, columns: NDArray[np.intp], width: int, shared: dict[int, Any]) -> RidgeModel:
        """Return the same function of the given columns of a wider table."""

        def widened(rows: Floats, fill: float) -> Floats:
            wide = np.full((width, *rows.shape[1:]), fill)
            wide[columns] = rows
            return wide

        levels = tuple((int(columns[column]), table) for column, table in self.levels)
        center, scale = widened(self.center, 0.0), widened(self.scale, 1.0)
        return RidgeModel(center, scale, widened(self.weights, 0.0), self.intercept, levels)

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the function."""
        zero = graph.constant(0.0)
        Z = graph.add("Sub", X, graph.constant(self.center[None, :]))
        Z = graph.add("Div", Z, graph.constant(self.scale[None, :]))
        Z = graph.add("Clip", Z, graph.constant(-_FARTHEST), graph.constant(_FARTHEST))
        Z = graph.add("Where", graph.add("IsNaN", Z), zero, Z)
        total = graph.add("MatMul", Z, graph.constant(self.weights))
        total = graph.add("Add", total, graph.constant(self.intercept[None, :]))
        for column, table in self.levels:
            codes = graph.add("Gather", X, graph.integers(column), axis=1)
            number = graph.constant(np.arange(len(table), dtype=np.float64)[None, :])
            is_level = graph.as_numbers(graph.add("Equal", codes, number))
            part = graph.add("MatMul", is_level, graph.constant(table))
            total = graph.add("Add", total, part)
        return total


def standardized(X: Floats, center: Floats, scale: Floats) -> Floats:
    """Return ``(x - center) / scale``, with 0 for missing values."""
    with np.errstate(over="ignore"):
        Z = np.clip((X - center) / scale, -_FARTHEST, _FARTHEST)
    return np.nan_to_num(Z, copy=False, nan=0.0)


def _known(codes: Floats, n_levels: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    known = (codes >= 0) & (codes < n_levels)
    return np.where(known, codes, 0).astype(np.intp), known


@dataclass
class RidgeData:
    """The design matrix of a fit."""

    A: Floats  # (n, p) float64: standardized columns, followed by indicators of levels
    center: Floats  # (d,) float64
    scale: Floats  # (d,) float64


@dataclass(frozen=True)
class RidgeLearner(Learner):
    """A stage minimizes the second-order model of the loss over linear functions.

    With sample weights ``w``, negative gradients ``g`` and curvatures ``h``, the weights solve
    ``(A' W H A + λ I) β = A' W g`` for standardized columns ``A`` and a free intercept.  λ is a
    small fraction of the sum of ``w h``.  It makes the solution unique if columns are collinear,
    and shrinks the weights of rare levels.

    Each stage costs O(n p²) for p columns and levels.  Missing numbers are replaced by the mean of
    their column.
    """

    l2: float = 1e-3  # λ as a fraction of the sum of weights times curvatures
    # tuple of (int, int): category columns and their numbers of levels; each level has a weight of
    # its own
    categorical: tuple[tuple[int, int], ...] = ()

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "linear"
    capabilities = Capabilities(
        base_model=RidgeModel,
        takes_missing_values=True,
        takes_categories=True,
        encodes_categories=True,
        fits_curvature=True,  # it needs a hessian
        in_checkpoints=True,
    )

    def __post_init__(self) -> None:
        """Reject an invalid penalty."""
        if not 0 < self.l2 < np.inf:
            raise InvalidParameter(f"l2 must be a positive finite number; got {self.l2!r}.")

    def for_table(self, splits: SplitSettings) -> RidgeLearner:
        """Return the learner with a weight for each level of the category columns."""
        return replace(self, categorical=splits.categorical)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> RidgeData:
        """Standardize the columns, and encode levels as indicators."""
        categorical = [column for column, _ in self.categorical]
        filled = _filled(X, weight)
        filled[:, categorical] = 0.0
        unscaled = FeatureMap.unscaled(filled.shape[1])
        inputs = with_scales(unscaled, filled, weight, tuple(categorical))
        Z = standardized(X, inputs.center, inputs.scale)
        Z[:, categorical] = 0.0
        indicators = [
            (X[:, [column]] == np.arange(n_levels)).astype(np.float64)
            for column, n_levels in self.categorical
        ]
        A = np.column_stack([Z, *indicators])
        return RidgeData(A, inputs.center, inputs.scale)

    def fit(
        self, data: RidgeData, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one linear function for all outputs."""
        rows: Any = slice(None) if sample.rows is None else sample.rows
        A, negative = data.A[rows], gradients.negative_gradient[rows]
        weight = np.ones(len(A)) if sample.weight is None else sample.weight[rows]
        r = negative.shape[1]
        weights, intercept = np.zeros((A.shape[1], r)), np.zeros(r)
        with array_api.one_blas_thread():
            for columns, curvature in _systems(gradients, rows, weight, r):
                solved = self._solve(A, weight[:, None] * negative[:, columns], curvature)
                weights[:, columns], intercept[columns] = solved
            outputs = data.A @ weights + intercept
        model = self._model(data, weights, intercept)
        term = Term.of(model, slice(0, r))
        return [FittedTerm(term, outputs=outputs, newton=True)]

    def _solve(self, A: Floats, right: Floats, curvature: Floats) -> tuple[Floats, Floats]:
        """Compute weights (p, k) and intercepts (k,) of outputs with the same curvature (m,)."""
        mass = float(curvature.sum())
        if not mass > 0:
            return np.zeros((A.shape[1], right.shape[1])), np.zeros(right.shape[1])
        mean = curvature @ A / mass
        centered = A - mean
        H = (centered.T * curvature) @ centered
        total = right.sum(axis=0)
        factor = array_api.cholesky(array_api.add_to_diagonal(H, np.full(len(H), self.l2 * mass)))
        weights = array_api.solve_cholesky(factor, centered.T @ right)
        return weights, total / mass - mean @ weights

    def _model(self, data: RidgeData, weights: Floats, intercept: Floats) -> RidgeModel:
        d = len(data.center)
        levels, first = [], d
        for column, n_levels in self.categorical:
            levels.append((column, weights[first : first + n_levels].copy()))
            first += n_levels
        return RidgeModel(data.center, data.scale, weights[:d].copy(), intercept, tuple(levels))


def _filled(X: Floats, weight: Floats | None) -> Floats:
    """Return a copy with missing values replaced by column means."""
    X = np.array(X, dtype=np.float64)
    missing = np.isnan(X)
    for column in np.flatnonzero(missing.any(axis=0)):
        known = ~missing[:, column]
        mean = 0.0
        if known.any():
            own = None if weight is None else weight[known]
            mean = float(np.average(X[known, column], weights=own))
        X[~known, column] = mean
    return X


def _systems(gradients: Gradients, rows: Any, weight: Floats, r: int) -> list[tuple[slice, Floats]]:
    """Group outputs with the same curvature; also return sample weight times curvature (m,)."""
    if gradients.hessian is None:
        return [(slice(0, r), weight)]
    if gradients.structure.bound is not None and r > 1:
        return [(slice(0, r), weight * gradients.structure.bound)]
    return [(slice(k, k + 1), weight * gradients.hessian[rows, k]) for k in range(r)]

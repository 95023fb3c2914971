"""Conversion of any table to bounded, complete, standardized features of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.operators import OperatorGraph
from hilboost.core.plain_values import are_finite, are_tables
from hilboost.learners.kernel_machine.inputs import quantiles
from hilboost.tables.blocks import BlockTable

_TAIL = 0.01  # bounds are one range of the middle 98 % outside it
_PRIOR = 10.0  # rows of the mean that are added to each level
_FEWEST_MISSING = 0.01  # share of the rows
_LARGEST = 1e300

Levels = tuple[tuple[int, Floats], ...]


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a kernel: scaled columns, numbers of category levels, and missing cells.

    A column is moved into its bounds, centered and multiplied by its scale; missing cells become
    zero.  Values far outside the usual range of their column thus have a limited effect.
    """

    in_files: ClassVar[bool] = True

    columns: Ints  # (q,) int64: columns of the table
    low: Floats  # (q,) float64: bounds, center and factor of each of these columns
    high: Floats  # (q,) float64: bounds, center and factor of each of these columns
    center: Floats  # (q,) float64: bounds, center and factor of each of these columns
    scale: Floats  # (q,) float64: bounds, center and factor of each of these columns
    # tuple of (position, (n_levels,) float64): numbers that replace the codes of a category column;
    # ``position`` is that in ``columns``
    levels: Levels
    missing: Ints  # (p,) int64: columns whose missing cells are features of their own
    missing_scale: Floats  # (p,) float64
    # (q + p, k) float64 or None: linear map of all of these features, which contains the metric;
    # ``None`` for none
    rotation: Floats | None = None

    @classmethod
    def of(
        cls,
        X: Floats,  # (n, d) float64
        target: Floats,  # (n, r) float64: determines the numbers of category levels
        weight: Floats | None,  # (n,) float64 or None
        categorical: Sequence[tuple[int, int]] = (),  # sequence of (column, n_levels)
    ) -> Features:
        """Learn the conversion from rows; constant columns are left out."""
        columns: list[int] = []
        rows: list[tuple[float, float, float, float]] = []
        levels: list[tuple[int, Floats]] = []
        tables = {
            column: level_numbers(X[:, column], n_levels, target, weight)
            for column, n_levels in categorical
        }
        for column in range(X.shape[1]):
            values = X[:, column]
            if column in tables:
                values = _looked_up(values, tables[column])
            found = _scaling(values, weight)
            if found is None:
                continue
            if column in tables:
                levels.append((len(columns), tables[column]))
            columns.append(column)
            rows.append(found)
        low, high, center, scale = np.array(rows).reshape(-1, 4).T.copy()
        missing = _with_missing(X, columns, list(tables))
        share = np.isnan(X[:, missing]).mean(axis=0)
        spread = np.sqrt(share * (1 - share))
        return cls(
            np.array(columns, dtype=np.int64),
            *(low, high, center, scale),
            tuple(levels),
            missing,
            1 / np.where(spread > 0, spread, 1.0),
        )

    @property
    def width(self) -> int:
        """Number of features."""
        if self.rotation is not None:
            return int(self.rotation.shape[1])
        return len(self.columns) + len(self.missing)

    @property
    def origins(self) -> Ints:
        """The column that each feature is made from, before they are rotated, (q + p,)."""
        return np.concatenate([self.columns, self.missing])

    @property
    def factors(self) -> Floats:
        """Factors of all features, before they are rotated, (q + p,)."""
        return np.concatenate([self.scale, self.missing_scale])

    def scaled(self, factors: Floats) -> Features:
        """Multiply the features by ``factors`` (width,), and drop those that become zero."""
        q = len(self.columns)
        kept, kept_missing = np.flatnonzero(factors[:q]), np.flatnonzero(factors[q:])
        place = {int(old): new for new, old in enumerate(kept)}
        return Features(
            self.columns[kept],
            *(self.low[kept], self.high[kept], self.center[kept]),
            self.scale[kept] * factors[:q][kept],
            tuple((place[k], table) for k, table in self.levels if k in place),
            self.missing[kept_missing],
            self.missing_scale[kept_missing] * factors[q:][kept_missing],
        )

    def divided(self, factor: float) -> Features:
        """Divide all features, so that the length scale of the kernel is longer by ``factor``."""
        if self.rotation is not None:
            return self.rotated(self.rotation / factor)
        scale, missing_scale = self.scale / factor, self.missing_scale / factor
        return replace(self, scale=scale, missing_scale=missing_scale)

    def rotated(self, rotation: Floats) -> Features:
        """Return linear combinations of the features, with coefficients (width, k)."""
        return replace(self, rotation=rotation)

    def __call__(self, X: Floats | BlockTable, dtype: Any = np.float64) -> NDArray[Any]:
        """Features (n, width) of the rows of a table (n, d)."""
        Z = columns_of(X, self.columns)
        for position, table in self.levels:
            Z[:, position] = _looked_up(Z[:, position], table)
        np.clip(Z, self.low, self.high, out=Z)
        Z -= self.center
        Z *= self.scale
        Z[np.isnan(Z)] = 0.0
        if len(self.missing):
            cells = columns_of(X, self.missing)
            Z = np.hstack([Z, np.isnan(cells) * self.missing_scale])
        if self.rotation is not None:
            Z = Z @ self.rotation
        return np.ascontiguousarray(Z, dtype=dtype)

    def placed(self, columns: NDArray[np.intp]) -> Features:
        """Return the same conversion for a wider table."""
        return replace(
            self,
            columns=columns[self.columns].astype(np.int64),
            missing=columns[self.missing].astype(np.int64),
        )

    def is_valid(self, n_features: int) -> bool:
        """Whether the arrays have consistent sizes and finite values, and the columns exist."""
        q, p = np.size(self.columns), np.size(self.missing)
        for own, size in ((self.columns, q), (self.missing, p)):
            whole = isinstance(own, np.ndarray) and own.dtype == np.int64 and own.shape == (size,)
            if not whole or (size and not 0 <= own.min() <= own.max() < n_features):
                return False
        scaling = (self.low, self.high, self.center, self.scale)
        shapes: list[tuple[Any, tuple[int, ...]]]
        shapes = [*((array, (q,)) for array in scaling), (self.missing_scale, (p,))]
        if self.rotation is not None:
            shapes.append((self.rotation, (q + p, np.size(self.rotation) // max(q + p, 1))))
        return are_finite(shapes) and are_tables(self.levels, q, ())

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the conversion."""
        parts = [self._column_operators(graph, X)]
        if len(self.missing):
            cells = graph.add("Gather", X, graph.integers(*self.missing.tolist()), axis=1)
            flags = graph.as_numbers(graph.add("IsNaN", cells))
            parts.append(graph.add("Mul", flags, graph.constant(self.missing_scale[None, :])))
        Z = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
        return Z if self.rotation is None else graph.add("MatMul", Z, graph.constant(self.rotation))

    def _column_operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of all columns, after replacing the codes of categories."""
        zero = graph.constant(0.0)
        Z = graph.add("Gather", X, graph.integers(*self.columns.tolist()), axis=1)
        if self.levels:
            coded = np.zeros(len(self.columns))
            total = zero
            for position, table in self.levels:
                coded[position] = 1.0
                codes = graph.add("Gather", X, graph.integers(int(self.columns[position])), axis=1)
                number = graph.constant(np.arange(len(table), dtype=np.float64)[None, :])
                is_level = graph.as_numbers(graph.add("Equal", codes, number))
                spread = np.zeros((len(table), len(self.columns)))
                spread[:, position] = table
                total = graph.add(
                    "Add", total, graph.add("MatMul", is_level, graph.constant(spread))
                )
            is_coded = graph.add("Greater", graph.constant(coded[None, :]), zero)
            Z = graph.add("Where", is_coded, total, Z)
        Z = graph.add("Max", Z, graph.constant(self.low[None, :]))
        Z = graph.add("Min", Z, graph.constant(self.high[None, :]))
        Z = graph.add("Sub", Z, graph.constant(self.center[None, :]))
        Z = graph.add("Mul", Z, graph.constant(self.scale[None, :]))
        return graph.add("Where", graph.add("IsNaN", Z), zero, Z)


def columns_of(X: Floats | BlockTable, columns: Ints) -> Floats:
    """Return some columns, in ascending order, as a new array (n, q) float64."""
    if isinstance(X, BlockTable):
        blocks = [block for _, block in X.row_blocks(columns)]
        return np.concatenate(blocks).astype(np.float64)
    return np.array(X[:, columns], dtype=np.float64, order="C")


def level_numbers(codes: Floats, n_levels: int, target: Floats, weight: Floats | None) -> Floats:
    """Return one number for each level, (n_levels,): its position along the target.

    It is the mean target of the level, shrunk towards the mean of the rows with any level, which
    gets the number 0.  With several target columns, it is the coordinate of these means along their
    first principal axis.  Codes (n,) that are NaN or -1 are not levels.
    """
    mass = np.ones(len(codes)) if weight is None else weight
    known = (codes >= 0) & (mass > 0)
    level = codes[known].astype(np.intp)
    if not len(level):
        return np.zeros(n_levels)
    centered = target - np.average(
        target[known], axis=0, weights=None if weight is None else weight[known]
    )
    count = np.bincount(level, mass[known], n_levels)
    sums = np.zeros((n_levels, target.shape[1]))
    np.add.at(sums, level, mass[known, None] * centered[known])
    means = sums / (count + _PRIOR)[:, None]
    if means.shape[1] == 1:
        return means[:, 0].copy()
    _, axes = np.linalg.eigh((means * count[:, None]).T @ means)
    axis = axes[:, -1]
    return means @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))


def _looked_up(codes: Floats, table: Floats) -> Floats:
    """Return the number of each code (n,); 0, the mean of all levels, if missing or unknown."""
    known = (codes >= 0) & (codes < len(table))
    if not known.any():
        return np.zeros(len(codes))
    return np.where(known, table[np.where(known, codes, 0).astype(np.intp)], 0.0)


def _scaling(values: Floats, weight: Floats | None) -> tuple[float, float, float, float] | None:
    """Return bounds, center and factor of a column (n,); ``None`` if it is constant."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    values = np.clip(values[known], -_LARGEST, _LARGEST)
    weight = None if weight is None else weight[known]
    bottom, top = quantiles(values, weight, (_TAIL, 1 - _TAIL))
    if bottom == top:
        bottom, top = float(values.min()), float(values.max())
    width = min(top - bottom, _LARGEST)
    low, high = max(bottom - width, -_LARGEST), min(top + width, _LARGEST)
    inside = np.clip(values, low, high)
    size = max(abs(low), abs(high))
    if size == 0:
        return None
    inside = inside / size  # squares must not overflow
    center = float(np.average(inside, weights=weight))
    spread = float(np.sqrt(np.average((inside - center) ** 2, weights=weight)))
    # The rounding errors of a constant column must not be amplified.
    if not spread > 1e-10 * abs(center) or not np.isfinite(1 / (spread * size)):
        return None
    return low, high, center * size, 1 / (spread * size)


def _with_missing(X: Floats, columns: list[int], coded: list[int]) -> Ints:
    """Find columns whose missing cells are features: in category columns, they are a level."""
    share = np.isnan(X).mean(axis=0)
    found = np.zeros(X.shape[1], dtype=bool)
    found[columns] = (share[columns] > _FEWEST_MISSING) & (share[columns] < 1 - _FEWEST_MISSING)
    found[coded] = (share[coded] > 0) & (share[coded] < 1)
    return np.flatnonzero(found)

"""Conversion of the rows of any table to bounded, complete, scaled features of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidColumn
from hilboost.core.operators import OperatorGraph
from hilboost.core.plain_values import are_finite, are_tables
from hilboost.tables.blocks import BlockTable, as_table

UNBOUNDED = float(np.finfo(np.float64).max)
_FARTHEST = 1e15  # in scaled units; squares of it are finite in float32

Levels = tuple[tuple[int, Floats], ...]
Warps = tuple[tuple[int, Floats], ...]


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features of a kernel: scaled columns, numbers of category levels, and missing cells.

    A column is completed, moved into its bounds, centered and divided by its scale.  Values far
    outside the usual range of their column thus have a limited effect.  A warp then moves values
    apart where the function changes, and together where it does not.
    """

    in_files: ClassVar[bool] = True

    columns: Ints  # (q,) int64: columns of the table
    # tuple of (position, (n_levels,) float64): numbers that replace the codes of a category column;
    # ``position`` is that in ``columns``
    levels: Levels
    numbers: Floats | None  # (q,) float64 or None: replace missing cells; ``None`` refuses them
    missing: Ints  # (p,) int64: columns whose missing cells are features of their own
    low: Floats  # (q + p,) float64: smaller values are moved to it
    high: Floats  # (q + p,) float64: larger values are moved to it
    center: Floats  # (q + p,) float64: subtracted
    scale: Floats  # (q + p,) float64: divides what is left
    # (q + p, k) float64 or None: linear map of all of these features, which contains the metric
    rotation: Floats | None = None
    # tuple of (position, (k, 2) float64): a feature that is warped before it is rotated, and points
    # of an increasing, piecewise linear function, which is constant beyond the first and the last
    warps: Warps = ()

    @classmethod
    def unscaled(
        cls, n_columns: int, numbers: Floats | None = None, missing: Ints | None = None
    ) -> FeatureMap:
        """Create the map that leaves the completed table as it is."""
        missing = np.empty(0, dtype=np.int64) if missing is None else missing
        k = n_columns + len(missing)
        bound, columns = np.full(k, UNBOUNDED), np.arange(n_columns, dtype=np.int64)
        return cls(columns, (), numbers, missing, -bound, bound, np.zeros(k), np.ones(k))

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.center) if self.rotation is None else int(self.rotation.shape[1])

    @property
    def origins(self) -> Ints:
        """The column that each feature is made from, before they are rotated, (q + p,)."""
        return np.concatenate([self.columns, self.missing])

    @property
    def is_bounded(self) -> bool:
        """Whether values are moved into bounds."""
        return bool((self.low > -UNBOUNDED).any() or (self.high < UNBOUNDED).any())

    def scaled(self, factors: Floats) -> FeatureMap:
        """Multiply the features by ``factors`` (width,), and drop those that become zero."""
        if self.rotation is not None:
            return replace(self, rotation=self.rotation * factors)
        q = len(self.columns)
        kept, warped = np.flatnonzero(factors), [k for k, _ in self.warps]
        columns, missing = kept[kept < q], kept[kept >= q] - q
        place = {int(old): new for new, old in enumerate(columns)}
        return FeatureMap(
            self.columns[columns],
            tuple((place[k], table) for k, table in self.levels if k in place),
            None if self.numbers is None else self.numbers[columns],
            self.missing[missing],
            self.low[kept],
            self.high[kept],
            self.center[kept],
            self.scale[kept] / np.where(np.isin(kept, warped), 1.0, factors[kept]),
            warps=tuple(
                (int(np.searchsorted(kept, k)), points * [1.0, factors[k]])
                for k, points in self.warps
                if factors[k]
            ),
        )

    def complete(self, X: Floats | BlockTable) -> Floats:
        """The table (n, q + p) of numbers and indicators of missing cells."""
        Z = columns_of(X, self.columns)
        for position, table in self.levels:
            Z[:, position] = looked_up(Z[:, position], table)
        is_missing = np.isnan(Z)
        if self.numbers is not None:
            np.copyto(Z, self.numbers, where=is_missing)
        elif is_missing.any():
            raise InvalidColumn(
                "X contains NaN in {}, which is supported only with kernel='auto'. Impute missing "
                "values, for instance numbers with scikit-learn's SimpleImputer and text with "
                ".fillna('missing'), or use trees.",
                int(self.columns[np.flatnonzero(is_missing.any(axis=0))[0]]),
            )
        return np.hstack([Z, np.isnan(columns_of(X, self.missing))]) if len(self.missing) else Z

    def __call__(self, X: Floats | BlockTable, dtype: Any = np.float64) -> NDArray[Any]:
        """Features (n, width) of the rows of a table (n, d)."""
        Z = self.complete(X)
        if self.is_bounded:
            np.clip(Z, self.low, self.high, out=Z)
        with np.errstate(over="ignore"):  # clipped to the largest distance
            Z -= self.center
            Z /= self.scale
        np.clip(Z, -_FARTHEST, _FARTHEST, out=Z)
        for k, points in self.warps:
            Z[:, k] = np.interp(Z[:, k], *points.T)
        if self.rotation is not None:
            Z = Z @ self.rotation
        return np.ascontiguousarray(Z, dtype=dtype)

    def placed(self, columns: NDArray[np.intp]) -> FeatureMap:
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
            whole = are_finite([(own, (size,))], np.int64)
            if not whole or (size and not 0 <= own.min() <= own.max() < n_features):
                return False
        shapes: list[tuple[Any, tuple[int, ...]]]
        shapes = [(one, (q + p,)) for one in (self.low, self.high, self.center, self.scale)]
        if self.numbers is not None:
            shapes.append((self.numbers, (q,)))
        if self.rotation is not None:
            shapes.append((self.rotation, (q + p, np.size(self.rotation) // max(q + p, 1))))
        are_lists = are_tables(self.levels, q, ()) and are_tables(self.warps, q + p, (2,))
        if not are_finite(shapes) or not are_lists:
            return False
        rise = all(len(points) and (np.diff(points[:, 0]) > 0).all() for _, points in self.warps)
        return bool(rise and (self.scale > 0).all() and (self.low <= self.high).all())

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the conversion."""
        Z = self._complete_operators(graph, X)
        if self.is_bounded:
            Z = graph.add("Max", Z, graph.constant(self.low[None, :]))
            Z = graph.add("Min", Z, graph.constant(self.high[None, :]))
        Z = graph.add("Sub", Z, graph.constant(self.center[None, :]))
        Z = graph.add("Div", Z, graph.constant(self.scale[None, :]))
        Z = graph.add("Clip", Z, graph.constant(-_FARTHEST), graph.constant(_FARTHEST))
        for k, points in self.warps:
            x, y = points[:, 0], points[:, 1:]
            cells = graph.add("Gather", Z, graph.integers(k), axis=1)
            ramps = graph.add("Sub", cells, graph.constant(x[None, :-1]))
            ramps = graph.add("Div", ramps, graph.constant(np.diff(x)[None, :]))
            ramps = graph.add("Clip", ramps, graph.constant(0.0), graph.constant(1.0))
            rise = graph.add("MatMul", ramps, graph.constant(np.diff(y, axis=0)))
            warped = graph.plus(rise, float(y[0, 0]))
            Z = _with_column(graph, Z, k, len(self.center), warped)
        return Z if self.rotation is None else graph.add("MatMul", Z, graph.constant(self.rotation))

    def _complete_operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the completed table."""
        Z = graph.add("Gather", X, graph.integers(*self.columns.tolist()), axis=1)
        for k, table in self.levels:
            codes = graph.add("Gather", X, graph.integers(int(self.columns[k])), axis=1)
            number = graph.constant(np.arange(len(table), dtype=np.float64)[None, :])
            is_level = graph.as_numbers(graph.add("Equal", codes, number))
            looked = graph.add("MatMul", is_level, graph.constant(table[:, None]))
            Z = _with_column(graph, Z, k, len(self.columns), looked)
        if self.numbers is not None:
            Z = graph.add("Where", graph.add("IsNaN", Z), graph.constant(self.numbers[None, :]), Z)
        if not len(self.missing):
            return Z
        cells = graph.add("Gather", X, graph.integers(*self.missing.tolist()), axis=1)
        return graph.add("Concat", Z, graph.as_numbers(graph.add("IsNaN", cells)), axis=1)


def _with_column(graph: OperatorGraph, Z: str, k: int, width: int, column: str) -> str:
    """Add the operators that replace a column of ``Z`` (n, width) by another one (n, 1)."""
    is_own = graph.constant((np.arange(width) == k).astype(np.float64)[None, :])
    return graph.add("Where", graph.add("Greater", is_own, graph.constant(0.0)), column, Z)


def columns_of(X: Floats | BlockTable, columns: Ints) -> Floats:
    """Return some columns, in ascending order, as a new array (n, q) float64."""
    found = np.empty((len(X), len(columns)))
    for rows, block in as_table(X).row_blocks(columns):
        found[rows] = block
    return found


def looked_up(codes: Floats, table: Floats) -> Floats:
    """Return the number of each code (n,); 0, the mean of all levels, if missing or unknown."""
    known = (codes >= 0) & (codes < len(table))
    if not known.any():
        return np.zeros(len(codes))
    return np.where(known, table[np.where(known, codes, 0).astype(np.intp)], 0.0)

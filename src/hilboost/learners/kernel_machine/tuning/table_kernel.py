"""Kernels of tables: a stationary kernel of the numeric columns, and one of the categories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.kernels import (
    Additive,
    Delta,
    Gaussian,
    Kernel,
    Laplace,
    ManhattanLaplace,
    Mapped,
    Matern,
    OnColumns,
    Product,
    RationalQuadratic,
    Stationary,
)

MOST_COLUMNS_WITH_OWN_SCALES = 64
_LONGEST, _SHORTENED = 8.0, 2.0  # length scale of a start, as a multiple of the shortest

Numeric = Stationary | ManhattanLaplace | Additive | Mapped

FAMILIES: dict[str, Callable[[Floats], Numeric]] = {
    "gaussian": Gaussian,
    "rational_quadratic": lambda scale: RationalQuadratic(scale, 1.0),
    "matern52": lambda scale: Matern(scale, 2.5),
    "matern32": lambda scale: Matern(scale, 1.5),
    "laplace": Laplace,
    "manhattan_laplace": ManhattanLaplace,
}
"""Kernels of the numeric columns by name, from their length scales."""

_WITHOUT_MAPS = ("manhattan_laplace", "additive")
MAIN_FAMILIES = ("gaussian", "matern52", "laplace")
USUAL_FAMILY = "matern52"


def _unit(family: str, d: int) -> float:
    """Distance of two rows whose ``d`` columns differ by one each."""
    return float(d) if family == "manhattan_laplace" else float(np.sqrt(d))


@dataclass(frozen=True)
class Columns:
    """The numeric and the categorical columns of a table."""

    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    are_all: bool = True  # whether the table has no others

    @classmethod
    def of(cls, d: int, categorical: tuple[int, ...]) -> Columns:
        """The columns of a table with ``d`` of them."""
        return cls(tuple(k for k in range(d) if k not in categorical), categorical)

    def part(self, numeric: tuple[int, ...]) -> Columns:
        """Return some of the numeric columns, with all others."""
        is_part = numeric != self.numeric
        return replace(self, numeric=numeric, are_all=False) if is_part else self

    def kernel(self, family: str, scale: float) -> TableKernel:
        """A kernel of ``FAMILIES``; scales are in units of the root of the number of columns."""
        numeric = categories = None
        if self.numeric:
            d = len(self.numeric)
            n_scales = d if d <= MOST_COLUMNS_WITH_OWN_SCALES else 1
            numeric = FAMILIES[family](np.full(n_scales, scale * _unit(family, d)))
        if self.categorical or not self.numeric:
            categories = Delta(np.ones(len(self.categorical)))
        return TableKernel(self, family, numeric, categories)


@dataclass(frozen=True, eq=False)
class TableKernel(Kernel):
    """``k(numeric columns) · δ(categorical columns)``, with access to its factors.

    The search builds its kernels in this form; :attr:`plain` is the same kernel for the model.
    """

    columns: Columns
    family: str  # the key of ``FAMILIES`` that it was made from
    numeric: Numeric | None
    categories: Delta | None

    @cached_property
    def plain(self) -> Kernel:
        """The same kernel as a product, with ``Mapped`` and ``OnColumns``."""
        factors: list[Kernel] = []
        if self.numeric is not None:
            factors.append(self.numeric)
        if self.categories is not None or not self.columns.are_all:
            factors = [OnColumns(kernel, self.columns.numeric) for kernel in factors]
        if self.categories is not None:
            factors.append(OnColumns(self.categories, self.columns.categorical))
        return factors[0] if len(factors) == 1 else Product(factors)

    def with_scales(self, scales: Floats) -> TableKernel:
        """The kernel with other length scales of the numeric columns."""
        numeric: Any = self.numeric
        return replace(self, numeric=replace(numeric, length_scale=scales))

    def narrowed(self) -> TableKernel:
        """The kernel of the numeric columns with the shortest length scales."""
        assert self.numeric is not None
        scales = self.numeric.length_scale
        kept = np.sort(np.argsort(scales, kind="stable")[:MOST_COLUMNS_WITH_OWN_SCALES])
        columns = self.columns.part(tuple(np.array(self.columns.numeric)[kept].tolist()))
        return replace(self.with_scales(scales[kept]), columns=columns)

    def mapped(self, matrix: Floats) -> TableKernel:
        """The kernel of length scale one with a linear map of the numeric columns."""
        stationary: Any = self.with_scales(np.ones(1)).numeric
        return replace(self, numeric=Mapped(stationary, matrix))

    def shortened(self) -> TableKernel:
        """The kernel with no length scale far above the shortest."""
        if self.numeric is None or len(self.numeric.length_scale) == 1:
            return self
        scales = self.numeric.length_scale
        return self.with_scales(np.minimum(scales, _SHORTENED * scales.min()))

    def like(self, family: str) -> TableKernel:
        """A kernel of another family with the same length scales, to go on from.

        Long ones are shortened: the likelihood is flat where a column has no effect.
        """
        if self.numeric is None:
            return self
        scales = self.numeric.length_scale
        scales = np.minimum(scales, _LONGEST * scales.min())
        d = len(self.columns.numeric)
        scales *= _unit(family, d) / _unit(self.family, d)
        return replace(self, family=family, numeric=FAMILIES[family](scales))

    @property
    def formula(self) -> str | None:
        """Choices that families with the same formula share; ``None`` without numeric columns."""
        if self.numeric is None:
            return None
        return self.family.rstrip("0123456789")  # the Matérn kernels differ in a parameter

    @property
    def scale_groups(self) -> tuple[slice, ...]:
        """Positions of the length scales in the log parameters: numeric columns, categories."""
        groups, n_numeric = [], self._n_numeric
        if self.numeric is not None and len(self.numeric.length_scale) > 1:
            groups.append(slice(len(self.numeric.length_scale)))
        if self.categories is not None and len(self.categories.length_scale) > 1:
            groups.append(slice(n_numeric, n_numeric + len(self.categories.length_scale)))
        return tuple(groups)

    @property
    def can_be_mapped(self) -> bool:
        """Whether it has a length scale for each of several columns."""
        if self.numeric is None or self.family in _WITHOUT_MAPS:
            return False
        return len(self.numeric.length_scale) > 1

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return self.plain.block(A, B)

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return self.plain.diag(A)

    def stretched(self, factor: float) -> Self:
        """Multiply the length scales of the numeric columns by the factor."""
        if self.numeric is None:
            return self
        return replace(self, numeric=self.numeric.stretched(factor))

    @property
    def log_parameters(self) -> Floats:
        """Those of the numeric columns, the map and the categories."""
        return self.plain.log_parameters

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other parameters."""
        numeric, categories, n_numeric = self.numeric, self.categories, self._n_numeric
        if numeric is not None:
            numeric = numeric.with_log_parameters(theta[:n_numeric])
        if categories is not None:
            categories = categories.with_log_parameters(theta[n_numeric:])
        return replace(self, numeric=numeric, categories=categories)

    @property
    def _n_numeric(self) -> int:
        return 0 if self.numeric is None else len(self.numeric.log_parameters)

    def gram_and_gradient(self, A: Array) -> tuple[Array, Callable[[Array], Floats]]:
        """Compute each factor once."""
        if self.numeric is None or self.categories is None:
            return self.plain.gram_and_gradient(A)
        numbers, codes = A[:, list(self.columns.numeric)], A[:, list(self.columns.categorical)]
        closeness, gradient = self.numeric.gram_and_gradient(numbers)
        likeness, categories = self.categories.block(codes, codes), self.categories

        def both(W: Array) -> Floats:
            of_codes = categories.gradient_of_pulls(codes, closeness * likeness * W)
            return np.append(gradient(W * likeness), of_codes)

        return closeness * likeness, both

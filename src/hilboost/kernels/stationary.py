"""Kernels of the scaled distance ``s² = sum_l ((a_l - b_l) / length_scale_l)²``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.kernel_values import matern52
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.operators import OperatorGraph
from hilboost.core.plain_values import is_number
from hilboost.kernels.base import Fields, Kernel, LengthScales, Names
from hilboost.kernels.validation import positive

_SMALLEST_SQUARE = 1e-30  # keeps an unused quotient finite
_LARGEST_SQUARE = 1e30  # beyond it every kernel is zero; its powers stay finite in float32


def squared_distances(A: Array, B: Array) -> Array:
    """Compute ``|a - b|²``, (a, b), from one matrix product."""
    return _in_tiles(A, B)(slice(None), slice(None))


def _in_tiles(A: Array, B: Array) -> Callable[[slice, slice], Array]:
    """Compute the norms of all rows, for the squared distances of ranges of rows of each."""
    xp = array_api.namespace(A)
    middle = xp.mean(B, axis=0)  # cancellation is least around the middle
    A, B = A - middle, B - middle
    ones_a, ones_b = xp.ones_like(A[:, :1]), xp.ones_like(B[:, :1])
    left = xp.concat([-2 * A, xp.sum(A * A, axis=1)[:, None], ones_a], axis=1)
    right = xp.concat([B, ones_b, xp.sum(B * B, axis=1)[:, None]], axis=1)

    def squares(rows: slice, columns: slice) -> Array:
        return array_api.clip(left[rows] @ right[columns].T, 0.0, _LARGEST_SQUARE)

    return squares


def _rounding_error(Z: Array) -> float:
    """Bound the error of ``squared_distances(Z, Z)``: (d + 2) terms of at most ``4 |z|²``."""
    xp = array_api.namespace(Z)
    largest = float(xp.max(xp.sum(Z * Z, axis=1)))
    return 4 * (Z.shape[1] + 2) * float(xp.finfo(Z.dtype).eps) * largest


@dataclass(frozen=True, eq=False)
class Stationary(LengthScales, Kernel):
    """Base class of kernels that are functions of ``s²``; subclasses define profile and slope.

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.

    Raises
    ------
    InvalidParameter
        If a length scale is not positive and finite.

    Notes
    -----
    A block costs O(a b d), in one matrix product, and a few passes over the block for the formula.
    """

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the profile of ``s²``."""
        scale = np.broadcast_to(self.length_scale, (B.shape[1],))
        middle = (B / scale).mean(axis=0)  # cancellation is least around the middle
        B = B / scale - middle
        scaled = graph.add("Div", A, graph.constant(scale))
        centered = graph.add("Sub", scaled, graph.constant(middle))
        squares = graph.row_sums(graph.add("Mul", centered, centered))
        product = graph.add("MatMul", centered, graph.constant(-2 * B.T))
        total = graph.add("Add", product, graph.constant((B * B).sum(axis=1)[None, :]))
        total = graph.add("Add", total, squares)
        S = graph.add("Clip", total, graph.constant(0.0), graph.constant(_LARGEST_SQUARE))
        return self.profile_operators(graph, S)

    def profile_operators(self, graph: OperatorGraph, S: str) -> str:
        """Write the kernel as ONNX operators of ``s²``; not supported by default.

        Parameters
        ----------
        graph : OperatorGraph
        S : str
            Name of ``s²`` (n, m) in the graph.

        Returns
        -------
        str
            Name of the block (n, m).

        Raises
        ------
        IncompatibleParts
        """
        return super().operators(graph, "", np.empty((0, 0)))

    @abstractmethod
    def profile(self, S: Array) -> Array:
        """Compute the kernel from ``s²``.

        Parameters
        ----------
        S : (a, b) array
            ``s²``; may be overwritten.

        Returns
        -------
        (a, b) array
        """

    @abstractmethod
    def slope(self, S: Array) -> Array:
        """Compute the derivative of the kernel with respect to ``s²``.

        Where it is infinite, at ``s² = 0``, any finite number may be returned.

        Parameters
        ----------
        S : (a, b) array
            ``s²``; may be overwritten.

        Returns
        -------
        (a, b) array
        """

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return self.profile(squared_distances(self._scaled(A), self._scaled(B)))

    def tiles(self, A: Array, B: Array) -> Callable[[slice, slice], Array]:
        """Compute the norms of all rows once."""
        if type(self).block is not Stationary.block:
            return super().tiles(A, B)
        squares = _in_tiles(self._scaled(A), self._scaled(B))
        return lambda rows, columns: self.profile(squares(rows, columns))

    def gram_and_gradient(self, A: Array) -> tuple[Array, Callable[[Array], Floats]]:
        """Use matrix products: ``sum_ij M_ij (z_i - z_j)² = 2 (z' diag(M1) z - z'Mz)``."""
        K, gradients = self.gram_and_gradients(A)
        return K, lambda W: gradients(W)[0]

    def gram_and_gradients(self, A: Array) -> tuple[Array, Callable[[Array], tuple[Floats, Array]]]:
        """Compute the Gram matrix, and gradients of ``sum_ij W_ij k_ij`` for symmetric ``W``.

        Parameters
        ----------
        A : (a, d) array

        Returns
        -------
        gram : (a, a) array
            The caller may overwrite it.
        gradients : callable
            ``gradients(W)`` are those for ``log_parameters`` (p,), and for the rows in units of the
            length scales (a, d); it can be called once.
        """
        xp, Z = array_api.namespace(A), self._scaled(A)
        Z = Z - xp.mean(Z, axis=0)  # minimizes cancellation in differences of sums
        S = squared_distances(Z, Z)
        K = self.profile(xp.asarray(S, copy=True))

        def gradients(W: Array) -> tuple[Floats, Array]:
            M = self._pulls(Z, S, W)
            by_rows = 4 * (Z * xp.sum(M, axis=1)[:, None] - M @ Z)
            by_scale = -array_api.to_numpy(xp.sum(by_rows * Z, axis=0))
            return by_scale if len(self.length_scale) > 1 else by_scale.sum(keepdims=True), by_rows

        return K, gradients

    def _pulls(self, Z: Array, S: Array, W: Array) -> Array:
        """Compute the weights ``W_ij ∂k_ij/∂s²_ij`` of the squared distances, overwriting these."""
        # Rows that are equal up to rounding add nothing; a steep slope would amplify the noise.
        equal = _rounding_error(Z) >= S
        M = self.slope(S)
        M *= W
        if int(array_api.namespace(Z).sum(equal)) > len(Z):
            M[equal] = 0
        array_api.set_diagonal(M, array_api.zeros((len(Z),), M, "float64"))
        return M


class Gaussian(Stationary):
    """``exp(-s²/2)`` (SY2006, eq. 23, with ``θ_l = 1/length_scale_l²``).

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.

    Raises
    ------
    InvalidParameter
        If a length scale is not positive and finite.
    """

    short_names: ClassVar[Names] = {"gaussian": {}}
    file_name = "gaussian"
    mean_shift = True

    def profile_operators(self, graph: OperatorGraph, S: str) -> str:
        """Compute one exponential."""
        return graph.add("Exp", graph.times(S, -0.5))

    def profile(self, S: Array) -> Array:
        """Compute one exponential."""
        S *= -0.5
        return array_api.exp(S)

    def slope(self, S: Array) -> Array:
        """``-k/2``"""
        return self.profile(S) * -0.5


class Laplace(Stationary):
    """``exp(-s)``, the Matérn kernel of smoothness 1/2.

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.

    Raises
    ------
    InvalidParameter
        If a length scale is not positive and finite.
    """

    short_names: ClassVar[Names] = {"laplace": {}}
    file_name = "laplace"

    def profile_operators(self, graph: OperatorGraph, S: str) -> str:
        """Compute one root and one exponential."""
        return graph.add("Exp", graph.add("Neg", graph.add("Sqrt", S)))

    def profile(self, S: Array) -> Array:
        """Compute one root and one exponential."""
        S = array_api.sqrt(S)
        S *= -1
        return array_api.exp(S)

    def slope(self, S: Array) -> Array:
        """``-exp(-s) / (2 s)``"""
        s = array_api.sqrt(array_api.floor_at(S, _SMALLEST_SQUARE))
        return array_api.exp(-s) / (-2 * s)


_LAPLACE = Laplace()


@dataclass(frozen=True, eq=False)
class Matern(Stationary):
    """Matérn kernel of smoothness 1/2, 3/2 or 5/2 (Rasmussen & Williams 2006, eq. 4.17).

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness.

    Raises
    ------
    InvalidParameter
        If a length scale is not positive and finite, or ``nu`` has another value.
    """

    short_names: ClassVar[Names] = {
        "matern12": {"nu": 0.5},
        "matern32": {"nu": 1.5},
        "matern52": {"nu": 2.5},
    }
    file_name = "matern"
    file_fields: ClassVar[Fields] = {"length_scale": "numbers", "nu": "number"}

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.nu) and self.nu in (0.5, 1.5, 2.5)):
            raise InvalidParameter(f"nu of Matern must be 0.5, 1.5 or 2.5; got {shown(self.nu)}.")
        object.__setattr__(self, "nu", float(self.nu))

    def profile_operators(self, graph: OperatorGraph, S: str) -> str:
        """A polynomial times an exponential."""
        if self.nu == 0.5:
            return _LAPLACE.profile_operators(graph, S)
        t = graph.add("Sqrt", graph.times(S, 2 * self.nu))
        polynomial = t
        if self.nu == 2.5:
            polynomial = graph.add("Mul", t, graph.plus(graph.times(t, 1 / 3), 1.0))
        decay = graph.add("Exp", graph.add("Neg", t))
        return graph.add("Mul", graph.plus(polynomial, 1.0), decay)

    def profile(self, S: Array) -> Array:
        """A polynomial of ``t = sqrt(2 nu) s`` times ``exp(-t)``."""
        if self.nu == 0.5:
            return _LAPLACE.profile(S)
        if self.nu == 2.5 and (squares := array_api.flat(S)) is not None:
            matern52(squares, False)
            return S
        S *= 2 * self.nu
        t = array_api.sqrt(S)
        if self.nu == 1.5:
            polynomial = t + 1
        else:
            polynomial = t * (1 / 3)
            polynomial += 1
            polynomial *= t
            polynomial += 1
        t *= -1
        polynomial *= array_api.exp(t)
        return polynomial

    def slope(self, S: Array) -> Array:
        """``-3/2 exp(-t)`` or ``-5/6 (1 + t) exp(-t)``"""
        if self.nu == 0.5:
            return _LAPLACE.slope(S)
        if self.nu == 2.5 and (squares := array_api.flat(S)) is not None:
            matern52(squares, True)
            return S
        S *= 2 * self.nu
        t = array_api.sqrt(S)
        e = array_api.exp(-t)
        return e * -1.5 if self.nu == 1.5 else e * (t + 1) * (-5 / 6)


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Stationary):
    """``(1 + s² / (2 alpha))^-alpha``, a mixture of Gaussians over length scales.

    Rasmussen & Williams 2006, eq. (4.19).

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.
    alpha : float, default=1.0
        Small values mix many length scales; large values approach a Gaussian.

    Raises
    ------
    InvalidParameter
        If a length scale or ``alpha`` is not positive and finite.
    """

    short_names: ClassVar[Names] = {"rational_quadratic": {}}
    file_name = "rational_quadratic"
    file_fields: ClassVar[Fields] = {"length_scale": "numbers", "alpha": "number"}

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", positive("alpha", self.alpha))

    def profile_operators(self, graph: OperatorGraph, S: str) -> str:
        """Compute one power."""
        base = graph.plus(graph.times(S, 1 / (2 * self.alpha)), 1.0)
        return graph.add("Pow", base, graph.constant(-self.alpha))

    def profile(self, S: Array) -> Array:
        """Compute one power."""
        S *= 1 / (2 * self.alpha)
        S += 1
        return S**-self.alpha

    def slope(self, S: Array) -> Array:
        """``-(1 + s²/(2 alpha))^(-alpha - 1) / 2``"""
        S *= 1 / (2 * self.alpha)
        S += 1
        return S ** (-self.alpha - 1) * -0.5

    @property
    def log_parameters(self) -> Floats:
        """Logarithms of the length scales, then of ``alpha``."""
        return np.append(np.log(self.length_scale), np.log(self.alpha))

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other length scales and another ``alpha``."""
        return replace(self, length_scale=np.exp(theta[:-1]), alpha=float(np.exp(theta[-1])))

    def gram_and_gradients(self, A: Array) -> tuple[Array, Callable[[Array], tuple[Floats, Array]]]:
        """``alpha k (u / (1 + u) - log(1 + u))`` for ``alpha``, ``u = s² / (2 alpha)``."""
        xp = array_api.namespace(A)
        K, by_scales = super().gram_and_gradients(A)
        k, Z = xp.asarray(K, copy=True), self._scaled(A)

        def gradients(W: Array) -> tuple[Floats, Array]:
            u = squared_distances(Z, Z)
            u *= 1 / (2 * self.alpha)
            by_alpha = (u / (1 + u) - xp.log1p(u)) * k
            scales, rows = by_scales(W)
            return np.append(scales, self.alpha * float(xp.sum(W * by_alpha))), rows

        return K, gradients

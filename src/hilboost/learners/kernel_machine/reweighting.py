"""Recomputation of the weights of all stages after each stage (SY2006, appendix, eq. 27)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from hilboost.core.dtypes import Floats

_SMALLEST_NEW_PART = 1e-12


@dataclass
class Reweighting:
    """Recursion for the weights ``c`` that minimize ``½ |y - F c|² + ½ λ c'Qc``.

    ``F`` (n, j) contains the outputs of the stages on the training rows, and ``Q`` (j, j) their
    inner products in the feature space of the kernel.  With ``L L' = Q``, ``G = F L⁻ᵀ`` and
    ``M M' = G'G + λ I``, a new stage adds one row to each factor.

    Parameters
    ----------
    regularization : float
        λ

    Notes
    -----
    The j-th stage costs O(n j), compared with O(n j²) for a direct solution.  Memory 8 n bytes per
    stage.
    """

    regularization: float
    _G: list[Floats] = field(default_factory=list, init=False, repr=False)
    _L: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)
    _M: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)

    def add(self, f: Floats, q: Floats, q_own: float, residual: Floats) -> tuple[float, Floats]:
        """Add a stage and return its weight and the changes of the other weights.

        Parameters
        ----------
        f : (n,) float64
            Outputs of the stage, multiplied by the square roots of the sample weights, if any.
        q : (j - 1,) float64
            Inner products of the stage with the earlier stages.
        q_own : float
            Squared norm of the stage.
        residual : (n,) float64
            ``y - F c`` before the stage, multiplied by the same square roots.

        Returns
        -------
        own : float
            Weight of the new stage.
        change : (j - 1,) float64
            Changes of the weights of the earlier stages.
        """
        lam = self.regularization
        low = _solve(self._L, q)
        # A late stage is nearly a linear combination of the earlier ones.
        new_part = max(q_own - float(low @ low), _SMALLEST_NEW_PART * q_own, 1e-300)
        l_own = float(np.sqrt(new_part))
        g = f.copy()
        for column, factor in zip(self._G, low, strict=True):
            g -= factor * column
        g /= l_own
        overlap = np.array([column @ g for column in self._G])
        m = _solve(self._M, overlap)
        eta = _solve(self._M, m, transposed=True)
        d = g.copy()
        for column, factor in zip(self._G, eta, strict=True):
            d -= factor * column
        size = lam + max(float(d @ g), 0.0)
        b = float(g @ residual)  # equals d'y, and remains accurate in late stages
        own = b / (l_own * size) if size > 0 else 0.0
        change = -own * _solve(self._L, low + l_own * eta, transposed=True)
        self._L = _grown(self._L, low, l_own)
        self._M = _grown(self._M, m, np.sqrt(size))
        self._G.append(g)
        return own, change


def _solve(factor: Floats, right: Floats, transposed: bool = False) -> Floats:
    if not len(right):
        return right
    return scipy.linalg.solve_triangular(
        factor, right, lower=True, trans=int(transposed), check_finite=False
    )


def _grown(factor: Floats, row: Floats, corner: float) -> Floats:
    j = len(factor)
    grown = np.zeros((j + 1, j + 1))
    grown[:j, :j] = factor
    grown[j, :j] = row
    grown[j, j] = max(corner, 1e-150)
    return grown

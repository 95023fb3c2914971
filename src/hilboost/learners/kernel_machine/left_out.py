"""Residuals of rows that are left out of a linear system, without solving it again.

Rows are left out one by one, or with all rows of their group.  By time, blocks of the later half
are predicted from the rows before them, for which the factor of all rows suffices: a leading part
of it is that of the earlier rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api, lapack
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats
from hilboost.reductions.row_splits import in_turn

_BLOCKS = 5  # of the later half of the rows


class LeftOut(NamedTuple):
    """Rows that were left out."""

    rows: NDArray[np.intp]  # (k,) places
    residual: Floats  # (k, r)
    scaled: Floats  # (k, r): divided by the variance given the rows that were not left out


def left_out(
    factor: Floats,  # (n, n): ``L`` of ``C = L Lᵀ``
    Y: Floats,  # (n, r)
    dependence: Dependence | None,  # by what rows are left out; ``None`` for one by one
    team: ThreadTeam | None = None,
) -> LeftOut:
    """Predict rows from the others; cost O(n³), and by time O(n² r) if rows are in its order."""
    if dependence is None or not dependence.divides:
        return LeftOut(np.arange(len(Y)), *array_api.left_out(factor, Y, team))
    if dependence.groups is None:
        return _forward(factor, Y, dependence)
    return _by_group(factor, Y, dependence.groups, team)


def _by_group(
    factor: Floats, Y: Floats, groups: NDArray[np.int64], team: ThreadTeam | None
) -> LeftOut:
    """Residuals ``(C⁻¹_gg)⁻¹ α_g`` of each group ``g``, where ``α = C⁻¹ Y``."""
    inverse = lapack.inverse_by_tiles(factor, team or ThreadTeam())
    alpha = inverse.T @ (inverse @ Y)
    residual, scaled = np.empty(Y.shape), np.empty(Y.shape)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, 1 + np.flatnonzero(np.diff(groups[order]))):
        columns = inverse[:, rows]
        covariance = np.linalg.inv(columns.T @ columns)
        residual[rows] = covariance @ alpha[rows]
        scaled[rows] = residual[rows] / np.diag(covariance)[:, None]
    return LeftOut(np.arange(len(Y)), residual, scaled)


def _forward(factor: Floats, Y: Floats, dependence: Dependence) -> LeftOut:
    """Residuals of blocks of time, given the rows before them and before a gap."""
    assert dependence.times is not None
    order = np.argsort(dependence.times, kind="stable")
    if (np.diff(order) < 0).any():
        C = factor @ factor.T
        factor, Y = array_api.cholesky(C[np.ix_(order, order)]), Y[order]
    white = array_api.solve_lower(factor, Y.copy())
    key = key_of(0, Purpose.FOLDS_COMPARED)
    rows, residuals, variances = [], [], []
    for learned, held in in_turn(key, _BLOCKS, dependence.rows(order)):
        m = len(learned)  # the first ones
        rows.append(order[held])
        residuals.append(Y[held] - factor[held, :m] @ white[:m])
        variances.append((factor[held, m:] ** 2).sum(axis=1))
    residual = np.concatenate(residuals)
    return LeftOut(np.concatenate(rows), residual, residual / np.concatenate(variances)[:, None])

"""Losses over all rows, in blocks of rows.

Blocks keep temporary arrays in the cache and give threads something to share; each row's result
depends on that row alone, so the number of threads changes nothing.
"""

from __future__ import annotations

import numpy as np

from hilboost.backends.cells import add_cell_values
from hilboost.backends.team import Team
from hilboost.core import dtypes
from hilboost.core.contracts import CellModel, Fitted, Loss
from hilboost.core.errors import IncompatibleParts
from hilboost.core.records import Floats, Gradients, Stage, Target

_BLOCK_CELLS = 32_768


def blocks(n: int, r: int) -> list[slice]:
    """Row blocks of about 32,768 numbers each."""
    size = max(256, _BLOCK_CELLS // max(1, r))
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def mean_loss(loss: Loss, target: Target, raw: Floats, team: Team) -> float:
    """Weighted mean of the loss."""

    def total(rows: slice) -> float:
        part = target.rows(rows)
        value = loss.value(part, raw[rows])
        return float(value.sum() if part.weight is None else part.weight @ value)

    return sum(team.map(total, blocks(*raw.shape))) / target.total_weight()


def gradients(
    loss: Loss, target: Target, raw: Floats, team: Team, reuse: Gradients | None
) -> Gradients:
    """Gradients of all rows; the arrays of ``reuse`` are overwritten."""
    parts = blocks(*raw.shape)
    if len(parts) == 1:
        return checked(loss, loss.gradients(target, raw), raw.shape)
    first = checked(loss, loss.gradients(target.rows(parts[0]), raw[parts[0]]), raw[parts[0]].shape)
    negative = np.empty_like(raw) if reuse is None else reuse.negative
    hessian = None
    if first.hessian is not None:
        hessian = (
            reuse.hessian
            if reuse is not None and reuse.hessian is not None
            else (np.empty_like(raw))
        )

    def fill(rows: slice) -> None:
        part = loss.gradients(target.rows(rows), raw[rows])
        negative[rows] = part.negative
        if hessian is not None:
            hessian[rows] = part.hessian

    team.map(fill, parts)
    return Gradients(negative, hessian)


def checked(loss: Loss, result: Gradients, shape: tuple[int, ...]) -> Gradients:
    """A loss's gradients as contiguous float64 arrays of the right shape, or a refusal."""
    arrays = []
    for name, array in (("negative", result.negative), ("hessian", result.hessian)):
        if array is None:
            arrays.append(None)
            continue
        array = np.ascontiguousarray(array, dtype=dtypes.RAW)
        if array.shape != shape:
            raise IncompatibleParts(
                f"{type(loss).__name__}.gradients returned a {name} array of shape {array.shape}; "
                f"raw has shape {shape}. Return one entry for every entry of raw."
            )
        arrays.append(array)
    assert arrays[0] is not None
    return Gradients(arrays[0], arrays[1])


def add_stage(raw: Floats, stage: Stage, fitted: tuple[Fitted, ...], team: Team) -> None:
    """``raw += coefficient · model`` on the training rows."""
    for part, result in zip(stage.parts, fitted, strict=True):
        coefficient = stage.coefficient[part.columns]
        if result.cells is None:
            raw[:, part.columns] += coefficient * result.outputs
            continue
        assert isinstance(part.model, CellModel)
        values = part.model.values * coefficient
        cells, first = result.cells, part.columns.start
        team.map(
            lambda rows, v=values, c=cells, f=first: add_cell_values(  # type: ignore[misc]
                v, c, raw, f, rows.start, rows.stop
            ),
            blocks(len(raw), values.shape[1]),
        )

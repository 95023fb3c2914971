"""Evaluation of losses over all rows, in blocks of rows.

Blocks keep temporary arrays in the cache and are distributed among threads.  The result of a row
depends only on that row, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import add_numbers, count_of, empty_sums, is_finite, quotient
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.member import GradientMemory
from hilboost.core import dtypes
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, counted
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Corners, Gradients, Structure
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.engine import add_leaf_values
from hilboost.reductions.sums import has_whole_weights, sum_of_blocks

_BLOCK_CELLS = 32_768
_BLOCK_CELLS_OF_BOTH = 65_536
"""Threads that call many short functions wait for each other's turn in Python."""

_ROWS_OF_GROUPS, _RANGES_PER_THREAD = 2048, 4


def blocks(n: int, r: int, cells: int = _BLOCK_CELLS) -> list[slice]:
    """Split rows into blocks of about so many numbers each; no rows are one block."""
    size = max(256, cells // max(1, r))
    if n <= size:
        return [slice(0, n)]
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def row_ranges(
    loss: Loss, target: Target, r: int, n_threads: int, cells: int = _BLOCK_CELLS
) -> list[slice]:
    """Split rows into blocks; for a loss that couples rows, whole groups, the longest first."""
    n = len(target.y)
    if not loss.couples_rows:
        return blocks(n, r, cells)
    if target.groups is None or n_threads == 1:
        return [slice(0, n)]
    # The first group that begins in each block begins a range.
    n_ranges = min(_RANGES_PER_THREAD * n_threads, max(1, n // _ROWS_OF_GROUPS))
    starts, size = target.starts, -(-n // n_ranges)
    _, firsts = np.unique(starts[:-1] // size, return_index=True)
    ends = [*starts[firsts].tolist(), n]
    ranges = [slice(begin, end) for begin, end in pairwise(ends)]
    return sorted(ranges, key=lambda rows: rows.start - rows.stop)


def mean_loss(
    loss: Loss,
    target: Target,
    raw: Floats,
    team: ThreadTeam,
    inside: NDArray[np.bool_] | None = None,
) -> float:
    """Compute the weighted mean loss over all rows, or over those ``inside`` (n,).

    The mean over groups if the loss couples the rows of groups.  The nearest float64 of the
    quotient of exact sums, which depends on no order of the rows.
    """
    if inside is not None and loss.couples_rows:
        target, raw, inside = target.part(inside), raw[inside], None
    sums = loss_sums(loss, target, raw, team, inside)
    return quotient(sums[0], sums[1])


def loss_sums(
    loss: Loss,
    target: Target,
    raw: Floats,
    team: ThreadTeam,
    inside: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Sum up the loss and its weight exactly, (2, 5) int64."""
    whole = has_whole_weights(target)

    def totals(rows: slice) -> NDArray[np.int64]:
        block, here = target.block(rows), raw[rows]
        value = _checked_value(loss, loss.value(block, here), len(here))
        return _sums_of(loss, block, value, whole, None if inside is None else inside[rows])

    ranges = row_ranges(loss, target, raw.shape[1], team.n_threads)
    return sum_of_blocks(team.map(totals, ranges), target.share)


def _sums_of(
    loss: Loss, block: Target, value: Floats, whole: bool, inside: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Sum up the losses (n,) of a block and their weights exactly, (2, 5) int64."""
    none = np.empty(0)
    by_group = loss.couples_rows and block.groups is not None
    weight = none if block.weight is None else block.weight
    if inside is not None:
        value, weight = value[inside], weight[inside] if len(weight) else none
    sums = empty_sums(2)
    add_numbers(value, weight, whole, sums[0])
    if not is_finite(sums[0]):
        raise not_finite(loss)
    if by_group and len(weight):
        weight = weight[block.starts[:-1]]
    if block.weight is not None:
        add_numbers(weight, none, whole, sums[1])
    else:
        sums[1] = count_of(block.n_units if by_group else len(value))
    return sums


def not_finite(loss: Loss) -> IncompatibleParts:
    """Return the error for losses that are NaN or infinite."""
    return IncompatibleParts(
        f"{type(loss).__name__}.value returned NaN or infinity; set a smaller learning_rate, or "
        "return finite numbers for every raw if the loss is your own."
    )


def mean_loss_and_gradients(
    loss: Loss,
    target: Target,
    raw: Floats,
    team: ThreadTeam,
    memory: GradientMemory | None,
    inside: NDArray[np.bool_] | None = None,
    logistic: bool = False,
) -> tuple[float, Gradients]:
    """Compute :func:`mean_loss` and :func:`gradients` in one pass over the rows.

    ``inside`` (n,) must be ``None`` for a loss that couples rows.  ``logistic`` tells whether the
    gradients may be without a hessian, see :attr:`Structure.logistic`.
    """
    whole = has_whole_weights(target)
    ranges = row_ranges(loss, target, raw.shape[1], team.n_threads, _BLOCK_CELLS_OF_BOTH)

    def evaluated(rows: slice, room: Gradients) -> tuple[NDArray[np.int64], Gradients]:
        block, here = target.block(rows), raw[rows]
        value, now = loss.value_and_gradients(block, here, room)
        value = _checked_value(loss, value, len(here))
        sums = _sums_of(loss, block, value, whole, None if inside is None else inside[rows])
        return sums, now if loss.checked_by_value else checked(loss, now, here.shape)

    found, now = _in_ranges(evaluated, ranges, raw, team, memory, logistic)
    sums = sum_of_blocks(found, target.share)
    return quotient(sums[0], sums[1]), now


def gradients(
    loss: Loss, target: Target, raw: Floats, team: ThreadTeam, memory: GradientMemory | None = None
) -> Gradients:
    """Compute the gradients of all rows, in ``memory`` if the last ones are not used any more."""

    def evaluated(rows: slice, _: Gradients) -> tuple[None, Gradients]:
        here = raw[rows]
        return None, checked(loss, loss.gradients(target.block(rows), here), here.shape)

    ranges = row_ranges(loss, target, raw.shape[1], team.n_threads)
    return _in_ranges(evaluated, ranges, raw, team, memory)[1]


def _in_ranges(
    evaluated: Callable[[slice, Gradients], tuple[Any, Gradients]],
    ranges: list[slice],
    raw: Floats,
    team: ThreadTeam,
    memory: GradientMemory | None,
    logistic: bool = False,
) -> tuple[list[Any], Gradients]:
    """Evaluate ranges of rows, and put their gradients together; what else results is a list.

    Each range is given the memory for its gradients, and for its hessians if the memory has some.
    Otherwise, it is told whether these may be left out.
    """
    memory = GradientMemory() if memory is None else memory
    negative = memory.like(raw, "negative gradient")
    hessian = memory.like(raw, "hessian") if memory.has("hessian") else None
    structure = Structure(logistic=logistic and hessian is None)
    if len(ranges) == 1:
        found, now = evaluated(ranges[0], Gradients(negative, hessian, structure))
        if now.hessian is not None:
            memory.like(raw, "hessian")  # for the next stage
        return [found], now
    lock = Lock()

    def fill(rows: slice) -> tuple[Any, Gradients]:
        own = None if hessian is None else hessian[rows]
        room = Gradients(negative[rows], own, structure)
        found, here = evaluated(rows, room)
        if here.negative_gradient is not room.negative_gradient:
            negative[rows] = here.negative_gradient
        if here.hessian is None:
            return found, replace(here, negative_gradient=negative)
        with lock:
            whole = memory.like(raw, "hessian")
        if here.hessian is not room.hessian:
            whole[rows] = here.hessian
        return found, replace(here, negative_gradient=negative, hessian=whole)

    results = team.map(fill, ranges)
    parts = [here for _, here in results]
    return [found for found, _ in results], replace(parts[0], corners=_joined_corners(parts))


def _joined_corners(parts: list[Gradients]) -> Corners | None:
    corners = [part.corners for part in parts if part.corners is not None]
    if not corners:
        return None
    names = [field.name for field in fields(Corners)]
    return Corners(*(np.concatenate([getattr(one, name) for one in corners]) for name in names))


def checked(loss: Loss, result: Gradients, shape: tuple[int, ...]) -> Gradients:
    """Validate the gradients of a loss: float64 arrays of the right shape."""
    negative = _checked(loss, "negative gradient", result.negative_gradient, shape)
    structure = result.structure
    if result.hessian is None:
        structure = Structure(structure.bound, residual=structure.residual)
        return Gradients(negative, structure=structure)
    hessian = _checked(loss, "hessian", result.hessian, shape)
    structure = replace(structure, residual=False, logistic=False)
    return Gradients(negative, hessian, structure, corners=result.corners)


def _checked(loss: Loss, name: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(array, dtype=dtypes.RAW)
    where = f"{type(loss).__name__}.gradients returned a {name} array"
    if array.shape != shape:
        raise IncompatibleParts(
            f"{where} of shape {array.shape}; raw has shape {shape}. Return one entry for each "
            "entry of raw."
        )
    if not np.isfinite(array.sum()):
        raise IncompatibleParts(
            f"{where} with NaN or infinite entries; return finite numbers for every raw."
        )
    if name == "hessian" and array.min(initial=0.0) < 0:
        raise IncompatibleParts(
            f"{where} with negative entries; return the diagonal of a convex upper bound, or None."
        )
    return array


def _checked_value(loss: Loss, value: Floats, n: int) -> Floats:
    value = np.asarray(value, dtype=dtypes.RAW)
    if value.shape != (n,):
        raise IncompatibleParts(
            f"{type(loss).__name__}.value returned an array of shape {value.shape} for "
            f"{counted(n, 'row')}; return one number per row, ({n},)."
        )
    return np.ascontiguousarray(value)


def checked_initial_raw(loss: Loss, target: Target) -> Floats:
    """Compute and validate the initial prediction of a loss, (r,) float64."""
    start = np.asarray(loss.initial_raw(target), dtype=dtypes.RAW)
    if start.ndim != 1 or not len(start) or not np.isfinite(start).all():
        raise IncompatibleParts(
            f"{type(loss).__name__}.initial_raw returned {start!r}; return one finite number per "
            "output."
        )
    return start


def add_stage(raw: Floats, stage: Stage, fitted: tuple[FittedTerm, ...], team: ThreadTeam) -> None:
    """Add ``coefficient · model`` to ``raw`` on the training rows."""
    tasks: list[Callable[[], None]] = []
    for term, result in zip(stage.terms, fitted, strict=True):
        if result.leaves is None:
            assert result.outputs is not None
            raw[:, term.columns] += term.coefficient * result.outputs
            continue
        model = term.model.on_leaves()
        assert model is not None
        values, first = term.coefficient * model.values, term.columns.start
        add = partial(add_leaf_values, values, result.leaves, raw, first)
        for rows in blocks(len(raw), term.columns.stop - first):
            tasks.append(partial(add, rows.start, rows.stop))
    # Each column belongs to one term: the order of the tasks has no effect.
    team.map(lambda task: task(), tasks, 4)

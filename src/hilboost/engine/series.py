"""Several stages of separate trees in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import empty_sums, merge_sums
from hilboost.core import dtypes
from hilboost.core.base_model import Stage, Term
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest
from hilboost.engine.buffer_pool import fit_separately
from hilboost.engine.next_root import has_enough_rows
from hilboost.engine.ops.cpu.stage_series import HELD_OUT, LEARNED, RowDraws, Series
from hilboost.engine.separate import SeparateTask
from hilboost.engine.settings import TreeSettings
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData

_SQUARED_ERROR, _LOGISTIC, _SOFTMAX = "squared_error", "logistic", "softmax"
_LOSSES = {_SQUARED_ERROR, _LOGISTIC, _SOFTMAX}


_CELLS = 2**21  # outputs of rows in all stages of a call, which takes up to some .05 s
_FEWEST_STAGES = 2


def fit_stages(
    settings: TreeSettings, data: TreeData, request: StageRequest
) -> FittedStages | None:
    """Fit the first stages of one tree for each output; ``None`` where these are fitted alone.

    Between the stages of a small table, Python takes more time than the stages themselves.
    """
    n, r = request.raw.shape
    if n * r * _FEWEST_STAGES > _CELLS or not _is_supported(settings, data, request):
        return None
    request = request.first(max(_FEWEST_STAGES, _CELLS // (n * r)))
    before = request.raw.copy(order="F")
    # In Fortran order, so that the columns of the task are views.
    negative = np.empty((r, n))
    hessian = None if request.loss == _SQUARED_ERROR else np.empty((r, n))
    sample = RowSample(_rows_of_stages(request), request.weight, stage=request.number)
    curved = None if hessian is None else hessian.T
    gradients = Gradients(negative.T, curved, Structure(of_probabilities=curved is not None))
    task = SeparateTask.of(gradients, sample)
    compiled = _compiled(request, task, data.team.n_threads)
    leaf_of_row = np.empty((r, n), dtype=dtypes.LEAF)
    trees, _ = fit_separately(
        settings, data, sample, task, lambda: _seeds(request), leaf_of_row, compiled
    )
    stages = _stages(trees, r, request.rate)
    first, *others = compiled.losses
    for sums in others:
        merge_sums(first.reshape(-1, 5), sums.reshape(-1, 5))
    return FittedStages(stages, first[: len(stages)], before)


def _is_supported(settings: TreeSettings, data: TreeData, request: StageRequest) -> bool:
    """Whether stages fitted one by one would be the same."""
    r = request.raw.shape[1]
    if request.loss not in _LOSSES or any(settings.monotonic) or data.may_be_sorted:
        return False
    if not data.plan.separates(r):
        return False
    total = len(request.y) if request.weight is None else request.weight.sum()
    if data.plan.rounds and r == 1 and has_enough_rows(total):
        return False  # leaf values are rounded
    # The layout of weighted gradients depends on the total weight of the rows that are drawn.
    return request.weight is None or request.n_drawn is None


def _rows_of_stages(request: StageRequest) -> NDArray[np.uint32] | None:
    """The rows to learn from, or memory for those that a stage draws."""
    return request.rows if request.n_drawn is None else np.zeros(request.n_drawn, dtype=dtypes.ROW)


def _compiled(request: StageRequest, task: SeparateTask, n_threads: int) -> Series:
    """Inputs of the compiled code besides the trees."""
    n, _ = request.raw.shape
    n_stages = len(request.generators)
    parts = np.full(n, LEARNED if request.rows is None else HELD_OUT, dtype=np.int64)
    if request.rows is not None:
        parts[request.rows] = LEARNED
    y: Any = np.array(request.y.T, dtype=dtypes.RAW, order="C")
    codes = hessian = None
    if request.loss == _SOFTMAX:
        y, codes = None, np.array(request.y[:, 0], dtype=np.int64)
    if request.loss != _SQUARED_ERROR:
        hessian = task.learned.hessians.reshape(-1)
    return Series(
        n_stages=n_stages,
        y=y,
        codes=codes,
        raw=request.raw.T.reshape(-1),
        negative=task.learned.gradients.reshape(-1),
        hessian=hessian,
        parts=parts,
        draws=_draws_of_rows(request),
        rate=request.rate,
        values=np.empty((2, n)),
        losses=empty_sums(n_threads, n_stages, 2),
        n_fitted=np.full(1, n_stages),
    )


def _draws_of_rows(request: StageRequest) -> RowDraws | None:
    """How each stage draws rows, if it does."""
    if request.n_drawn is None:
        return None
    pool = np.empty(0, dtype=dtypes.ROW) if request.rows is None else request.rows
    hashes = np.empty((2, len(pool) or len(request.raw)), dtype=np.uint64)
    return RowDraws(pool, hashes, request.keys)


def _seeds(request: StageRequest) -> list[int]:
    """The seeds of the trees of all stages."""
    r = request.raw.shape[1]
    drawn = [generator().integers(2**62, size=r) for generator in request.generators]
    return [int(seed) for seed in np.concatenate(drawn)]


def _stages(trees: list[Tree], r: int, rate: float) -> list[Stage]:
    """Stages of ``r`` trees each."""
    outputs, factor = [slice(k, k + 1) for k in range(r)], np.full(1, rate)
    terms = [Term(tree, outputs[k % r], factor) for k, tree in enumerate(trees)]
    return [Stage(tuple(terms[k : k + r])) for k in range(0, len(terms), r)]

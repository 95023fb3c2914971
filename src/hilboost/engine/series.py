"""Several stages of separate trees in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hilboost.backends.exact_sums import empty_sums, merge_sums
from hilboost.core import dtypes
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest
from hilboost.engine import next_root
from hilboost.engine.ops.cpu.stage_series import HELD_OUT, LEARNED, RowDraws, Series
from hilboost.engine.settings import TreeSettings
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData

_SQUARED_ERROR, _LOGISTIC, _SOFTMAX = "squared_error", "logistic", "softmax"
_LOSSES = {_SQUARED_ERROR, _LOGISTIC, _SOFTMAX}


_CELLS = 2**21  # outputs of rows in all stages of a call, which takes some .05 s on two threads
_FEWEST_STAGES = 2


@dataclass(frozen=True)
class RequestedStages:
    """The arguments by which :func:`~hilboost.engine.fit_stages` fits requested stages."""

    gradients: Gradients  # memory for one stage
    sample: RowSample
    compiled: Series
    generators: Sequence[Callable[[], np.random.Generator]]
    before: Floats

    @classmethod
    def of(cls, settings: TreeSettings, data: TreeData, request: StageRequest) -> Self | None:
        """Collect the first stages of one tree for each output.

        Returns ``None`` where these are fitted alone.  Between the stages of a small table, Python
        takes more time than the stages themselves.
        """
        n, r = request.raw.shape
        n_cells = _CELLS * max(1, data.team.n_threads // 2)
        if n * r * _FEWEST_STAGES > n_cells or not _is_supported(settings, data, request):
            return None
        # The rows to learn from, or memory for those that a stage draws.
        m = request.n_drawn
        rows = request.rows if m is None else np.zeros(m, dtype=dtypes.ROW)
        sample = RowSample(rows, request.weight, stage=request.number, rate=request.rate)
        sorts = data.n_sorts > 0 and data.sorts(sample, r)  # the rows, by the tree of one stage
        request = request.first(1 if sorts else max(_FEWEST_STAGES, n_cells // (n * r)))
        # In Fortran order, so that the columns of a task are views.
        negative = np.empty((r, n))
        hessian = np.empty((0 if request.loss == _SQUARED_ERROR else r, n))
        curved = hessian.T if len(hessian) else None
        structure = Structure(residual=curved is None, of_probabilities=curved is not None)
        gradients = Gradients(negative.T, curved, structure)
        series = _compiled(request, negative, hessian, data.team.n_threads)
        return cls(gradients, sample, series, request.generators, request.raw.copy(order="F"))

    def fitted(self, trees: list[Tree]) -> FittedStages:
        """Return the stages of these trees."""
        first, *others = self.compiled.losses
        for sums in others:
            merge_sums(first.reshape(-1, 5), sums.reshape(-1, 5))
        r, factor = self.before.shape[1], np.full(1, self.compiled.rate)
        columns = [slice(k, k + 1) for k in range(r)]
        terms = [Term(tree, columns[k % r], factor) for k, tree in enumerate(trees)]
        stages = [Stage(tuple(terms[k : k + r])) for k in range(0, len(terms), r)]
        return FittedStages(stages, first[: len(stages)], self.before)


def _is_supported(settings: TreeSettings, data: TreeData, request: StageRequest) -> bool:
    """Whether stages fitted one by one would be the same."""
    r = request.raw.shape[1]
    if request.loss not in _LOSSES or any(settings.monotonic):
        return False
    if settings.shared or data.plan.operations is not None or data.plan.fit_tree is not None:
        return False
    if data.plan.carries_root and r == 1 and len(request.y) >= next_root.FEWEST_ROWS:
        return False  # each root follows from the tree before
    # The layout of weighted gradients depends on the total weight of the rows that are drawn.
    return request.weight is None or request.n_drawn is None


def _compiled(request: StageRequest, negative: Floats, hessian: Floats, n_threads: int) -> Series:
    """Inputs of the compiled code besides the trees."""
    n, _ = request.raw.shape
    n_stages = len(request.generators)
    parts = np.zeros(n, dtype=np.int64)  # memory that is not touched before it is read
    if request.rows is not None:
        parts[:] = HELD_OUT
        parts[request.rows] = LEARNED
    codes = request.y[: n if request.loss == _SOFTMAX else 0, 0]
    pool, draws_rows = request.rows, request.n_drawn is not None
    if pool is None or not draws_rows:
        pool = np.empty(0, dtype=dtypes.ROW)
    hashes = np.empty((2, (len(pool) or n) if draws_rows else 0), dtype=np.uint64)
    return Series(
        n_stages=n_stages,
        y=np.require(request.y.T, dtypes.RAW, ["C", "W"]),
        codes=np.array(codes, dtype=np.int64),
        raw=request.raw.T.reshape(-1),
        negative=negative.reshape(-1),
        hessian=hessian.reshape(-1),
        parts=parts,
        draws=RowDraws(pool, hashes, request.keys if draws_rows else np.empty(0, np.uint64)),
        rate=request.rate,
        values=np.empty((2, n)),
        losses=empty_sums(n_threads, n_stages, 2),
        n_fitted=np.full(1, n_stages),
    )

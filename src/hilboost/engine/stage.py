"""Trees of one or several stages: gradients to fixed point, growth, leaf values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import empty_sums, merge_sums
from hilboost.core import dtypes
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest
from hilboost.engine import next_root
from hilboost.engine.driver import grow_tree
from hilboost.engine.gradients import pack
from hilboost.engine.growth_inputs import borrowed, growth_of, projected, skip_one
from hilboost.engine.leaves import as_tree, grown_tree, leaf_of_rows, newton_steps, weights_of
from hilboost.engine.next_root import NextRoot
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.leaves import LeafRule, round_values, steps_of_totals, unit_of_outputs
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES
from hilboost.engine.ops.cpu.stage_series import HELD_OUT, LEARNED, ONE_STAGE, RowDraws, Series
from hilboost.engine.row_order import ranks_of_leaves
from hilboost.engine.separate import Generators, fewest_rounded, fit_separately
from hilboost.engine.settings import TreeSettings, VectorSettings
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData
from hilboost.reductions.sums import is_whole

_SQUARED_ERROR, _LOGISTIC, _SOFTMAX = "squared_error", "logistic", "softmax"
_LOSSES = {_SQUARED_ERROR, _LOGISTIC, _SOFTMAX}
_CELLS = 2**21  # outputs of rows in all stages of a call, which takes some .05 s on two threads
_FEWEST_STAGES = 2


def fit_stages(
    settings: TreeSettings | VectorSettings,
    data: TreeData,
    gradients: Gradients,
    sample: RowSample,
    generators: Generators,
    series: Series = ONE_STAGE,
) -> tuple[list[Tree], NDArray[np.int32]]:
    """Fit one shared tree, or one tree for each output, in one stage or a series of stages.

    Returns the trees, one stage after the other, and the leaf of each row in the trees of the last
    stage, (n_trees, n).  A series computes its gradients in the memory of the given ones.
    """
    gradients = _writable(gradients, "negative_gradient", "hessian")
    sample = _writable(sample, "rows", "weight")
    n, r = gradients.negative_gradient.shape
    leaves = np.empty((1 if settings.shared else r, n), dtype=dtypes.LEAF)
    is_alone = data.plan.separates(r) and not data.sorts(sample, r)
    if series is not ONE_STAGE or is_alone:
        own = cast("TreeSettings", settings)
        return fit_separately(own, data, gradients, sample, generators, leaves, series), leaves
    groups = [slice(0, r)] if settings.shared else [slice(k, k + 1) for k in range(r)]
    rng = generators[0]()
    fit: Callable[..., Tree] = data.plan.fit_tree or fit_tree
    trees = [
        fit(settings, data, gradients, columns, sample, rng, leaf_of_row)
        for columns, leaf_of_row in zip(groups, leaves, strict=True)
    ]
    return trees, leaves


def _writable(given: _Arrays, *names: str) -> _Arrays:
    """Copy read-only arrays, whose type is another one, for which code would be compiled again."""
    arrays = {name: getattr(given, name) for name in names}
    read_only = {k: a.copy() for k, a in arrays.items() if a is not None and not a.flags.writeable}
    return replace(given, **read_only) if read_only else given


def _values(
    data: TreeData,
    growth: Growth,
    leaves: NDArray[np.int64],
    learned: WeightedGradients,
    fewest_rounded: float,
    rate: float | None,
) -> Floats:
    """The values of the leaves with these node numbers, rounded if there are many rows."""
    bounds = None if growth.constraints is None else growth.constraints.bounds
    packing, totals = growth.rules.packing, growth.sums.totals
    rule = LeafRule(growth.rules.limits.criterion, packing, totals, bounds)
    unit = unit_of_outputs(packing, totals[0, 0], fewest_rounded)
    values, multiples = np.empty((len(leaves), 1)), np.empty(len(leaves))
    if not steps_of_totals(rule, leaves, unit, values):
        weights = weights_of(totals[leaves], packing)
        of_leaves = None if bounds is None else bounds[leaves]
        values = newton_steps(data, growth, leaves, learned, weights, rule.criterion, of_leaves)
    is_rounded = rate is not None and round_values(unit, rate, values, multiples)
    if is_rounded and data.next_root is not None:
        data.next_root.note_steps(2 * multiples)
    return values


def fit_tree(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    columns: slice,
    sample: RowSample,
    rng: np.random.Generator,
    leaf_of_row: NDArray[np.int32],
) -> Tree:
    """Fit one tree to some outputs on all threads, and write the leaf of each row."""
    rng = np.random.default_rng(int(rng.integers(2**62)))
    if sample.rows is not None:
        data.bring_rows_back()
    next_root = _next_root(settings, data, gradients, sample)
    learned, team = _learned(gradients, columns, sample, data.share), data.team
    space = borrowed(settings, data, team.n_threads, sample)
    try:
        space.write_rows(sample.rows, team)
        sketched, salt = _sketched(settings, learned, rng), data.salt(columns.start, sample.stage)
        of_probabilities = gradients.structure.of_probabilities
        packed = pack(space, sketched, of_probabilities, salt, data, next_root)
        growth = growth_of(settings, data, space, packed, rng)
        if packed.compact is None:
            next_root = None
        elif next_root is not None:
            growth = next_root.carried(growth, space, team)
        _grow(settings, growth, data, sample)
        thresholds, is_category = _thresholds(growth, data.table), growth.rules.is_category
        grown, depth = grown_tree(growth.nodes, thresholds, is_category)
        leaves = grown.leaves
        leaf_at = None if next_root is None or not next_root.by_leaves else space.flags
        in_order = data.operations.in_order
        if in_order:
            leaf_of_rows(team, growth, leaves, leaf_of_row, data.order, leaf_at)
        else:
            leaf_of_row[:] = -1
        if next_root is not None:
            next_root.note_tree(growth, leaves, space.flags, space)
        if sample.rows is not None or not in_order:
            data.operations.walk(growth, grown, leaf_of_row)
        fewest = fewest_rounded(data, gradients, sample)
        values = _values(data, growth, leaves, learned, fewest, sample.rate)
        tree = as_tree(grown, depth, values, growth.categories)
    finally:
        space.release()
    if sample.rows is None:
        data.sort_rows(leaf_of_row, ranks_of_leaves(growth.nodes.fields, leaves))
    return tree


def _next_root(
    settings: TreeSettings, data: TreeData, gradients: Gradients, sample: RowSample
) -> NextRoot | None:
    """Return what carries the histogram of the root to the next tree, if that saves time."""
    next_root = data.next_root
    if next_root is None:
        return None
    next_root.by_leaves = gradients.structure.residual
    is_plain = data.n_sorts == 0 and sample.weight is None and sample.rows is None
    alone = gradients.negative_gradient.shape[1] == 1
    if is_plain and alone and next_root.suits(data.n_rows, settings.max_leaf_nodes):
        return next_root
    next_root.forget()
    return None


def _learned(
    gradients: Gradients, columns: slice, sample: RowSample, share: RowShare | None
) -> WeightedGradients:
    """Gradients, hessians and weights of some outputs, contiguous.

    Hessians that are derived from the gradients are these.
    """
    negative = np.ascontiguousarray(gradients.negative_gradient[:, columns])
    logistic = gradients.structure.logistic
    hessian = negative if logistic else np.empty((len(negative), 0))
    if gradients.hessian is not None and not logistic:
        hessian = np.ascontiguousarray(gradients.hessian[:, columns])
    weight = np.empty(0) if sample.weight is None else sample.weight
    rows = np.empty(0, dtype=dtypes.ROW) if sample.rows is None else sample.rows
    whole = is_whole(weight, share)
    return WeightedGradients(negative, hessian, weight, rows, whole, logistic)


def _sketched(
    settings: TreeSettings, learned: WeightedGradients, rng: np.random.Generator
) -> WeightedGradients:
    """Return the gradients on which a tree is grown: the given ones, or projections of them."""
    sketch = settings.sketch if settings.shared else None
    gradients = projected(learned.gradients, sketch, rng)
    skip_one(rng)
    if gradients is learned.gradients:
        return learned
    return learned._replace(gradients=gradients, hessians=learned.hessians[:, :0])


def _grow(settings: TreeSettings, growth: Growth, data: TreeData, sample: RowSample) -> None:
    """Grow the tree from its root, in the order of the settings."""
    if data.plan.operations is None:
        data.processor.grow(growth, settings.symmetric)
        return
    counted = sample.weight is None and growth.rules.packing.count_step == 1.0
    grow_tree(growth, data.plan.operations, data.share, counted)


def _thresholds(growth: Growth, table: BinnedTable) -> Floats:
    """The thresholds at the cuts of the nodes, (n_nodes,)."""
    fields = growth.nodes.fields[: growth.nodes.control[N_NODES]]
    return table.thresholds[fields[:, COLUMN], fields[:, BIN]]


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


_Arrays = TypeVar("_Arrays", Gradients, RowSample)

"""The fit of one of several workers: the ordinary fit, on its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hilboost.boosting.effective_size import row_weight_with_classes
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, errors_of, shown
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target
from hilboost.estimators.base import division_of
from hilboost.learners.kernel_machine.merging import merge_equal_rows
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.outputs import as_output
from hilboost.reductions.draws import renumbered
from hilboost.reductions.rows import of_all_rows, whole_target
from hilboost.reductions.sums import on_any_worker
from hilboost.tables import Schema, without_unused_levels
from hilboost.training.data import TrainingData, without_zero_weights
from hilboost.training.fingerprints import FitFingerprint
from hilboost.training.recipe import Continuation, Recipe
from hilboost.training.train import train
from hilboost.validation.offsets import check_outputs
from hilboost.workers.exchange import TreeExchange
from hilboost.workers.partitions import (
    CheckedPartition,
    Partition,
    agreed,
    check_each,
    common_schema,
    labels_of_all,
    naming,
    numbers_of,
    offsets_of,
    recoded,
    united_codec,
)
from hilboost.workers.progress import Progress


@dataclass(frozen=True)
class KeptFit:
    """A fit that is kept in a checkpoint."""

    path: Path
    header: dict[str, Any] | None  # that of the file, if the fit continues from it


@dataclass(frozen=True)
class WorkerTask:
    """Instructions for all workers of a fit."""

    estimator: Any  # not fitted
    seed: int
    n_threads: int = 1
    weighted: bool = False  # whether partitions have sample weights
    weighted_val: bool = False  # whether partitions of validation rows have them
    has_offsets: bool = False  # whether both have offsets
    checkpoint: KeptFit | None = None
    last: int | None = None  # number of stages after which a callback has ended the fit


def check_supported(estimator: Any) -> None:
    """Reject estimators and parameters that several workers do not support."""
    if division_of(estimator) is None:
        raise InvalidType(
            "several workers can only fit BoostingRegressor, BoostingClassifier, kernel machines, "
            f"and OutputKernelBoostingRegressor, not {type(estimator).__name__}; call its method "
            "fit."
        )
    estimator._validate_params()
    parameters = estimator.get_params(deep=False)
    for parameter, supported in estimator.supported_by_workers.items():
        value = parameters.get(parameter, supported[0])
        if value not in supported:
            raise InvalidParameter(
                f"{parameter}={shown(value)} is not supported by several workers; set "
                f"{parameter}={supported[0]!r}."
            )


def fit_share(
    task: WorkerTask,
    partitions: Sequence[Partition],  # training rows, and validation rows
    held_out: Sequence[Partition],  # training rows, and validation rows
    exchange: TreeExchange,
    continuation: Continuation | None = None,  # stages that an earlier session has finished
    progress: Progress | None = None,  # sends records of the stages
) -> tuple[FittedModel, Schema]:
    """Fit the model of all partitions; every worker calls with its own, and has the same result."""
    data = training_data(task, partitions, held_out, exchange)
    if task.checkpoint is not None and progress is not None:
        _identify(task, task.checkpoint, data, continuation, progress)
    model, division = clone(task.estimator)._for_workers(), None
    if model.divides != "rows":
        division = data.target.share
        data = _with_all_rows(data, model._merges_equal_rows)
    loss = model._make_loss(data.codec)
    if division is None and not loss.divides_rows:
        raise InvalidParameter(
            f"{type(loss).__name__} does not declare that its rows may be divided among workers; "
            "compute its sums over rows with hilboost.reductions, and set divides_rows = True."
        )
    seed = task.seed if continuation is None else continuation.seed
    recipe = model._recipe(data, seed, continuation)
    recipe = replace(recipe, config=replace(recipe.config, division=division))
    _check_recipe(recipe)
    result = train(recipe, task.n_threads, (), continuation, progress)
    return result.fitted, data.schema


def _identify(
    task: WorkerTask,
    kept: KeptFit,
    data: TrainingData,
    continuation: Continuation | None,
    progress: Progress,
) -> None:
    """Compare the data with the checkpoint's data, and describe them for the next one."""
    fingerprint = FitFingerprint.of(task.estimator.get_params(deep=False), data, task.seed)
    if kept.header is not None:
        fingerprint.check(kept.path, kept.header)
    progress.identify(fingerprint, None if kept.header is None else kept.path, continuation)


def _check_recipe(recipe: Recipe) -> None:
    if recipe.config.learner.capabilities.prepare_among_workers is None:
        raise InvalidParameter(
            f"{type(recipe.config.learner).__name__} is not supported by several workers; set "
            "learner='tree'."
        )


def training_data(
    task: WorkerTask,
    partitions: Sequence[Partition],
    held_out: Sequence[Partition],
    exchange: TreeExchange,
) -> TrainingData:
    """Validate the partitions of all workers, and collect those that are here."""
    estimator = task.estimator
    partitions = sorted(partitions, key=lambda partition: partition.number)
    checked = agreed(exchange, lambda: check_each(estimator, partitions))
    codec, kept, target, weight = _target(task, checked, exchange)
    schema, single = common_schema(exchange, kept)
    X = _together([recoded(p, schema) for p in kept], schema.n_columns, single)
    if len(X) != len(target.y):
        raise InvalidData("X and y have different numbers of rows; pass one target for each row.")
    one_class = codec.has_one_class(target)
    data = TrainingData(
        X,
        target,
        schema,
        codec,
        sample_weight=weight,
        has_one_class=one_class,
        row_weight=row_weight_with_classes(target, weight),
    )
    _check_rows(task, codec, kept, target, exchange)
    if not any(exchange.objects(len(held_out))):
        return data
    return _with_validation(task, data, held_out, exchange)


def _codec(exchange: TreeExchange, checked: Sequence[CheckedPartition]) -> TargetCodec:
    own = [(p.number, p.codec) for p in checked if p.codec is not None]
    found = [one for part in exchange.objects(own) for one in part]
    if not found:
        raise InvalidData("all partitions are empty; at least one must have rows.")
    return united_codec(sorted(found, key=lambda one: one[0]))


def _embedded(
    task: WorkerTask,
    checked: Sequence[CheckedPartition],
    weight: Floats | None,
    share: RowShare,
    exchange: TreeExchange,
) -> tuple[TargetCodec, Floats]:
    """Encode the labels in an output space that all rows span except rows without weight.

    Every worker has the labels of all rows, because models contain them.
    """
    labels, n_rows, estimator = labels_of_all(exchange, checked), share.n_rows, task.estimator
    rows = np.arange(n_rows)
    space = as_output(estimator.output)
    if weight is not None and not space.predicts_rows:
        rows = np.flatnonzero(of_all_rows(weight, share) > 0)
        labels = space.take_rows(labels, rows)
    codec, codes = estimator._learn_codec_among(labels, len(rows), exchange)
    y = np.zeros((len(share.numbers), codec.width))
    position = np.minimum(np.searchsorted(rows, share.numbers), len(rows) - 1)
    known = rows[position] == share.numbers
    y[known] = codes[position[known]]
    return codec, y


def _target(
    task: WorkerTask, checked: Sequence[CheckedPartition], exchange: TreeExchange
) -> tuple[TargetCodec, list[CheckedPartition], Target, Floats | None]:
    """Encode the labels; return them with the partitions and weights of the rows that count."""
    share = _share(checked, exchange)
    weight = _weights(task.weighted, checked, share)
    if task.estimator.embeds_labels:
        codec, y = _embedded(task, checked, weight, share, exchange)
    else:
        codec = _codec(exchange, checked)
        y = _labels(task, codec, checked, exchange)
    offset = offsets_of(exchange, checked) if task.has_offsets else None
    target = task.estimator._weighted(Target(y, weight, share=share, offset=offset), codec)
    counting = np.ones(len(y), bool) if target.weight is None else target.weight > 0
    if not on_any_worker(not counting.all(), share):
        return codec, list(checked), target, weight
    rows = np.flatnonzero(counting)
    target = replace(target.rows(rows), share=renumbered(share, rows))
    kept = [
        _some(p, counting[begin:end])
        for p, (begin, end) in zip(checked, _ranges(checked), strict=True)
    ]
    return codec, kept, target, None if weight is None else weight[rows]


def _share(checked: Sequence[CheckedPartition], exchange: TreeExchange) -> RowShare:
    numbers, n_rows = numbers_of(exchange, [(p.number, len(p.X)) for p in checked])
    return RowShare(exchange, n_rows, numbers)


def _ranges(checked: Sequence[CheckedPartition]) -> Iterator[tuple[int, int]]:
    """First row, and the row after the last one, of each partition."""
    return pairwise(accumulate((len(p.X) for p in checked), initial=0))


def _some(partition: CheckedPartition, here: NDArray[np.bool_]) -> CheckedPartition:
    """Some rows of a partition (n,), whose other levels do not count."""
    X, schema = without_unused_levels(partition.X[here], partition.schema)
    return replace(partition, X=X, schema=schema)


def _labels(
    task: WorkerTask,
    codec: TargetCodec,
    checked: Sequence[CheckedPartition],
    exchange: TreeExchange,
    of: str = "",
) -> Floats:
    """Encode the labels of all partitions, (n, c)."""
    allows = task.estimator._takes_missing_targets()

    def encoded() -> list[Floats]:
        parts = []
        for p in checked:
            if len(p.X):
                with naming(p.number):
                    parts.append(codec.encode(p.y, len(p.X), allows))
        return parts

    parts = agreed(exchange, encoded, of)
    return np.concatenate([np.empty((0, codec.width)), *parts])


def _check_rows(
    task: WorkerTask,
    codec: TargetCodec,
    checked: Sequence[CheckedPartition],
    target: Target,
    exchange: TreeExchange,
    of: str = "",
) -> None:
    """Let the loss check the rows of positive weight of every partition."""
    loss = task.estimator._make_loss(codec)

    def check() -> None:
        for p, (begin, end) in zip(checked, _ranges(checked), strict=True):
            part = target.rows(slice(begin, end))
            with naming(p.number):
                loss.check_rows(part.y if part.weight is None else part.y[part.weight > 0])

    agreed(exchange, check, of)


def _with_validation(
    task: WorkerTask, data: TrainingData, held_out: Sequence[Partition], exchange: TreeExchange
) -> TrainingData:
    """Add the validation rows of all workers."""
    held_out, of = sorted(held_out, key=lambda partition: partition.number), " of X_val"
    checked = agreed(exchange, lambda: check_each(task.estimator, held_out, data.schema), of)
    share = _share(checked, exchange)
    if not share.n_rows:
        raise InvalidData("all partitions of X_val are empty; at least one must have rows.")
    single = all(exchange.objects(all(p.X.dtype == np.float32 for p in checked if len(p.X))))
    X = _together([p.X for p in checked], data.schema.n_columns, single)
    weight = _weights(task.weighted_val, checked, share, "sample_weight_val")
    offset = offsets_of(exchange, checked, "_val") if task.has_offsets else None
    y = _labels(task, data.codec, checked, exchange, of)
    target = Target(y, weight, share=share, offset=offset)
    if data.target.offset is not None:
        with errors_of("offset_val"):
            check_outputs(offset, data.target.offset.shape[1])
    _check_rows(task, data.codec, checked, target, exchange, of)
    return replace(data, held_out=without_zero_weights(X, target))


def _weights(
    weighted: bool,
    checked: Sequence[CheckedPartition],
    share: RowShare,
    name: str = "sample_weight",
) -> Floats | None:
    if not weighted:
        return None
    weight = np.concatenate([np.empty(0), *(p.weight for p in checked if p.weight is not None)])
    if not on_any_worker(bool((weight > 0).any()), share):
        raise InvalidData(f"{name} is zero for every row; at least one must be positive.")
    return weight if on_any_worker(bool((weight != 1).any()), share) else None


def _with_all_rows(data: TrainingData, merges: bool) -> TrainingData:
    """Gather the rows of all workers, whose kernel values are then divided."""
    X = of_all_rows(data.X, data.target.share).astype(np.float64)
    target = whole_target(data.target)
    if merges:
        X, target = merge_equal_rows(X, target)
    held_out = data.held_out
    if held_out is not None:
        held_X = of_all_rows(held_out[0], held_out[1].share)
        held_out = held_X.astype(np.float64), whole_target(held_out[1])
    return replace(data, X=X, target=target, held_out=held_out, sample_weight=target.weight)


def _together(parts: Sequence[Floats], d: int, single: bool) -> Floats:
    dtype = np.float32 if single else np.float64
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0], dtype=dtype)
    X = np.empty((sum(map(len, parts)), d), dtype=dtype)
    begin = 0
    for part in parts:
        X[begin : begin + len(part)] = part
        begin += len(part)
    return X

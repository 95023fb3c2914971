"""The fit of one of several workers: the ordinary fit, on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, InvalidType
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target
from hilboost.estimators.base import BoostingEstimator, division_of
from hilboost.estimators.preparation import CheckedRows, held_out_rows, rows_of_fit, told_of_overlap
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.outputs import as_output
from hilboost.reductions.rows import of_all_rows, whole_target
from hilboost.tables.schema import Schema
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.fingerprints import FitFingerprint, of_dependence
from hilboost.training.initial_state import loss_of_rows
from hilboost.training.out_of_fold import with_levels_of_mean
from hilboost.training.train import train
from hilboost.validation.choices import check_supported_values
from hilboost.validation.weights import plain_weights
from hilboost.workers.exchange import TreeExchange
from hilboost.workers.partitions import Partition, Partitions
from hilboost.workers.progress import Progress


@dataclass(frozen=True)
class WorkerTask:
    """Instructions for all workers of a fit."""

    estimator: BoostingEstimator  # not fitted
    seed: int
    n_threads: int = 1
    checkpoint: Path | None = None
    stored: FitFingerprint | None = None  # of the fit in the checkpoint
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
    check_supported_values(parameters, estimator.supported_by_workers, "several workers")


def fit_share(
    task: WorkerTask,
    partitions: Sequence[Partition],  # training rows, and validation rows
    held_out: Sequence[Partition],  # training rows, and validation rows
    exchange: TreeExchange,
    continuation: Continuation | None = None,  # stages that an earlier session has finished
    progress: Progress | None = None,  # sends records of the stages
) -> tuple[FittedModel, Schema, list[str]]:
    """Fit the model of all partitions; every worker calls with its own, and has the same result."""
    model = clone(task.estimator)._for_workers()
    parts = Partitions(model, partitions, exchange)
    told, data = parts.told(), training_data(model, parts, held_out, exchange)
    del parts  # their rows are in the data
    if data.held_out is not None:
        told += told_of_overlap(model, data, data.held_out)
    if task.checkpoint is not None and progress is not None:
        fingerprint = FitFingerprint.of(task.estimator.get_params(deep=False), data, task.seed)
        if task.stored is not None:
            fingerprint.check(task.checkpoint, task.stored)
        progress = replace(progress, fingerprint=fingerprint)
    loss = model._make_loss(data.codec)
    share = data.target.share
    division = RowShare.block(len(data.X), exchange) if share is None else None
    if share is not None and not loss.divides_rows:
        raise InvalidParameter(
            f"{type(loss).__name__} does not declare that its rows may be divided among workers; "
            "compute its sums over rows with hilboost.reductions, and set divides_rows = True."
        )
    seed = task.seed if continuation is None else continuation.seed
    recipe = model._recipe(data, seed, continuation)
    recipe = replace(recipe, config=replace(recipe.config, division=division))
    learner = recipe.config.learner
    if learner.capabilities.prepare_among_workers is None:
        raise InvalidParameter(
            f"{type(learner).__name__} is not supported by several workers; set learner='tree'."
        )
    keep = None if progress is None else progress.keep
    result = train(recipe, task.n_threads, (), continuation, keep)
    fitted = with_levels_of_mean(result.fitted, result.folds, recipe, task.n_threads)
    fitted = replace(fitted, marks=data.marks, held_out_by=of_dependence(data.target))
    return fitted, data.schema, told


def training_data(
    model: BoostingEstimator,
    parts: Partitions,
    held_out: Sequence[Partition],
    exchange: TreeExchange,
) -> TrainingData:
    """Collect the rows that this worker needs, in the codes of the partitions of all workers."""
    schema = parts.schema()
    X, target = parts.joined(schema)
    if model.embeds_labels:
        codec, y = _embedded(model, parts.labels(), target, exchange)
    else:
        codec = parts.codec()
        y = parts.encoded(codec)
    target, loss = target.with_y(y), model._make_loss(codec)
    parts.check_targets(loss_of_rows(loss, codec, [target]), target)
    target = replace(target, dependence=parts.dependence(model, target))
    data = rows_of_fit(model, _needed(model, CheckedRows(X, schema, target, codec)))
    if not any(exchange.objects(len(held_out))):
        return data
    parts = Partitions(model, held_out, exchange, data)
    X, target = parts.joined(data.schema)
    target = target.with_y(parts.encoded(codec))
    parts.check_targets(loss_of_rows(loss, codec, [target]), target)
    rows = _needed(model, CheckedRows(X, data.schema, target, codec))
    return replace(data, validation=(held_out_rows(model, data, rows, "_val"),))


def _needed(model: BoostingEstimator, rows: CheckedRows) -> CheckedRows:
    """Return the rows that are here, or all rows if workers divide their kernel values."""
    if model.divides == "rows":
        return rows
    return replace(rows, X=of_all_rows(rows.X, rows.target), target=whole_target(rows.target))


def _embedded(
    model: Any, labels: Any, target: Target, exchange: TreeExchange
) -> tuple[TargetCodec, Floats]:
    """Encode the labels in an output space that all rows span except rows without weight.

    Every worker has the labels of all rows, because models contain them.
    """
    weight, share = plain_weights(target).weight, target.share
    assert share is not None
    numbers = np.arange(share.n_rows)
    space = as_output(model.output)
    if weight is not None and not space.predicts_rows:
        numbers = np.flatnonzero(of_all_rows(weight, target) > 0)
        labels = space.take_rows(labels, numbers)
    codec, codes = model._learn_codec(labels, len(numbers), exchange)
    y = np.zeros((len(share.numbers), codec.width))
    place = np.minimum(np.searchsorted(numbers, share.numbers), len(numbers) - 1)
    known = numbers[place] == share.numbers
    y[known] = codes[place[known]]
    return codec, y

"""The public function that fits a model on a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from distributed import Client, get_client

from hilboost.callbacks.checkpoint import Checkpoint, checkpoint_among
from hilboost.callbacks.loggers import with_printer
from hilboost.core.callback import Callback, check_callbacks
from hilboost.core.dtypes import PerRow
from hilboost.core.errors import DataWarning, InvalidParameter, warn_caller
from hilboost.core.plain_values import is_name
from hilboost.dask.cluster import ClusterFit
from hilboost.dask.partitions import partitions_of
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.preparation import FitArguments, check_complete
from hilboost.training import checkpoints
from hilboost.training.continuation import Continuation
from hilboost.training.fingerprints import FitFingerprint
from hilboost.validation.inputs import check_columns
from hilboost.workers.fit import WorkerTask, check_supported
from hilboost.workers.progress import Listener, StageLog

Estimator = TypeVar("Estimator")

_log = logging.getLogger("hilboost")


def fit(
    model: Estimator,
    X: object,
    y: object,
    *,
    sample_weight: PerRow = None,
    offset: PerRow = None,
    groups: PerRow = None,
    time: object = None,
    X_val: object = None,
    y_val: object = None,
    sample_weight_val: PerRow = None,
    offset_val: PerRow = None,
    client: Client | None = None,
    callbacks: Sequence[Callback] = (),
    timeout: float = 120.0,
    max_restarts: int = 10,
) -> Estimator:
    """Fit a model on a Dask cluster: the model of one process.

    Parameters
    ----------
    model : BoostingRegressor, BoostingClassifier, kernel machine or OutputKernelBoostingRegressor
        With ``learner="auto"``, it consists of trees, which is logged.
    X : Dask DataFrame, Dask Array or list of delayed partitions
        Inputs.  Each partition is a data frame or an array (n, d); it may be empty.
    y : Dask Series, Dask Array or list of delayed partitions
        Targets, with the partitions of ``X``; for output kernels, each is a sequence of labels.
    sample_weight : like y, optional
    offset : like y, optional
        Known part of ``predict_raw``, as in the method ``fit`` of the estimator.
    groups, time : like y, optional
        Group or time of each row, as in the method ``fit`` of the estimator.  Every worker gets
        the whole column.
    X_val, y_val, sample_weight_val, offset_val : like X, y, sample_weight and offset, optional
        Validation data for early stopping, used instead of held-out rows of ``X``.
    client : distributed.Client, optional
        The current client by default.
    callbacks : sequence of callables
        As in the method ``fit`` of the estimator, with a
        :class:`~hilboost.callbacks.Checkpoint` too.  They are called in this process, about half a
        second after the stage.  If one ends the fit, the model has the stages up to that event.
    timeout : float, default=120
        Seconds after which a worker that does not answer is taken for lost; before the first tree
        of a session, at most 30.
    max_restarts : int, default=10
        How often the fit goes on without lost workers before it fails.

    Returns
    -------
    estimator
        ``model`` itself, fitted.

    Raises
    ------
    InvalidData, InvalidParameter, InvalidType
        The data or the parameters are invalid.  The message names the partition; about the values
        of labels of an output kernel, it names the row of the whole table.
    FitError
        Workers were lost more than ``max_restarts`` times, or none is left.

    Notes
    -----
    The model depends neither on the number of workers nor on the partitions, bit for bit.  For
    output kernels, this only holds up to rounding of the sums that decide about splits and pivots:
    predictions are nearly equal, but the bytes of model files and the last digits of gains depend
    on the number of workers and on the partitions.  If a worker is lost, Dask computes its
    partitions again on the others, finished trees are kept, and the open tree is grown again.
    """
    check_supported(model)
    check_callbacks(callbacks)
    client = get_client() if client is None else client
    estimator: Any = model
    rows = {"X": X, "y": y, "sample_weight": sample_weight, "offset": offset}
    rows |= {"groups": groups, "time": time}
    held = {"X": X_val, "y": y_val, "sample_weight": sample_weight_val, "offset": offset_val}
    parts, held_out = _partitions(estimator, rows, held)
    if is_name(estimator.get_params(deep=False).get("learner"), "auto"):
        _log.info(
            "learner='auto' fits trees on several workers; in one process, it compares other "
            "learners, too, which need all rows."
        )
    checkpoint = checkpoint_among(callbacks)
    seed = estimator._seed()
    stored = None if checkpoint is None else _stored(estimator, checkpoint, seed)
    log = StageLog(stored)
    task = WorkerTask(
        estimator,
        seed if stored is None else stored.seed,
        checkpoint=None if checkpoint is None else checkpoint.file,
        stored=None if stored is None else stored.fingerprint,
    )
    futures = client.compute([*parts, *held_out])
    fitting = ClusterFit(client, task, futures[: len(parts)], futures[len(parts) :], timeout)
    given = [
        checkpoints.Writer(checkpoint, lambda: log.fit) if one is checkpoint else one
        for one in callbacks
    ]
    listener = Listener(log, with_printer(given, estimator.verbose))
    try:
        with listener:
            fitted, schema, told = fitting.until_complete(listener, max_restarts)
    finally:
        fitting.release()
    for sentence in told:
        warn_caller(sentence, DataWarning)
    estimator.fitted_ = fitted
    check_columns(estimator, schema.names, schema.n_columns, reset=True)
    return model


def _partitions(
    estimator: BoostingEstimator, rows: dict[str, Any], held_out: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """Check which arguments were passed; return the partitions of training and validation rows."""
    check_complete(FitArguments(**held_out))
    if rows["offset"] is not None and not estimator.takes_offsets:
        raise InvalidParameter(
            f"offset is not supported by {type(estimator).__name__}; pass targets without this "
            "part."
        )
    if held_out["X"] is None:
        return partitions_of("", **rows), []
    return partitions_of("", **rows), partitions_of("_val", **held_out)


def _stored(estimator: BoostingEstimator, checkpoint: Checkpoint, seed: int) -> Continuation | None:
    """Return the fit in a checkpoint, if there is one; workers compare its data with theirs."""
    if estimator.divides != "rows":
        raise InvalidParameter(
            "Checkpoint is not supported by kernel machines on several workers; remove it from "
            "callbacks."
        )
    fingerprint = FitFingerprint.of(estimator.get_params(deep=False), None, seed)
    return checkpoints.read(checkpoint, fingerprint)

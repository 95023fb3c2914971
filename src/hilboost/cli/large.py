"""Implementation of ``hilboost fit --stream`` and ``hilboost fit --dask``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.cli.dates import date_columns, without_dates
from hilboost.cli.errors import CliError, UsageError
from hilboost.cli.jobs import completed, fit_summary, new_model, saved_fit
from hilboost.cli.number_text import check_classes
from hilboost.cli.options import FitJob
from hilboost.cli.task import choose_task

if TYPE_CHECKING:
    import pandas as pd


def run_large_fit(job: FitJob, *, as_json: bool = False) -> str:  # summary of the fit
    """Fit a model on a Parquet table that stays on disk, or on a Dask cluster, and save it."""
    path, target, out = completed(job)
    _refuse(job, path)

    from hilboost.stream.source import dataset_of

    dataset = dataset_of(path, path)
    column = _target(dataset, target)
    task = choose_task(column, job.task or "auto", job.loss or "")
    if task == "classification":
        check_classes(column, job.task == "classification")
    job = _without_dates(job, dataset)
    model = new_model(job, task)
    fit, source = (_fit_from_disk, dataset) if job.dask is None else (_fit_on_cluster, path)
    seconds = saved_fit(model, out, lambda own: fit(job, model, source, target, own))
    return fit_summary(job, model, (len(column), model.n_features_in_), seconds, (), as_json)


def _refuse(job: FitJob, path: Path) -> None:
    """Reject options that large tables do not support."""
    option = "--stream" if job.stream else "--dask"
    if job.stream and job.dask is not None:
        raise UsageError("--stream and --dask exclude each other; use one of them.")
    refused = ["valid", "group", "event", "group_rows", "time", "drop_missing_target"]
    refused += ["missing", "coerce", "thousands"]
    given = vars(job) | vars(job.dialect)
    names = [f"--{name.replace('_', '-')}" for name in refused if given[name]]
    if job.dask is not None and job.time_budget is not None:
        names.append("--time-budget")
    if job.family == "kernel":
        names.append("--family kernel")
    if job.dates not in (None, "ignore"):
        names.append(f"--dates {job.dates}")
    if names:
        raise UsageError(f"{names[0]} is not supported with {option}; remove it.")
    if not path.is_dir() and path.suffix not in (".parquet", ".pq"):
        raise CliError(
            f"{option} requires a Parquet file or a folder of them; '{path}' is neither: write it "
            f"as Parquet, as with pandas.read_csv and to_parquet, or remove {option}."
        )


def _target(dataset: Any, target: str) -> "pd.Series[Any]":
    import pandas as pd

    from hilboost.stream.source import values_of

    if target not in dataset.schema.names and "," in target:
        raise UsageError("--target with several columns is not supported with --stream or --dask.")
    return pd.Series(values_of(dataset, target), name=target)


def _without_dates(job: FitJob, dataset: Any) -> FitJob:
    """Ignore columns of dates, as the first rows show them, with a note."""
    from hilboost.stream.source import reader_of

    used = {job.target, job.weights, job.offset, *job.ignore}
    names = [name for name in dataset.schema.names if name not in used]
    first = next(reader_of(dataset)(names)).slice(0, 1000).to_pandas() if names else None
    if first is None or first.shape[1] == 0:
        return job
    remedy = "replace them by columns of numbers in the table, such as year, month, and weekday"
    dates = date_columns(first)
    without_dates(first, dates, remedy)
    return replace(job, ignore=[*job.ignore, *dates])


def _fit_from_disk(job: FitJob, model: Any, dataset: Any, target: str, callback: Any) -> None:
    import hilboost.stream

    hilboost.stream.fit(
        model,
        dataset,
        target=target,
        sample_weight=job.weights,
        offset=job.offset,
        ignore=[name for name in job.ignore if name not in (job.weights, job.offset)],
        callbacks=[callback],
    )


def _fit_on_cluster(job: FitJob, model: Any, path: Path, target: str, callback: Any) -> None:
    import dask.dataframe as dd
    from distributed import Client

    import hilboost.dask

    with Client(job.dask) as client:
        table = dd.read_parquet(path)
        named = {"sample_weight": job.weights, "offset": job.offset}
        aside = {argument: name for argument, name in named.items() if name is not None}
        X = table.drop(columns=list(dict.fromkeys([target, *job.ignore, *aside.values()])))
        beside = {argument: table[name] for argument, name in aside.items()}
        y, callbacks = table[target], [callback]
        hilboost.dask.fit(model, X, y, **beside, client=client, callbacks=callbacks)

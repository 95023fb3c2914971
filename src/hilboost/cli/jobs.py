"""Implementation of ``hilboost fit``."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilboost.callbacks import ProgressBar
from hilboost.cli.columns import (
    align_columns,
    require_column,
    split_aside,
    split_targets,
    survival_target,
)
from hilboost.cli.dates import as_times, date_columns, expanded, with_calendar, without_dates
from hilboost.cli.errors import CliError, UsageError, note
from hilboost.cli.files import check_output, save_model
from hilboost.cli.number_text import check_classes, refuse_few_words
from hilboost.cli.options import FitJob
from hilboost.cli.tables import read_table
from hilboost.cli.task import TaskName, choose_task
from hilboost.core.errors import counted, first_few
from hilboost.core.plain_values import as_list
from hilboost.validation.weights import errors_in_rows

if TYPE_CHECKING:
    import pandas as pd

    from hilboost.core.metric import Metric
    from hilboost.model.codecs import TargetCodec


_ESTIMATORS: dict[TaskName, str] = {
    "regression": "BoostingRegressor",
    "classification": "BoostingClassifier",
    "ranking": "BoostingRanker",
    "survival": "BoostingSurvival",
}
_Rows = dict[str, Any]
"""Features, targets, and, where there are any, weights, groups and offsets, by argument of fit."""


def run_fit(job: FitJob, *, as_json: bool = False) -> str:
    """Fit a model on a table, save it, and return a summary: sentences, or one JSON object."""
    path, target, out = completed(job)
    chosen = as_list(job.settings.get("categorical_features", "from_dtype"))
    table = read_table(path, (), job.dialect, [*job.ignore, *chosen])
    features, targets = split_targets(table, target, job.drop_missing_target)
    padded = [name for name in features.columns if name != name.strip()]
    if padded:
        note(f"the names {first_few(padded)} begin or end with spaces, which are part of them.")
    # The weight column is removed from the features separately.
    ignored = [name for name in job.ignore if name != job.weights]
    for name in ignored:
        require_column(name, features, "--ignore")
    features = features.drop(columns=ignored)
    asides = (job.weights, job.group, job.event, job.offset, job.time)
    dates = [name for name in date_columns(features) if name not in asides]
    if job.dates == "expand":
        if not dates:
            note("no column contains dates, so that --dates expand has no effect.")
        features = expanded(features, dates, job.dialect.date_order)
    elif job.dates != "text":
        features = without_dates(features, dates)
    task = _task(targets, job)
    rows = _rows(features, targets, job, task)
    X = rows["X"]
    if not X.shape[1]:
        raise CliError("No feature column is left; add one, or set fewer columns aside.")
    refuse_few_words(X, chosen)
    if job.dates == "text":
        rows["X"] = X = X.astype(dict.fromkeys(date_columns(X), "category"))
    valid = [_validation_rows(path, X, target, job, task) for path in job.valid]
    model = new_model(job, task)
    with errors_in_rows(X.index.to_numpy()):
        # saved before scores, which may refuse a metric
        seconds = saved_fit(
            model, out, lambda own: model.fit(**rows, **_held_out(job, valid), callbacks=[own])
        )
    scores = [_scores(model, one, job, task) for one in valid]
    return fit_summary(job, model, X.shape, seconds, scores, as_json)


def saved_fit(model: Any, out: Path, fit: Callable[[Any], object]) -> float:
    """Call ``fit`` with a progress bar, save the model, and return the seconds."""
    start = time.perf_counter()
    fit(ProgressBar())
    seconds = time.perf_counter() - start
    save_model(model, out)
    return seconds


def _task(targets: "pd.DataFrame", job: FitJob) -> TaskName:
    """Choose the task, with a note of the reason, and check that the target suits it."""
    column, requested = targets.iloc[:, 0], job.task or "auto"
    if targets.shape[1] > 1:
        if requested not in ("auto", "regression") or job.group or job.event:
            raise UsageError(
                f"--target '{job.target}' names several columns, which only regression supports; "
                "name one of them, or remove --task, --group, and --event."
            )
        note("regression, because --target names several columns.")
        return "regression"
    task = choose_task(column, requested, job.loss or "", job.group, job.event)
    if task == "classification":
        check_classes(column, job.task == "classification")
    return task


def _validation_rows(
    path: Path, features: "pd.DataFrame", target: str, job: FitJob, task: TaskName
) -> _Rows:
    """Read a table of validation data with the features of the training table."""
    from pandas.api.types import infer_dtype

    text = [k for k in features if infer_dtype(features[k]) in ("string", "categorical")]
    table, order = read_table(path, text, job.dialect), job.dialect.date_order
    table = with_calendar(table, list(features.columns), order)
    held_out, held_targets = split_targets(table, target, job.drop_missing_target)
    job = replace(job, group_rows=None, time=None)  # which divide the rows of the fit
    aside = (job.weights, job.group, job.event, job.offset)
    needed = [*features.columns, *(name for name in aside if name)]
    return _rows(align_columns(held_out, needed)[0], held_targets, job, task)


def _scores(model: Any, rows: _Rows, job: FitJob, task: TaskName) -> dict[str, float | None]:
    if task not in ("ranking", "survival"):
        return chosen_scores(model, metrics=job.metric, **rows)
    return {{"ranking": "ndcg@10", "survival": "concordance"}[task]: model.score(**rows)}


def completed(job: FitJob) -> tuple[Path, str, Path]:
    """Validate a job, and return its table, target, and output."""
    for name, value in (("a TABLE", job.table), ("--target", job.target), ("--out", job.out)):
        if value is None:
            raise UsageError(
                f"hilboost fit requires {name}; set it on the command line or in the --config file."
            )
    assert job.table is not None
    assert job.target is not None
    assert job.out is not None
    if job.metric and not job.valid:
        raise UsageError("--metric requires validation data; add --valid TABLE.")
    options: dict[str, str] = {}
    for field in ("target", "weights", "group", "event", "offset", "group_rows", "time"):
        name, option = getattr(job, field), f"--{field.replace('_', '-')}"
        if name is not None and options.setdefault(name, option) != option:
            raise CliError(f"{options[name]} and {option} are both '{name}'; change one.")
    check_output(job.out, [job.table, *job.valid])
    return job.table, job.target, job.out


def _rows(features: "pd.DataFrame", targets: "pd.DataFrame", job: FitJob, task: TaskName) -> _Rows:
    if job.group_rows is not None and task == "ranking":
        raise UsageError("--group already keeps groups whole; remove --group-rows.")
    features, weights = split_aside(features, job.weights, "--weights")
    option = "--group" if job.group_rows is None else "--group-rows"
    features, groups = split_aside(features, job.group or job.group_rows, option)
    features, times = split_aside(features, job.time, "--time")
    features, event = split_aside(features, job.event, "--event")
    features, offset = split_aside(features, job.offset, "--offset")
    y: Any = targets if targets.shape[1] > 1 else targets.iloc[:, 0]
    if task == "classification" and y.dtype.kind not in "biuf":
        y = y.astype(str)  # also of categories
    if event is not None:
        y = survival_target(y, event)
    times = None if times is None else as_times(times, job.dialect.date_order)
    more = {"sample_weight": weights, "groups": groups, "time": times, "offset": offset}
    given = {name: values for name, values in more.items() if values is not None}
    return {"X": features, "y": y, **given}


def _held_out(job: FitJob, valid: Sequence[_Rows]) -> dict[str, Any]:
    """The validation data as ``fit`` takes them: dicts by name if there are several tables."""
    names = valid[0] if valid else ()
    return {f"{name}_val": _by_table(job, [rows[name] for rows in valid]) for name in names}


def _by_table(job: FitJob, values: Sequence[Any]) -> Any:
    """Return the value of a single table, or the values by name: file names, or paths if alike."""
    if len(values) < 2:
        return values[0] if values else None
    stems = [path.stem for path in job.valid]
    names = stems if len(set(stems)) == len(stems) else map(str, job.valid)
    return dict(zip(names, values, strict=True))


def chosen_scores(
    model: Any, X: object, y: object, metrics: Sequence[str] = (), **beside: Any
) -> dict[str, float | None]:
    """Compute metrics by short name, all if ``metrics`` is empty; ``beside`` as in ``scores``."""
    from hilboost.report import scores

    if model.ranks_groups:
        beside["metrics"] = _metrics_of_rankings(metrics)
    found = {score["key"]: score["value"] for score in scores(model, X, y, **beside)}
    chosen = [key for name in metrics for key in _keys_of(name, list(found))]
    return {key: found[key] for key in chosen or found}


def _metrics_of_rankings(names: Sequence[str]) -> Sequence["Metric"]:
    """Return the metrics of rankings that ``--metric`` names."""
    from hilboost.core.errors import InvalidParameter
    from hilboost.metrics.registry import metrics_of

    try:
        return metrics_of(names, "groups")
    except InvalidParameter as error:
        raise CliError(str(error).replace("eval_metric", "--metric")) from None


def _keys_of(name: str, found: list[str]) -> list[str]:
    """Return the keys of the scores that ``--metric`` names: a metric, or that of one target."""
    from hilboost.core.errors import unknown_name
    from hilboost.metrics.registry import metrics_by_name, same_metric

    metric = metrics_by_name().get(name)
    for one in (name, *(metric.names if metric else ())):
        keys = [key for key in found if one in (key, key.partition("_of_")[0])]
        if keys:
            return keys
    known = {key.partition("_of_")[0] for key in found}  # without the names of several targets
    raise unknown_name("--metric", name, known, same_metric(name, known))


def fit_summary(
    job: FitJob,
    model: Any,
    shape: tuple[int, int],
    seconds: float,
    scores: Sequence[dict[str, float | None]],  # of each table of validation data
    as_json: bool,
) -> str:
    """Summarize a fit to a table of this shape."""
    stages, loss = model.n_estimators_, float(model.history_.train[model.n_estimators_])
    if as_json:
        return json.dumps(
            {
                "model": str(job.out),
                "class": type(model).__name__,
                "rows": shape[0],
                "columns": shape[1],
                "stages": stages,
                "seconds": round(seconds, 3),
                "training_loss": loss,
                "scores": _by_table(job, scores),
            }
        )
    from hilboost.model.summary import summary

    text = (
        f"Fitted on {counted(shape[0], 'row')} and {counted(shape[1], 'column')} in {seconds:.1f} "
        f"s (training loss {loss:.4g}{_in_words(model.loss, model.fitted_.codec)}): "
        f"{summary(model.fitted_)}. Saved the model to '{job.out}'."
    )
    for path, found in zip(job.valid, scores, strict=True):
        listed = [f"{name} {value:.4g}" for name, value in found.items() if value is not None]
        text += f"\nMetrics on '{path}': {', '.join(listed)}."
    return text


def _in_words(loss: object, codec: "TargetCodec") -> str:
    """Say what the loss is, where it is not the metric that its name suggests."""
    is_half = codec.kind == "numbers" and loss == "squared_error"
    return ", half the mean squared error" if is_half and codec.of_numbers().n_targets == 1 else ""


def new_model(job: FitJob, task: TaskName) -> Any:
    """Create the estimator of a job."""
    import hilboost

    kernel = "Kernel" if job.family == "kernel" else ""
    if kernel and task in ("ranking", "survival"):
        raise UsageError(
            f"--family kernel does not support --task {task}; use --set learner=kernel instead."
        )
    if job.metric and task in ("ranking", "survival"):
        raise UsageError(f"--metric does not support --task {task}; use --set eval_metric=NAME.")
    estimator = getattr(hilboost, kernel + _ESTIMATORS[task])
    seed = job.random_state
    if seed is None and "random_state" not in job.settings:
        seed = 0  # running the same command again gives the same model
    own = ("loss", "n_estimators", "learning_rate", "time_budget")
    given = {name: getattr(job, name) for name in own}
    given |= {"random_state": seed, "n_jobs": job.threads}
    settings = {name: value for name, value in given.items() if value is not None}
    if job.quantile:
        if job.loss != "quantile":
            raise UsageError("--quantile requires --loss quantile; add it, or remove --quantile.")
        settings["quantile"] = job.quantile if len(job.quantile) > 1 else job.quantile[0]
    twice = sorted(settings.keys() & job.settings)
    if twice:
        raise CliError(f"'{twice[0]}' is set by its own option and by --set; set it only once.")
    return estimator(**settings, **job.settings)

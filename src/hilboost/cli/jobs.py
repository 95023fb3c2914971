"""What ``hilboost fit`` and ``hilboost predict`` do."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hilboost.cli.errors import CliError, note
from hilboost.cli.files import check_input, check_output
from hilboost.cli.tables import (
    TaskName,
    align_columns,
    choose_task,
    numeric_features,
    prepare_target,
    read_table,
    split_target,
    write_table,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FitJob", "PredictJob", "run_fit", "run_predict"]


@dataclass(frozen=True)
class FitJob:
    """The options of ``hilboost fit``; None leaves a setting at the library's default."""

    train: Path
    target: str
    out: Path
    task: Literal["auto", "regression", "classification"] = "auto"
    loss: str | None = None
    quantiles: tuple[float, ...] = ()
    n_estimators: int | None = None
    learning_rate: float | None = None
    random_state: int | None = None
    threads: int | None = None


@dataclass(frozen=True)
class PredictJob:
    """The options of ``hilboost predict``."""

    model: Path
    table: Path
    out: Path | None = None
    proba: bool = False


def run_fit(job: FitJob) -> str:
    """Fit a model on a CSV table and save it.

    Parameters
    ----------
    job : FitJob
        What to fit, and where the model goes.

    Returns
    -------
    str
        One line about the fit.
    """
    check_output(job.out, job.train)
    if job.out.exists() and not job.out.is_file():
        raise CliError(f"'{job.out}' is not a regular file; a model needs one.")
    features, column = split_target(read_table(job.train), job.target)
    task = choose_task(column, job.task, job.loss or "")
    note(f"{task.name}, because {task.reason}.")
    X, y = numeric_features(features), prepare_target(column, task.name)

    import hilboost
    from hilboost.cli.progress import StageProgress

    model = _new_model(job, task.name)
    start = time.perf_counter()
    with StageProgress("fitting") as progress:
        model.fit(X, y, callbacks=(progress.callback("fitting"),))
    seconds = time.perf_counter() - start
    hilboost.save(model, job.out)
    rounds = model.n_estimators_
    return (
        f"Fitted {rounds} rounds on {len(X)} rows and {X.shape[1]} columns in {seconds:.1f} s "
        f"(training loss {model.history_.train[rounds]:.4g}); the model is in '{job.out}'."
    )


def _new_model(job: FitJob, task: TaskName) -> Any:
    from hilboost import BoostingClassifier, BoostingRegressor

    settings: dict[str, Any] = {
        "loss": job.loss,
        "n_estimators": job.n_estimators,
        "learning_rate": job.learning_rate,
        "random_state": job.random_state,
        "n_jobs": job.threads,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if job.quantiles:
        if job.loss != "quantile" or task != "regression":
            raise CliError("--quantile needs --loss quantile.")
        settings["quantile"] = job.quantiles if len(job.quantiles) > 1 else job.quantiles[0]
    return (
        BoostingClassifier(**settings)
        if task == "classification"
        else BoostingRegressor(**settings)
    )


def run_predict(job: PredictJob) -> None:
    """Predict the rows of a CSV table with a saved model.

    Parameters
    ----------
    job : PredictJob
        The model, the table and where the predictions go.
    """
    check_input(job.model)
    if job.out is not None:
        check_output(job.out, job.model, job.table)
    frame = read_table(job.table)

    import hilboost

    model = hilboost.load(job.model)
    if job.proba and not hasattr(model, "classes_"):
        raise CliError("--proba needs a classification model; this one is for regression.")
    X = numeric_features(_model_columns(model, frame))
    write_table(_predictions(model, X, job.proba), job.out)


def _model_columns(model: Any, frame: "pd.DataFrame") -> "pd.DataFrame":
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        # A model fitted on a bare array knows its columns by place only.
        if frame.shape[1] != model.n_features_in_:
            raise CliError(
                f"The model was fitted on {model.n_features_in_} columns without names, but the "
                f"table has {frame.shape[1]}."
            )
        note("the model has no column names; the columns are taken in the order of the table.")
        return frame
    features, extra = align_columns(frame, [str(name) for name in names])
    if extra:
        listed = ", ".join(f"'{name}'" for name in extra)
        columns = "1 column" if len(extra) == 1 else f"{len(extra)} columns"
        note(f"ignored {columns} the model does not use: {listed}.")
    return features


def _predictions(model: Any, X: "pd.DataFrame", proba: bool) -> "pd.DataFrame":
    import pandas as pd

    if getattr(model, "feature_names_in_", None) is None:
        X = X.to_numpy()
    values = model.predict(X)
    if isinstance(values, list):  # texts, nodes, or label sets
        sets = (sorted(map(str, y)) if isinstance(y, set) else [str(y)] for y in values)
        return pd.DataFrame({"prediction": ["; ".join(labels) for labels in sets]})
    if values.ndim > 1:
        values = values.reshape(len(values), -1)
        return pd.DataFrame(values, columns=_output_names(model, values.shape[1]))
    result = pd.DataFrame({"prediction": values})
    if proba:
        names = [f"probability_{label}" for label in model.classes_]
        result[names] = model.predict_proba(X)
    return result


def _output_names(model: Any, n_outputs: int) -> list[str]:
    if getattr(model, "loss", None) == "quantile":
        return [f"prediction_q{level:g}" for level in model.quantile]
    return [f"prediction_{number}" for number in range(n_outputs)]

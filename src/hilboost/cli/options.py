"""Options of the commands."""

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilboost.cli.dialect import Dialect
from hilboost.cli.option_fields import argument, flag, option, record, several
from hilboost.cli.settings import use_config
from hilboost.cli.task import TaskName

_TABLE = (
    "CSV, CSV.GZ, Parquet, a folder of Parquet files, or SVMlight; - reads CSV from standard input."
)
_HEADED_TABLE = f"Table with a header row: {_TABLE}"
_MODEL = "Model file written by hilboost fit."
_JSON = "Print the result as JSON."
_WEIGHTS = "Column of sample weights."
_GROUP = "Column of the groups whose rows are ranked, such as a query."
_EVENT = (
    "Column of events: 1 or yes, and 0 or no where censored; with --loss discrete_hazard, the "
    "number of the cause. The target is the time."
)
_OFFSET = (
    "Column of a known part of the prediction in link space, such as the logarithm of an exposure "
    "with --loss poisson."
)
_DROP = "Drop rows without a target."


@dataclass(frozen=True)
class FitJob:
    """The options of ``hilboost fit``, which are also the keys of a configuration file.

    ``None`` selects the library's default.
    """

    table: Path | None = argument("TABLE", _HEADED_TABLE, None)
    target: str | None = option(
        "COLUMN", "Column to predict, or several columns of numbers, as FIRST,SECOND."
    )
    out: Path | None = option("FILE", "Output model file.")
    task: Literal["auto", TaskName] | None = option(
        "TASK",
        "auto, regression, classification, ranking, or survival. auto selects ranking with "
        "--group, survival with --event, and classification if the target is text, boolean, or "
        "has at most 20 distinct integers.",
    )
    family: Literal["tree", "kernel"] | None = option(
        "FAMILY", "tree (boosted trees) or kernel (kernel machines, for smooth targets)."
    )
    loss: str | None = option(
        "NAME",
        "{regression} for regression; {classification} for classification; {ranking} for ranking; "
        "{survival} for survival.",
    )
    quantile: list[float] = several("LEVEL", "Level for --loss quantile", "--quantile -q")
    weights: str | None = option("COLUMN", _WEIGHTS)
    group: str | None = option("COLUMN", _GROUP)
    event: str | None = option("COLUMN", _EVENT)
    offset: str | None = option("COLUMN", _OFFSET)
    group_rows: str | None = option(
        "COLUMN", "Column of groups that are held out as a whole, such as a patient or a shop."
    )
    time: str | None = option("COLUMN", "Column of numbers or dates; the latest rows are held out.")
    ignore: list[str] = several("COLUMN", "Column to ignore, such as a row identifier")
    valid: list[Path] = option(
        "TABLE",
        "Table of validation data for early stopping; repeatable: the first one decides.",
        default=[],
    )
    metric: list[str] = several("NAME", "Metric to report on --valid, such as rmse")
    dates: Literal["ignore", "expand", "text"] | None = option(
        "WAY", "Columns of dates: ignore (default), expand to calendar numbers, or use as text."
    )
    dialect: Dialect = field(default_factory=Dialect)
    drop_missing_target: bool = flag(_DROP, "--drop-missing-target")
    n_estimators: int | None = option("N", "Number of rounds.")
    learning_rate: float | None = option("RATE", "Shrinkage factor of each round.")
    time_budget: float | None = option("SECONDS", "Stop training after about this time.")
    random_state: int | None = option("SEED", "Random seed; default 0.")
    threads: int | None = option("N", "Number of threads; default all cores.")
    stream: bool = flag("Leave a Parquet table, or a folder of them, on disk.", "--stream")
    dask: str | None = option("ADDRESS", "Fit a Parquet table on this Dask cluster.")
    settings: dict[str, Any] = field(default_factory=dict)  # of the estimator


@dataclass(frozen=True)
class FitCommand:
    """The job of ``hilboost fit``, where to read more of its options, and how to print."""

    job: FitJob
    config: Path | None = option(
        "FILE",
        "TOML file with these options (keys table, target, out, loss, n-estimators, …) and a "
        r"table \[set] of estimator parameters; the command line takes precedence.",
        is_eager=True,
        callback=use_config,
    )
    settings: list[str] = several("NAME=VALUE", "Set any parameter of the estimator", "--set")
    as_json: bool = flag(_JSON, "--json")


@dataclass(frozen=True)
class PredictJob:
    """The options of ``hilboost predict``."""

    model: Path = argument("MODEL", _MODEL)
    table: Path = argument("TABLE", _HEADED_TABLE)
    out: Path | None = option("FILE", "CSV or Parquet file for the predictions; default stdout.")
    proba: bool = flag("Add a column of probabilities for every class.", "--proba")
    coverage: float | None = option(
        "FRACTION",
        "Add the ends of intervals, or the set of classes, that contain the target of a row with "
        "this probability.",
    )
    keep: list[str] = several("COLUMN", "Column to copy to the predictions, such as an identifier")
    spreadsheet_safe: bool = flag(
        "Prefix text that a spreadsheet would execute as a formula with an apostrophe.",
        "--spreadsheet-safe/--no-spreadsheet-safe",
        default=True,
    )
    offset: str | None = option("COLUMN", _OFFSET)
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(frozen=True)
class LabeledTable:
    """A table with the true values: its path, and the columns that are not features."""

    table: Path = argument("TABLE", f"Table with the true values: {_TABLE}")
    target: str | None = option(
        "COLUMN", "Column of the true values; default: the only column that the model does not use."
    )
    weights: str | None = option("COLUMN", _WEIGHTS)
    group: str | None = option("COLUMN", _GROUP)
    event: str | None = option("COLUMN", _EVENT)
    offset: str | None = option("COLUMN", _OFFSET)
    dialect: Dialect = field(default_factory=Dialect)
    drop_missing_target: bool = flag(_DROP, "--drop-missing-target")


@dataclass(frozen=True)
class EvaluateJob:
    """The options of ``hilboost evaluate``."""

    model: Path = argument("MODEL", _MODEL)
    rows: LabeledTable = record()
    metric: list[str] = option("NAME", "Metric to report; repeatable; default all.", default=[])
    as_json: bool = flag(_JSON, "--json")


@dataclass(frozen=True)
class ReportJob:
    """The options of ``hilboost report``."""

    model: Path = argument("MODEL", _MODEL)
    rows: LabeledTable = record()
    out: Path = option("FILE", "Output HTML file.", default=MISSING)
    title: str | None = option("TEXT", "Title of the report.")
    train: Path | None = option("TABLE", "Training rows, to compare columns and predictions.")
    versus: list[Path] = several("MODEL", "Compare with this model instead")
    times: list[float] = several("TIME", "Survival: a time of the calibration")


@dataclass(frozen=True)
class InspectJob:
    """The options of ``hilboost inspect``."""

    model: Path = argument("MODEL", _MODEL)
    as_json: bool = flag(_JSON, "--json")


@dataclass(frozen=True)
class ExportJob:
    """The options of ``hilboost export``."""

    model: Path = argument("MODEL", _MODEL)
    form: str = option("FORMAT", "{formats}.", "--format", default=MISSING)
    out: Path = option("FILE", "Output file.", default=MISSING)


@dataclass(frozen=True)
class DemoJob:
    """The options of ``hilboost demo``."""

    out: Path = option("DIR", "Folder for the plots.", default=Path("hilboost-demo"))
    quick: bool = flag("Use few rounds and few rows.", "--quick")


@dataclass(frozen=True)
class WarmupJob:
    """The options of ``hilboost warmup``."""

    check: bool = flag("Compile nothing, and list what would be compiled.", "--check")
    host: bool = flag(
        "Compile for exactly this processor, not for its level of processors.", "--host"
    )


@dataclass(frozen=True)
class ReproduceJob:
    """The options of ``hilboost reproduce``."""

    key: str | None = argument("KEY", "Key of the claim.", None)
    show: bool = flag("List all claims.", "--list")
    runs: int | None = option("N", "Number of runs; default as published.", min=1)
    recorded: Path | None = option(
        "DIR", "Use these recorded benchmark results instead of new runs."
    )
    out: Path | None = option("DIR", "Folder for the page; default next to the claim.")

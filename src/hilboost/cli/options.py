"""Arguments and options that several commands share, and options of ``hilboost fit``."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

Debug = Annotated[bool, Option("--debug", help="Show the full traceback of errors.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
Model = Annotated[
    Path, Argument(metavar="MODEL", help="Model file written by hilboost fit.", show_default=False)
]
_TABLE = Argument(
    metavar="TABLE",
    help="Table with a header row: CSV, CSV.GZ, Parquet, a folder of Parquet files, or SVMlight; "
    "- reads CSV from standard input.",
    show_default=False,
)
Table = Annotated[Path, _TABLE]
Separator = Annotated[
    str | None,
    Option("--sep", metavar="MARK", help="Separator of the fields; detected by default."),
]
Decimal = Annotated[
    str | None, Option(metavar="MARK", help="Decimal mark of numbers; detected by default.")
]
Thousands = Annotated[
    str | None, Option(metavar="MARK", help="Thousands separator of numbers, such as a comma.")
]
Encoding = Annotated[
    str | None,
    Option(metavar="NAME", help="Encoding of the text, such as cp1252; detected by default."),
]
Dates = Annotated[
    Literal["ignore", "expand", "text"] | None,
    Option(
        metavar="WAY",
        help="Columns of dates: ignore (default), expand to calendar numbers, or use as text.",
    ),
]
DateOrder = Annotated[
    Literal["dmy", "mdy"] | None,
    Option(
        metavar="ORDER",
        help="Order of dates whose year comes last, dmy or mdy; detected where values or dots show "
        "it.",
    ),
]
DropMissingTarget = Annotated[
    bool, Option("--drop-missing-target", help="Drop rows without a target.")
]
Missing = Annotated[
    list[str] | None,
    Option(metavar="WORD", help="Word that means a missing value, such as unknown; repeatable."),
]
Coerce = Annotated[
    bool, Option("--coerce", help="Read text in columns of numbers as missing values.")
]

# Of ``hilboost fit``, where ``None`` means that an option is not given.
TrainingTable = Annotated[Path | None, _TABLE]
Target = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column to predict, or several columns of numbers, as FIRST,SECOND.",
        show_default=False,
    ),
]
ModelOutput = Annotated[
    Path | None, Option(metavar="FILE", help="Output model file.", show_default=False)
]
Config = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="TOML file with these options (keys table, target, out, loss, n-estimators, …) "
        r"and a table \[set] of estimator parameters; the command line takes precedence.",
    ),
]
TaskChoice = Annotated[
    Literal["auto", "regression", "classification", "ranking", "survival"] | None,
    Option(
        metavar="TASK",
        help="auto, regression, classification, ranking, or survival. auto selects ranking with "
        "--group, survival with --event, and classification if the target is text, boolean, or "
        "has at most 20 distinct integers.",
    ),
]
Group = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Column of the groups whose rows are ranked, such as a query."),
]
Event = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column of events: 1 or yes, and 0 or no where censored; with --loss discrete_hazard, "
        "the number of the cause. The target is the time.",
    ),
]
Offset = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column of a known part of the prediction in link space, such as the logarithm of an "
        "exposure with --loss poisson.",
    ),
]
Family = Annotated[
    Literal["tree", "kernel"] | None,
    Option(
        metavar="FAMILY",
        help="tree (boosted trees) or kernel (kernel machines, for smooth targets).",
    ),
]
Loss = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="{regression} for regression; {classification} for classification; {ranking} for "
        "ranking; {survival} for survival.",
    ),
]
Quantile = Annotated[
    list[float] | None,
    Option("--quantile", "-q", metavar="LEVEL", help="Level for --loss quantile; repeatable."),
]
Weights = Annotated[str | None, Option(metavar="COLUMN", help="Column of sample weights.")]
Ignore = Annotated[
    list[str] | None,
    Option(metavar="COLUMN", help="Column to ignore, such as a row identifier; repeatable."),
]
ValidationTable = Annotated[
    list[Path] | None,
    Option(
        metavar="TABLE",
        help="Table of validation data for early stopping; repeatable: the first one decides.",
    ),
]
ValidationMetric = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Metric to report on --valid, such as rmse; repeatable."),
]
Rounds = Annotated[int | None, Option(metavar="N", help="Number of rounds.")]
LearningRate = Annotated[
    float | None, Option(metavar="RATE", help="Shrinkage factor of each round.")
]
TimeBudget = Annotated[
    float | None, Option(metavar="SECONDS", help="Stop training after about this time.")
]
RandomState = Annotated[int | None, Option(metavar="SEED", help="Random seed; default 0.")]
Threads = Annotated[int | None, Option(metavar="N", help="Number of threads; default all cores.")]
Stream = Annotated[
    bool | None,
    Option(
        "--stream", help="Leave a Parquet table, or a folder of them, on disk.", show_default=False
    ),
]
Dask = Annotated[
    str | None,
    Option("--dask", metavar="ADDRESS", help="Fit a Parquet table on this Dask cluster."),
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="NAME=VALUE", help="Set any parameter of the estimator; repeatable."),
]

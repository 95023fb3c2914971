"""Options of the commands, and records whose fields are options."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

from typer import Argument, Option

from hilboost.cli.dialect import Dialect
from hilboost.cli.errors import one_line_errors
from hilboost.cli.task import TaskName

_TABLE_HELP = (
    "CSV, CSV.GZ, Parquet, a folder of Parquet files, or SVMlight; - reads CSV from standard input."
)
_TABLE = Argument(
    metavar="TABLE", help=f"Table with a header row: {_TABLE_HELP}", show_default=False
)

Debug = Annotated[bool, Option("--debug", help="Show the full traceback of errors.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
Model = Annotated[
    Path, Argument(metavar="MODEL", help="Model file written by hilboost fit.", show_default=False)
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
Weights = Annotated[str | None, Option(metavar="COLUMN", help="Column of sample weights.")]
DropMissingTarget = Annotated[
    bool, Option("--drop-missing-target", help="Drop rows without a target.")
]
Config = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="TOML file with these options (keys table, target, out, loss, n-estimators, …) "
        r"and a table \[set] of estimator parameters; the command line takes precedence.",
    ),
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="NAME=VALUE", help="Set any parameter of the estimator; repeatable."),
]


@dataclass(frozen=True)
class FitJob:
    """The options of ``hilboost fit``, which are also the keys of a configuration file.

    ``None`` selects the library's default.
    """

    table: Annotated[Path | None, _TABLE] = None
    target: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column to predict, or several columns of numbers, as FIRST,SECOND.",
            show_default=False,
        ),
    ] = None
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Output model file.", show_default=False)
    ] = None
    task: Annotated[
        Literal["auto", TaskName] | None,
        Option(
            metavar="TASK",
            help="auto, regression, classification, ranking, or survival. auto selects ranking "
            "with --group, survival with --event, and classification if the target is text, "
            "boolean, or has at most 20 distinct integers.",
        ),
    ] = None
    family: Annotated[
        Literal["tree", "kernel"] | None,
        Option(
            metavar="FAMILY",
            help="tree (boosted trees) or kernel (kernel machines, for smooth targets).",
        ),
    ] = None
    loss: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="{regression} for regression; {classification} for classification; {ranking} for "
            "ranking; {survival} for survival.",
        ),
    ] = None
    quantile: Annotated[
        list[float],
        Option("--quantile", "-q", metavar="LEVEL", help="Level for --loss quantile; repeatable."),
    ] = field(default_factory=list)
    weights: Weights = None
    group: Group = None
    event: Event = None
    offset: Offset = None
    group_rows: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column of groups that are held out as a whole, such as a patient or a shop.",
        ),
    ] = None
    time: Annotated[
        str | None,
        Option(metavar="COLUMN", help="Column of numbers or dates; the latest rows are held out."),
    ] = None
    ignore: Annotated[
        list[str],
        Option(metavar="COLUMN", help="Column to ignore, such as a row identifier; repeatable."),
    ] = field(default_factory=list)
    valid: Annotated[
        list[Path],
        Option(
            metavar="TABLE",
            help="Table of validation data for early stopping; repeatable: the first one decides.",
        ),
    ] = field(default_factory=list)
    metric: Annotated[
        list[str],
        Option(metavar="NAME", help="Metric to report on --valid, such as rmse; repeatable."),
    ] = field(default_factory=list)
    dates: Annotated[
        Literal["ignore", "expand", "text"] | None,
        Option(
            metavar="WAY",
            help="Columns of dates: ignore (default), expand to calendar numbers, or use as text.",
        ),
    ] = None
    dialect: Dialect = field(default_factory=Dialect)
    drop_missing_target: DropMissingTarget = False
    n_estimators: Annotated[int | None, Option(metavar="N", help="Number of rounds.")] = None
    learning_rate: Annotated[
        float | None, Option(metavar="RATE", help="Shrinkage factor of each round.")
    ] = None
    time_budget: Annotated[
        float | None, Option(metavar="SECONDS", help="Stop training after about this time.")
    ] = None
    random_state: Annotated[int | None, Option(metavar="SEED", help="Random seed; default 0.")] = (
        None
    )
    threads: Annotated[
        int | None, Option(metavar="N", help="Number of threads; default all cores.")
    ] = None
    stream: Annotated[
        bool, Option("--stream", help="Leave a Parquet table, or a folder of them, on disk.")
    ] = False
    dask: Annotated[
        str | None, Option(metavar="ADDRESS", help="Fit a Parquet table on this Dask cluster.")
    ] = None
    settings: dict[str, Any] = field(default_factory=dict)  # of the estimator


@dataclass(frozen=True)
class PredictJob:
    """The options of ``hilboost predict``."""

    model: Model
    table: Annotated[Path, _TABLE]
    out: Annotated[
        Path | None,
        Option(metavar="FILE", help="CSV or Parquet file for the predictions; default stdout."),
    ] = None
    proba: Annotated[
        bool, Option("--proba", help="Add a column of probabilities for every class.")
    ] = False
    coverage: Annotated[
        float | None,
        Option(
            metavar="FRACTION",
            help="Add the ends of intervals, or the set of classes, that contain the target of a "
            "row with this probability.",
        ),
    ] = None
    keep: Annotated[
        list[str],
        Option(
            metavar="COLUMN",
            help="Column to copy to the predictions, such as an identifier; repeatable.",
        ),
    ] = field(default_factory=list)
    spreadsheet_safe: Annotated[
        bool,
        Option(
            "--spreadsheet-safe/--no-spreadsheet-safe",
            help="Prefix text that a spreadsheet would execute as a formula with an apostrophe.",
        ),
    ] = True
    offset: Offset = None
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(frozen=True)
class LabeledTable:
    """A table with the true values: its path, and the columns that are not features."""

    table: Annotated[
        Path,
        Argument(
            metavar="TABLE", help=f"Table with the true values: {_TABLE_HELP}", show_default=False
        ),
    ]
    target: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column of the true values; default: the only column that the model does not use.",
        ),
    ] = None
    weights: Weights = None
    group: Group = None
    event: Event = None
    offset: Offset = None
    dialect: Dialect = field(default_factory=Dialect)
    drop_missing_target: DropMissingTarget = False


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function --debug, errors of one line, and options for the fields of records."""
    kinds = get_type_hints(function, include_extras=True)
    parameters = [
        parameter.replace(annotation=kinds[name])
        for name, parameter in signature(function).parameters.items()
    ]

    def command(**given: Any) -> None:
        with one_line_errors(given["debug"]):
            function(**{one.name: _value(one.annotation, one.name, given) for one in parameters})

    debug = Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    options = [option for parameter in (*parameters, debug) for option in _options(parameter)]
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """Yield a parameter, or one for each field of a record."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for option, kind in _fields(parameter.annotation):
        default = None if option.default is MISSING else option.default
        if option.default is MISSING and option.default_factory is MISSING:
            default = Parameter.empty  # the option is required
        yield from _options(
            Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        )


def _fields(record: Any) -> list[tuple[Any, Any]]:
    """Return the fields of a record that are options or records, with their types."""
    kinds = get_type_hints(record, include_extras=True)
    typed = ((option, kinds[option.name]) for option in fields(record))
    return [
        (option, kind)
        for option, kind in typed
        if get_origin(kind) is Annotated or is_dataclass(kind)
    ]


def _value(kind: object, name: str, given: dict[str, Any]) -> Any:
    return record_of(kind, given) if is_dataclass(kind) else given.get(name)


def record_of(record: Any, given: dict[str, Any]) -> Any:
    """Create a record from the options that are given: neither ``None`` nor an empty list."""
    values = {option.name: _value(kind, option.name, given) for option, kind in _fields(record)}
    return record(**{name: value for name, value in values.items() if value not in (None, [])})

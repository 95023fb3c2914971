"""Commands for fitted models: ``evaluate``, ``report``, ``inspect``, and ``export``."""

from pathlib import Path
from typing import Annotated

import typer

from hilboost.cli.errors import one_line_errors
from hilboost.cli.options import (
    AsJson,
    Coerce,
    DateOrder,
    Debug,
    Decimal,
    DropMissingTarget,
    Encoding,
    Event,
    Group,
    Missing,
    Model,
    Offset,
    Separator,
    Thousands,
)
from hilboost.cli.peer_options import Command

EVALUATE_EXAMPLES = """[bold]Examples[/bold]

  hilboost evaluate houses.model sold.csv --target price

  hilboost evaluate houses.model sold.csv --metric rmse --metric r2 --json"""

REPORT_EXAMPLES = """[bold]Examples[/bold]

  hilboost report houses.model sold.csv --target price --out report.html

  hilboost report flowers.model test.parquet --out flowers.html --title Flowers"""

INSPECT_EXAMPLES = """[bold]Examples[/bold]

  hilboost inspect houses.model

  hilboost inspect houses.model --json | python -m json.tool"""

EXPORT_EXAMPLES = """[bold]Examples[/bold]

  hilboost export houses.model --format onnx --out houses.onnx

  hilboost export houses.model --format xgboost-json --out houses.json"""

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="Table with the true values: CSV, CSV.GZ, Parquet, a folder of Parquet files, or "
        "SVMlight; - reads CSV from standard input.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the true values; default: the only column that the model does not use.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(cls=Command, epilog=EVALUATE_EXAMPLES)(evaluate)
    app.command(cls=Command, epilog=REPORT_EXAMPLES)(report)
    app.command(cls=Command, epilog=INSPECT_EXAMPLES)(inspect)
    app.command(cls=Command, epilog=EXPORT_EXAMPLES)(export)


def evaluate(
    model: Model,
    table: Table,
    target: Target = None,
    group: Group = None,
    event: Event = None,
    offset: Offset = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Metric to report; repeatable; default all."),
    ] = None,
    as_json: AsJson = False,
    sep: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    date_order: DateOrder = None,
    missing: Missing = None,
    coerce: Coerce = False,
    drop_missing_target: DropMissingTarget = False,
    debug: Debug = False,
) -> None:
    """Evaluate a model on a table with true values."""
    with one_line_errors(debug):
        from hilboost.cli.dialect import Dialect
        from hilboost.cli.model_jobs import LabeledTable, run_evaluate

        form = Dialect(sep, decimal, encoding, date_order, tuple(missing or ()), coerce, thousands)
        rows = LabeledTable(table, target, group, event, offset, form, drop_missing_target)
        typer.echo(run_evaluate(model, rows, metric or (), as_json))


def report(
    model: Model,
    table: Table,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Output HTML file.", show_default=False)
    ],
    target: Target = None,
    group: Group = None,
    event: Event = None,
    offset: Offset = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.")] = None,
    train: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Training rows, to compare columns and predictions."),
    ] = None,
    versus: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help="Compare with this model instead; repeatable."),
    ] = None,
    sep: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    date_order: DateOrder = None,
    missing: Missing = None,
    coerce: Coerce = False,
    drop_missing_target: DropMissingTarget = False,
    debug: Debug = False,
) -> None:
    """Write an HTML report: errors, feature importances, learning curves, and parameters."""
    with one_line_errors(debug):
        from hilboost.cli.dialect import Dialect
        from hilboost.cli.model_jobs import LabeledTable, run_report

        form = Dialect(sep, decimal, encoding, date_order, tuple(missing or ()), coerce, thousands)
        rows = LabeledTable(table, target, group, event, offset, form, drop_missing_target)
        typer.echo(run_report(model, rows, out, title, train, versus or ()))


def inspect(model: Model, as_json: AsJson = False, debug: Debug = False) -> None:
    """Describe a model: class, parameters, columns, and stages."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_inspect

        typer.echo(run_inspect(model, as_json))


def export(
    model: Model,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="{formats}.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Output file.", show_default=False)],
    debug: Debug = False,
) -> None:
    """Export a model to a format of another library, such as ONNX."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_export

        typer.echo(run_export(model, form, out))

"""Commands about a fitted model: ``evaluate``, ``report``, ``inspect`` and ``export``."""

from pathlib import Path
from typing import Annotated

import typer

from hilboost.cli.errors import one_line_errors

__all__ = ["add_to"]

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

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model of hilboost fit.", show_default=False)
]
Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="Table with the true values: CSV, CSV.GZ or Parquet; - is standard input.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the true values; the only one that the model does not use, if not given.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Tell it as one JSON object.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def add_to(app: typer.Typer) -> None:
    """Put the commands into the application.

    Parameters
    ----------
    app : typer.Typer
    """
    app.command(epilog=EVALUATE_EXAMPLES)(evaluate)
    app.command(epilog=REPORT_EXAMPLES)(report)
    app.command(epilog=INSPECT_EXAMPLES)(inspect)
    app.command(epilog=EXPORT_EXAMPLES)(export)


def evaluate(
    model: Model,
    table: Table,
    target: Target = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Figure to tell; may be repeated; all if not given."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare predictions with the true values of a table."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_evaluate

        typer.echo(run_evaluate(model, table, target, metric or (), as_json))


def report(
    model: Model,
    table: Table,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="HTML file to write.", show_default=False)
    ],
    target: Target = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    debug: Debug = False,
) -> None:
    """Write one HTML page about a model: errors, important columns, curves, parameters."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_report

        typer.echo(run_report(model, table, target, out, title))


def inspect(model: Model, as_json: AsJson = False, debug: Debug = False) -> None:
    """Say what a model is: class, parameters, columns, stages."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_inspect

        typer.echo(run_inspect(model, as_json))


def export(
    model: Model,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Such as onnx or xgboost-json.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.", show_default=False)],
    debug: Debug = False,
) -> None:
    """Write a model for other programs."""
    with one_line_errors(debug):
        from hilboost.cli.model_jobs import run_export

        typer.echo(run_export(model, form, out))

"""The ``hilboost`` command.

Heavy imports are inside the commands, so that ``hilboost --help`` starts quickly.
"""

import time
from pathlib import Path
from typing import Annotated

import typer

from hilboost.cli import model_commands, options
from hilboost.cli.errors import one_line_errors
from hilboost.cli.peer_options import Command, Commands
from hilboost.core.packages import required

EXAMPLES = """[bold]Examples[/bold]

  hilboost demo

  hilboost fit houses.csv --target price --out houses.model

  hilboost predict houses.model new.csv --out prices.csv

  hilboost report houses.model sold.csv --target price --out report.html

[bold]Exit codes[/bold]: 0 success, 1 error in the data, files, or parameters, 2 incomplete command
or unknown option."""

FIT_EXAMPLES = """[bold]Examples[/bold]

  hilboost fit houses.csv --target price --out houses.model --loss huber

  hilboost fit flowers.parquet --target species --out flowers.model --valid test.parquet

  hilboost fit load.csv --target kw --out load.model --loss quantile -q 0.05 -q 0.95

  hilboost fit arm.csv --target torque --out arm.model --family kernel --time-budget 60

  hilboost fit houses.csv --target price --out houses.model --set max_depth=4

  hilboost fit huge.parquet --target price --out huge.model --stream

  zcat houses.csv.gz | hilboost fit - --target price --out houses.model

  hilboost fit --config fit.toml --random-state 1"""

PREDICT_EXAMPLES = """[bold]Examples[/bold]

  hilboost predict houses.model new.csv --out prices.csv

  hilboost predict flowers.model new.csv --proba | head

  hilboost predict houses.model new.csv --keep id --out prices.csv"""

DEMO_EXAMPLES = """[bold]Examples[/bold]

  hilboost demo

  hilboost demo --quick --out pictures"""

REPRODUCE_EXAMPLES = """[bold]Examples[/bold]

  hilboost reproduce --list

  hilboost reproduce lz2016-losses

  hilboost reproduce sy2006-table3 --runs 1"""

app = typer.Typer(
    name="hilboost",
    help="Gradient boosting for tabular data: fit, predict, and evaluate models.",
    cls=Commands,
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("hilboost")
    except PackageNotFoundError:
        number = "(not installed)"
    typer.echo(f"hilboost {number}")
    raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Gradient boosting for tabular data: fit, predict, and evaluate models."""


_NOT_OF_JOBS = ("config", "settings", "as_json", "debug")


@app.command(cls=Command, epilog=FIT_EXAMPLES)
def fit(
    table: options.TrainingTable = None,
    target: options.Target = None,
    out: options.ModelOutput = None,
    config: options.Config = None,
    task: options.TaskChoice = None,
    family: options.Family = None,
    loss: options.Loss = None,
    quantile: options.Quantile = None,
    weights: options.Weights = None,
    group: options.Group = None,
    event: options.Event = None,
    offset: options.Offset = None,
    ignore: options.Ignore = None,
    valid: options.ValidationTable = None,
    metric: options.ValidationMetric = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    dates: options.Dates = None,
    date_order: options.DateOrder = None,
    missing: options.Missing = None,
    coerce: options.Coerce = False,
    drop_missing_target: options.DropMissingTarget = False,
    n_estimators: options.Rounds = None,
    learning_rate: options.LearningRate = None,
    time_budget: options.TimeBudget = None,
    random_state: options.RandomState = None,
    threads: options.Threads = None,
    stream: options.Stream = None,
    dask: options.Dask = None,
    settings: options.Settings = None,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Fit a model to a table. Text columns are categorical; empty fields are missing values."""
    given = {name: value for name, value in locals().items() if name not in _NOT_OF_JOBS}
    with one_line_errors(debug):
        from hilboost.cli.jobs import run_fit
        from hilboost.cli.settings import FitJob, options_of_fit

        job = FitJob(**options_of_fit(given, config, settings or ()))
        if job.stream or job.dask is not None:
            from hilboost.cli.large import run_large_fit

            typer.echo(run_large_fit(job, as_json=as_json))
            return
        typer.echo(run_fit(job, as_json=as_json))


@app.command(cls=Command, epilog=PREDICT_EXAMPLES)
def predict(
    model: options.Model,
    table: options.Table,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file for the predictions; default stdout."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column of probabilities for every class.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="Add the ends of intervals, or the set of classes, that contain the target of a "
            "row with this probability.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to copy to the predictions, such as an identifier; repeatable.",
        ),
    ] = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe/--no-spreadsheet-safe",
            help="Prefix text that a spreadsheet would execute as a formula with an apostrophe.",
        ),
    ] = True,
    offset: options.Offset = None,
    sep: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    date_order: options.DateOrder = None,
    missing: options.Missing = None,
    coerce: options.Coerce = False,
    debug: options.Debug = False,
) -> None:
    """Predict the rows of a table. Columns are matched by name."""
    with one_line_errors(debug):
        from hilboost.cli.dialect import Dialect
        from hilboost.cli.predictions import PredictJob, run_predict

        form = Dialect(sep, decimal, encoding, date_order, tuple(missing or ()), coerce, thousands)
        kept = tuple(keep or ())
        run_predict(
            PredictJob(model, table, out, proba, coverage, spreadsheet_safe, form, offset, kept)
        )


model_commands.add_to(app)


@app.command(cls=Command, epilog=DEMO_EXAMPLES)
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the plots.")] = Path(
        "hilboost-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Use few rounds and few rows.")] = False,
    debug: options.Debug = False,
) -> None:
    """Compare hilboost with scikit-learn on bundled data and draw plots (about a minute)."""
    with one_line_errors(debug):
        required("matplotlib", "hilboost demo")
        from hilboost.cli.demo import run_demo

        run_demo(out, quick=quick)


@app.command(cls=Command)
def warmup(
    check: Annotated[
        bool, typer.Option("--check", help="Compile nothing, and list what would be compiled.")
    ] = False,
    debug: options.Debug = False,
) -> None:
    """Compile everything in advance, so that later fits start without delay."""
    with one_line_errors(debug):
        from hilboost.cli.progress import StageProgress
        from hilboost.cli.warmup import run_uses
        from hilboost.cli.warmup_uses import USES

        start = time.perf_counter()
        with StageProgress("compiling", total=len(USES)) as progress:
            compiled = dict(run_uses(progress, check=check))
        if check:
            for name in USES:
                typer.echo(f"{name}: {'would be compiled' if compiled[name] else 'native'}")
            raise typer.Exit(int(any(compiled.values())))
        typer.echo(f"Ready: compilation took {time.perf_counter() - start:.1f} s.")


@app.command(cls=Command, epilog=REPRODUCE_EXAMPLES)
def reproduce(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="Key of the claim.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List all claims.")] = False,
    runs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of runs; default as published."),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Use these recorded benchmark results instead of new runs."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the page; default next to the claim."),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Reproduce published results. Requires a clone of the repository."""
    with one_line_errors(debug):
        from hilboost.cli.reproduce import find_folder, reproductions

        folder = find_folder()
        command = reproductions(folder)
        if show or key is None:
            typer.echo(command.list_claims(folder))
        else:
            typer.echo(
                command.run_reproduce(folder, command.ReproduceJob(key, runs, recorded, out))
            )


def main() -> None:
    """Run the command line."""
    app(prog_name="hilboost")

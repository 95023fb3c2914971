"""The ``hilboost`` command.

Heavy imports are inside the commands, so that ``hilboost --help`` starts quickly.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hilboost.cli import model_commands
from hilboost.cli.errors import one_line_errors

__all__ = ["app", "main"]

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

  zcat houses.csv.gz | hilboost fit - --target price --out houses.model

  hilboost fit --config fit.toml --random-state 1"""

PREDICT_EXAMPLES = """[bold]Examples[/bold]

  hilboost predict houses.model new.csv --out prices.csv

  hilboost predict flowers.model new.csv --proba | head"""

DEMO_EXAMPLES = """[bold]Examples[/bold]

  hilboost demo

  hilboost demo --quick --out pictures"""

REPRODUCE_EXAMPLES = """[bold]Examples[/bold]

  hilboost reproduce --list

  hilboost reproduce lz2016-losses

  hilboost reproduce sy2006-table3 --runs 1"""

LOSS_HELP = (
    "squared_error, absolute_error, huber, quantile, poisson, gamma, or tweedie for regression; "
    "log_loss or exponential for classification."
)

app = typer.Typer(
    name="hilboost",
    help="Gradient boosting for tabular data: fit, predict, and evaluate models.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of errors.")]


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


@app.command(epilog=FIT_EXAMPLES)
def fit(
    train: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="Table with a header row: CSV, CSV.GZ, or Parquet; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column to predict.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output model file.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with these options (keys table, target, out, loss, n-estimators, …) "
            r"and a table \[set] of estimator parameters; the command line takes precedence.",
        ),
    ] = None,
    task: Annotated[
        Literal["auto", "regression", "classification"] | None,
        typer.Option(
            metavar="TASK",
            help="auto, regression, or classification. auto selects classification if the target "
            "is text, boolean, or has at most 20 distinct integers.",
        ),
    ] = None,
    family: Annotated[
        Literal["tree", "kernel"] | None,
        typer.Option(
            metavar="FAMILY",
            help="tree (boosted trees) or kernel (kernel machines, for smooth targets).",
        ),
    ] = None,
    loss: Annotated[str | None, typer.Option(help=LOSS_HELP, metavar="NAME")] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(
            "--quantile", "-q", metavar="LEVEL", help="Level for --loss quantile; repeatable."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of sample weights."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column to ignore, such as a row identifier; repeatable."
        ),
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Table of validation data for early stopping."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Metric to report on --valid, such as rmse; repeatable."),
    ] = None,
    n_estimators: Annotated[int | None, typer.Option(metavar="N", help="Number of rounds.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(metavar="RATE", help="Shrinkage factor of each round.")
    ] = None,
    time_budget: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Stop training after about this time."),
    ] = None,
    random_state: Annotated[
        int | None, typer.Option(metavar="SEED", help="Random seed; default 0.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Number of threads; default all cores.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set any parameter of the estimator; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table. Text columns are categorical; empty fields are missing values."""
    given = {
        "table": train,
        "target": target,
        "out": out,
        "task": task,
        "family": family,
        "loss": loss,
        "quantile": tuple(quantile or ()) or None,
        "weights": weights,
        "ignore": tuple(ignore or ()) or None,
        "valid": valid,
        "metric": tuple(metric or ()) or None,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "time_budget": time_budget,
        "random_state": random_state,
        "threads": threads,
    }
    with one_line_errors(debug):
        from hilboost.cli.jobs import FitJob, run_fit
        from hilboost.cli.settings import parse_settings, read_config

        options: dict[str, Any] = {"table": None, "target": None, "out": None}
        parameters: dict[str, Any] = {}
        if config is not None:
            found, parameters = read_config(config)
            options |= found
        options |= {name: value for name, value in given.items() if value is not None}
        parameters |= parse_settings(settings or ())
        typer.echo(run_fit(FitJob(**options, settings=parameters), as_json=as_json))


@app.command(epilog=PREDICT_EXAMPLES)
def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file written by hilboost fit.", show_default=False
        ),
    ],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Table with a header row: CSV, CSV.GZ, or Parquet; - reads standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file for the predictions; default stdout."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column of probabilities for every class.")
    ] = False,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe/--no-spreadsheet-safe",
            help="Prefix text that a spreadsheet would execute as a formula with an apostrophe.",
        ),
    ] = True,
    debug: Debug = False,
) -> None:
    """Predict the rows of a table. Columns are matched by name."""
    with one_line_errors(debug):
        from hilboost.cli.jobs import PredictJob, run_predict

        run_predict(PredictJob(model, table, out, proba, spreadsheet_safe))


model_commands.add_to(app)


@app.command(epilog=DEMO_EXAMPLES)
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the plots.")] = Path(
        "hilboost-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Use few rounds and few rows.")] = False,
    debug: Debug = False,
) -> None:
    """Compare hilboost with scikit-learn on bundled data and draw plots (under a minute)."""
    with one_line_errors(debug):
        from hilboost.cli.demo import run_demo

        run_demo(out, quick=quick)


@app.command()
def warmup(debug: Debug = False) -> None:
    """Compile all code once, so that later fits start without delay."""
    with one_line_errors(debug):
        from hilboost.cli.progress import StageProgress
        from hilboost.cli.warmup import WARMUP_FITS, warm_up

        with StageProgress("compiling", total=WARMUP_FITS) as progress:
            seconds = warm_up(progress)
        typer.echo(f"Ready: compilation took {seconds:.1f} s.")


@app.command(epilog=REPRODUCE_EXAMPLES)
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
    debug: Debug = False,
) -> None:
    """Reproduce published results. Requires a clone of the repository."""
    with one_line_errors(debug):
        from hilboost.cli.reproduce import ReproduceJob, list_claims, run_reproduce

        if show or key is None:
            typer.echo(list_claims())
        else:
            typer.echo(run_reproduce(ReproduceJob(key, runs, recorded, out)))


def main() -> None:
    """Run the command line."""
    app(prog_name="hilboost")


if __name__ == "__main__":
    main()

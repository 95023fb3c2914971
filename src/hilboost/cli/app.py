"""The ``hilboost`` command.

Heavy imports are inside the commands, so that ``hilboost --help`` starts quickly.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from hilboost.cli import options
from hilboost.cli.errors import CliError
from hilboost.cli.option_fields import as_command
from hilboost.cli.peer_options import Command, Commands
from hilboost.cli.settings import parameters
from hilboost.core.packages import required


def _examples(commands: Sequence[str]) -> str:
    return "\n\n  ".join(["[bold]Examples[/bold]", *commands])


EXAMPLES = _examples(
    [
        "hilboost demo",
        "hilboost fit houses.csv --target price --out houses.model",
        "hilboost predict houses.model new.csv --out prices.csv",
        "hilboost report houses.model sold.csv --target price --out report.html",
    ]
)
EXIT_CODES = (
    "[bold]Exit codes[/bold]: 0 success, 1 error in the data, files, or parameters, 2 incomplete "
    "command\nor unknown option."
)

app = typer.Typer(
    name="hilboost",
    help="Gradient boosting for tabular data: fit, predict, and evaluate models.",
    cls=Commands,
    epilog=f"{EXAMPLES}\n\n{EXIT_CODES}",
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


def _command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command with these examples; the fields of records among its parameters are options."""
    add = app.command(cls=Command, epilog=_examples(examples) if examples else None)
    return lambda command: add(as_command(command))


@_command(
    "hilboost fit houses.csv --target price --out houses.model --loss huber",
    "hilboost fit flowers.parquet --target species --out flowers.model --valid test.parquet",
    "hilboost fit load.csv --target kw --out load.model --loss quantile -q 0.05 -q 0.95",
    "hilboost fit arm.csv --target torque --out arm.model --family kernel --time-budget 60",
    "hilboost fit houses.csv --target price --out houses.model --set max_depth=4",
    "hilboost fit huge.parquet --target price --out huge.model --stream",
    "zcat houses.csv.gz | hilboost fit - --target price --out houses.model",
    "hilboost fit --config fit.toml --random-state 1",
)
def fit(given: options.FitCommand) -> None:
    """Fit a model to a table. Text columns are categorical; empty fields are missing values."""
    from hilboost.cli.jobs import run_fit

    job = replace(given.job, settings=parameters(given.config, given.settings))
    if job.stream or job.dask is not None:
        from hilboost.cli.large import run_large_fit

        typer.echo(run_large_fit(job, as_json=given.as_json))
        return
    typer.echo(run_fit(job, as_json=given.as_json))


@_command(
    "hilboost predict houses.model new.csv --out prices.csv",
    "hilboost predict flowers.model new.csv --proba | head",
    "hilboost predict houses.model new.csv --keep id --out prices.csv",
)
def predict(job: options.PredictJob) -> None:
    """Predict the rows of a table. Columns are matched by name."""
    from hilboost.cli.predictions import run_predict

    run_predict(job)


@_command(
    "hilboost evaluate houses.model sold.csv --target price",
    "hilboost evaluate houses.model sold.csv --metric rmse --metric r2 --json",
)
def evaluate(job: options.EvaluateJob) -> None:
    """Evaluate a model on a table with true values."""
    from hilboost.cli.model_jobs import run_evaluate

    typer.echo(run_evaluate(job))


@_command(
    "hilboost report houses.model sold.csv --target price --out report.html",
    "hilboost report flowers.model test.parquet --out flowers.html --title Flowers",
)
def report(job: options.ReportJob) -> None:
    """Write an HTML report: errors, feature importances, learning curves, and parameters."""
    from hilboost.cli.model_jobs import run_report

    typer.echo(run_report(job))


@_command(
    "hilboost inspect houses.model", "hilboost inspect houses.model --json | python -m json.tool"
)
def inspect(job: options.InspectJob) -> None:
    """Describe a model: class, parameters, columns, and stages."""
    from hilboost.cli.model_jobs import run_inspect

    typer.echo(run_inspect(job))


@_command(
    "hilboost export houses.model --format onnx --out houses.onnx",
    "hilboost export houses.model --format xgboost-json --out houses.json",
)
def export(job: options.ExportJob) -> None:
    """Export a model to a format of another library, such as ONNX."""
    from hilboost.cli.model_jobs import run_export

    typer.echo(run_export(job))


@_command("hilboost demo", "hilboost demo --quick --out pictures")
def demo(job: options.DemoJob) -> None:
    """Compare with scikit-learn and draw plots. Requires a clone of the repository."""
    required("matplotlib", "hilboost demo")
    _module_of(_find_clone("The demo is", "examples/demo.py") / "examples", "demo").run_demo(
        job.out, quick=job.quick
    )


@_command()
def warmup(job: options.WarmupJob) -> None:
    """Compile everything in advance, so that later fits start without delay."""
    from rich.console import Console
    from rich.progress import track

    from hilboost.cli.warmup import run_uses
    from hilboost.cli.warmup_uses import USES

    start = time.perf_counter()
    console = Console(stderr=True)
    running = track(
        run_uses(check=job.check, for_host=job.host),
        "compiling",
        total=len(USES),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    uses = dict(running)
    missing = [name for name in USES if uses[name].n_compiled]
    if job.check:
        for name in USES:
            typer.echo(f"{name}: {'would be compiled' if name in missing else 'native'}")
    else:
        typer.echo(f"Ready: compilation took {time.perf_counter() - start:.1f} s.")
    lower = sorted(set().union(*(use.lower_levels for use in uses.values())))
    if lower:
        typer.echo(
            f"Code for {' and '.join(lower)} is used, but this processor supports a higher level: "
            "'hilboost warmup --host' compiles for it."
        )
    if job.check and missing:
        raise typer.Exit(1)


@_command(
    "hilboost reproduce --list",
    "hilboost reproduce lz2016-losses",
    "hilboost reproduce sy2006-table3 --runs 1",
)
def reproduce(job: options.ReproduceJob) -> None:
    """Reproduce published results. Requires a clone of the repository."""
    clone = _find_clone("The claims are", "benchmarks")
    command, folder = _module_of(clone, "reproductions.command"), clone / "reproductions"
    if job.show or job.key is None:
        typer.echo(command.list_claims(folder))
    else:
        typer.echo(command.run_reproduce(folder, job))


def _find_clone(what: str, needed: str) -> Path:
    """Find the clone above the working directory, or that of the package, with what is needed."""
    starts = [Path.cwd(), Path(__file__).resolve().parent]
    for start in starts:
        for parent in (start, *start.parents):
            if any((parent / "reproductions").glob("*/*.toml")) and (parent / needed).exists():
                return parent
    raise CliError(
        f"{what} not part of the installed package: run this command in a clone of the repository."
    )


def _module_of(folder: Path, name: str) -> ModuleType:
    """Import a module from a folder of a clone."""
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))


def main() -> None:
    """Run the command line."""
    app(prog_name="hilboost")

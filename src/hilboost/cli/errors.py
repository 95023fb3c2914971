"""Command-line errors: one line on stderr, which names options, and an exit code."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import singledispatch
from typing import Any, NoReturn

import typer

from hilboost.core.disk import unusable
from hilboost.core.errors import (
    CacheWarning,
    DataWarning,
    DecodeWarning,
    FitWarning,
    HilboostError,
    TrainingDataWarning,
)

EXIT_CODE = 1
NOTES = (CacheWarning, DataWarning, DecodeWarning)
USAGE_EXIT_CODE = 2  # same as typer's exit code for unknown options


class CliError(ValueError):
    """An error that the user can fix; its message is one sentence."""


class UsageError(CliError):
    """The command is incomplete or inconsistent."""


def note(message: str) -> None:
    """Print a note on stderr; stdout is reserved for data."""
    typer.echo(f"note: {message}", err=True)


def raise_usage_error(message: str) -> NoReturn:
    """Print the message of a command that is incomplete or inconsistent, and exit."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(USAGE_EXIT_CODE)


@contextmanager
def one_line_errors(debug: bool) -> Iterator[None]:
    """Convert exceptions to one line on stderr, unless the full traceback is wanted."""
    try:
        with warnings.catch_warnings():
            # An interrupted command saves no model, so its number of stages is irrelevant.
            warnings.simplefilter("ignore", FitWarning)
            warnings.filterwarnings("always", message="time_budget=", category=FitWarning)
            warnings.simplefilter("ignore", TrainingDataWarning)  # a note of the command says so
            for category in NOTES:
                warnings.simplefilter("always", category)
            # a note of the command says this, too
            warnings.filterwarnings("ignore", message="The number of unique classes")
            warnings.showwarning = _notes()
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        typer.echo("error: interrupted; an incomplete model or file is not saved.", err=True)
        raise
    except Exception as error:
        if debug:
            raise
        typer.echo(f"error: {_sentence(error)}", err=True)
        code = USAGE_EXIT_CODE if isinstance(error, UsageError) else EXIT_CODE
        raise typer.Exit(code) from None


def _notes() -> Callable[..., None]:
    """Return a function that shows each warning as one note, without the path of the code."""
    told: set[str] = set()

    def show(message: Warning | str, *others: Any, **where: Any) -> None:
        text = in_options(" ".join(str(message).split()))
        if text not in told:
            note(text)
        told.add(text)

    return show


def _text(error: Exception) -> str:
    return " ".join(str(error).split())


def _of_a_bug(error: Exception) -> str:
    """Return a sentence with the exception type, which is useful in a bug report."""
    return f"{type(error).__name__}: {_text(error)} (run again with --debug for the traceback)"


_sentence = singledispatch(_of_a_bug)


@_sentence.register(ValueError)
@_sentence.register(HilboostError)
def _(error: Exception) -> str:
    return in_options(_text(error))


@_sentence.register
def _(error: CliError) -> str:
    return _text(error)


@_sentence.register
def _(error: OSError) -> str:
    if not error.strerror:
        return _of_a_bug(error)
    if error.filename:
        return str(unusable(error.filename, error, "use"))
    return f"Cannot use a file: {error.strerror}."


_OWN_OPTIONS = ("learning_rate", "loss", "n_estimators", "quantile", "random_state", "time_budget")
PHRASES = {
    r"drop the (columns?), or convert": r"exclude the \1 with --ignore, or convert",
    r"drop the column unless": "exclude it with --ignore unless",
    r"set (\w+) in \w+\(\.\.\.\)": r"pass \1=VALUE",
    r"pass X_val and y_val": "add --valid TABLE",
    r"pass time=\.\.\. or groups=\.\.\.( to fit)?": "add --time COLUMN or --group-rows COLUMN",
    r"pass time=\.\.\.( to fit)?": "add --time COLUMN",
    r"pass groups=\.\.\.( to fit)?": "add --group-rows COLUMN",
    r"set validation_fraction to a number": "pass --set validation_fraction=NUMBER",
    r"pass other rows as X_val": "pass other rows with --valid",
    r"mark (it|them) as categorical with \.astype\('category'\)": r"name \1 in "
    "--set categorical_features",
    r"remove thousands separators, replace .*?, and convert (it|them)": r"read \1 with --thousands "
    "or --decimal",
    r"and convert (it|them), for instance with pandas\.\w+": r"and convert \1",
    r"convert (it|them) to calendar numbers": "use --dates expand, and --missing for other words",
    r"convert (it|them), for instance with pandas\.to_numeric": r"read \1 with --coerce",
    r", for instance with pandas\.\w+|(?<=[a-z])\(\.\.\., errors='coerce'\)": "",
    r"convert it to numbers, or fit again": "read it with --missing, --coerce, --thousands, or "
    "--decimal, or fit again",
    r"remove thousands separators, and write decimal points": "pass --thousands or --decimal",
    r"column \S+ of y (?=contains)": "a column of --event or --target ",
    r"\by (?=contains)": "the target ",
    r"Use a regressor, such as \w+, for numbers": "Use a loss of regression for numbers, or --task "
    "regression",
    r"n_jobs == 0 has no meaning; use None or -1": "--threads 0 has no meaning; leave it out, or "
    "use -1",
    r"pass whether there was an event \(.*?, and times as numbers": "write 1 where it happened, "
    "and 0 in censored rows, and times as numbers",
    r"require loss='(\w+)'; name columns of \w+ 'lower' and 'upper'": r"require --loss \1",
    r"use \w+Classifier for classes": "read text as missing with --missing or --coerce, and add "
    "--drop-missing-target, or choose another target or --task",
    r"remove rows without a target, .*? is 0": "remove them, as with --drop-missing-target",
    r"is a loss of BoostingSurvival; use it instead": "requires --event COLUMN",
    r"is a loss of BoostingRanker; use it instead": "requires --group COLUMN",
    r"Pass events and times together as y: .*? sample_weight": "add --event COLUMN",
    r"pass groups=\.": "add --group COLUMN.",
    r"offset must have (\d+) columns, .*; it has \d+": r"\1 classes require as many offsets, but "
    "--offset has one column; remove it, or add --loss poisson for counts, or --task regression",
    r"pass offset, or zeros to accept this": "add --offset COLUMN unless that is meant",
    r"call calibrate\(.*?\) first(, or fit .*?(?=\.$))?": "fit without --valid to 40 rows or more "
    "with --set cv_folds=4, or call calibrate in Python",
    r"\bsample_weight (?=is|are|sums|contains|must)": "--weights ",
    r"\boffset (?=is|must|contains)": "--offset ",
}
_VERB = r"(?<!-)\b(set|Set|use|Use|pass|Pass|add|Add)"
_CHOICE = re.compile(rf"(?:{_VERB}|\b(or)) ([a-z]\w*)=('[^']*'|\[[^\]]*\]|[\w.-]*\w)")
_ROW = re.compile(r"\brow (\d+)")
_NAME = re.compile(r"(?<!-)\bset ([a-z]+(?:_[a-z0-9]+)+)(?=[.,;:])")


def in_options(text: str) -> str:
    """Write ``set max_depth=4`` as the option ``--set max_depth=4``, and count rows from 1."""
    for phrase, ours in PHRASES.items():
        text = re.sub(phrase, ours, text)
    text = _ROW.sub(lambda found: f"data row {int(found[1]) + 1}", text)
    text = _CHOICE.sub(_as_option, text)
    return _NAME.sub(r"pass --set \1=VALUE", text)


def _as_option(found: re.Match[str]) -> str:
    """Write a parameter and its value as an option."""
    verb, conjunction, name, value = found.groups()
    start = conjunction or ("Pass" if verb[0].isupper() else "pass")
    value = {"None": "none", "True": "true", "False": "false"}.get(value, value.strip("'"))
    if name in _OWN_OPTIONS and value != "none":
        return f"{start} --{name.replace('_', '-')} {value}"
    return f"{start} --set {name}={value}"

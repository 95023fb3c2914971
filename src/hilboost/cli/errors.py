"""Errors of the command line: one line on stderr and exit code 2."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from hilboost.core.errors import FitWarning, HilboostError

__all__ = ["CliError", "note", "one_line_errors"]

EXIT_CODE = 2


class CliError(ValueError):
    """What the user can put right, said in one sentence."""


def note(message: str) -> None:
    """Tell the user something on stderr, so that stdout stays clean for data."""
    typer.echo(f"note: {message}", err=True)


@contextmanager
def one_line_errors(debug: bool) -> Iterator[None]:
    """Turn exceptions into one line on stderr, or let them through.

    Parameters
    ----------
    debug : bool
        Let the exception through, so that its traceback is shown.
    """
    try:
        with warnings.catch_warnings():
            # An interrupted command keeps no model: how many stages it has is no news.
            warnings.simplefilter("ignore", FitWarning)
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        if debug:
            raise
        typer.echo(f"error: {_sentence(error)}", err=True)
        raise typer.Exit(EXIT_CODE) from None


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        where = f" '{error.filename}'" if error.filename else ""
        return f"Cannot use{where or ' a file'}: {error.strerror}."
    if isinstance(error, (ValueError, HilboostError)):
        return text
    # Anything else is most likely a defect; its type is what a report of it needs.
    return f"{type(error).__name__}: {text} (run again with --debug to see where)"

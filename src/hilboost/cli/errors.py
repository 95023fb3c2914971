"""Errors of the command line: one line on stderr, and an exit code."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from hilboost.core.errors import CacheWarning, DataWarning, FitWarning, HilboostError

__all__ = ["CliError", "UsageError", "note", "one_line_errors"]

EXIT_CODE = 1
USAGE_EXIT_CODE = 2  # that of typer, for options it does not know


class CliError(ValueError):
    """What the user can put right, said in one sentence."""


class UsageError(CliError):
    """The command itself is not complete or contradicts itself."""


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
            for category in (CacheWarning, DataWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = _note_of(warnings.showwarning)
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        if debug:
            raise
        typer.echo(f"error: {_sentence(error)}", err=True)
        code = USAGE_EXIT_CODE if isinstance(error, UsageError) else EXIT_CODE
        raise typer.Exit(code) from None


def _note_of(shown: Callable[..., None]) -> Callable[..., None]:
    """How warnings are shown: those about the data and the cache as notes, others as before."""

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, (CacheWarning, DataWarning)):
            note(" ".join(str(message).split()))
        else:
            shown(message, category, *where)

    return show


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        where = f" '{error.filename}'" if error.filename else ""
        return f"Cannot use{where or ' a file'}: {error.strerror}."
    if isinstance(error, (ValueError, HilboostError)):
        return text
    # Anything else is most likely a defect; its type is what a report of it needs.
    return f"{type(error).__name__}: {text} (run again with --debug to see where)"

"""Exceptions and warnings of the package.

All exceptions are also subclasses of built-in ones, such as ``ValueError``, ``TypeError`` or
``OSError``, so that code written for scikit-learn catches them.  Each message says what is wrong,
where, and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr
from typing import Any


class _Brief(Repr):
    """Short representations, which show scalars of NumPy like Python's own."""

    def repr1(self, x: object, level: int) -> str:
        if getattr(getattr(x, "dtype", None), "kind", None) in {*"biufUS"}:
            from hilboost.core.plain_values import as_python  # imports NumPy

            x = as_python(x)
        return super().repr1(x, level)

    def repr_int(self, x: int, level: int) -> str:
        """Show only the size of very long integers, which Python does not convert to text."""
        n_bits = x.bit_length()
        return f"<integer of {n_bits} bits>" if n_bits > _MOST_BITS else super().repr_int(x, level)


_BRIEF = _Brief()
_BRIEF.maxstring = _BRIEF.maxother = 80
_NAMES_SHOWN = 10
_MOST_BITS = 2**11


class HilboostError(Exception):
    """Base class of all exceptions of the package."""


class InvalidParameter(HilboostError, ValueError):
    """A parameter has an invalid value."""


class InvalidData(HilboostError, ValueError):
    """The data are not valid for ``fit`` or ``predict``."""


class InvalidColumn(InvalidData):
    """Values of a column of ``X`` are not valid.

    Parameters
    ----------
    message : str
        With ``{}`` for the column.
    number : int
        Position of the column, from 0.
    name : str, optional
    """

    def __init__(self, message: str, number: int, name: str | None = None) -> None:
        super().__init__(message.format(f"column {number if name is None else repr(name)}"))
        self.message, self.number, self.name = message, number, name

    def named(self, names: Sequence[str] | None) -> InvalidColumn:
        """Name the column, whose number is all that a learner knows.

        Parameters
        ----------
        names : sequence of str, optional
            Columns of the table, if it has names.

        Returns
        -------
        InvalidColumn
        """
        if names is None or self.number >= len(names):
            return self
        return InvalidColumn(self.message, self.number, names[self.number])

    def __reduce__(self) -> Any:
        return InvalidColumn, (self.message, self.number, self.name)


class InvalidType(HilboostError, TypeError):
    """An argument has an invalid type."""


class IncompatibleParts(HilboostError, ValueError):
    """Two components of a model, such as a rule and a learner, cannot be combined."""


class NotPositive(InvalidParameter, ArithmeticError):
    """A kernel matrix is not positive semidefinite."""


class InvalidModelFile(HilboostError, ValueError):
    """A model file is damaged, or is not a hilboost model file."""


class FitError(HilboostError, RuntimeError):
    """A fit on several machines cannot go on, because too many of them were lost."""


class UnusablePath(HilboostError, OSError):
    """A file cannot be read or written, such as a folder, or one without permission."""

    def __str__(self) -> str:
        return str(self.strerror)


class DiskFull(UnusablePath):
    """A file cannot be written, because its disk, a quota or a limit leaves no space for it."""


class MissingPath(UnusablePath, FileNotFoundError):
    """The file to read, or the folder to write to, does not exist."""


class MissingPackage(HilboostError, ImportError):
    """An optional package, named in the message, is not installed."""


class DataWarning(UserWarning):
    """The data or weights are valid but probably unintended."""


class DecodeWarning(UserWarning):
    """A search for pre-images stopped at its limit, so that better labels may exist."""


class CacheWarning(UserWarning):
    """Compiled code cannot be cached on disk, so that every process compiles it again."""


class FitWarning(UserWarning):
    """A fit was interrupted, or its checkpoint could not be written."""


class TrainingDataWarning(UserWarning):
    """A model file contains rows or outputs of the training data."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called the package, directly or by scikit-learn.

    Parameters
    ----------
    message : str
    category : type
    """
    frame, level = sys._getframe(1), 3
    while frame.f_back is not None and _is_ours(frame.f_back.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("hilboost", "sklearn", "contextlib", "joblib")


@contextmanager
def errors_of(argument: str) -> Iterator[None]:
    """Put the name of an argument in front of messages about its values.

    Parameters
    ----------
    argument : str

    Yields
    ------
    None

    Raises
    ------
    InvalidData, InvalidType
    """
    try:
        yield
    except ValueError as error:
        raise InvalidData(f"{argument}: {error}") from error
    except TypeError as error:
        raise InvalidType(f"{argument}: {error}") from error


def first_true(bad: Any) -> int | None:
    """Return the position of the first entry that is true, such as a row to name in a message.

    Parameters
    ----------
    bad : (n,) bool

    Returns
    -------
    int or None
        ``None`` if there is none.
    """
    return int(bad.argmax()) if bad.any() else None


def shown(value: Any) -> str:
    """Return the representation of a value for a message: one short line, never a whole array.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    return " ".join(_BRIEF.repr(value).split())


def first_few(values: Collection[Any], write: Callable[[Any], str] = shown) -> str:
    """Return the first of several values for a message, and say how many more there are.

    Parameters
    ----------
    values : collection
    write : callable, default=shown
        Converts a value to text.

    Returns
    -------
    str
    """
    first = ", ".join(map(write, islice(values, _NAMES_SHOWN)))
    more = len(values) - _NAMES_SHOWN
    return f"{first} and {more} more" if more > 0 else first


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, as in "1 row" and "2 rows".

    Parameters
    ----------
    n : int
    noun : str

    Returns
    -------
    str
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def with_article(noun: str) -> str:
    """Return a noun with its article, as in "a dict" and "an int".

    Parameters
    ----------
    noun : str

    Returns
    -------
    str
    """
    return f"{'an' if noun[:1] in 'AEIOaeio' else 'a'} {noun}"


def unknown_name(
    kind: str, name: object, known: Iterable[str], same: str | None = None
) -> InvalidParameter:
    """Create the error for an unknown name, which suggests similar known names.

    Parameters
    ----------
    kind : str
        Parameter that has the name as its value, such as ``"loss"``.
    name : object
        The unknown name, or another object.
    known : iterable of str
        All valid names.
    same : str, optional
        The valid name of what another library calls ``name``.

    Returns
    -------
    InvalidParameter
    """
    names = sorted(known)
    near = get_close_matches(shown(name), names, n=3, cutoff=0.5) if same is None else [same]
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InvalidParameter(
        f"{kind}={shown(name)} is not known.{hint} Valid values: {', '.join(names)}."
    )


def refuse_class(name: str, value: object) -> None:
    """Reject a class where an object is expected.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object

    Raises
    ------
    InvalidType
    """
    if isinstance(value, type):
        raise InvalidType(f"{name}={value.__name__} is a class; write {value.__name__}().")

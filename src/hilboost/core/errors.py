"""Exceptions and warnings of the package.

All exceptions are also subclasses of ``ValueError``, ``TypeError`` or ``ImportError``, so that
code written for scikit-learn catches them.  Each message says what is wrong, where, and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HilboostError(Exception):
    """Base class of all exceptions of the package."""


class InvalidParameter(HilboostError, ValueError):
    """A parameter has an invalid value."""


class InvalidData(HilboostError, ValueError):
    """The data are not valid for ``fit`` or ``predict``."""


class InvalidType(HilboostError, TypeError):
    """An argument has an invalid type."""


class IncompatibleParts(HilboostError, ValueError):
    """Two components of a model, such as a rule and a learner, cannot be combined."""


class NotPositive(InvalidParameter, ArithmeticError):
    """A kernel matrix is not positive semidefinite."""


class InvalidModelFile(HilboostError, ValueError):
    """A model file is damaged, or is not a hilboost model file."""


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


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidParameter:
    """Create the error for an unknown name, which suggests similar known names.

    Parameters
    ----------
    kind : str
        Parameter that has the name as its value, such as ``"loss"``.
    name : str
        The unknown name.
    known : iterable of str
        All valid names.

    Returns
    -------
    InvalidParameter
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InvalidParameter(
        f"{kind}={name!r} is not known.{hint} Valid values: {', '.join(names)}."
    )

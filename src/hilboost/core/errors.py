"""Every error class of the package.

All are ``ValueError``, ``TypeError`` or ``ImportError`` as well, so that code written for
scikit-learn catches them.  A message says what was wrong, where, and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HilboostError(Exception):
    """Base class of the package's errors."""


class InvalidParameter(HilboostError, ValueError):
    """A parameter has a value that it may not have."""


class InvalidData(HilboostError, ValueError):
    """The data cannot be learnt from, or predicted on, as they are."""


class InvalidType(HilboostError, TypeError):
    """An argument is of a type that is not accepted."""


class IncompatibleParts(HilboostError, ValueError):
    """Two parts of a model (a rule and a learner, say) cannot work together."""


class NotPositive(InvalidParameter, ArithmeticError):
    """A matrix that a kernel should have made positive semidefinite is not."""


class InvalidModelFile(HilboostError, ValueError):
    """A model file is damaged, or was written by something else."""


class MissingPackage(HilboostError, ImportError):
    """An optional package is not installed; the message says which."""


class DataWarning(UserWarning):
    """The data or weights are probably not what was meant; the message says what to do."""


class CacheWarning(UserWarning):
    """Compiled code cannot be kept on disk, so that every process compiles it again."""


class FitWarning(UserWarning):
    """A fit was cut short, or could not be written to its checkpoint."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InvalidParameter:
    """The error for an unknown name, with the nearest known ones.

    Parameters
    ----------
    kind : str
        What the name should have named, such as ``"loss"``.
    name : str
    known : iterable of str

    Returns
    -------
    InvalidParameter
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InvalidParameter(f"{kind}={name!r} is not known.{hint} Known are: {', '.join(names)}.")

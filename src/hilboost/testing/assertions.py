"""Assertions that fail with a sentence, without pytest."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np


def ensure(condition: Any, sentence: str) -> None:
    """Fail with a sentence unless a condition holds.

    Parameters
    ----------
    condition : bool
    sentence : str

    Raises
    ------
    AssertionError
    """
    if not condition:
        raise AssertionError(sentence)


def ensure_close(
    found: Any, expected: Any, sentence: str, *, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Fail unless two arrays have one shape and nearly the same entries.

    Parameters
    ----------
    found, expected : array-like
    sentence : str
    rtol, atol : float
        As in :func:`numpy.allclose`; with both 0 the entries must be equal.

    Raises
    ------
    AssertionError
    """
    found, expected = np.asarray(found), np.asarray(expected)
    ensure(
        found.shape == expected.shape,
        f"{sentence} The shape is {found.shape}; expected {expected.shape}.",
    )
    wrong = ~np.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{sentence} {wrong.sum()} of {wrong.size} entries differ; at {first} there is "
            f"{found[first]!r}, expected {expected[first]!r}."
        )


def ensure_same_labels(found: Any, expected: Any, sentence: str) -> None:
    """Fail unless two collections of labels are of one kind and equal.

    Parameters
    ----------
    found, expected : array or list
    sentence : str

    Raises
    ------
    AssertionError
    """
    if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        ensure(
            found.dtype == expected.dtype,
            f"{sentence} The dtype is {found.dtype}; expected {expected.dtype}.",
        )
        if found.dtype.kind in "biufc":
            ensure_close(found, expected, sentence, rtol=1e-9, atol=1e-9)
        else:
            ensure(np.array_equal(found, expected), f"{sentence} {found!r:.200}")
        return
    ensure(
        isinstance(found, np.ndarray) == isinstance(expected, np.ndarray),
        f"{sentence} Got a {type(found).__name__}; expected a {type(expected).__name__}.",
    )
    ensure(found == expected, f"{sentence} Got {found!r:.200}; expected {expected!r:.200}.")


def ensure_raises(
    kind: type[Exception], pattern: str, call: Callable[[], Any], sentence: str
) -> None:
    """Fail unless a call raises an error of a kind, with a message that matches.

    Parameters
    ----------
    kind : type
    pattern : str
        Regular expression to be found in the message.
    call : callable
    sentence : str

    Raises
    ------
    AssertionError
    """
    try:
        call()
    except kind as error:
        ensure(
            re.search(pattern, str(error)),
            f"{sentence} The message is {str(error)!r}; it should match {pattern!r}.",
        )
        return
    except Exception as error:
        raise AssertionError(
            f"{sentence} Got {type(error).__name__} ({error}) instead of {kind.__name__}."
        ) from error
    raise AssertionError(f"{sentence} Nothing was raised; expected {kind.__name__}.")


def read_only(*arrays: Any) -> list[Any]:
    """Make arrays read-only, and copy them.

    Parameters
    ----------
    *arrays : array or None

    Returns
    -------
    list of array or None
        The copies.
    """
    copies = [None if array is None else array.copy() for array in arrays]
    for array in arrays:
        if array is not None:
            array.flags.writeable = False
    return copies

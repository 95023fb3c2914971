"""Base class of all contract tests, and assertions with messages, without pytest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Self

import numpy as np

from hilboost.core.errors import unknown_name
from hilboost.core.labels import take_labels


class Contract:
    """Base class of all contract tests.

    pytest collects subclasses whose names begin with ``Test``.  To skip a check, set it to ``None``
    in the subclass.  ``of(part).run()`` runs the same checks without a subclass and without pytest.
    """

    _arrays: tuple[Any, ...] = ()

    @classmethod
    def of(cls, part: Any, *arrays: Any, **attributes: Any) -> Self:
        """Create the contract tests of a given component.

        Parameters
        ----------
        part : object
            Each check uses a copy of it.
        *arrays : array-like or list
            Valid rows, from which some are drawn: ``X`` for a kernel, ``X`` and ``y`` for a
            learner, ``y`` for a loss, labels, at least 40, for an output space.  By default,
            random numbers, except for output spaces.
        **attributes
            Attributes of the class, such as ``saved=False`` for a component whose class is defined
            in a script, a notebook or a function, to which model files cannot refer.

        Returns
        -------
        Contract

        Raises
        ------
        InvalidParameter
            If the class has no attribute of this name.
        InvalidData
            If a learner is given ``X`` without ``y``.
        """
        known = [name for name in dir(cls) if name[0] != "_" and not callable(getattr(cls, name))]
        for name in attributes:
            if name not in known:
                raise unknown_name("attribute", name, known)
        members = {"make": lambda _: deepcopy(part), "_arrays": arrays, **attributes}
        return type(cls.__name__, (cls,), members)()

    def _drawn(self, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw the same rows of all given arrays, each at most once if there are enough rows."""
        if not self._arrays:
            return []
        n_rows = len(self._arrays[0])
        rows = rng.choice(n_rows, n, replace=n_rows < n)
        return [take_labels(array, rows) for array in self._arrays]

    def make(self) -> Any:
        """Create the component under test; called by each check.

        Returns
        -------
        object

        Raises
        ------
        NotImplementedError
            If the subclass does not override this method.
        """
        raise NotImplementedError(f"{type(self).__name__}.make must return the object to test.")

    @classmethod
    def checks(cls) -> tuple[str, ...]:
        """Return the names of all checks; checks of base classes come first.

        Returns
        -------
        tuple of str
        """
        names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
        tests = (name for name in names if name.startswith("test_"))
        return tuple(name for name in tests if callable(getattr(cls, name)))

    def run(self, checks: Iterable[str] | None = None) -> None:
        """Run checks until one fails.

        Parameters
        ----------
        checks : iterable of str, optional
            Their names; by default, all.

        Raises
        ------
        AssertionError
            If a check fails.  The message names the class and the check, and describes the failure.
        """
        for name in self.checks() if checks is None else checks:
            try:
                getattr(self, name)()
            except Exception as error:
                said = str(error)
                if not isinstance(error, AssertionError):
                    said = f"{type(error).__name__}: {error}"
                raise AssertionError(
                    f"{type(self.make()).__name__} fails {name}: {said}"
                ) from error


def ensure(condition: object, sentence: str) -> None:
    """Raise an error unless a condition holds.

    ``sentence``: message of the error.
    """
    if not condition:
        raise AssertionError(sentence)


def ensure_close(
    found: Any, expected: Any, sentence: str, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Raise an error unless two arrays have the same shape and nearly equal entries.

    ``sentence``: first sentence of the message. ``rtol`` and ``atol``: tolerances as in
    :func:`numpy.allclose`; if both are 0, the entries must be equal.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    said = f"{sentence} The shape is {found.shape}; expected {expected.shape}."
    ensure(found.shape == expected.shape, said)
    wrong = ~np.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{sentence} {wrong.sum()} of {wrong.size} entries differ; the entry at {first} is "
            f"{found[first]!r}, expected {expected[first]!r}."
        )


def ensure_same_labels(found: Any, expected: Any, sentence: str) -> None:
    """Raise an error unless two collections of labels have the same type and are equal.

    ``sentence``: first sentence of the message.
    """
    said = f"{sentence} Got a {type(found).__name__}; expected a {type(expected).__name__}."
    ensure(isinstance(found, np.ndarray) == isinstance(expected, np.ndarray), said)
    if isinstance(found, np.ndarray):
        said = f"{sentence} The dtype is {found.dtype}; expected {expected.dtype}."
        ensure(found.dtype == expected.dtype, said)
        if found.dtype.kind in "biufc":
            ensure_close(found, expected, sentence, rtol=1e-9, atol=1e-9)
        else:
            ensure(np.array_equal(found, expected), f"{sentence} Got {found!r:.200}.")
        return
    ensure(found == expected, f"{sentence} Got {found!r:.200}; expected {expected!r:.200}.")


def ensure_raises(
    kind: type[Exception], pattern: str, call: Callable[[], Any], sentence: str
) -> None:
    """Raise an error unless a call raises the expected exception with a matching message.

    ``kind``: expected class of the exception. ``pattern``: regular expression that must be found in
    the message of the exception. ``sentence``: first sentence of the message.
    """
    try:
        call()
    except kind as error:
        said = f"{sentence} The message is {str(error)!r}; it must match {pattern!r}."
        ensure(re.search(pattern, str(error)), said)
        return
    except Exception as error:
        raise AssertionError(
            f"{sentence} Got {type(error).__name__} ({error}) instead of {kind.__name__}."
        ) from error
    raise AssertionError(f"{sentence} No exception was raised; expected {kind.__name__}.")


def read_only(*arrays: Any) -> list[Any]:  # the copies
    """Copy arrays, and make the originals read-only."""
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    return copies

"""Validation and order of strings and of other sequences of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidData
from hilboost.outputs.row_checks import as_objects

_NUMBERS = frozenset({int, float, bool})


def as_strings(labels: Any, what: str = "Y", of_tokens: bool | None = None) -> list[Any]:
    """Validate labels that are all strings, or all lists or tuples of tokens.

    ``what``: name of the labels in error messages. ``of_tokens``: whether lists and tuples are
    required instead of strings; ``None`` follows the first label.
    """
    objects = as_objects(labels, "strings", what)
    if of_tokens is None:
        of_tokens = is_sequence(objects[0])
    if of_tokens:
        return [_tokens(i, what, sequence) for i, sequence in enumerate(objects)]
    for i, string in enumerate(objects):
        if not isinstance(string, str):
            raise _refused(i, what, string, "each output must be a string.")
    return objects


def is_sequence(label: Any) -> bool:
    """Whether a label is a list, a tuple or an array (n,)."""
    return isinstance(label, list | tuple) or (isinstance(label, np.ndarray) and label.ndim == 1)


def _tokens(i: int, what: str, sequence: Any) -> tuple[Any, ...]:
    if not is_sequence(sequence):
        raise _refused(i, what, sequence, "each output must be a list or tuple of tokens.")
    return as_tokens(sequence, f"row {i} of {what} contains the token", "tokens")


def as_tokens(sequence: Iterable[Any], where: str, noun: str) -> tuple[Any, ...]:
    """Validate tokens, which are compared and hashed.

    ``where``: description in error messages. ``noun``: description in error messages.

    Returns tuple: scalars of NumPy are converted to numbers and strings.
    """
    tokens = tuple(token.item() if isinstance(token, np.generic) else token for token in sequence)
    for token in tokens:
        try:
            hash(token)
            same = bool(token == token)  # NaN differs from itself
        except (TypeError, ValueError):
            same = False
        if not same:
            raise InvalidData(
                f"{where} {token!r:.60} ({type(token).__name__}); {noun} must be hashable and not "
                "NaN, such as words or integers."
            )
    return tokens


def _refused(i: int, what: str, label: Any, rule: str) -> InvalidData:
    return InvalidData(f"row {i} of {what} is {label!r:.60} ({type(label).__name__}); {rule}")


def in_order(items: Iterable[Any]) -> list[Any]:  # in natural order, or else by type and text
    """Sort strings, tokens or tuples of tokens, of types that may not be comparable."""
    found = list(items)
    tokens = (token for item in found for token in (item if isinstance(item, tuple) else (item,)))
    kinds = {type(token) for token in tokens}
    if kinds == {str} or kinds <= _NUMBERS:
        return sorted(found)
    return sorted(found, key=lambda item: (type(item).__name__, repr(item)))


def units(string: Any) -> str:
    """Name the tokens of a string in error messages."""
    return "characters" if isinstance(string, str) else "tokens"

"""Arguments of ``fit`` as the user passed them: rows, and one or several validation sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hilboost.core.errors import InvalidData


@dataclass(frozen=True)
class FitArguments:
    """Rows that the user passed, not yet validated: inputs, labels, and what belongs to them.

    Several validation sets are mappings of names to each of these.
    """

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None
    offset: Any = None
    entry: Any = None
    strata: Any = None
    positions: Any = None


_ARGUMENTS = {
    "y": "y_val",
    "weight": "sample_weight_val",
    "groups": "groups_val",
    "offset": "offset_val",
    "entry": "entry_val",
    "strata": "strata_val",
}


def beside(rows: FitArguments) -> dict[str, Any]:
    """Return what belongs to the rows of ``X``, by the names of the arguments of ``fit``."""
    return {
        argument.removesuffix("_val"): getattr(rows, field)
        for field, argument in _ARGUMENTS.items()
    }


def validation_sets(given: FitArguments) -> dict[str, FitArguments]:
    """Return the validation sets by name, in the order of the user; a single one has no name."""
    named = isinstance(given.X, Mapping)
    for field, argument in _ARGUMENTS.items():
        _check_names(argument, getattr(given, field), given.X if named else None)
    if not named:
        _check_complete(given)
        return {} if given.X is None else {"": given}
    if not given.X:
        raise InvalidData("X_val is an empty dict; pass at least one validation set.")
    if given.y is None or set(given.y) != set(given.X):
        raise InvalidData(
            "X_val is a dict of validation sets, so that y_val must be a dict with the same names: "
            f"{', '.join(map(repr, given.X))}."
        )
    if "" in given.X or len({str(name) for name in given.X}) < len(given.X):
        raise InvalidData(
            "the names of validation sets must be different as text, and not empty; rename the "
            "sets of X_val."
        )
    parts = [field.name for field in fields(FitArguments)]
    return {
        str(name): FitArguments(*((getattr(given, part) or {}).get(name) for part in parts))
        for name in given.X
    }


def _check_names(argument: str, given: Any, sets: Mapping[Any, Any] | None) -> None:
    if given is None:
        return
    if isinstance(given, Mapping) != (sets is not None):
        raise InvalidData(
            f"X_val and {argument} must both be dicts of validation sets, or both be arrays."
        )
    unknown = [] if sets is None else [name for name in given if name not in sets]
    if unknown:
        raise InvalidData(
            f"{argument} contains {unknown[0]!r}, which is not one of the validation sets of "
            f"X_val: {', '.join(map(repr, sets or ()))}."
        )


def _check_complete(given: FitArguments) -> None:
    if (given.X is None) != (given.y is None):
        raise InvalidData("only one of X_val and y_val was passed; pass both or neither.")
    for field, argument in _ARGUMENTS.items():
        if field != "y" and given.X is None and getattr(given, field) is not None:
            raise InvalidData(f"{argument} requires X_val and y_val; pass these too.")

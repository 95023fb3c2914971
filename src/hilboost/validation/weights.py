"""Validation of sample weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import (
    DataWarning,
    InvalidData,
    InvalidParameter,
    first_few,
    first_true,
    shown,
    warn_caller,
)
from hilboost.core.plain_values import is_name, real
from hilboost.core.target import Target
from hilboost.reductions.sums import count_rows, total_weight
from hilboost.tables.number_text import is_numeric
from hilboost.tables.reading import as_array
from hilboost.validation.targets import warn_of_number_texts


def check_weights(sample_weight: PerRow, X: Floats) -> Floats | None:
    """Return weights (n,) float64, or ``None`` if all are one."""
    if sample_weight is None:
        return None
    weight = check_not_negative(sample_weight, X)
    return plain_weights(Target(weight[:, None], weight)).weight


def check_not_negative(sample_weight: PerRow, X: Floats) -> Floats:
    """Return weights (n,) float64; none is negative."""
    given = np.asarray(as_array(sample_weight, "sample_weight"))
    shape = given.shape
    if shape != (len(X),):
        got = shape[0] if len(shape) == 1 else f"an array of shape {shape}"
        raise InvalidData(
            f"sample_weight must have one value for each of the {len(X)} rows of X; got {got}."
        )
    weight = as_numbers(given, "sample_weight")
    if (row := first_true(~np.isfinite(weight))) is not None:
        what = "NaN" if np.isnan(weight[row]) else "infinity"
        raise InvalidData(
            f"sample_weight contains {what} in row {row}; use finite weights, and 0 to exclude a "
            "row."
        )
    if (row := first_true(weight < 0)) is not None:
        several = len(np.unique(weight[weight < 0])) > 1
        logarithms = ", and pass logarithms of exposures as offset=..." if several else ""
        raise InvalidData(
            f"sample_weight must not be negative; row {row} has {weight[row]:g}. "
            f"Use 0 to exclude a row{logarithms}."
        )
    return weight


@contextmanager
def errors_in_rows(rows: NDArray[np.integer]) -> Iterator[None]:
    """Let messages number rows as in a table of which only these are looked at.

    Messages about validation data, which contain "_val", remain as they are.
    """
    try:
        yield
    except InvalidData as error:
        if "_val" not in str(error):
            numbers = dict(enumerate(rows.tolist()))  # others are in what a message quotes
            numbered = re.sub(
                r"(?<=\brow )\d+", lambda k: str(numbers.get(int(k[0]), k[0])), str(error)
            )
            error.args = (numbered, *error.args[1:])
        raise


def plain_weights(target: Target) -> Target:
    """Return the target without weights if all are one; at least one must be positive."""
    weight = target.weight
    if weight is None:
        return target
    if not count_rows(weight > 0, target):
        raise InvalidData("sample_weight is zero for every row; at least one must be positive.")
    return target if count_rows(weight != 1, target) else replace(target, weight=None)


def as_numbers(values: NDArray[Any], what: str) -> Floats:
    """Convert to float64; name the first value that is not a number, and warn of text."""
    if values.dtype.kind in "OUS":
        for place, value in np.ndenumerate(values):
            if not is_numeric(value):
                where = f"row {place[0]} has " if place else "got "
                raise InvalidData(f"{what} must contain numbers; {where}{shown(value)}.")
        warn_of_number_texts(values, what)
    return np.require(values, np.float64, ["C", "W"])


def warn_of_light_weights(target: Target, min_samples_leaf: float, divisor: float = 1.0) -> None:
    """Warn if rows, or weights once divided, are too few for two leaves of ``min_samples_leaf``."""
    n = target.n_rows
    is_weighted = target.weight is not None or divisor != 1
    total = divisor * total_weight(target) if is_weighted else float(n)
    if total >= 2 * min_samples_leaf or n == 1:
        return
    if n < 2 * min_samples_leaf:
        warn_caller(
            f"min_samples_leaf={min_samples_leaf:g} allows no split of {n} rows, so that trees are "
            f"constants; set it to at most {total / 2 if is_weighted else n // 2:g}.",
            DataWarning,
        )
    else:
        warn_caller(
            f"sample_weight sums to {total:.3g} over {n} rows, so no leaf can reach "
            f"min_samples_leaf={min_samples_leaf:g}, which is a sum of weights, and the model is a "
            "constant. Scale the weights so that they sum to about the number of rows.",
            DataWarning,
        )


def check_class_weight(class_weight: object, classes: Sequence[Any]) -> None:
    """Check that weights of classes are "balanced", or a dict from classes of ``y`` to weights."""
    if is_name(class_weight, "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise InvalidParameter(
            f"class_weight must be 'balanced' or a dict from class to weight; "
            f"got {shown(class_weight)}."
        )
    for one, weight in class_weight.items():
        if not 0 <= real(weight) < np.inf:
            raise InvalidParameter(
                f"class_weight={{{one!r}: {shown(weight)}}} is not a weight; set it to a finite "
                "number that is not negative, and to 0 to exclude the class."
            )
    unknown = [one for one in class_weight if one not in classes]
    if unknown and any(one not in class_weight for one in classes):
        raise InvalidParameter(
            f"class_weight contains {first_few(unknown)}, but the classes of y are "
            f"{first_few(classes)}; use these as keys."
        )
    if not any(class_weight.get(one, 1) for one in classes):
        raise InvalidParameter(
            "class_weight is zero for every class of y; at least one must be positive."
        )

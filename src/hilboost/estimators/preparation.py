"""Arguments of ``fit`` as the user passed them, and their validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from hilboost.boosting.effective_size import row_weight_with_classes
from hilboost.core.errors import InvalidData, errors_of
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.merging import merge_equal_rows
from hilboost.model.fitted import FittedModel
from hilboost.tables import of_used_levels
from hilboost.training.categories import check_levels
from hilboost.training.data import TrainingData, ValidationSet, without_zero_weights
from hilboost.validation.inputs import check_inputs
from hilboost.validation.offsets import check_offset, check_outputs
from hilboost.validation.order import check_order
from hilboost.validation.weights import check_weights


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


def training_data(
    estimator: Any,
    rows: FitArguments,
    held_out: FitArguments,
    before: FittedModel | None,
) -> TrainingData:
    """Validate the training rows of an estimator, and the held-out rows, if there are any.

    ``estimator``: defines the inputs that it accepts, the encoding of labels, and the order of
    rows. ``before``: record of the fit that is continued, whose columns and labels are kept.
    """
    X, y, weight = rows.X, rows.y, rows.weight
    check_order(X, **beside(rows))
    sets = validation_sets(held_out)
    schema = None if before is None else before.schema
    in_blocks = estimator._reads_blocks()
    X, schema = check_inputs(estimator, X, replace(estimator._expected(schema), blocks=in_blocks))
    n = len(X)
    if y is None:
        raise InvalidData(
            f"{type(estimator).__name__}.fit requires y to be passed, but the target y is None: "
            "call fit(X, y)."
        )
    y = estimator._labels_of(rows)
    if before is None:
        codec, encoded = estimator._learn_codec(y, n)
    else:
        codec = before.codec
        encoded = codec.encode(y, n, estimator._takes_missing_targets())
    weight = check_weights(weight, X)
    target = Target(encoded, weight, offset=check_offset(rows.offset, n))
    target = estimator._weighted(target, codec)
    X, target = estimator._arranged(X, target, rows)
    if target.groups is not None:
        weight = target.weight
    if weight is not None and target.weight is not None:
        weight = weight[target.weight > 0]
    X, target = without_zero_weights(X, target)
    if len(X) < n and before is None and schema.categories:
        X, schema = of_used_levels(X, schema)
    row_weight = row_weight_with_classes(target, weight)
    if estimator._merges_equal_rows:
        X, target = merge_equal_rows(X, target)
        weight = target.weight
    one_class = codec.has_one_class(target)
    if before is not None:
        check_levels(schema, X)
        if before.beside_offsets and target.offset is None:
            raise InvalidData(
                "warm_start: the existing stages were fitted with offsets, but offset is None; "
                "pass offset, or set warm_start=False."
            )
    data = TrainingData(
        X,
        target,
        schema,
        codec,
        sample_weight=weight,
        has_one_class=one_class,
        row_weight=row_weight,
    )
    found = [_validation_set(estimator, data, name, rows) for name, rows in sets.items()]
    if not found:
        return data
    return replace(data, held_out=(found[0].X, found[0].target), others=tuple(found[1:]))


def _validation_set(
    estimator: Any, data: TrainingData, name: str, rows: FitArguments
) -> ValidationSet:
    """Validate the rows of one of the user's validation sets."""
    where = f"[{name!r}]" if name else ""
    check_order(rows.X, f"_val{where}", **beside(rows))
    with errors_of(f"X_val{where}"):
        X, _ = check_inputs(estimator, rows.X, estimator._expected(data.schema))
    with errors_of(f"y_val{where}"):
        labels = estimator._labels_of(rows)
        encoded = data.codec.encode(labels, len(X), estimator._takes_missing_targets())
    with errors_of(f"sample_weight_val{where}"):
        target = Target(encoded, check_weights(rows.weight, X))
    with errors_of(f"offset_val{where}"):
        offset = check_offset(rows.offset, len(X))
        if (offset is None) != (data.target.offset is None):
            raise InvalidData("offset and offset_val must both be passed, or neither.")
        if data.target.offset is not None:
            check_outputs(offset, data.target.offset.shape[1])
        target = replace(target, offset=offset)
    with errors_of(f"groups_val{where}"):
        X, target = estimator._arranged(X, target, rows)
    return ValidationSet(name, *without_zero_weights(X, target))

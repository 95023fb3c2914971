"""Arguments of ``fit`` as the user passed them, and their validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.backends.threads import threads_for
from hilboost.boosting.effective_size import row_weight_with_classes
from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, InvalidData, errors_of, first_few, warn_caller
from hilboost.core.plain_values import is_name
from hilboost.core.target import Target
from hilboost.encoders.encoding import level_weights
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.model.row_marks import RowMarks
from hilboost.reductions.rows import merge_equal_rows
from hilboost.tables.bounds import are_exact, as_bounds, stand_ins
from hilboost.tables.files import of_used_levels
from hilboost.tables.schema import Schema
from hilboost.tables.text_columns import TextColumn
from hilboost.training.categories import check_levels
from hilboost.training.data import TrainingData, ValidationSet, without_zero_weights
from hilboost.training.fingerprints import of_dependence
from hilboost.validation.copies import told_of_copies
from hilboost.validation.dependence import check_weighted, dependence_of
from hilboost.validation.inputs import Expected, check_inputs
from hilboost.validation.offsets import check_offset, check_outputs
from hilboost.validation.order import check_order, told_of_ordered_rows
from hilboost.validation.weights import check_not_negative, plain_weights

if TYPE_CHECKING:
    from hilboost.estimators.base import BoostingEstimator
    from hilboost.estimators.sklearn_callbacks import Relay


@dataclass(frozen=True)
class FitArguments:
    """Rows that the user passed, not yet validated, by the arguments of ``fit``.

    Several validation sets are mappings of names to each of these.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None
    offset: Any = None
    entry: Any = None
    strata: Any = None
    positions: Any = None
    time: Any = None


@dataclass(frozen=True)
class FitContext:
    """The callbacks of a fit, and the model that it continues."""

    callbacks: Sequence[Callback]
    before: FittedModel | None  # which ``warm_start`` continues
    relay: Relay | None  # to scikit-learn's callbacks; one of the callbacks


_BESIDE = ("y", "sample_weight", "groups", "offset", "entry", "strata")  # of validation rows, too


def beside(rows: FitArguments) -> dict[str, Any]:
    """Return what belongs to the rows of ``X``, by the names of the arguments of ``fit``."""
    return {name: getattr(rows, name) for name in _BESIDE}


def validation_sets(given: FitArguments) -> dict[str, FitArguments]:
    """Return the validation sets by name, in the order of the user; a single one has no name."""
    named = isinstance(given.X, Mapping)
    for name, values in beside(given).items():
        _check_names(f"{name}_val", values, given.X if named else None)
    if not named:
        check_complete(given)
        return {} if given.X is None else {"": given}
    if not given.X:
        raise InvalidData("X_val is an empty dict; pass at least one validation set.")
    if given.y is None or set(given.y) != set(given.X):
        raise InvalidData(
            "X_val is a dict of validation sets, so that y_val must be a dict with the same names: "
            f"{first_few(given.X)}."
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
            f"X_val: {first_few(sets or ())}."
        )


def check_complete(given: FitArguments) -> None:
    """Check that validation rows have targets, if any argument for them was passed."""
    several = given.X if type(given.X) is list else []
    tables = [one[0] if type(one) is tuple and one else one for one in several]
    numbers = [getattr(one, "ndim", None) for one in tables]  # of Dask, not always numbers
    if tables and all(type(one) is int and one == 2 for one in numbers):
        raise InvalidData(
            "X_val is a list of validation sets; pass dicts with their names, such as "
            "X_val={'new': X_new}, y_val={'new': y_new}."
        )
    if (given.X is None) != (given.y is None):
        remedy = "pass both or neither."
        if type(given.X) is tuple and len(given.X) == 2:
            remedy = "X_val is a tuple (X, y); pass X_val=X, y_val=y."
        raise InvalidData(f"only one of X_val and y_val was passed; {remedy}")
    for name, values in beside(given).items():
        if name != "y" and given.X is None and values is not None:
            raise InvalidData(f"{name}_val requires X_val and y_val; pass these too.")


@dataclass(frozen=True)
class CheckedRows:
    """Rows as numbers, of a table or of one of its partitions."""

    X: Floats  # (n, d) array: category codes refer to ``schema``
    schema: Schema
    target: Target  # with the labels as given if there is no codec
    codec: TargetCodec | None  # ``None`` if the encoding needs the labels of all rows
    texts: Mapping[object, TextColumn] | None = None  # columns of text of a partition


def check_rows(
    estimator: BoostingEstimator,
    rows: FitArguments,
    expected: Expected,
    encode: Callable[[Any, int], tuple[TargetCodec | None, Any]],
    where: str = "",
) -> CheckedRows:
    """Convert rows of a table, of a validation set, or of a partition to numbers.

    ``encode`` returns the codec of the labels and the encoded labels of n rows. ``where`` ends the
    names of the arguments of a validation set in messages.
    """
    with _named("X", where):
        X, schema = check_inputs(estimator, rows.X, expected)
    n = len(X)
    if rows.y is None:
        raise InvalidData(
            f"{type(estimator).__name__}.fit requires y to be passed, but the target y is None: "
            "call fit(X, y)."
        )
    with _named("y", where):
        codec, y = encode(estimator._labels_of(rows), n)
    with _named("sample_weight", where):
        weight = rows.sample_weight
        weight = None if weight is None else check_not_negative(weight, X)
    with _named("offset", where):
        target = Target(y, weight, offset=check_offset(rows.offset, n))
    return CheckedRows(X, schema, target, codec)


def _named(argument: str, where: str) -> AbstractContextManager[None]:
    """Name the argument in messages about a validation set."""
    return errors_of(f"{argument}{where}") if where else nullcontext()


def training_data(
    estimator: BoostingEstimator,
    rows: FitArguments,
    held_out: FitArguments,
    before: FittedModel | None,
    divides: bool = True,  # whether the fit may hold out rows
) -> TrainingData:
    """Validate the training rows of an estimator, and the held-out rows, if there are any.

    A fit that is continued keeps the columns and labels of the record ``before``.
    """
    check_order(rows.X, **beside(rows), time=rows.time)
    sets = validation_sets(held_out)
    expected = estimator._expected(None if before is None else before.schema)
    expected = replace(expected, blocks=estimator._reads_blocks())
    encode = estimator._learn_codec if before is None else encoding(estimator, before.codec)
    checked = check_rows(estimator, rows, expected, encode)
    told = told_of_copies(checked.X, checked.schema, rows.y, rows.groups, checked.target.offset)
    for sentence in told if before is None else ():
        warn_caller(sentence, DataWarning)
    if divides:
        checked = _with_dependence(estimator, checked, rows, is_new=not sets and before is None)
    data = rows_of_fit(estimator, checked, rows, learns=before is None)
    if before is not None:
        if divides and not sets:
            _check_held_out(before, data.target)
        check_levels(data.schema, data.X)
        if before.beside_offsets and data.target.offset is None:
            other = ", or set warm_start=False" if estimator.warm_start else ""
            raise InvalidData(
                "the existing stages were fitted with offsets, but offset is None; pass "
                f"offset{other}."
            )
    found = [_validation_set(estimator, data, name, given) for name, given in sets.items()]
    if not found:
        return _with_numbers(data)
    for sentence in told_of_overlap(estimator, data, found[0]):
        warn_caller(sentence, DataWarning)
    return _with_numbers(replace(data, validation=(replace(found[0], name=""), *found[1:])))


def _with_numbers(data: TrainingData) -> TrainingData:
    """Replace bounds by numbers if every row is exact."""
    targets = [data.target, *(one.target for one in data.validation)]
    if not any(data.codec.has_bounds(target) for target in targets):
        return data
    if not all(are_exact(as_bounds(target.y)).all() for target in targets):
        return data
    return data.with_targets(lambda target: target.with_y(target.y[:, :1].copy()))


def _check_held_out(before: FittedModel, target: Target) -> None:
    """Check that the same groups, times or splits hold rows out as in the first fit."""
    held_rows_out = before.history is not None and before.history.validation is not None
    if not held_rows_out or before.held_out_by in (None, of_dependence(target)):
        return
    raise InvalidData(
        "warm_start: the rows of the first fit were held out by "
        f"{' and '.join(before.held_out_by or ['chance'])}, so that its stages may have learned "
        "from rows that would now be held out; pass the same groups or time, and validation, or "
        "set warm_start=False."
    )


def _with_dependence(
    estimator: BoostingEstimator, checked: CheckedRows, rows: FitArguments, is_new: bool
) -> CheckedRows:
    """Note by what rows are held out; warn if this is at random, but rows seem to be in order."""
    target, codec = checked.target, checked.codec
    assert codec is not None
    validation, gap = estimator.validation, estimator.validation_gap
    y = stand_ins(target.y) if codec.has_bounds(target) else target.y[:, 0]
    y = y if codec.n_classes is None else target.y[:, 0].astype(np.intp)
    found = dependence_of(validation, gap, rows.groups, rows.time, y, estimator.ranks_groups)
    stops = estimator.is_tabular and estimator.get_params(deep=False)["early_stopping"] is not False
    is_random = found is None and is_name(validation, "auto") and not estimator.ranks_groups
    if is_new and stops and is_random and codec.kind in ("numbers", "classes"):
        for sentence in told_of_ordered_rows(checked.X, y, codec.n_classes is not None):
            warn_caller(sentence, DataWarning)
    return replace(checked, target=replace(target, dependence=found))


def encoding(
    estimator: BoostingEstimator, codec: TargetCodec
) -> Callable[[Any, int], tuple[TargetCodec, Floats]]:
    """Return the function that encodes labels by a codec that is known."""
    allows = estimator._takes_missing_targets()
    return lambda labels, n: (codec, codec.encode_rows(labels, n, allows))


def rows_of_fit(
    estimator: BoostingEstimator,
    checked: CheckedRows,
    arguments: FitArguments = FitArguments(None, None),  # for the order of the rows
    learns: bool = True,  # whether levels that do not occur are dropped
) -> TrainingData:
    """Weight and order the training rows, and leave out those that do not count."""
    X, schema, codec, target = checked.X, checked.schema, checked.codec, checked.target
    assert codec is not None
    target = plain_weights(target)
    weight = target.weight
    target = estimator._weighted(target, codec)
    if target.weight is not None and not target.weight.all():
        estimator._check_targets(target, codec)  # before other rows get their numbers
    X, target = estimator._arranged(X, target, arguments)
    if target.groups is not None:
        weight = target.weight
    if weight is not None and target.weight is not None:
        weight = weight[target.weight > 0]
    n = target.n_rows
    X, target = without_zero_weights(X, target)
    if target.n_rows < n and learns and schema.categories:
        rows = replace(target, weight=None)
        X, schema = of_used_levels(X, schema, lambda codes, n: level_weights(codes, n, rows))
    check_weighted(target)
    row_weight = row_weight_with_classes(target, weight)
    marks = RowMarks.of(X, target, threads_for(estimator.n_jobs, 2 * len(X)))
    if estimator._merges_equal_rows:
        X, target = merge_equal_rows(X, target)
        weight = target.weight
    return TrainingData(
        X,
        target,
        schema,
        codec,
        sample_weight=weight,
        has_one_class=codec.has_one_class(target),
        row_weight=row_weight,
        marks=marks,
    )


def held_out_rows(
    estimator: BoostingEstimator,
    data: TrainingData,
    checked: CheckedRows,
    where: str,
    arguments: FitArguments = FitArguments(None, None),
) -> ValidationSet:
    """Weight and order validation rows, and leave out those that do not count."""
    with _named("sample_weight", where):
        target = plain_weights(checked.target)
    of_fit = data.target.offset
    with _named("offset", where):
        if (target.offset is None) != (of_fit is None):
            raise InvalidData("offset and offset_val must both be passed, or neither.")
        if of_fit is not None:
            check_outputs(target.offset, of_fit.shape[1])
    with _named("y", where):
        estimator._check_targets(target, data.codec)
    with _named("groups", where):
        X, target = estimator._arranged(checked.X, target, arguments)
    X, target = without_zero_weights(X, target)
    return ValidationSet(X, target)


def told_of_overlap(
    estimator: BoostingEstimator, data: TrainingData, rows: ValidationSet
) -> list[str]:
    """Say that rows of the validation set that decides about early stopping are training rows."""
    stops = estimator.get_params(deep=False).get("early_stopping", True)
    if data.marks is None or not stops:
        return []
    share = data.marks.leaked_share(rows.X, rows.target)
    where, n = f"X_val[{rows.name!r}]" if rows.name else "the validation data", rows.target.n_rows
    told = (
        f"{share:.0%} of the {n} rows of {where} are training rows, so that the loss "
        "on them does not show overfitting; pass other rows, or leave the validation data out."
    )
    return [told] if share else []


def _validation_set(
    estimator: BoostingEstimator, data: TrainingData, name: str, rows: FitArguments
) -> ValidationSet:
    """Validate the rows of one of the user's validation sets."""
    where = f"_val[{name!r}]" if name else "_val"
    check_order(rows.X, where, **beside(rows))
    if estimator.ranks_groups and rows.groups is None:
        raise InvalidData(
            f"X_val requires the group of each row, as X does, but groups{where} is None; pass "
            "groups_val=...."
        )
    encode = encoding(estimator, data.codec)
    checked = check_rows(estimator, rows, estimator._expected(data.schema), encode, where)
    return replace(held_out_rows(estimator, data, checked, where, rows), name=name)

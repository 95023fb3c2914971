"""Validation of partitions, each by the worker that has it, and agreement on their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidType
from hilboost.core.labels import form_of_labels, join_labels
from hilboost.core.words import counted
from hilboost.model.codecs import TargetCodec
from hilboost.tables import Level, Schema
from hilboost.validation.inputs import check_inputs
from hilboost.validation.offsets import check_offset
from hilboost.validation.weights import check_not_negative
from hilboost.workers.exchange import TreeExchange


@dataclass(frozen=True)
class Partition:
    """Some rows of a table."""

    number: int  # from 0; rows are numbered in the order of the partitions
    X: Any  # array or data frame (n, d)
    y: Any  # array-like (n,) or (n, c)
    weight: Any = None  # array-like (n,) or None
    offset: Any = None  # array-like (n,) or (n, r), or None


@dataclass(frozen=True)
class CheckedPartition:
    """A partition as numbers."""

    number: int
    X: Floats  # (n, d) float32 or float64: category codes refer to ``schema``
    schema: Schema  # columns of this partition
    y: Any  # (n, ...) array: labels as given
    # encoding of these labels alone; ``None`` without rows, or if it needs all labels
    codec: TargetCodec | None
    weight: Floats | None  # (n,) float64 or None
    offset: Floats | None = None  # (n, r) float64 or None


def agreed(exchange: TreeExchange, work: Callable[[], Any], of: str = "") -> Any:
    """Return the result of some work, or raise the error of the first partition on all workers.

    ``of`` follows the number of the partition in messages.
    """
    result, failure = None, None
    try:
        result = work()
    except PartitionError as error:
        failure = error.described
    # Plain values: exceptions with their tracebacks cannot always be pickled.
    found = [one for one in exchange.objects(failure) if one is not None]
    if found:
        number, is_type, message = min(found)
        kind = InvalidType if is_type else InvalidData
        raise kind(f"partition {number}{of}: {message}")
    return result


class PartitionError(Exception):
    """An error in a partition."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number, self.error = number, error

    @property
    def described(self) -> tuple[int, bool, str]:
        """Number of the partition, whether it is an error of a type, and the message."""
        return self.number, isinstance(self.error, TypeError), str(self.error)


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Turn errors about the data of a partition into :class:`PartitionError`."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise PartitionError(number, error) from error


def check_each(
    estimator: Any, partitions: Sequence[Partition], before: Schema | None = None
) -> list[CheckedPartition]:
    """Convert partitions to numbers.

    ``before`` has the columns of the training rows, if these partitions are validation rows.
    """
    checked = []
    for partition in partitions:
        with naming(partition.number):
            checked.append(_checked(estimator, partition, before))
    return checked


def _checked(estimator: Any, partition: Partition, before: Schema | None) -> CheckedPartition:
    n = int(np.shape(partition.X)[0]) if hasattr(partition.X, "shape") else len(partition.X)
    model, X, weight = clone(estimator), partition.X, partition.weight
    if n == 0:
        d, names = _columns_without_rows(partition.X)
        X, weight = np.empty((0, d)), None if weight is None else np.empty(0)
        return CheckedPartition(partition.number, X, Schema(d, names), None, None, weight)
    if before is not None:
        model.n_features_in_ = before.n_columns
        if before.names is not None:
            model.feature_names_in_ = np.asarray(before.names, dtype=object)
    X, schema = check_inputs(model, X, model._expected(before))
    y, codec = model._labels_of_part(partition.y, n)
    if weight is not None:
        weight = np.asarray(weight)
        # scikit-learn would reject a partition in which all weights are zero.
        is_nothing = weight.shape == (n,) and not weight.any()
        weight = np.zeros(n) if is_nothing else check_not_negative(weight, X)
    offset = check_offset(partition.offset, n)
    return CheckedPartition(partition.number, X, schema, y, codec, weight, offset)


def _columns_without_rows(X: Any) -> tuple[int, tuple[str, ...] | None]:
    names = getattr(X, "columns", None)
    if names is None:
        return int(np.shape(X)[1]), None
    names = [str(name) for name in names]
    return len(names), tuple(names)


def common_schema(
    exchange: TreeExchange, checked: Sequence[CheckedPartition]
) -> tuple[Schema, bool]:
    """Return the columns of all partitions, and whether all of them are float32."""
    own = [
        (p.number, p.schema, len(p.X), p.X.dtype == np.float32, _empty_columns(p)) for p in checked
    ]
    found = sorted((one for part in exchange.objects(own) for one in part), key=lambda one: one[0])
    with_rows = [one for one in found if one[2]]
    if not with_rows:
        raise InvalidData("all partitions are empty; at least one must have rows.")
    first_number, first = with_rows[0][0], with_rows[0][1]
    categories = sorted({k for one in with_rows for k in one[1].categories})
    for number, schema, n, _, empty in found:
        _compare(first_number, first, number, schema)
        for k in categories:
            if n and k not in schema.categories and k not in empty:
                name = first.names[k] if first.names else k
                raise InvalidData(
                    f"partition {number}: column {name!r} contains numbers, but in another "
                    "partition it contains categories; convert it to the same dtype in all "
                    "partitions."
                )
    levels = tuple((k, _united(k, with_rows, first)) for k in categories)
    return replace(first, levels=levels), all(one[3] for one in with_rows)


def _empty_columns(partition: CheckedPartition) -> set[int]:
    """Columns without any value."""
    return set(np.flatnonzero(np.isnan(partition.X).all(axis=0)).tolist())


def _compare(first_number: int, first: Schema, number: int, schema: Schema) -> None:
    if schema.n_columns != first.n_columns:
        raise InvalidData(
            f"partition {number}: X has {counted(schema.n_columns, 'column')}, but partition "
            f"{first_number} has {first.n_columns}; all partitions must have the same columns."
        )
    if schema.names != first.names:
        raise InvalidData(
            f"partition {number}: the columns of X are {schema.names}, but those of partition "
            f"{first_number} are {first.names}; all partitions must have the same columns in the "
            "same order."
        )


def _united(k: int, found: Sequence[Any], first: Schema) -> tuple[Level, ...]:
    """Levels of a column in all partitions, ascending."""
    levels: set[Any] = set()
    for number, schema, *_ in found:
        own = dict(schema.levels).get(k, ())
        if own and levels and isinstance(own[0], str) != isinstance(next(iter(levels)), str):
            name = first.names[k] if first.names else k
            raise InvalidData(
                f"partition {number}: the categories of column {name!r} are text in some "
                "partitions and numbers in others; convert them to one dtype."
            )
        levels |= set(own)
    if any(type(level) is float for level in levels):
        levels = {float(level) for level in levels}
    return tuple(sorted(levels))


def recoded(partition: CheckedPartition, schema: Schema) -> Floats:
    """Return the rows of a partition with the category codes of all partitions."""
    X, own = partition.X, dict(partition.schema.levels)
    for k, levels in schema.levels:
        if not own.get(k):
            continue
        place = {level: code for code, level in enumerate(levels)}
        codes = np.array([place[level] for level in own[k]], dtype=X.dtype)
        known = ~np.isnan(X[:, k])
        X[known, k] = codes[X[known, k].astype(np.int64)]
    return X


def united_codec(codecs: Sequence[tuple[int, TargetCodec]]) -> TargetCodec:
    """Return the codec of the labels of all partitions, given with their numbers."""
    first_number, result = codecs[0]
    for number, codec in codecs[1:]:
        try:
            result = result.united(codec)
        except InvalidData as error:
            raise InvalidData(
                f"partition {number}: {error} Partition {first_number} is different."
            ) from error
    return result


def labels_of_all(exchange: TreeExchange, checked: Sequence[CheckedPartition]) -> Any:
    """Return the labels of all partitions, in the order of the table."""
    own = [(p.number, p.y) for p in checked if len(p.X)]
    everything = sorted((one for part in exchange.objects(own) for one in part), key=itemgetter(0))
    if not everything:
        raise InvalidData("all partitions are empty; at least one must have rows.")
    (first_number, first), *others = [(number, form_of_labels(y)) for number, y in everything]
    for number, form in others:
        if form != first:
            raise InvalidData(
                f"partition {number}: y is {form}, but in partition {first_number} it is {first}; "
                "all partitions must have labels of the same kind and columns."
            )
    try:
        return join_labels([labels for _, labels in everything])
    except ValueError as error:
        raise InvalidData(f"y has labels of different shapes in the partitions: {error}") from error


def offsets_of(exchange: TreeExchange, checked: Sequence[CheckedPartition], of: str = "") -> Floats:
    """Return the offsets of the rows that are here, (n, r)."""
    found = [p.offset for p in checked if p.offset is not None]
    widths = {width for part in exchange.objects([o.shape[1] for o in found]) for width in part}
    if len(widths) > 1:
        raise InvalidData(
            f"offset{of} has {' and '.join(map(str, sorted(widths)))} columns in different "
            "partitions; pass one for each output."
        )
    return np.concatenate([np.empty((0, max(widths, default=1))), *found])


def numbers_of(
    exchange: TreeExchange, sizes: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.uint32], int]:
    """Return the numbers of the rows of some partitions, and how many rows all of them have.

    ``sizes`` gives the number and the length of each partition.
    """
    everything = sorted(one for part in exchange.objects(list(sizes)) for one in part)
    ends = np.cumsum([n for _, n in everything])
    begins = {number: end - n for (number, n), end in zip(everything, ends, strict=True)}
    parts = [np.arange(begins[number], begins[number] + n, dtype=np.uint32) for number, n in sizes]
    return np.concatenate([np.empty(0, np.uint32), *parts]), int(ends[-1]) if len(ends) else 0

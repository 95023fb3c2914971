"""Validation of partitions, each by the worker that has it, and what all of them have together."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidType, counted
from hilboost.core.exchange import RowShare
from hilboost.core.labels import form_of_labels, join_labels
from hilboost.core.target import Target
from hilboost.estimators.preparation import CheckedRows, FitArguments, check_rows, encoding
from hilboost.model.codecs import TargetCodec
from hilboost.tables.arrays import n_rows
from hilboost.tables.bounds import N_BOUNDS, as_bounds
from hilboost.tables.files import recoded
from hilboost.tables.reading import read_table
from hilboost.tables.schema import Level, Schema, united_levels
from hilboost.tables.sparse import is_sparse
from hilboost.tables.text_columns import TextColumn, TextSums, sentences_about
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import check_weighted_rows
from hilboost.validation.dependence import as_dates_or_numbers, check_times, dependence_of
from hilboost.validation.groups import check_groups
from hilboost.validation.inputs import check_columns, check_number_of_rows
from hilboost.validation.targets import as_sequence, check_length
from hilboost.workers.exchange import TreeExchange

T = TypeVar("T")


@dataclass(frozen=True)
class Partition:
    """Some rows of a table."""

    number: int  # from 0; rows are numbered in the order of the partitions
    X: Any  # array or data frame (n, d)
    y: Any  # array-like (n,) or (n, c)
    sample_weight: Any = None  # array-like (n,) or None
    offset: Any = None  # array-like (n,) or (n, r), or None
    groups: Any = None  # array-like (n,) or None
    time: Any = None  # array-like (n,) or None


@dataclass(frozen=True)
class Outline:
    """Facts about a partition that all workers need."""

    number: int
    n_rows: int
    schema: Schema
    codec: TargetCodec | None
    single: bool  # whether the inputs are float32
    empty_columns: frozenset[int]  # columns without any value
    weighted: bool
    n_offsets: int | None  # number of columns of the offsets, if there are any
    texts: Mapping[object, TextColumn]

    @classmethod
    def of(cls, number: int, rows: CheckedRows) -> Self:
        """Describe the rows of a partition."""
        return cls(
            number,
            len(rows.X),
            rows.schema,
            rows.codec,
            rows.X.dtype == np.float32,
            frozenset(np.flatnonzero(np.isnan(rows.X).all(axis=0)).tolist()),
            rows.target.weight is not None,
            None if rows.target.offset is None else rows.target.offset.shape[1],
            rows.texts or {},
        )


def agreed(
    exchange: TreeExchange, works: Iterable[tuple[int, Callable[[], T]]], of: str
) -> dict[int, T]:
    """Return results by partition, or raise the error of the first partition on all workers.

    ``of`` follows the number of the partition in messages.
    """
    results, failure = {}, None
    for number, work in works:
        try:
            results[number] = work()
        except (ValueError, TypeError) as error:
            # Plain values: exceptions with their tracebacks cannot always be pickled.
            failure = number, isinstance(error, TypeError), str(error)
            break
    found = [one for one in exchange.objects(failure) if one is not None]
    if found:
        number, is_type, message = min(found)
        kind = InvalidType if is_type else InvalidData
        raise kind(f"partition {number}{of}: {message}")
    return results


class Partitions:
    """The checked partitions of a worker, and the outlines of the partitions of all workers.

    The methods raise the same error on all workers.
    """

    def __init__(
        self,
        estimator: Any,
        partitions: Sequence[Partition],
        exchange: TreeExchange,
        data: TrainingData | None = None,  # the training rows, if these are validation rows
    ) -> None:
        self._of, self._exchange = "" if data is None else " of X_val", exchange
        self._given = {one.number: one for one in partitions}
        works = [(one.number, partial(_checked, estimator, one, data)) for one in partitions]
        self.checked = agreed(exchange, sorted(works, key=lambda work: work[0]), self._of)
        outlines = exchange.objects(
            [Outline.of(number, rows) for number, rows in self.checked.items()]
        )
        self._all = sorted((o for part in outlines for o in part), key=lambda o: o.number)
        self._filled = [one for one in self._all if one.n_rows]
        if not self._filled:
            raise InvalidData(f"all partitions{self._of} are empty; at least one must have rows.")

    def joined(self, schema: Schema) -> tuple[Floats, Target]:
        """Return the rows that are here, with the codes of a schema, and targets without labels."""
        numbers, sizes = [one.number for one in self._all], [one.n_rows for one in self._all]
        ends = [0, *accumulate(sizes)]
        check_number_of_rows(ends[-1])
        places = [numbers.index(number) for number in self.checked]
        rows = [np.arange(ends[k], ends[k + 1], dtype=np.uint32) for k in places]
        share = RowShare(self._exchange, ends[-1], _stacked(rows, dtype=np.uint32))
        single = all(one.single for one in self._filled)
        here = list(self.checked.values())
        targets = [part.target for part in here]
        X = _stacked(
            [recoded(part.X, part.schema, schema) for part in here],
            (schema.n_columns,),
            np.float32 if single else np.float64,
        )
        weight = offset = None
        if any(one.weighted for one in self._filled):
            weight = _stacked([target.weight for target in targets])
        widths = {one.n_offsets for one in self._filled} - {None}
        if len(widths) > 1:
            raise InvalidData(
                f"offset{'_val' if self._of else ''} has {' and '.join(map(str, sorted(widths)))} "
                "columns in different partitions; pass one for each output."
            )
        if widths:
            offset = _stacked([target.offset for target in targets], tuple(widths))
        return X, Target(np.empty((len(X), 0)), weight, share=share, offset=offset)

    def encoded(self, codec: TargetCodec) -> Floats:
        """Return the labels of the rows that are here, encoded by one codec, (n, c).

        They are bounds on all workers if a partition of any worker has bounds.
        """
        own = [(part.target.y, part.codec) for part in self.checked.values()]
        encoded = [codec.recoded(y, one) for y, one in own if one]
        if not any(self._exchange.objects(any(codec.has_bounds(Target(y)) for y in encoded))):
            return _stacked(encoded, (codec.width,))
        return _stacked([as_bounds(y) for y in encoded], (N_BOUNDS,))

    def check_targets(self, loss: Any, target: Target) -> None:
        """Let the loss check the rows of positive weight of every partition."""
        ends = pairwise(accumulate((len(part.X) for part in self.checked.values()), initial=0))
        works = []
        for number, (begin, end) in zip(self.checked, ends, strict=True):
            weight = None if target.weight is None else target.weight[begin:end]
            works.append((number, partial(check_weighted_rows, loss, target.y[begin:end], weight)))
        agreed(self._exchange, works, self._of)

    def dependence(self, estimator: Any, target: Target) -> Dependence | None:
        """Return by what the rows that are here are held out."""
        given = sorted(self._given.items())
        works = [(number, partial(_groups_and_times, one)) for number, one in given]
        own = agreed(self._exchange, works, self._of)
        everything = [one for part in self._exchange.objects(own) for one in part.items()]
        parts = [both for _, both in sorted(everything, key=lambda one: one[0])]
        groups, times = (
            _united(name, [both[k] for both in parts]) for k, name in enumerate(("groups", "time"))
        )
        gap, y = estimator.validation_gap, np.zeros(target.n_rows)
        found = dependence_of(estimator.validation, gap, groups, times, y)
        return found and found.rows(target.numbers)

    def codec(self) -> TargetCodec:
        """Return the codec of the labels of all partitions."""
        codecs = {one.number: one.codec for one in self._filled if one.codec is not None}
        first, result = next(iter(codecs.items()))
        for number, codec in codecs.items():
            try:
                result = result if number == first else result.united(codec)
            except InvalidData as error:
                raise InvalidData(
                    f"partition {number}: {error} Partition {first} is different."
                ) from error
        return result

    def labels(self) -> Any:
        """Return the labels of all partitions, in the order of the table."""
        own = [(k, part.target.y) for k, part in self.checked.items() if len(part.X)]
        everything = [one for part in self._exchange.objects(own) for one in part]
        labels = dict(sorted(everything, key=lambda one: one[0]))
        forms = {number: form_of_labels(y) for number, y in labels.items()}
        first = next(iter(forms))
        for number, form in forms.items():
            if form != forms[first]:
                raise InvalidData(
                    f"partition {number}: y is {form}, but in partition {first} it is "
                    f"{forms[first]}; all partitions must have labels of the same kind and columns."
                )
        try:
            return join_labels(list(labels.values()))
        except ValueError as error:
            raise InvalidData(
                f"y has labels of different shapes in the partitions: {error}"
            ) from error

    def schema(self) -> Schema:
        """Return the columns of all partitions."""
        first = self._filled[0]
        categories = sorted({k for one in self._filled for k in one.schema.categories})
        for one in self._all:
            _compare(first, one)
            for k in categories:
                is_category = k in one.schema.categories or k in one.empty_columns
                if one.n_rows and not is_category:
                    raise InvalidData(
                        f"partition {one.number}: column {one.schema.columns[k].name!r} contains "
                        "numbers, but in another partition it contains categories; convert it to "
                        "the same dtype in all partitions."
                    )
        levels = tuple((k, self._levels(k)) for k in categories)
        return replace(first.schema, levels=levels)

    def _levels(self, k: int) -> tuple[Level, ...]:
        """Levels of a column in all partitions, ascending."""
        columns = [(one, one.schema.columns[k]) for one in self._filled]
        filled = [(one, column) for one, column in columns if column.levels]
        for one, column in filled:
            if column.holds_text != filled[0][1].holds_text:
                raise InvalidData(
                    f"partition {one.number}: the categories of column {column.name!r} are text in "
                    "some partitions and numbers in others; convert them to one dtype."
                )
        return united_levels(column.levels for _, column in filled)

    def told(self) -> list[str]:
        """Return the sentences about columns of text of all partitions."""
        sums: dict[object, TextSums] = defaultdict(TextSums)
        ends = [0, *accumulate(one.n_rows for one in self._all)]
        for one, begin in zip(self._all, ends[:-1], strict=True):
            for name, column in one.texts.items():
                sums[name].add(column, begin)

        def row_of(row: int) -> str:
            k = bisect_right(ends, row) - 1
            return f"row {row - ends[k]} of partition {self._all[k].number}"

        return sentences_about({name: one.column for name, one in sums.items()}, row_of)


def _checked(estimator: object, partition: Partition, data: TrainingData | None) -> CheckedRows:
    """Validate a partition as a table; one without rows has columns alone."""
    rows = FitArguments(partition.X, partition.y, partition.sample_weight, offset=partition.offset)
    if is_sparse(rows.X):
        raise InvalidType(
            "X is a sparse matrix, which several workers do not support; pass X.toarray()."
        )
    if n_rows(rows.X) == 0:
        return _without_rows(rows)
    model = clone(estimator)
    if data is None:
        texts: dict[object, TextColumn] = {}
        expected = replace(model._expected(None), note_texts=texts.update)
        encode = _labels_alone if model.embeds_labels else model._learn_codec
        return replace(check_rows(model, rows, expected, encode), texts=texts)
    check_columns(model, data.schema.names, data.schema.n_columns, reset=True)
    return check_rows(model, rows, model._expected(data.schema), encoding(model, data.codec))


def _groups_and_times(partition: Partition) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Return the group and the time of each row, which are dates or numbers."""
    n, groups, times = n_rows(partition.X), partition.groups, partition.time
    return (
        None if groups is None or not n else check_groups(groups, n),
        None if times is None or not n else as_dates_or_numbers(check_times(times, n)),
    )


def _united(name: str, parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Put the groups or times of the rows of all partitions together."""
    filled = [part for part in parts if part is not None]
    first, *others = {part.dtype.kind: part.dtype for part in filled}.values() or [None]
    if others:  # numbers of different kinds may be rounded
        raise InvalidData(
            f"{name} holds {first} in some partitions and {others[0]} in others; convert it to the "
            "same dtype in all partitions."
        )
    return np.concatenate(filled) if filled else None


def _labels_alone(y: object, n: int) -> tuple[None, Any]:
    """Leave labels as they are whose encoding depends on the labels of all rows."""
    y = as_sequence(y)
    check_length(y, n)
    return None, y


def _without_rows(rows: FitArguments) -> CheckedRows:
    table, names = read_table(rows.X), None
    if table is not None:
        d, names = len(table.columns), None if table.names is None else tuple(table.names)
    elif np.ndim(rows.X) == 2:
        d = np.shape(rows.X)[1]
    else:
        raise InvalidData("X is empty; pass an array or a data frame with columns and no rows.")
    return CheckedRows(np.empty((0, d)), Schema(d, names), Target(np.empty((0, 0))), None)


def _compare(first: Outline, other: Outline) -> None:
    own, columns = other.schema, first.schema
    if own.n_columns != columns.n_columns:
        raise InvalidData(
            f"partition {other.number}: X has {counted(own.n_columns, 'column')}, but partition "
            f"{first.number} has {columns.n_columns}; all partitions must have the same columns."
        )
    if own.names != columns.names:
        raise InvalidData(
            f"partition {other.number}: the columns of X are {own.names}, but those of partition "
            f"{first.number} are {columns.names}; all partitions must have the same columns in the "
            "same order."
        )


def _stacked(parts: Sequence[Any], shape: tuple[int, ...] = (), dtype: Any = np.float64) -> Any:
    """Put the rows of partitions together; those without rows may have no values."""
    filled = [part for part in parts if part is not None and len(part)]
    if len(filled) == 1:
        return np.ascontiguousarray(filled[0], dtype=dtype)
    stacked = np.empty((sum(map(len, filled)), *shape), dtype=dtype)
    return np.concatenate(filled, out=stacked) if filled else stacked

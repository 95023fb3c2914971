"""Validated training data and held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.model.codecs import TargetCodec
from hilboost.model.row_marks import RowMarks
from hilboost.reductions.draws import renumbered
from hilboost.reductions.row_splits import splits
from hilboost.reductions.sums import count_rows, count_units
from hilboost.tables.blocks import as_table
from hilboost.tables.schema import Schema

CELLS_WORTH_LEAVING = 2**18
"""Fewer held-out cells are copied."""


@dataclass(frozen=True)
class ValidationSet:
    """Validation rows."""

    X: Floats  # (n, d)
    target: Target
    name: str = ""  # in metrics; empty for the rows that decide about early stopping


@dataclass(frozen=True)
class TrainingData:
    """Validated inputs and targets, without rows of zero weight."""

    X: Floats  # (n, d) array
    target: Target
    schema: Schema  # columns of ``X``
    codec: TargetCodec  # encoding of the labels
    # (n,) float64 or None: weights of the rows, without class weights; ``None`` is one for
    # every row
    sample_weight: Floats | None = None
    # whether all targets are of one class, so that there is nothing to learn
    has_one_class: bool = False
    # validation rows: the first set decides about early stopping, the others are only evaluated
    validation: tuple[ValidationSet, ...] = ()
    is_split: bool = False  # whether the validation rows were split off the training rows
    held_in_place: bool = False  # whether the validation rows remain rows of a larger table
    # the weight that counts as one row: see :mod:`hilboost.boosting.effective_size`
    row_weight: float = 1.0
    marks: RowMarks | None = None  # by which the rows that the user passed are recognized

    @property
    def held_out(self) -> ValidationSet | None:
        """The rows that decide about early stopping, if there are any."""
        return self.validation[0] if self.validation else None

    @property
    def strata(self) -> NDArray[Any]:
        """Strata whose proportions a split preserves, of each row or group, (n_units,)."""
        strata = self.codec.strata(self.target)
        return np.zeros(self.target.n_units) if strata is None else strata

    def hold_out(self, fraction: float, seed: int, in_place: bool = False) -> TrainingData:
        """Split off a part of the rows for validation; a single row, or group, is not split.

        With ``in_place``, the training rows are not copied, but remain rows of a larger table, and
        so do the held-out rows if there are many.
        """
        if count_units(self.target) < 2:
            return self
        key = key_of(seed, Purpose.HELD_OUT_ROWS)
        (learn, hold), *others = splits(key, self.strata, 1, fraction, self.target)
        if others:
            raise InvalidParameter(
                f"validation has {1 + len(others)} splits, but this fit holds out rows once; pass "
                "a splitter with a single split, such as ShuffleSplit(1) or GroupShuffleSplit(1)."
            )
        table = as_table(self.X)
        held = table[hold]
        in_memory = not (table.is_sparse or table.is_on_disk)
        stays = in_memory and in_place and held.size >= CELLS_WORTH_LEAVING
        X_held = held if stays or table.is_sparse else held.array()
        return replace(
            self.rows(learn, in_place),
            target=renumbered(self.target, learn),
            validation=(ValidationSet(X_held, self.target.rows(hold)),),
            is_split=True,
            held_in_place=stays,
        )

    def rows(self, rows: NDArray[np.intp], in_place: bool = False) -> TrainingData:
        """Return the data with these training rows, in their order.

        With ``in_place``, the inputs are not copied, but remain rows of another table.
        """
        X = as_table(self.X) if in_place else self.X
        return replace(
            self,
            X=X[rows],
            target=self.target.rows(rows),
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
        )

    def with_targets(self, change: Callable[[Target], Target]) -> TrainingData:
        """Change the targets of all rows, also of those that are held out."""
        sets = tuple(replace(one, target=change(one.target)) for one in self.validation)
        return replace(self, target=change(self.target), validation=sets)


def without_zero_weights(X: Floats, target: Target) -> tuple[Floats, Target]:
    """Remove rows of zero weight, which are ignored; what is left is numbered from 0 on."""
    if target.weight is None or not count_rows(target.weight == 0, target):
        return X, target
    rows = np.flatnonzero(target.weight)
    target = renumbered(target, rows)
    if target.groups is not None:
        target = replace(target, groups=target.of_units(np.arange(target.n_units)))
    return X[rows], target


def in_order_of_groups(
    X: Floats, target: Target, numbers: NDArray[np.int64]
) -> tuple[Floats, Target]:
    """Put the rows of each group together, the groups in the order of their numbers (n,)."""
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers, kind="stable")
        X, target, numbers = X[order], target.rows(order), numbers[order]
    return X, replace(target, groups=numbers)

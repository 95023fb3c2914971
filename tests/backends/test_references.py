from typing import NamedTuple

import numpy as np
import pytest

from hilboost.backends.compiled import INTERPRETED, compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.references import by_reference


class Inside(NamedTuple):
    values: np.ndarray
    is_used: bool


class Record(NamedTuple):
    inside: Inside
    numbers: np.ndarray
    absent: None
    factor: float


@inner
def _add(record, absent, result):
    keep_apart()
    if absent is None and record.inside.is_used:
        for i in range(record.numbers.shape[0]):
            result[i] += record.factor * record.numbers[i] * record.inside.values[i, 0]


@compiled
def _add_twice(record, result):
    record = by_reference(record)
    for _ in range(2):
        _add(record, record.absent, result)


def test_what_is_read_through_a_reference():
    values, result = np.arange(12.0).reshape(6, 2)[::2], np.zeros(3)
    for is_used in (False, True):
        _add_twice(Record(Inside(values, is_used), np.array([1, 2, 3]), None, 0.5), result)
    np.testing.assert_array_equal(result, values[:, 0] * [1, 2, 3])


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_record_has_no_other_fields():
    @compiled
    def other(record):
        return by_reference(record).other

    with pytest.raises(Exception, match="'other'"):
        other(Record(Inside(np.zeros((1, 1)), True), np.zeros(1, dtype=int), None, 1.0))

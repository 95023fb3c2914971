"""Distinct values are those of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hilboost.reductions.rows import distinct

KINDS = [np.bool_, np.int8, np.uint64, np.int64, np.float64, np.dtype("U2")]


@given(st.sampled_from(KINDS).flatmap(lambda kind: arrays(kind, st.integers(0, 30))))
def test_distinct(values):
    given_values = values.copy()
    found = distinct(values)
    np.testing.assert_array_equal(found, np.unique(values))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(values, given_values)

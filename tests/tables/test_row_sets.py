"""Row numbers in one bit for each row of the table."""

import numpy as np
import pytest

from hilboost.tables.blocks import DenseTable, RowBits

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 1024, 5000])
def test_numbers_are_found_again(n, share):
    rows = np.flatnonzero(RNG.uniform(size=n) < share)
    bits = RowBits(rows)
    assert len(bits) == len(rows)
    for begin, end in [(0, n), (0, 0), (3, 7), (1000, 3000), (len(rows), len(rows) + 1), (7, 3)]:
        found = bits[begin:end]
        assert found.dtype == np.uint32
        np.testing.assert_array_equal(found, rows[begin:end])
    some = RNG.permutation(len(rows))[:9]
    np.testing.assert_array_equal(bits[some], rows[some])


def test_what_is_smaller():
    rows = np.arange(0, 300_000, 3)
    assert RowBits.is_smaller(rows)
    assert not RowBits.is_smaller(rows[::-1])
    assert not RowBits.is_smaller(50 * rows)
    assert not RowBits.is_smaller(rows[:1000])


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_table_of_many_rows_reads_the_same_values(as_columns):
    X, rows = RNG.normal(size=(200_000, 2)), np.flatnonzero(RNG.uniform(size=200_000) < 0.9)
    table = DenseTable([X[:, 0], X[:, 1]] if as_columns else X)[rows]
    np.testing.assert_array_equal(table.array(), X[rows])
    np.testing.assert_array_equal(table.column(1), X[rows, 1])
    np.testing.assert_array_equal(table[5:100_000].block(70, 90), X[rows[75:95]])
    order = RNG.permutation(len(rows))
    np.testing.assert_array_equal(table[order].array(), X[rows[order]])

"""Hashes of rows against their naive twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.reference import row_hashes as reference

from hilboost.backends import row_hashes


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@given(seed=st.integers(0, 10**6))
def test_hashes_are_those_of_the_twin(kind, seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 20), rng.integers(1, 6)
    X = rng.choice([0.0, -0.0, np.nan, -np.nan, 1.5, -2.0], size=(n, d)).astype(kind)
    columns = np.sort(rng.integers(0, 100, size=d))
    began = rng.integers(2**63, size=n, dtype=np.uint64)
    found, expected = began.copy(), began.copy()
    row_hashes.add_hashes(X, columns, found)
    reference.add_hashes(X, columns, expected)
    np.testing.assert_array_equal(found, expected)
    sparse = csr_array(X)
    arguments = sparse.data, columns[sparse.indices].astype(np.int32), sparse.indptr
    found = began.copy()
    row_hashes.add_sparse_hashes(*arguments, found)
    np.testing.assert_array_equal(found, expected)
    found = began.copy()
    reference.add_sparse_hashes(*arguments, found)
    np.testing.assert_array_equal(found, expected)


def test_different_rows_have_different_hashes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, size=(100_000, 3)).astype(float)
    hashes = np.zeros(len(X), dtype=np.uint64)
    row_hashes.add_hashes(X, np.arange(3), hashes)
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0))

"""Sparse matrices whose arrays contradict each other are refused before SciPy's loops see them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelTreeRegressor
from hilboost.core.errors import InvalidData
from hilboost.network.graph import adjacency_matrix
from hilboost.outputs.label_sets import LabelSets
from hilboost.tables.sparse import SparseTable, check_sparse

N, D = 40, 6
DENSE = np.random.default_rng(0).normal(size=(N, D)).round(2)
DENSE[DENSE < 0.2] = 0.0
Y = DENSE.sum(axis=1)


def changed(make, array, place, value):
    """A matrix with one number of one of its arrays exchanged."""
    matrix = make(DENSE)
    found = getattr(matrix, array)
    (found[place[0]] if isinstance(found, tuple) else found)[place[-1]] = value
    return matrix


def exchanged(make, **arrays):
    matrix = make(DENSE)
    for name, change in arrays.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


def of_dok():
    matrix = sp.dok_array(DENSE)
    matrix._dict[(3, 10**9)] = 1.0
    return matrix


def of_lil(column):
    matrix = sp.lil_array(DENSE)
    matrix.rows[3][-1] = column
    return matrix


def bsr(dense):
    return sp.bsr_array(dense, blocksize=(4, 3))


BROKEN = {
    "csr far index": lambda: changed(sp.csr_array, "indices", (3,), 10**8),
    "csr index of d": lambda: changed(sp.csr_array, "indices", (3,), D),
    "csr negative index": lambda: changed(sp.csr_matrix, "indices", (3,), -(10**8)),
    "csr index -1": lambda: changed(sp.csr_array, "indices", (-1,), -1),
    "csr begin": lambda: changed(sp.csr_array, "indptr", (0,), -(10**8)),
    "csr begin at 1": lambda: changed(sp.csr_array, "indptr", (0,), 1),
    "csr middle": lambda: changed(sp.csr_array, "indptr", (7,), 10**8),
    "csr falls": lambda: changed(sp.csr_array, "indptr", (7,), 0),
    "csr end": lambda: changed(sp.csr_matrix, "indptr", (-1,), 10**8),
    "csr short indptr": lambda: exchanged(sp.csr_array, indptr=lambda a: a[:-5]),
    "csr short indices": lambda: exchanged(sp.csr_array, indices=lambda a: a[:-5]),
    "csr short data": lambda: exchanged(sp.csr_array, data=lambda a: a[:-5]),
    "csr float indices": lambda: exchanged(sp.csr_array, indices=lambda a: a.astype(float)),
    "csr flat data": lambda: exchanged(sp.csr_array, data=lambda a: a[:, None]),
    "csc far index": lambda: changed(sp.csc_array, "indices", (3,), 10**8),
    "csc negative index": lambda: changed(sp.csc_matrix, "indices", (3,), -(10**8)),
    "csc end": lambda: changed(sp.csc_array, "indptr", (-1,), 10**8),
    "csc falls": lambda: changed(sp.csc_array, "indptr", (2,), -(10**8)),
    "bsr far index": lambda: changed(bsr, "indices", (3,), 10**8),
    "bsr end": lambda: changed(bsr, "indptr", (-1,), 10**8),
    "bsr blocks": lambda: exchanged(bsr, data=lambda a: a[:, :3]),
    "coo far row": lambda: changed(sp.coo_array, "coords", (0, 3), 10**8),
    "coo negative column": lambda: changed(sp.coo_matrix, "coords", (1, 3), -(10**8)),
    "coo short data": lambda: exchanged(sp.coo_array, data=lambda a: a[:-5]),
    "dia offsets": lambda: exchanged(sp.dia_array, offsets=lambda a: np.append(a, 1)),
    "dia twice": lambda: changed(sp.dia_array, "offsets", (0,), sp.dia_array(DENSE).offsets[1]),
    "lil far column": lambda: of_lil(10**8),
    "lil negative column": lambda: of_lil(-(10**8)),
    "lil lengths": lambda: exchanged(sp.lil_array, data=lambda a: a[::-1].copy()),
    "dok far column": of_dok,
}
MODELS = {
    "trees": BoostingRegressor(n_estimators=2, random_state=0).fit(sp.csr_array(DENSE), Y),
    "classes": BoostingClassifier(n_estimators=2, random_state=0).fit(DENSE, Y.mean() < Y),
}


@pytest.mark.parametrize("name", BROKEN)
def test_fit_and_predict_refuse_what_would_end_the_interpreter(name):
    said = rf"X is an inconsistent sparse matrix of format '{name[:3]}': .*; rebuild it"
    refused(InvalidData, said, BoostingRegressor().fit, BROKEN[name](), Y)
    for model in MODELS.values():
        refused(InvalidData, said, model.predict, BROKEN[name]())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("csr far index", "indices must be < 6"),
        ("csr index -1", "indices must be >= 0"),
        ("csr end", "Last value of index pointer should be less than the size of index and data"),
        ("csr falls", "indptr decreases"),
        ("csr float indices", "its indices are not integers"),
        ("coo far row", "index 100000000 exceeds matrix dimension 40"),
    ],
)
def test_the_fault_is_named(name, said):
    refused(InvalidData, said, check_sparse, BROKEN[name]())


def test_indices_that_are_no_arrays_and_values_of_any_kind():
    listed = exchanged(sp.coo_array, coords=lambda a: ([None] * len(a[0]), a[1]))
    refused(InvalidData, "its indices are not integers", check_sparse, listed)
    check_sparse(exchanged(sp.csr_array, indices=lambda a: a.tolist()))
    check_sparse(exchanged(bsr, data=lambda a: a.astype(np.float16)))


def test_other_doors():
    broken = BROKEN["csr far index"]()
    square = changed(lambda X: sp.csr_array(X[:D]), "indices", (3,), 10**8)
    refused(InvalidData, "links is an inconsistent", adjacency_matrix, square, D)
    refused(InvalidData, "Y is an inconsistent", LabelSets().fit, broken)
    refused(InvalidData, "inconsistent", MODELS["trees"].report, broken, Y)
    weights = np.arange(N) % 2
    with pytest.raises(InvalidData, match="X is an inconsistent"):
        OutputKernelTreeRegressor().fit(BROKEN["csr middle"](), DENSE, weights)


def test_more_or_less_than_two_dimensions():
    with pytest.raises(InvalidData, match=r"X must be a table \(n, d\); got shape \(40,\)"):
        BoostingRegressor().fit(sp.coo_array(Y), Y)


def naive(matrix):
    """The dense table, or ``None`` where the arrays do not describe one."""
    n, d = matrix.shape
    table, indptr = np.zeros((n, d)), matrix.indptr.tolist()
    if len(matrix.indices) != len(matrix.data) or len(indptr) != n + 1 or indptr[0] != 0:
        return None
    for i in range(n):
        if not indptr[i] <= indptr[i + 1] <= len(matrix.data):
            return None
        for k in range(indptr[i], indptr[i + 1]):
            if not 0 <= matrix.indices[k] < d:
                return None
            table[i, matrix.indices[k]] += matrix.data[k]
    return table


@given(
    st.lists(
        st.tuples(st.sampled_from(["indptr", "indices"]), st.integers(0, 40), st.integers(-2, 9))
    ),
    st.booleans(),
)
def test_what_passes_is_what_a_naive_reader_reads(changes, looked_at):
    matrix = sp.csr_array(DENSE[:6, :4])
    if looked_at:  # SciPy keeps what it saw
        assert matrix.has_canonical_format
    for name, place, value in changes:
        array = getattr(matrix, name)
        array[place % len(array)] = value
    expected = naive(matrix)
    if expected is None:
        refused(InvalidData, "inconsistent", check_sparse, matrix)
        return
    check_sparse(matrix)
    table = SparseTable(matrix)
    np.testing.assert_array_equal(table.columns(0, 4, 0, 6), expected)
    _, block = next(table.row_blocks(np.arange(4)))
    np.testing.assert_array_equal(block, expected)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, bsr, sp.dia_array])
def test_unsorted_and_repeated_entries_are_summed(make):
    matrix = make(DENSE)
    twice = sp.coo_array(DENSE)
    order = np.random.default_rng(1).permutation(2 * twice.nnz)
    rows, columns = (np.tile(a, 2)[order] for a in twice.coords)
    values = np.tile(twice.data / 2, 2)[order]
    repeated = sp.coo_array((values, (rows, columns)), shape=DENSE.shape)
    model = BoostingRegressor(learner="tree", n_estimators=3, random_state=0)
    expected = model.fit(DENSE, Y).predict(DENSE)
    for table in (matrix, repeated):
        np.testing.assert_array_equal(model.fit(table, Y).predict(table), expected)
        np.testing.assert_array_equal(model.predict(table), expected)


def test_notes_of_scipy_that_are_out_of_date():
    matrix = sp.csr_array(([1.0, 2.0, 3.0], [0, 1, 2], [0, 3]), shape=(1, 3))
    assert matrix.has_canonical_format
    matrix.indices[:] = [2, 0, 2]
    table = SparseTable(matrix)
    assert table.columns(0, 3, 0, 1).tolist() == [[2.0, 0.0, 4.0]]

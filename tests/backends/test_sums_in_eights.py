"""Sums in a fixed order: right, and with the same bits on any processor."""

import platform

import numpy as np
import pytest
from tests.loops import finish, start

from hilboost.backends.compiled import compiled
from hilboost.backends.sums_in_eights import dot, squares, sums_of_pairs

BITS = """
import numpy as np
from hilboost.backends.logistic_pairs import pairwise_gradients
from hilboost.backends.ranking import (
    ByPlace, GroupedRows, Positions, RowGradients, lambda_gradients
)

rng = np.random.default_rng(0)
n, starts = 61, np.array([0, 5, 22, 61])
gains, scores = rng.integers(4, size=n) / 3, rng.integers(30, size=n) / 7
rows = GroupedRows(gains, scores, starts, np.arange(n))
positions = Positions(9, 1 / np.log2(2 + np.arange(39)), np.full(3, np.nan), np.empty(n))
ranked = ByPlace(*(np.empty(39) for _ in ByPlace._fields))
found = [np.empty(n) for _ in range(5)]
lambda_gradients(rows, positions, True, ranked, RowGradients(*found[:2]), np.empty(3))
pairwise_gradients(rows, 99, False, ranked, found[2], RowGradients(*found[3:]))
print(np.concatenate([*found[:2], *found[3:]]).tobytes().hex())
"""


@compiled
def sums(a, b):
    return dot(a, b) + squares(a, b) + sums_of_pairs(a, b)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40, 1003])
def test_sums(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    expected = a @ b, a @ a, (b - a) @ (b - a), a.sum(), abs(a).sum(), b.sum()
    np.testing.assert_allclose(sums(a, b), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of x86")
def test_gradients_of_pairs_have_the_same_bits_on_any_processor(tmp_path):
    """This one's code is compiled here, because that of a level might be there for it."""
    names = "x86-64-v3", "generic"
    targets = [{"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""} for name in names]
    here = {"NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [start(BITS, **target) for target in (here, *targets)]
    assert len({finish(process)[0] for process in processes}) == 1

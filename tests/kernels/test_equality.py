"""Kernels are equal if their classes and parameters are."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.cases import KERNELS, ids

from hilboost.kernels import (
    CallableKernel,
    Constant,
    Delta,
    Gaussian,
    Hamming,
    Linear,
    OnColumns,
    Precomputed,
    Product,
    SklearnKernel,
    Sum,
    Tanimoto,
)
from hilboost.kernels.base import are_equal, first_of_equals

NATIVE = [case for case in KERNELS if case.native]


@pytest.mark.parametrize("case", NATIVE, ids=ids(NATIVE))
def test_every_kernel_equals_itself_made_again(case):
    assert are_equal(case.make(), case.make())
    assert are_equal(OnColumns(case.make(), [0, 1]), OnColumns(case.make(), [0, 1]))
    assert not are_equal(OnColumns(case.make(), [0, 1]), OnColumns(case.make(), [1, 0]))
    assert not are_equal(case.make(), 2.0 * case.make())


def test_other_parameters_are_not_equal():
    gram = np.eye(3)
    assert not are_equal(Gaussian(1.0), Gaussian(2.0))
    assert not are_equal(Gaussian(1.0), Gaussian([1.0, 1.0]))
    assert not are_equal(Precomputed(gram), Precomputed(2 * gram))
    assert are_equal(Precomputed(gram), Precomputed(gram.copy()))
    assert are_equal(SklearnKernel(RBF(1.0)), SklearnKernel(RBF(1.0)))
    assert not are_equal(SklearnKernel(RBF(1.0)), SklearnKernel(RBF(2.0)))
    assert are_equal(CallableKernel(np.dot), CallableKernel(np.dot))
    assert not are_equal(CallableKernel(np.dot), CallableKernel(np.dot, pairwise=True))
    assert not are_equal(Sum([Gaussian(1.0), Linear()]), Sum([Linear(), Gaussian(1.0)]))


def test_positions_of_the_first_equal_kernel():
    a, b = Gaussian(1.0), Linear()
    assert first_of_equals([a, b, Gaussian(1.0), b, a]) == (0, 1, 0, 1, 0)
    assert first_of_equals([]) == ()


def test_columns_that_are_read_raw():
    assert Gaussian(1.0).raw_columns(3) == ()
    assert Tanimoto().raw_columns(3) == (0, 1, 2)
    assert OnColumns(Hamming(), [3, 1]).raw_columns(5) == (3, 1)
    assert (2.0 * OnColumns(Delta(), [2])).raw_columns(5) == (2,)
    mixed = OnColumns(Gaussian(1.0), [0]) * OnColumns(Delta(), [4, 2]) + Constant(1.0)
    assert mixed.raw_columns(5) == (2, 4)
    assert Product([OnColumns(Sum([OnColumns(Delta(), [1])]), [3, 2])]).raw_columns(4) == (2,)

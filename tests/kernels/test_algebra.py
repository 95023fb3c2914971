"""Sums, products, multiples and columns of kernels obey the laws of the numbers they stand for."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidParameter, InvalidType
from hilboost.kernels import (
    Constant,
    Delta,
    Gaussian,
    Hamming,
    Laplace,
    Linear,
    OnColumns,
    Precomputed,
    Product,
    Scaled,
    Sum,
    Tanimoto,
)


@pytest.fixture
def blocks():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    return lambda kernel: kernel.block(A, B)


ONE, TWO, THREE = Gaussian(1.3), Laplace(0.4), Linear(0.5)


@pytest.mark.parametrize("factor", [2, 0.5, np.float64(3.0), np.float32(1.5), np.int64(4)])
def test_a_number_scales_from_either_side(blocks, factor):
    for kernel in (ONE * factor, factor * ONE):
        assert type(kernel) is Scaled
        assert type(kernel.factor) is float
        np.testing.assert_allclose(blocks(kernel), blocks(ONE) * factor)


def test_products_distribute_over_sums(blocks):
    np.testing.assert_allclose(blocks((ONE + TWO) * THREE), blocks(ONE * THREE + TWO * THREE))


def test_order_does_not_matter(blocks):
    np.testing.assert_allclose(blocks(ONE + TWO + THREE), blocks(THREE + (TWO + ONE)))
    np.testing.assert_allclose(blocks(ONE * TWO * THREE), blocks(THREE * (TWO * ONE)))


def test_sums_of_sums_and_products_of_products_are_flat():
    assert ((ONE + TWO) + (THREE + ONE)).parts == (ONE, TWO, THREE, ONE)
    assert (ONE * (TWO * THREE)).parts == (ONE, TWO, THREE)
    mixed = ONE * TWO + THREE
    assert [type(part) for part in mixed.parts] == [Product, Linear]


def test_log_parameters_stand_part_by_part():
    kernel = (Gaussian((1.0, 2.0)) * 3 + Constant(4.0)) * Linear()
    np.testing.assert_allclose(np.exp(kernel.log_parameters), [1, 2, 3, 4])
    moved = kernel.with_log_parameters(np.log([5, 6, 7, 8]))
    np.testing.assert_allclose(np.exp(moved.log_parameters), [5, 6, 7, 8])
    np.testing.assert_allclose(np.exp(kernel.log_parameters), [1, 2, 3, 4])


def test_a_list_of_length_scales_is_copied():
    scales = np.array([1.0, 2.0])
    kernel = Gaussian(scales)
    scales[0] = 9
    np.testing.assert_array_equal(kernel.length_scale, [1, 2])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sum([ONE, "gaussian"]),
        lambda: Product([ONE, np.ones(3)]),
        lambda: Scaled("gaussian", 2.0),
        lambda: OnColumns(None, [0]),
    ],
)
def test_parts_that_are_no_kernels_are_refused(make):
    with pytest.raises(InvalidType, match=r"combines kernels; got .*as_kernel\(\) to convert"):
        make()


@pytest.mark.parametrize("factor", [0, -1.0, np.nan, np.inf, "2", True, None])
def test_factors_that_are_not_positive_are_refused(factor):
    with pytest.raises(InvalidParameter, match="factor must be positive and finite; got"):
        ONE * factor


def test_a_sum_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="Sum requires at least one kernel"):
        Sum([])


@pytest.mark.parametrize("columns", [[], 0, [0.0, 1.0], [[0, 1]], [True, False], "ab"])
def test_columns_that_are_no_column_numbers_are_refused(columns):
    with pytest.raises(InvalidParameter, match="columns must be a sequence of column indices"):
        OnColumns(ONE, columns)


@pytest.mark.parametrize("raw", [Tanimoto(), Hamming(), Delta(), Precomputed(np.eye(2))])
def test_combinations_read_raw_columns_where_a_part_does(raw):
    scaled = 2.0 * Gaussian()
    assert not scaled.reads_raw_columns
    assert not OnColumns(scaled, [0]).reads_raw_columns
    for kernel in (raw, 2.0 * raw, OnColumns(raw, [0]), scaled + raw, raw * scaled):
        assert kernel.reads_raw_columns

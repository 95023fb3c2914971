"""Hyperparameters and widths that a kernel refuses."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidParameter
from hilboost.kernels import (
    Constant,
    Delta,
    Gaussian,
    Hamming,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Tanimoto,
)


@pytest.mark.parametrize("make", [Gaussian, Laplace, Matern, RationalQuadratic, Delta])
@pytest.mark.parametrize(
    "scale", [0, -1.0, np.nan, np.inf, [], [1.0, 0.0], [[1.0]], [[1], [1, 2]], "1", None, True]
)
def test_length_scales_that_are_not_positive_are_refused(make, scale):
    with pytest.raises(InvalidParameter, match="length_scale must be a positive finite num"):
        make(scale)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(0.0), "value must be positive and finite; got 0.0"),
        (lambda: Constant(np.nan), "value must be positive and finite; got nan"),
        (lambda: Constant(10**400), "value must be positive and finite; got 1000"),
        (lambda: Matern(1.0, 2.0), "nu of Matern must be 0.5, 1.5 or 2.5; got 2.0"),
        (lambda: RationalQuadratic(1.0, 0.0), "alpha must be positive and finite; got 0.0"),
        (lambda: RationalQuadratic(1.0, np.inf), "alpha must be positive and finite; got inf"),
        (lambda: Linear(-1.0), "offset must be zero or positive, and finite; got -1.0"),
        (lambda: Polynomial(2, np.nan), "offset must be zero or positive, and finite; got nan"),
        (lambda: Polynomial(0), "degree must be a positive integer; got 0"),
        (lambda: Polynomial(2.0), "degree must be a positive integer; got 2.0"),
        (lambda: Polynomial(True), "degree must be a positive integer; got True"),
        (lambda: Polynomial(2, 1.0, 0.0), "scale must be positive and finite; got 0.0"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


PAIR = Gaussian((1.0, 2.0))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (PAIR, "has 2 length scales, but X has 3 columns; use one length scale, or one per column"),
        (Delta((1.0, 2.0)), "has 2 length scales, but X has 3 columns"),
        (PAIR + Linear(), "has 2 length scales, but X has 3 columns"),
        (Linear() * PAIR, "has 2 length scales, but X has 3 columns"),
        (PAIR * 2, "has 2 length scales, but X has 3 columns"),
        (OnColumns(PAIR, [0]), "has 2 length scales, but X has 1 column;"),
        (OnColumns(Linear(), [0, 3]), "columns of OnColumns contains 3; X has columns 0 to 2"),
        (OnColumns(Linear(), [-1, 0]), "columns of OnColumns contains -1; X has columns 0 to 2"),
        (Precomputed(np.eye(2)), "must have one column of row indices; it has 3 columns"),
    ],
)
def test_rows_of_the_wrong_width_are_refused(kernel, message):
    with pytest.raises(InvalidParameter, match=message):
        kernel.check(3)


@pytest.mark.parametrize(
    "kernel", [PAIR, PAIR * Linear(), OnColumns(PAIR, [1, 0]), Hamming(), Tanimoto(), Gaussian()]
)
def test_rows_of_the_right_width_are_not(kernel):
    assert kernel.check(2) is None

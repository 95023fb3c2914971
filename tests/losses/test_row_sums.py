"""The loss of a row has the same bits in a block of its own as among others."""

import numpy as np
import pytest

from hilboost.core.target import Target
from hilboost.losses import MultinomialLogLoss
from hilboost.losses._columns import row_sums
from hilboost.losses.exponential import MultinomialExponential
from hilboost.losses.radial import distances

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_are_added_in_turn(order):
    values = np.array(RNG.normal(size=(300, 26)), order=order)
    expected = [sum(row[1:], row[0]) for row in values.tolist()]
    np.testing.assert_array_equal(row_sums(values), expected)
    np.testing.assert_array_equal(row_sums(values[7:8]), expected[7:8])
    np.testing.assert_array_equal(row_sums(values[:150]), expected[:150])
    np.testing.assert_array_equal(row_sums(values[:, :1]), values[:, 0])
    lengths = np.sqrt(row_sums(values**2) + 4.0)
    np.testing.assert_array_equal(distances(values, np.full(300, 2.0)), lengths)


@pytest.mark.parametrize("n_classes", [9, 26])
@pytest.mark.parametrize("kind", [MultinomialLogLoss, MultinomialExponential])
def test_a_block_of_one_row(kind, n_classes):
    n, loss = 65, kind(n_classes)
    raw = np.asfortranarray(RNG.normal(size=(n, n_classes)))
    target = Target(RNG.integers(n_classes, size=(n, 1)).astype(float))
    for i in range(n):
        one, alone = target.rows(slice(i, i + 1)), raw[i : i + 1]
        value, gradients = loss.value_and_gradients(one, alone)
        whole = loss.gradients(target, raw)
        for found in (gradients, loss.gradients(one, alone)):
            np.testing.assert_array_equal(found.negative_gradient[0], whole.negative_gradient[i])
            np.testing.assert_array_equal(found.hessian[0], whole.hessian[i])
        assert value[0] == loss.value(one, alone)[0] == loss.value(target, raw)[i]
        np.testing.assert_array_equal(loss.inverse_link(alone)[0], loss.inverse_link(raw)[i])

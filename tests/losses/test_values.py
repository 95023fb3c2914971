"""Numbers worked out by hand, and what single losses promise beyond the contract."""

import numpy as np
import pytest
from scipy.special import expit

from hilboost.core.target import Target
from hilboost.losses import (
    AbsoluteError,
    BinomialLogLoss,
    Exponential,
    Gamma,
    Huber,
    MultinomialLogLoss,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)

Y = np.array([[0.5], [1.2], [2.0], [5.0]])
F = np.array([[0.6], [1.4], [1.5], [1.7]])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (SquaredError(), [0.005, 0.02, 0.125, 5.445]),
        (AbsoluteError(), [0.1, 0.2, 0.5, 3.3]),
        (Huber(0.5), [0.005, 0.02, 0.125, 1.525]),
    ],
)
def test_table_of_regression_losses(loss, expected):
    np.testing.assert_allclose(loss.value(Target(Y), F), expected, rtol=1e-12)


def test_values_at_a_perfect_prediction_are_zero():
    target = Target(Y)
    for loss in (SquaredError(), AbsoluteError(), Huber(0.5), Quantile(0.3)):
        np.testing.assert_array_equal(loss.value(target, Y), 0)
    for loss in (Poisson(), Gamma()):
        np.testing.assert_allclose(loss.value(target, np.log(Y)), 0, atol=1e-15)


def test_gradients_at_a_kink_are_zero():
    for loss in (AbsoluteError(), Quantile(0.3)):
        np.testing.assert_array_equal(loss.gradients(Target(Y), Y).negative_gradient, 0)


def test_log_loss_of_two_classes_agrees_with_the_multinomial_one():
    rng = np.random.default_rng(0)
    y, raw = rng.integers(2, size=(30, 1)).astype(float), rng.normal(size=(30, 1))
    both = np.hstack([-raw / 2, raw / 2])
    target = Target(y)
    two, many = BinomialLogLoss(), MultinomialLogLoss(2)
    np.testing.assert_allclose(two.value(target, raw), many.value(target, both), rtol=1e-12)
    np.testing.assert_allclose(two.inverse_link(raw), many.inverse_link(both), rtol=1e-12)
    step = two.gradients(target, raw).negative_gradient / two.gradients(target, raw).hessian
    gradients = many.gradients(target, both)
    steps = gradients.negative_gradient / gradients.hessian
    np.testing.assert_allclose(steps[:, 1:] - steps[:, :1], step, rtol=1e-10)


def test_exponential_loss_is_that_of_adaboost():
    y, raw = np.array([[0.0], [1.0]]), np.array([[0.3], [0.3]])
    loss = Exponential()
    np.testing.assert_allclose(loss.value(Target(y), raw), np.exp([0.3, -0.3]), rtol=1e-14)
    np.testing.assert_allclose(loss.inverse_link(raw)[:, 1], expit(0.6), rtol=1e-14)


def test_tweedie_lies_between_poisson_and_gamma():
    target, raw = Target(Y), F
    for power, end in ((1 + 1e-9, Poisson()), (2 - 1e-9, Gamma())):
        near, limit = Tweedie(power).gradients(target, raw), end.gradients(target, raw)
        np.testing.assert_allclose(near.negative_gradient, limit.negative_gradient, rtol=1e-6)
        np.testing.assert_allclose(near.hessian, limit.hessian, rtol=1e-6)


def test_median_of_an_even_number_of_rows_is_the_middle():
    assert AbsoluteError().initial_raw(Target(Y)) == pytest.approx(1.6)


def test_sorting_quantiles_never_raises_the_loss():
    rng = np.random.default_rng(0)
    loss = Quantile((0.7, 0.1, 0.5))
    target, raw = Target(rng.normal(size=(200, 1))), rng.normal(size=(200, 3))
    after = loss.value(target, loss.inverse_link(raw))
    assert (after <= loss.value(target, raw) + 1e-12).all()


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_adaptive_delta_is_a_quantile_of_the_residuals(alpha):
    rng = np.random.default_rng(0)
    y, raw = rng.normal(size=(41, 1)), rng.normal(size=(41, 1))
    expected = np.quantile(np.abs(y - raw), alpha, method="averaged_inverted_cdf")
    assert Huber(alpha=alpha).adapted(Target(y), raw).delta == pytest.approx(expected, rel=1e-14)


def test_adaptive_delta_counts_weights():
    rng = np.random.default_rng(0)
    y, raw, weight = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    weighted = Huber().adapted(Target(y, weight.astype(float)), raw)
    repeated = Huber().adapted(Target(np.repeat(y, weight, axis=0)), np.repeat(raw, weight, axis=0))
    assert weighted.delta == repeated.delta


def test_fixed_delta_stays():
    loss = Huber(0.5)
    assert loss.adapted(Target(Y), F) is loss


def test_delta_is_positive_where_all_residuals_are_zero():
    assert Huber().adapted(Target(Y), Y).delta > 0


def test_huber_cell_value_is_one_step_from_the_median():
    residual = np.array([0.0, 1.0, 10.0])
    leaves = np.zeros(3, dtype=np.int32)
    value = Huber(2.0).leaf_values(
        Target(residual[:, None]), np.zeros((3, 1)), leaves, 1, slice(0, 1)
    )
    assert value == pytest.approx(1 + (-1 + 0 + 2) / 3)

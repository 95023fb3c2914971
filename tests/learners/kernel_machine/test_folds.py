"""Length scales are judged by rows that they were not fitted to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.machines import ridge

from hilboost import BoostingClassifier
from hilboost.backends.threads import ThreadTeam
from hilboost.core.target import Target
from hilboost.kernels import Gaussian
from hilboost.kernels.marginal_likelihood import LogScalePrior, maximize
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.tuning.likelihood import FOLDS, FewRows, FoldErrors
from hilboost.learners.kernel_machine.tuning.scoring import (
    FoldKernels,
    Rows,
    mean_and_standard_error,
    predictions,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns
from hilboost.losses import Poisson
from hilboost.training.regularization import HeldOutPenalty

GRID = np.array([1e-3, 0.1, 2.0])


def sampled(X, Y, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return Rows(X, Y, weight, np.arange(len(X)))


def draw(n=60, d=3, r=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return sampled(X, rng.normal(size=(n, r)), rng.uniform(0.5, 2, n))


def table(n=150, d=6, n_noise_codes=0, seed=0):
    """Rows whose target depends strongly on the first of several columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=(n, n_noise_codes)).astype(float)
    X = np.column_stack([rng.normal(size=(n, d)), codes])
    y = np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=n)
    return sampled(X, ((y - y.mean()) / y.std())[:, None])


def noise(n=150, d=6, n_codes=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d)), rng.integers(4, size=(n, n_codes))])
    return sampled(X, rng.normal(size=(n, 1)))


def few_rows(rows, n_codes=0, n_threads=1):
    d = rows.X.shape[1]
    columns = Columns.of(d, tuple(range(d - n_codes, d)))
    return FewRows(columns, rows, 1e-7, ThreadTeam(n_threads))


def test_predictions_for_every_penalty_are_those_of_ridge_regression():
    learn, X, kernel = draw(), draw(20, seed=1).X, Gaussian(1.5)
    K, K_held = kernel.block(learn.X, learn.X), kernel.block(X, learn.X)
    for found, lam in zip(predictions(kernel, learn, X, GRID), GRID, strict=True):
        expected = K_held @ ridge(K, learn.Y, lam, learn.weight)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_folds", [1, FOLDS])
def test_errors_are_those_of_machines_without_the_fold(n_folds):
    rows, kernel = draw(), Columns.of(3, ()).kernel("gaussian", 1.0)
    splits = rows.splits(FOLDS)[:n_folds]
    found = FoldErrors.of([kernel] * n_folds, rows, splits, GRID, ThreadTeam())
    np.testing.assert_array_equal(found.held.rows, np.arange(20 * n_folds))
    for rest, place in splits:
        assert np.array_equal(rest, np.setdiff1d(np.arange(len(rows)), place))
        K = kernel.block(rows.X[rest], rows.X[rest])
        for k, lam in enumerate(GRID):
            alpha = ridge(K, rows.Y[rest], lam, rows.weight[rest])
            predicted = kernel.block(rows.X[place], rows.X[rest]) @ alpha
            np.testing.assert_allclose(found.predicted[k, place], predicted, rtol=1e-6, atol=1e-9)
            errors = ((predicted - rows.Y[place]) ** 2).sum(axis=1)
            np.testing.assert_allclose(found.errors[k, place], errors, rtol=1e-6)
    means = np.average(found.errors, axis=1, weights=rows.weight[: 20 * n_folds])
    assert found.best == np.argmin(means)
    assert found.error == pytest.approx(means.min())


def fold_errors(errors):
    held = sampled(np.zeros((errors.shape[1], 1)), np.zeros((errors.shape[1], 1)))
    return FoldErrors((), errors, errors[..., None], held)


def test_the_cautious_penalty_is_the_largest_within_a_standard_error():
    errors = np.array([[1.0, 1.0, 1.2, 0.9], [1.0, 0.9, 1.1, 0.9], [1.4, 0.9, 1.0, 0.7]])
    errors = np.vstack([errors, errors[-1] + 0.5])
    found = fold_errors(errors)
    assert found.best == 1
    excess = errors[2] - errors[1]
    assert 0 < excess.mean() <= excess.std() / 2
    assert found.cautious == 2
    assert not found.exceeds(found)
    assert fold_errors(errors + 0.1).exceeds(found)
    assert not fold_errors(errors + [[0.2, 0, 0, 0]]).exceeds(found, 2.0)


def test_a_kernel_without_solution_has_infinite_errors():
    class Negative(Gaussian):
        def block(self, A, B):
            return -super().block(A, B)

    rows = draw(r=1)
    assert np.isnan(predictions(Negative(1.0), rows, rows.X, GRID[:1])).all()
    splits = rows.splits(FOLDS)
    found = FoldErrors.of([Negative(1.0)] * FOLDS, rows, splits, GRID[:1], ThreadTeam())
    assert np.isinf(found.errors).all()
    assert not found.exceeds(found)


@given(st.integers(2, 30), st.integers(0, 10**6), st.floats(0.1, 100))
@settings(max_examples=30, deadline=None)
def test_the_standard_error_is_that_of_a_weighted_mean(n, seed, factor):
    rng = np.random.default_rng(seed)
    values, weight = rng.normal(size=n), rng.uniform(0.5, 2, n)
    mean, error = mean_and_standard_error(values, None)
    assert mean == pytest.approx(values.mean(), abs=1e-12)
    assert error == pytest.approx(values.std() / np.sqrt(n))
    found = mean_and_standard_error(values, weight)
    assert found[0] == pytest.approx(np.average(values, weights=weight), abs=1e-12)
    np.testing.assert_allclose(mean_and_standard_error(values, factor * weight), found)


@pytest.mark.parametrize("groups", [(slice(3),), (slice(2), slice(3, 5)), ()])
def test_the_prior_has_the_gradient_of_its_penalty(groups):
    prior, theta = LogScalePrior(groups, 0.7), np.array([0.3, -1.0, 2.0, 0.1, 0.4])
    value, gradient = prior.penalty(theta)
    expected = sum((((t := theta[g]) - t.mean()) ** 2).sum() / 0.98 for g in groups)
    assert value == pytest.approx(expected)
    for k, step in enumerate(1e-6 * np.eye(5)):
        slope = (prior.penalty(theta + step)[0] - prior.penalty(theta - step)[0]) / 2e-6
        assert gradient[k] == pytest.approx(slope, abs=1e-8)
    shifted = prior.penalty(theta + 5)
    assert shifted[0] == pytest.approx(value)


def test_a_narrow_prior_makes_scales_equal_and_a_wide_one_changes_nothing():
    rows, start = table(), Gaussian(np.ones(6))
    free = maximize(start, 0.1, rows.X, rows.Y)
    narrow, wide = (
        maximize(start, 0.1, rows.X, rows.Y, prior=LogScalePrior((slice(6),), spread))
        for spread in (1e-3, 1e6)
    )
    assert np.ptp(narrow.kernel.log_parameters) < 0.05
    assert np.ptp(free.kernel.log_parameters) > 1
    np.testing.assert_allclose(wide.kernel.log_parameters, free.kernel.log_parameters, rtol=1e-4)


def test_scales_of_their_own_must_predict_held_out_rows_better():
    own = few_rows(table(n_noise_codes=2, seed=1), 2).compared()
    assert own.folds is None
    assert own.kernel.numeric.length_scale[0] < 0.1 * own.kernel.numeric.length_scale[1:].min()
    assert few_rows(table(n=10)).compared() is None  # too few to hold some out
    assert few_rows(table(d=1)).compared() is None  # one length scale anyway


@pytest.mark.parametrize("seed", [0, 1, 3])  # scales of their own look better in 2 of 16 draws
def test_scales_that_fit_noise_are_kept_alike(seed):
    rows = noise(seed=seed)
    best = few_rows(rows, 6).compared()
    for group in best.kernel.scale_groups:
        assert np.ptp(best.kernel.log_parameters[group]) < 1
    places = np.searchsorted(np.arange(len(rows)), best.rows)
    assert np.mean((best.predicted - rows.Y[places]) ** 2) < 1.05 * rows.Y.var()
    assert best.regularization >= 1


def test_the_kernel_of_a_fold_does_not_depend_on_its_rows():
    rows = noise()
    Y = rows.Y.copy()
    Y[100:] = 5 * Y[100:][::-1]
    one, other = (few_rows(sampled(rows.X, y), 6).folds_of("gaussian") for y in (rows.Y, Y))
    np.testing.assert_array_equal(one.folds[2], np.arange(100, 150))
    is_same = [
        np.array_equal(a.log_parameters, b.log_parameters)
        for a, b in zip(one.kernels, other.kernels, strict=True)
    ]
    assert is_same == [False, False, True]


def test_the_comparison_is_the_same_on_any_number_of_threads():
    one, other = (few_rows(noise(), 6, n_threads).compared() for n_threads in (1, 3))
    np.testing.assert_array_equal(one.kernel.log_parameters, other.kernel.log_parameters)
    np.testing.assert_array_equal(one.predicted, other.predicted)


def test_folds_of_rows():
    kernels = FoldKernels((np.array([4, 1]), np.array([2])), (Gaussian(1.0), Gaussian(2.0)))
    np.testing.assert_array_equal(kernels.of_rows(np.arange(7)), [-1, 0, 1, -1, 0, -1, -1])


def test_every_fold_is_predicted_by_its_own_kernel():
    """Kernels that cannot predict their folds need a large λ, whatever the kernel of the model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 2))
    y = rng.poisson(np.exp(1 + np.sin(2 * X[:, 0]))).astype(float)[:, None]
    data = KernelMachineConfig().prepare(X, None, 0, 1)
    folds = tuple(np.array_split(np.arange(150), 3))
    start = np.log(y.mean(axis=0))
    search = HeldOutPenalty(Poisson(), Target(y), start)
    found = [
        search.of_rows(data, Gaussian(1.0), np.inf, FoldKernels(folds, kernels))
        for kernels in ((Gaussian(1.0),) * 3, (Gaussian(1e-3),) * 3)
    ]
    data.team.__exit__()
    assert found[1][0] > 10 * found[0][0]
    assert found[1][1] > found[0][1]


def test_noise_in_many_columns_is_not_learned():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(700, 4)), rng.integers(4, size=(700, 8))])
    y = rng.random(700) < 0.3
    model = BoostingClassifier(
        learner="kernel", categorical_features=range(4, 12), random_state=0
    ).fit(X[:250], y[:250])
    p = model.predict_proba(X[250:])[np.arange(450), y[250:].astype(int)]
    share = y[:250].mean()
    constant = -np.log(np.where(y[250:], share, 1 - share)).mean()
    assert -np.log(p).mean() < 1.03 * constant

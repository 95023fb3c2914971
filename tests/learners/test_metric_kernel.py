"""The kernel machine with a learned metric, against plain NumPy and scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from hilboost import BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.kernel_machine.inputs import encoded_features, level_numbers
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.metric_systems import NormalEquations, System
from hilboost.learners.kernel_machine.tuning import refined_metrics as rotation
from hilboost.learners.kernel_machine.tuning.metric import KERNEL, Problem, learned_metric
from hilboost.learners.kernel_machine.tuning.scoring import Rows

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(60, 3))
Y = np.column_stack([np.sin(2 * Z[:, 0]), Z[:, 1] ** 2])
W = RNG.integers(1, 4, size=60).astype(float)
SCALES = np.array([1.0, 0.5, 0.1])


def matern(A, B):
    return SklearnMatern(length_scale=1.0, nu=2.5)(A, B)


def fit(table, target, weight=None, rows=None, **parameters):
    learner = MetricKernelLearner(**parameters)
    sample = RowSample(rows, weight)
    (one,) = learner.fit(table, Gradients(target), sample, np.random.default_rng(0))
    return one


@pytest.mark.parametrize("weight", [np.ones(60), W])
@pytest.mark.parametrize(("ridge", "digits"), [(0.05, 1e-5), (5e-4, 1e-8)])  # single, and double
def test_errors_are_those_of_fits_without_each_row(weight, ridge, digits):
    Y0 = Y - np.average(Y, axis=0, weights=weight)
    problem = Problem(Z, Y0, weight)
    found = problem.best(SCALES, (1.3,), (ridge,))
    K = matern(Z * found.axes / 1.3, Z * found.axes / 1.3)
    errors = []
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(ridge / weight[rest]), Y0[rest])
        errors.append(((Y0[i] - K[i, rest] @ alpha) ** 2).sum())
    assert found.error == pytest.approx(np.average(errors, weights=weight), rel=digits)


@pytest.mark.parametrize("length", [3.0, 300.0])
@pytest.mark.parametrize("ridge", [1e-3, 3e-3, 1e-2])
def test_errors_of_many_rows_of_smooth_kernels_are_exact_enough(length, ridge):
    Z = RNG.normal(size=(1000, 3))
    problem = Problem(Z, np.sin(Z[:, :1]), np.ones(1000))
    K = matern(Z / length, Z / length)
    found, exact = (problem.residuals(K, ridge, dtype)[0] for dtype in (None, np.float64))
    assert (found**2).mean() == pytest.approx((exact**2).mean(), rel=2e-3)


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
@pytest.mark.parametrize("ridge", [0.05, 5e-4])
def test_fits_have_any_unit(unit, ridge):
    K, weight = matern(Z, Z), np.where(np.arange(60) < 3, 1e-200, 1.0)
    for w in (np.ones(60), weight):
        one, other = (Problem(Z, y, w).residuals(K, ridge) for y in (Y, Y * unit))
        np.testing.assert_array_equal(Problem(Z, Y, w).residuals(np.asfortranarray(K), ridge), one)
        assert np.isfinite(one).all()
        for value, scaled in zip(one, other, strict=True):
            np.testing.assert_array_equal(value * unit, scaled)
        held = np.arange(5, 60, 5)
        systems = [System.of(Z, Rows.of(Z, y, w), ThreadTeam()) for y in (Y, Y * unit)]
        fits = [system.judged_by(held).fit(ridge) for system in systems]
        np.testing.assert_allclose(fits[0] * unit, fits[1], rtol=1e-4)


def test_scales_are_root_mean_squared_derivatives():
    problem = Problem(Z, Y, np.ones(60))
    found = problem.best(SCALES, (1.3,), (0.05,))
    scales = found.axes / 1.3

    def outputs(A):
        return matern(A * scales, Z * scales) @ found.alpha

    step = 1e-5
    by_column = []
    for k in range(3):
        up, down = Z.copy(), Z.copy()
        up[:, k] += step
        down[:, k] -= step
        by_column.append(np.sqrt((((outputs(up) - outputs(down)) / (2 * step)) ** 2).sum()))
    expected = np.array(by_column) / max(by_column)
    np.testing.assert_allclose(problem.gradient_scales(found), expected + 1e-3, rtol=1e-4)


def test_scales_of_a_smooth_function_among_columns_of_noise():
    """Gradients of a fit to some hundred rows of many columns are mostly noise."""
    table = np.random.default_rng(5).normal(size=(500, 30))
    target = np.sin(2 * table[:, :1]) * table[:, 1:2] + 0.5 * table[:, 2:3]
    metric = learned_metric(Rows.of(table, target))
    assert metric.error < 0.05
    assert metric.axes[:3].min() > 10 * metric.axes[3:].max()


def test_columns_that_do_not_matter_are_dropped():
    noise = RNG.normal(size=(400, 20))
    metric = learned_metric(Rows.of(noise, np.sin(2 * noise[:, :1])))
    assert metric.axes.argmax() == 0
    assert metric.axes[1:].max() < 0.1 * metric.axes[0]
    assert metric.error < 0.1


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_columns_with_small_scales_are_kept_where_they_matter(seed):
    """Beside a step along one column, a line along another one has a very long length scale."""
    table = np.random.default_rng(seed).uniform(size=(500, 2))
    target = 0.5 * (table[:, 1:] > 0.5) + 0.3 * table[:, :1]
    metric = learned_metric(Rows.of(table, target))
    assert metric.axes.all()
    assert metric.error < 0.02
    problem = Problem.of(Rows.of(table, target))
    error = problem.fit_with(metric.axes, metric.ridge).error / target.var()
    assert error == pytest.approx(metric.error, rel=1e-3)


def test_priorities_find_a_column_among_many():
    table = np.random.default_rng(1).normal(size=(150, 60))
    target = np.sin(4 * table[:, :1])
    priorities = np.r_[1.0, np.full(59, 1e-3)]
    without = learned_metric(Rows.of(table, target))
    assert learned_metric(Rows.of(table, target), priorities).error < 0.5 * without.error


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_search_is_repeated_on_other_rows_without_comparisons(noise):
    table = np.random.default_rng(1).normal(size=(600, 4))
    priorities = np.r_[1.0, 0.5, 1e-3, 1e-3]
    target = np.sin(2 * table[:, :1]) + table[:, 1:2] ** 2 + noise * RNG.normal(size=(600, 1))
    rows = Rows.of(table, target)
    some, others = rows.part(np.arange(300)), rows.part(np.arange(300, 600))
    first = learned_metric(some, priorities)
    assert bool(first.path.steps) == bool(noise)  # the likelihood suits smooth functions
    again = learned_metric(some, priorities, path=first.path)
    np.testing.assert_allclose(again.axes, first.axes, rtol=1e-6)
    assert again.ridge == pytest.approx(first.ridge)
    assert again.error == pytest.approx(first.error)
    assert again.path == first.path
    repeated = learned_metric(others, priorities, path=first.path)
    assert repeated.error < 1.1 * learned_metric(others, priorities).error
    without = learned_metric(others, None, path=first.path)  # begins with equal scales
    assert repeated.error <= without.error < 1


def test_a_direction_across_the_columns_is_found():
    table = np.random.default_rng(2).normal(size=(300, 5))
    along = table @ np.array([0.8, 0.6, 0, 0, 0])
    waves = np.sin(3 * along)[:, None]
    rows = Rows.of(table, waves)
    metric = learned_metric(rows)
    found = rotation.rotated_metric(rows, metric)
    sizes, axes = np.linalg.eigh(found.axes @ found.axes.T)
    assert sizes[-1] > 10 * sizes[-2]
    np.testing.assert_allclose(np.abs(axes[:2, -1]), [0.8, 0.6], atol=0.02)
    repeated = rotation.rotated_metric(rows.joined(rows), metric)
    weighted = rotation.rotated_metric(Rows.of(table, waves, np.full(300, 2.0)), metric)
    assert repeated.error == pytest.approx(weighted.error, rel=1e-6)


def test_directions_are_found_although_noise_hides_most_of_the_gain():
    rng = np.random.default_rng(5)
    table, sums = rng.uniform(-2, 2, size=(900, 6)), np.repeat(np.eye(2), 3, axis=0)
    first, second = (table @ sums).T
    rows = Rows.of(table, (np.sin(first) + second**2 / 5 + rng.normal(size=900) / 5)[:, None])
    metric = learned_metric(rows.first(600))
    found = rotation.rotated_metric(rows, metric)
    directions = np.linalg.svd(found.axes)[0][:, :2]
    np.testing.assert_allclose(directions @ directions.T, sums @ sums.T / 3, atol=0.05)
    mapped = Problem.of(replace(rows, X=table @ found.axes))
    assert np.sqrt(mapped.fit_with(np.ones(6), found.ridge).error) < 0.25


def test_columns_are_not_rotated_without_gain():
    table = np.random.default_rng(2).normal(size=(300, 5))
    wide = np.random.default_rng(3).normal(size=(300, 60))  # the axes adapt to single rows
    along_columns = np.sin(2 * table[:, :1]) + table[:, 1:2] ** 2
    noisy = wide[:, :8].sum(axis=1, keepdims=True) + RNG.normal(size=(300, 1))
    for X, target in ((table, along_columns), (table, 0 * along_columns), (wide, noisy)):
        rows = Rows.of(X, target)
        assert rotation.rotated_metric(rows, learned_metric(rows)) is None


def test_the_likelihood_fits_no_scale_of_few_rows():
    table = np.random.default_rng(2).normal(size=(60, 31))
    target = np.sin(table[:, :1]) + table[:, 1:2]
    few = learned_metric(Rows.of(table, target))  # each of 31 scales may adapt to two rows
    assert few.path.steps
    assert not learned_metric(Rows.of(table[:, :3], target)).path.steps


def test_surprise_is_that_of_the_best_amplitude():
    problem = Problem.of(Rows.of(Z, Y[:, :1], W))
    C = matern(problem.Z, problem.Z) + np.diag(0.1 / problem.weight)

    def negative_log_density(amplitude):
        return -multivariate_normal(cov=amplitude * C).logpdf(problem.Y[:, 0])

    best = minimize_scalar(negative_log_density, bounds=(1e-3, 1e3), method="bounded").fun
    constant = len(C) / 2 * np.log(2 * np.pi)
    assert problem.surprise(KERNEL, 0.1) == pytest.approx(best - constant, abs=1e-3)


def test_weights_are_repetitions_in_the_search():
    repeated = np.repeat(np.arange(60), W.astype(int))
    by_weight = learned_metric(Rows.of(Z, Y, W))
    by_rows = learned_metric(Rows.of(Z[repeated], Y[repeated]))
    np.testing.assert_allclose(by_weight.axes, by_rows.axes, rtol=1e-6)
    assert by_weight.error == pytest.approx(by_rows.error, rel=1e-8)


@pytest.mark.parametrize("weight", [None, W])
def test_a_stage_is_kernel_ridge_regression(weight):
    one = fit(Z, Y, weight)
    model = one.term.model
    K = matern(model.basis, model.basis)
    w = np.ones(60) if weight is None else weight
    # The ridge is the only unknown: it follows from one coefficient.
    ridge = ((Y - K @ model.weights) * w[:, None] / model.weights)[0, 0]
    assert 1e-8 <= ridge < 10
    expected = np.linalg.solve(K + np.diag(ridge / w), Y)
    np.testing.assert_allclose(model.weights, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.outputs, K @ model.weights, atol=2e-5)


def test_rows_that_are_left_out_have_no_weight():
    system = System.of(Z, Rows.of(Z, Y), ThreadTeam())
    rows = np.arange(0, 60, 2)
    weights = system.solved(rows, 0.1)
    assert not weights[1::2].any()
    np.testing.assert_allclose(
        weights[rows], np.linalg.solve(system.K[::2, ::2] + 0.1 * np.eye(30), Y[rows])
    )


def test_a_smaller_ridge_is_found_with_more_rows():
    table = RNG.normal(size=(300, 2)).astype(np.float32)
    target = np.sin(table[:, :1]).astype(float)
    system = System.of(table, Rows.of(table, target), ThreadTeam())
    held = np.arange(0, 300, 5)
    ridge, error = system.judged_by(held).better_ridge(1.0)
    assert ridge == pytest.approx(0.03)
    learned = np.setdiff1d(np.arange(300), held)
    K = matern(table, table)
    residual = (target - K @ system.solved(learned, ridge))[held]
    assert error == pytest.approx((residual**2).mean(), rel=1e-3)
    noise = System.of(table, Rows.of(table, RNG.normal(size=(300, 1))), ThreadTeam())
    assert noise.judged_by(held).better_ridge(1.0)[0] == 1.0


@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize(("ridge", "digits"), [(0.1, 1e-5), (5e-4, 1e-12)])  # single, and double
def test_fits_that_are_judged_are_those_to_the_other_rows(weight, ridge, digits):
    system, held = System.of(Z, Rows.of(Z, Y, weight), ThreadTeam()), np.arange(0, 60, 5)
    judged = system.judged_by(held)
    weights = system.solved(np.setdiff1d(np.arange(60), held), ridge)
    np.testing.assert_allclose(
        judged.fit(ridge), weights, atol=digits * np.abs(weights).max() / ridge
    )
    outputs = system.K[held] @ weights
    np.testing.assert_allclose(judged.outputs(ridge), outputs, atol=digits * np.ptp(Y))


@pytest.mark.parametrize("weight", [None, W])
def test_the_error_with_fewer_centers_is_that_of_least_squares(weight):
    system, held = System.of(Z, Rows.of(Z, Y, weight), ThreadTeam()), np.arange(0, 60, 5)
    learned, w = np.setdiff1d(np.arange(60), held), np.ones(60) if weight is None else weight
    centers, w_learned = learned[::2], w[learned, None]
    K = matern(Z, Z[centers])
    A = K[learned].T @ (w_learned * K[learned]) + 0.1 * K[centers]
    weights = np.linalg.solve(A, K[learned].T @ (w_learned * Y[learned]))
    residual = Y[held] - K[held] @ weights
    expected = np.average((residual**2).sum(axis=1), weights=w[held])
    assert system.judged_by(held).error_of_centers(0.1, 2) == pytest.approx(expected, rel=1e-6)
    every = np.average(  # every row as a center is a ridge regression of all rows
        ((Y - system.K @ system.solved(learned, 0.1))[held] ** 2).sum(axis=1),
        weights=w[held],
    )
    assert system.judged_by(held).error_of_centers(0.1, 1) == pytest.approx(every, rel=1e-4)


def as_they_are(table):
    """Features that are the columns."""
    found = encoded_features(table, table[:, :1], None)
    ones, width = np.ones(table.shape[1]), np.full(table.shape[1], np.inf)
    return replace(found, low=-width, high=width, center=0 * ones, scale=ones)


@pytest.mark.parametrize("ridge", [0.1, 1e-5])  # the values are a basis, or make one
@pytest.mark.parametrize("weight", [None, W])
def test_normal_equations_are_those_of_the_rows_that_are_not_left_out(weight, ridge):
    table, chosen = Rows.of(Z, Y, weight), np.arange(0, 60, 4)
    parts, centers = [np.arange(k, 60, 3) for k in range(3)], Z[chosen]

    def equations_of(parts):
        of = as_they_are(Z), centers, table, parts, ThreadTeam()
        return NormalEquations.of(*of, ridge=ridge)

    equations = equations_of(parts)
    assert (equations.root is None) == (ridge == 0.1)
    for left_out, rows in ((None, np.arange(60)), (1, np.flatnonzero(np.arange(60) % 3 != 1))):
        w = table.weight[rows]
        K = matern(Z[rows], Z[chosen])
        system = K.T @ (w[:, None] * K) + ridge * matern(centers, centers)
        expected = np.linalg.solve(system, K.T @ (w[:, None] * Y[rows]))
        np.testing.assert_allclose(equations.solved(left_out, ridge), expected, rtol=1e-6)
    some = equations_of(parts[:2]).with_rows(as_they_are(Z), centers, table.part(parts[2]))
    np.testing.assert_allclose(some.solved(None, ridge), equations.solved(None, ridge), rtol=1e-6)
    held, weights = parts[0], equations.solved(0, ridge)
    residual = Y[held] - matern(Z[held], centers) @ weights
    error = (table.weight[held, None] * residual**2).sum()
    in_basis = weights if equations.root is None else equations.root.T @ weights
    assert equations.parts[0].error(in_basis) == pytest.approx(error, rel=1e-9)


def test_small_ridges_are_not_lost_in_rounding_errors():
    rng = np.random.default_rng(4)
    table, centers = rng.uniform(-0.3, 0.3, (900, 2)), np.arange(300)
    smooth = np.exp(table[:, :1]) * np.sin(3 * table[:, 1:])
    of = as_they_are(table), table[centers], Rows.of(table, smooth), [np.arange(900)], ThreadTeam()
    fresh = rng.uniform(-0.3, 0.3, (500, 2))
    wanted = np.exp(fresh[:, :1]) * np.sin(3 * fresh[:, 1:])
    K = matern(fresh, table[centers])
    errors = [
        np.abs(K @ NormalEquations.of(*of, ridge=ridge).solved(None, 1e-8) - wanted).mean()
        for ridge in (1.0, 1e-8)
    ]
    assert errors[1] < 0.1 * errors[0]


def test_with_all_rows_as_centers_both_systems_have_one_solution():
    parts = [np.arange(k, 60, 5) for k in range(5)]
    equations = NormalEquations.of(as_they_are(Z), Z, Rows.of(Z, Y, W), parts, ThreadTeam())
    exact = System.of(Z, Rows.of(Z, Y, W), ThreadTeam()).solved(np.arange(60), 0.1)
    np.testing.assert_allclose(equations.solved(None, 0.1), exact, rtol=1e-6, atol=1e-6)


def test_features_are_bounded_and_complete():
    table = np.column_stack([np.arange(200.0), np.ones(200), RNG.normal(size=200)])
    table[5, 0], table[6, 0], table[:50, 2] = 1e300, -np.inf, np.nan
    features = encoded_features(table, np.ones((200, 1)), None)
    assert features.columns.tolist() == [0, 2]
    assert features.missing.tolist() == [2]
    found = features(table)
    assert features(table, np.float32).dtype == np.float32
    assert np.isfinite(found).all()
    assert np.abs(found[:, 0]).max() < 6
    assert not found[:50, 1].any()
    assert len(np.unique(found[:, 2])) == 2
    np.testing.assert_array_equal(features(np.asfortranarray(table)), found)


def test_levels_become_their_mean_targets():
    codes = np.array([0, 0, 1, 1, 1, np.nan, -1.0])
    target = np.array([[1.0], [3], [7], [7], [7], [0], [0]])
    mean = target[:5].mean()  # of the rows that have a level
    expected = [(4 - 2 * mean) / 12, (21 - 3 * mean) / 13]
    np.testing.assert_allclose(level_numbers(codes, 2, target, None), expected)
    both = level_numbers(codes, 2, np.hstack([target, -target]), None)
    np.testing.assert_allclose(np.abs(both), np.abs(expected) * np.sqrt(2))


def test_unknown_levels_are_the_mean():
    table = np.column_stack([RNG.integers(3, size=100).astype(float), RNG.normal(size=100)])
    features = encoded_features(table, (table[:, :1] == 1) * 1.0, None, [(0, 3)])
    unknown = features(np.array([[np.nan, 0.0], [-1.0, 0.0], [7.0, 0.0]]))
    assert (unknown == unknown[0]).all()


def test_many_columns_are_screened():
    table = np.random.default_rng(3).normal(size=(150, 300))
    one = fit(table, table[:, 290:291])
    assert len(one.term.model.inputs.columns) <= 256
    assert 290 in one.term.model.inputs.columns


def test_constant_columns_give_a_constant():
    one = fit(np.ones((30, 2)), Y[:30])
    np.testing.assert_allclose(np.ptp(one.outputs, axis=0), 0, atol=1e-6)


def test_placed_models_read_other_columns():
    model = fit(Z, Y).term.model
    wide = RNG.normal(size=(60, 5))
    wide[:, [4, 0, 2]] = Z
    moved = model.placed(np.array([4, 0, 2]), 5, {})
    np.testing.assert_allclose(moved.predict_raw(wide), model.predict_raw(Z), atol=1e-5)


def test_precisions_have_names():
    with pytest.raises(InvalidParameter, match="precision"):
        MetricKernelLearner(precision="float16")


@pytest.mark.parametrize("name", ["n_centers", "n_searched"])
def test_sizes_must_be_positive(name):
    with pytest.raises(InvalidParameter, match=f"{name} must be positive"):
        MetricKernelLearner(**{name: 0})


def test_it_boosts_by_itself():
    table = RNG.uniform(-2, 2, size=(300, 3))
    target = np.sin(2 * table[:, 0]) + table[:, 1]
    model = BoostingRegressor(learner=MetricKernelLearner(n_centers=150), n_estimators=5)
    model.set_params(learning_rate=1.0, random_state=0).fit(table[:200], target[:200])
    assert model.score(table[200:], target[200:]) > 0.99
    assert len(model.model_.stages[0].terms[0].model.basis) == 150


def test_a_single_distinct_row_has_equal_scales():
    found = learned_metric(Rows.of(np.ones((20, 3)), np.zeros((20, 1))))
    np.testing.assert_array_equal(found.axes, 1.0)


def test_the_search_does_not_depend_on_threads():
    with ThreadTeam(3) as team:
        one, other = (learned_metric(Rows.of(Z, Y, W), None, team) for team in (None, team))
    np.testing.assert_array_equal(one.axes, other.axes)
    assert (one.ridge, one.error) == (other.ridge, other.error)

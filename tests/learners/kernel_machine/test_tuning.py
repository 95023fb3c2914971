"""What is chosen where the user chose nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.machines import ridge

from hilboost import KernelBoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.core.gradients import Gradients
from hilboost.kernels import Delta, Gaussian, Kernel, Mapped, Matern, OnColumns, Stationary
from hilboost.kernels.marginal_likelihood import maximize
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.tuning import scoring, search
from hilboost.learners.kernel_machine.tuning.choose import Chooser
from hilboost.learners.kernel_machine.tuning.scoring import Candidate, Rows, leave_one_out
from hilboost.learners.kernel_machine.tuning.table_kernel import (
    FAMILIES,
    MAIN_FAMILIES,
    USUAL_FAMILY,
    Columns,
)


def draw(n=40, d=2, r=1, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0] + k) for k in range(r)])
    Y += rng.normal(0, 0.1, size=Y.shape)
    return X, Y - Y.mean(axis=0), rng.uniform(0.3, 3, n) if weighted else np.ones(n)


def sampled(X, Y, weight):
    return Rows(X, Y, weight, np.arange(len(X)))


def chosen(X, Y, weight=None, n_threads=1, seed=0, **setting):
    setting = KernelMachineConfig(**setting)
    data = setting.prepare(X, weight, seed, n_threads)
    try:
        choice = Chooser(setting, data).choice(Gradients(Y), weight)
        return choice.kernel, choice.settled(data, weight)[1]
    finally:
        data.team.__exit__()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("regularization", [1e-3, 0.5])
def test_leave_one_out_is_that_of_fits_without_the_row(weighted, r, regularization):
    X, Y, weight = draw(r=r, weighted=weighted)
    kernel = Matern(1.0, 1.5)
    found = leave_one_out(Candidate(kernel, regularization), sampled(X, Y, weight))
    errors = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        alpha = ridge(kernel.block(X[rest], X[rest]), Y[rest], regularization, weight[rest])
        predicted = kernel.block(X[[i]], X[rest]) @ alpha
        errors.append(np.sum((predicted - Y[i]) ** 2))
    np.testing.assert_allclose(found.error, np.average(errors, weights=weight), rtol=1e-8)
    assert (found.kernel, found.regularization) == (kernel, regularization)


def test_a_kernel_that_is_not_positive_has_no_error():
    class Negative(Gaussian):
        def block(self, A, B):
            return -super().block(A, B)

    rows = sampled(*draw())
    assert leave_one_out(Candidate(Negative(1.0), 0.1), rows).error == np.inf
    assert scoring.held_out(Candidate(Negative(1.0), 0.1), rows).error == np.inf


def test_comparisons_consider_the_main_families_only(monkeypatch):
    tried, likely = [USUAL_FAMILY], search.more_likely

    def recording(start, *others):
        tried.append(start.kernel.family)
        return likely(start, *others)

    monkeypatch.setattr(search, "more_likely", recording)
    X, Y, _ = draw(12, r=5)
    for briefly, families in ((True, MAIN_FAMILIES), (False, FAMILIES)):
        del tried[1:]
        chosen(X, Y, tunes_briefly=briefly)
        assert set(tried) == set(families)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_held_out_error_is_that_of_a_fit_to_the_first_rows(weighted):
    X, Y, weight = draw(80, r=2, weighted=weighted)
    kernel = Gaussian(1.0)
    found = scoring.held_out(Candidate(kernel, 0.2), sampled(X, Y, weight))
    alpha = ridge(kernel.block(X[:60], X[:60]), Y[:60], 0.2, weight[:60])
    errors = ((kernel.block(X[60:], X[:60]) @ alpha - Y[60:]) ** 2).sum(axis=1)
    np.testing.assert_allclose(found.error, np.average(errors, weights=weight[60:]), rtol=1e-8)


@pytest.mark.parametrize(("lam", "rtol"), [(1e-2, 1e-3), (1e-3, 0.05), (4e-4, 1e-6), (2e-5, 1e-5)])
@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("light", [1.0, 1e-12, 1e-300])
def test_held_out_errors_are_rounded_only_where_this_does_not_matter(lam, rtol, unit, light):
    X, Y, weight = draw(1400, r=2)
    weight[::50] = light
    kernel, rows = Gaussian(5.0), sampled(X, unit * Y, weight)
    found = scoring.held_out(Candidate(kernel, lam), rows)
    learn, held = rows.part(slice(1050)), rows.part(slice(1050, None))
    kept = learn.part(learn.weight > 1e-6)
    alpha = ridge(kernel.block(kept.X, kept.X), kept.Y / unit, lam, kept.weight)
    errors = ((kernel.block(held.X, kept.X) @ alpha - held.Y / unit) ** 2).sum(axis=1)
    error = np.average(errors, weights=held.weight)
    np.testing.assert_allclose(found.error / unit**2, error, rtol=rtol)


def test_the_choice_is_the_same_on_any_number_of_threads():
    X, Y, _ = draw(200)
    (kernel, lam), (again, lam_again) = (chosen(X, Y, n_threads=k) for k in (1, 2))
    assert lam == lam_again
    np.testing.assert_array_equal(kernel.log_parameters, again.log_parameters)
    K = kernel.block(X[:150], X[:150])
    predicted = kernel.block(X[150:], X[:150]) @ ridge(K, Y[:150], lam)
    assert np.mean((predicted - Y[150:]) ** 2) < 0.1 * Y.var()


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), n=st.integers(20, 150), r=st.integers(1, 3))
def test_the_choice_has_the_same_bits_in_other_units(seed, n, r):
    X, Y, weight = draw(n, r=r, weighted=True, seed=seed)
    one, other = (chosen(X, Y * unit, weight, tuning="auto") for unit in (1.0, 1e-3))
    np.testing.assert_array_equal(one[0].block(X, X), other[0].block(X, X))
    assert one[1] == other[1]


def test_given_kernels_and_regularizations_are_kept():
    X, Y, _ = draw()
    kernel = Gaussian(1.3)
    assert chosen(X, Y, kernel=kernel, regularization=0.7) == (kernel, 0.7)
    found, lam = chosen(X, Y, kernel=kernel)
    assert found is kernel
    assert 1e-6 <= lam <= 10
    found, lam = chosen(X, Y, regularization=0.7)
    assert isinstance(found, Kernel)
    assert lam == 0.7


def test_the_regularization_of_a_given_kernel_is_the_best_of_a_grid():
    X, Y, _ = draw(60)
    kernel = Gaussian(1.0)
    _, lam = chosen(X, Y, kernel=kernel, standardize=False)
    errors = [
        leave_one_out(Candidate(kernel, 10.0**k), sampled(X, Y, np.ones(60))).error
        for k in range(-6, 2)
    ]
    assert lam == pytest.approx(10.0 ** (int(np.argmin(errors)) - 6))


@pytest.mark.parametrize("how", ["auto", "marginal_likelihood", "mean_distance"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_few_rows(how, n):
    X, Y, _ = draw(n)
    kernel, lam = chosen(X, Y, tuning=how)
    assert lam > 0
    assert np.isfinite(kernel.block(X, X)).all()


@pytest.mark.parametrize("how", ["auto", "marginal_likelihood", "mean_distance"])
@pytest.mark.parametrize("r", [1, 2])
def test_nothing_to_learn(how, r):
    X, Y, _ = draw(r=r)
    kernel, lam = chosen(X, 0 * Y, tuning=how)
    assert np.isfinite(lam)
    assert lam > 0
    assert np.isfinite(kernel.block(X, X)).all()


def test_repeated_rows():
    X, Y, _ = draw(20)
    kernel, lam = chosen(np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0))
    assert lam > 0
    assert np.isfinite(kernel.block(X, X)).all()


def test_categories_are_compared_by_equality():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(80, 2)).astype(float)
    X = np.column_stack([codes[:, 0], rng.normal(size=80), codes[:, 1]])
    Y = (np.array([2.0, -1.0, 0.0])[codes[:, 0].astype(int)] + X[:, 1])[:, None]
    kernel, _ = chosen(X, Y - Y.mean(), categorical=(0, 2))
    moved = X[:1] + [[1e6, 0, 0]], X[:1] + [[1.5, 0, 0]]
    one, other = (kernel.block(X[:1], m)[0, 0] for m in moved)
    assert one == other
    assert 0 <= one < kernel.block(X[:1], X[:1])[0, 0]
    numeric, categorical = kernel.parts
    assert isinstance(numeric.kernel, Stationary | Mapped)
    assert (numeric.columns, categorical.columns) == ((1,), (0, 2))
    kernel, _ = chosen(codes, Y - Y.mean(), categorical=(0, 1))
    assert isinstance(kernel, OnColumns)
    assert isinstance(kernel.kernel, Delta)


@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_the_gradient_of_a_table_kernel_is_that_of_the_product(family, is_mapped):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(30, 3)), rng.integers(3, size=(30, 2))])
    W = rng.normal(size=(30, 30))
    kernel = Columns.of(5, (3, 4)).kernel(family, 0.7)
    if is_mapped and isinstance(kernel.numeric, Stationary):
        kernel = kernel.mapped(rng.normal(size=(3, 3)))
    W = W + W.T
    np.testing.assert_allclose(
        kernel.parameter_gradient(X, W), kernel.plain.parameter_gradient(X, W), rtol=1e-12
    )
    np.testing.assert_allclose(kernel.gram_and_gradient(X)[0], kernel.plain.block(X, X), atol=1e-7)


def test_rows_outside_the_sample_are_not_used():
    X, Y, _ = draw(80)
    weight = np.ones(80)
    weight[::2] = 0
    other = Y.copy()
    other[::2] += 50
    found = [chosen(X, y, weight) for y in (Y, other)]
    assert found[0][1] == found[1][1]
    np.testing.assert_array_equal(found[0][0].log_parameters, found[1][0].log_parameters)


@pytest.mark.slow
def test_another_seed_draws_other_rows():
    X, Y, _ = draw(400)  # more rows than the first search looks at
    one, other = (chosen(X, Y, seed=seed) for seed in (0, 1))
    assert one[1] != other[1] or repr(one[0]) != repr(other[0])


def test_without_time_the_usual_kernel_is_chosen_from_no_rows():
    X, Y, _ = draw(400)
    one, other = (chosen(X, Y, seed=seed, tuning_seconds=1e-9) for seed in (0, 1))
    assert repr(one) == repr(other)
    assert isinstance(one[0], Matern)


def test_no_regularization_stands_for_the_smallest():
    X, Y, _ = draw()
    kernel, lam = chosen(X, Y, kernel=4.0 * Gaussian(1.0), regularization=0.0)
    assert 0 < lam < 1e-12
    _, lam = chosen(X, Y, kernel=kernel, regularization=0.0, precision="float32")
    assert 1e-7 < lam < 1e-4


@pytest.mark.parametrize(
    ("errors", "expected"),
    [([2.0, 1.0, 2.0], 0.0), ([1.0, 2.0, 3.0], -1.0), ([np.inf, 2.0, 1.0], 1.0), ([0, 1, 2], -1.0)],
)
def test_the_lowest_point_of_a_parabola(errors, expected):
    factors = np.exp([-1.0, 0.0, 1.0])
    found = scoring.lowest_point(factors, errors)
    if errors == [1.0, 2.0, 3.0]:
        assert -1.5 <= found <= expected
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_the_grid_is_walked_towards_lower_errors():
    rows, team = sampled(*draw(10)), ThreadTeam()

    def score(best):
        return lambda c, rows: Candidate(
            c.kernel, c.regularization, abs(np.log(c.regularization / best))
        )

    for best, expected in [(1.0, 1.0), (1 / 4, 1 / 4), (1 / 70, 1 / 64), (20.0, 16.0)]:
        start = score(best)(Candidate(Gaussian(1.0), 1.0), rows)
        found = scoring.best_lambda(start, rows, score(best), 1e-9, team)
        assert found.regularization == pytest.approx(expected)
    start = score(1e-3)(Candidate(Gaussian(1.0), 1.0), rows)
    found = scoring.best_lambda(start, rows, score(1e-3), 0.1, team)
    assert found.regularization == pytest.approx(0.1)  # the floor


@pytest.mark.slow
def test_length_scales_are_fitted_to_rows_by_how_much_their_weights_tell():
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, others = rng.normal(size=(300, 4)), rng.normal(size=(1000, 4))
        weight = np.exp(2 * rng.normal(size=300))
        f, f_others = (np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] for Z in (X, others))
        Y = (f + 0.5 * rng.normal(size=300) / np.sqrt(weight))[:, None]
        model = KernelBoostingRegressor(random_state=0).fit(X, Y[:, 0], sample_weight=weight)
        likely = maximize(1.0 * Matern(np.ones(4), 2.5), 0.1, X, Y, weight=weight)
        alpha = ridge(likely.kernel.block(X, X), Y, likely.noise, weight)
        found = model.predict(others), (likely.kernel.block(others, X) @ alpha)[:, 0]
        errors.append([np.mean((each - f_others) ** 2) for each in found])
    assert np.mean([ours for ours, _ in errors]) < 0.8 * np.mean([theirs for _, theirs in errors])


@pytest.mark.slow
def test_columns_without_effect_on_few_rows_are_found_on_more():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, size=(2500, 6))
    y = np.sin(2 * X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] * np.cos(X[:, 4])
    y += np.exp(-(X[:, 5] ** 2)) * X[:, 3] + 0.5 * np.sin(3 * X[:, 1] * X[:, 0])
    model = KernelBoostingRegressor(random_state=0).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.98  # 0.95 without short starts


def test_steps_go_on_in_the_first_direction_in_which_the_error_falls():
    errors = {1.0: 5.0, 0.5: 6.0, 2.0: 4.0, 4.0: 3.95, 8.0: 1.0, 0.1: 0.0}
    directions = (0.5, 0.1), (2.0, 4.0, 8.0), (0.1,)
    assert scoring.while_better(1.0, directions, float, error=errors.get) == 8.0
    assert scoring.while_better(1.0, directions, float, 0.95, errors.get) == 2.0
    assert scoring.while_better(1.0, ((0.5, 0.1),), float, error=errors.get) == 1.0

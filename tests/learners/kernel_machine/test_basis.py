"""Basis selection: scores against brute force, and an answer in every degenerate case."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Constant, Gaussian, Kernel, Laplace, Matern
from hilboost.learners.kernel_machine import basis
from hilboost.learners.kernel_machine.basis import (
    SELECTIONS,
    ForwardFit,
    Problem,
    ProjectedPosterior,
    information_gain,
    select,
)

KERNEL = 1.7 * Matern(1.5)
SEEDS = st.integers(0, 10**6)


class Sigmoid(Kernel):
    """Not positive definite; negative on parts of the diagonal."""

    def block(self, A, B):
        return np.tanh(A @ B.T - 1)

    def diag(self, A):
        return np.tanh((A * A).sum(axis=1) - 1)


class Waves(Kernel):
    """Not positive definite, with ones on the diagonal."""

    def block(self, A, B):
        return np.cos(5 * np.abs(A[:, None] - B[None]).sum(axis=2) ** 2)

    def diag(self, A):
        return np.ones(len(A))


class Shaky(Gaussian):
    """Its rounding errors are large, and depend on what else is in the block."""

    def block(self, A, B):
        error = np.random.default_rng(len(A)).normal(0, 1e-2, size=(len(A), len(B)))
        return super().block(A, B) + error


def draw(seed, m=30, d=2, r=2):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(m, d)),
        rng.normal(size=(m, r)),
        rng.integers(1, 5, size=m).astype(float),
    )


def choose(name, kernel, X, y, weight, regularization, n_basis, rng, n_candidates=59):
    problem = problem_of(X, y, weight, regularization, kernel, n_candidates)
    return select(name, problem, n_basis, rng)


def problem_of(X, y, weight, regularization=0.3, kernel=KERNEL, n_candidates=None):
    return Problem.of(kernel, X, y, weight, regularization, n_candidates)


def solution(K, y, weight, chosen, regularization):
    """The weights of the machine on some basis, by one direct solve."""
    columns = K[:, chosen]
    H = columns.T @ (weight[:, None] * columns) + regularization * columns[chosen]
    return np.linalg.solve(H, columns.T @ (weight[:, None] * y))


def objective(K, y, weight, chosen, alpha, regularization):
    errors = y - K[:, chosen] @ alpha
    penalty = np.einsum("ir,ij,jr->", alpha, K[np.ix_(chosen, chosen)], alpha)
    return 0.5 * (weight @ (errors**2).sum(axis=1) + regularization * penalty)


def equation_18(K, y, weight, chosen, alpha, regularization, i):
    errors = y - K[:, chosen] @ alpha
    slope = K[:, i] @ (weight[:, None] * errors) - regularization * K[chosen, i] @ alpha
    return 0.5 * (slope**2).sum() / (regularization * K[i, i] + K[:, i] ** 2 @ weight)


# --- the greedy fit -------------------------------------------------------------------------------


@given(SEEDS, st.booleans())
def test_forward_is_exact_after_every_step(seed, keep):
    X, y, weight = draw(seed)
    K, everything = KERNEL.block(X, X), np.arange(len(X))
    fit = ForwardFit(problem_of(X, y, weight, n_candidates=None if keep else 1), 6)
    for i in np.random.default_rng(seed).permutation(len(X))[:6]:
        gains = fit.gains(everything)
        expected = [equation_18(K, y, weight, fit.chosen, fit.alpha, 0.3, j) for j in everything]
        np.testing.assert_allclose(gains, expected, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(fit.gains(everything[3:7]), expected[3:7], rtol=1e-7, atol=1e-10)
        before = objective(K, y, weight, fit.chosen, fit.alpha, 0.3)
        assert fit.include(int(i))
        np.testing.assert_allclose(
            fit.alpha, solution(K, y, weight, fit.chosen, 0.3), rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(fit.fitted, K[:, fit.chosen] @ fit.alpha, atol=1e-10)
        # (18) moves one weight only, so that it bounds the fall of the objective from below.
        fall = before - objective(K, y, weight, fit.chosen, fit.alpha, 0.3)
        assert fall >= gains[i] - 1e-10


@given(SEEDS)
def test_forward_counts_weights_like_repeated_rows(seed):
    X, y, weight = draw(seed, m=15)
    repeated = np.repeat(np.arange(15), weight.astype(int))
    weighted = ForwardFit(problem_of(X, y, weight), 4)
    plain = ForwardFit(problem_of(X[repeated], y[repeated], np.ones(len(repeated))), 4)
    for i in (3, 8, 0, 11):
        assert weighted.include(i)
        assert plain.include(int(np.flatnonzero(repeated == i)[0]))
        gains = plain.gains(np.arange(len(repeated)))
        np.testing.assert_allclose(weighted.gains(repeated), gains, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("memory", [0, basis.KEPT_BYTES])
@given(seed=SEEDS)
def test_forward_takes_the_best_row(seed, memory):
    X, y, weight = draw(seed)
    K = KERNEL.block(X, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basis, "KEPT_BYTES", memory)
        chosen = choose("forward", KERNEL, X, y, weight, 0.3, 8, np.random.default_rng(0), None)
    for t, picked in enumerate(chosen):
        earlier = list(chosen[:t])
        alpha = solution(K, y, weight, earlier, 0.3) if t else np.empty((0, 2))
        rest = [i for i in range(len(X)) if i not in earlier]
        gains = [equation_18(K, y, weight, earlier, alpha, 0.3, i) for i in rest]
        assert rest[int(np.argmax(gains))] == picked


def test_forward_with_as_many_candidates_as_rows_scores_all():
    X, y, weight = draw(1)
    first, second = (
        choose("forward", KERNEL, X, y, weight, 0.3, 8, np.random.default_rng(0), n)
        for n in (30, None)
    )
    np.testing.assert_array_equal(first, second)


def test_few_candidates_are_better_than_none():
    X, y, weight = draw(2, m=300, r=1)
    y = np.sin(3 * X[:, :1]) + 0.1 * y
    K = KERNEL.block(X, X)

    def left(name, n_candidates=None):
        rng = np.random.default_rng(0)
        chosen = choose(name, KERNEL, X, y, weight, 0.3, 10, rng, n_candidates)
        alpha = solution(K, y, weight, chosen, 0.3)
        return objective(K, y, weight, chosen, alpha, 0.3)

    assert left("forward", 30) < left("random")
    assert left("forward", None) < left("random")
    assert left("information_gain") < left("random")


def test_candidates_without_gain_do_not_end_the_search():
    X = np.arange(400.0)[:, None]
    y = np.zeros((400, 1))
    y[[17, 230]] = 1
    narrow = Gaussian(0.1)
    chosen = choose("forward", narrow, X, y, None, 0.1, 10, np.random.default_rng(0), 5)
    assert set(chosen) == {17, 230}


# --- information gain -----------------------------------------------------------------------------


def divergence(mean_1, covariance_1, mean_0, covariance_0):
    """KL(N_1 || N_0)"""
    shift = np.linalg.solve(covariance_0, mean_1 - mean_0)
    trace = np.trace(np.linalg.solve(covariance_0, covariance_1))
    dets = np.linalg.slogdet(covariance_0)[1] - np.linalg.slogdet(covariance_1)[1]
    return 0.5 * (trace - len(mean_0) + (mean_1 - mean_0) @ shift + dets)


def observe(mean, covariance, direction, y, noise):
    """A Gaussian, conditioned on ``direction'f + e = y``."""
    cross = covariance @ direction
    gain = cross / (direction @ cross + noise)
    return mean + gain * (y - direction @ mean), covariance - np.outer(gain, cross)


@given(SEEDS)
def test_information_gain_is_a_divergence_of_two_gaussians(seed):
    rng = np.random.default_rng(seed)
    l2, noise, other, y, m = rng.gamma(1, size=5) + 0.01
    # h as all other observations leave it; then with the row's own observation of h, or of f.
    mean, covariance = np.array([m, m]), np.array([[other, other], [other, other + l2]])
    present = observe(mean, covariance, np.array([1.0, 0.0]), y, noise)
    new = observe(mean, covariance, np.array([0.0, 1.0]), y, noise)
    leverage, error = present[1][0, 0] / noise, y - present[0][0]
    gain = information_gain(
        *np.array([[l2], [leverage]]), np.array([[error]]), np.array([1 / noise])
    )
    np.testing.assert_allclose(gain, divergence(*new, *present), rtol=1e-8)


@given(SEEDS)
def test_information_gain_of_a_row_is_that_of_the_whole_posterior(seed):
    X, y, weight = draw(seed, m=12)
    K, noise = KERNEL.block(X, X), 0.3 / weight
    posterior = ProjectedPosterior(problem_of(X, y, weight), 4)
    chosen = [2, 7, 5, 9]
    for i in chosen:
        posterior.include(i)
    scores = posterior.scores()
    for i in set(range(12)) - set(chosen):
        members = [*chosen, i]
        prior = K[np.ix_(members, members)]
        # What each row's observation is of, as a combination of the function at the members.
        projection = np.zeros((12, 5))
        projection[:, :4] = np.linalg.solve(prior[:4, :4], K[chosen]).T
        total = 0.0
        for output in y.T:
            states = []
            for direction in (projection[i], np.eye(5)[4]):
                state = (np.zeros(5), prior)
                for j in range(12):
                    seen = direction if j == i else projection[j]
                    state = observe(*state, seen, output[j], noise[j])
                states.append(state)
            total += divergence(*states[1], *states[0])
        np.testing.assert_allclose(scores[i], total, rtol=1e-6)
        np.testing.assert_allclose(posterior.mean[i, 1], projection[i] @ states[0][0], rtol=1e-6)
        spread = projection[i] @ states[0][1] @ projection[i]
        np.testing.assert_allclose(posterior.leverage[i], spread / noise[i], rtol=1e-6)


def test_information_gain_vanishes_with_the_conditional_variance():
    variance = np.array([0.0, 1e-300, 1e-12, 1e-6])
    gain = information_gain(variance, np.full(4, 0.5), np.ones((4, 3)), np.full(4, 100.0))
    assert gain[0] == 0
    assert (np.diff(gain) > 0).all()
    assert gain[-1] < 0.1


@given(SEEDS)
def test_information_gain_counts_weights_like_repeated_rows(seed):
    X, y, weight = draw(seed, m=15)
    repeated = np.repeat(np.arange(15), weight.astype(int))
    weighted = ProjectedPosterior(problem_of(X, y, weight), 3)
    plain = ProjectedPosterior(problem_of(X[repeated], y[repeated], np.ones(len(repeated))), 3)
    for i in (3, 8, 0):
        weighted.include(i)
        plain.include(int(np.flatnonzero(repeated == i)[0]))
    np.testing.assert_allclose(weighted.mean[repeated], plain.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        weighted.leverage,
        weight * plain.leverage[np.searchsorted(repeated, np.arange(15))],
        rtol=1e-7,
    )


@given(SEEDS)
def test_information_gain_takes_the_best_row(seed):
    X, y, weight = draw(seed)
    chosen = choose("information_gain", KERNEL, X, y, weight, 0.3, 8, np.random.default_rng(0))
    posterior = ProjectedPosterior(problem_of(X, y, weight), 8)
    for i in chosen:
        assert np.argmax(posterior.scores()) == i
        posterior.include(i)


# --- randomly pivoted Cholesky --------------------------------------------------------------------


def trace_error(K, chosen, weight=None):
    """Share of the trace that the Nyström approximation misses."""
    weight = np.ones(len(K)) if weight is None else weight
    approximation = K[:, chosen] @ np.linalg.pinv(K[np.ix_(chosen, chosen)], hermitian=True)
    left = np.diag(K) - np.einsum("ij,ij->i", approximation, K[:, chosen])
    return (weight @ left) / (weight @ np.diag(K))


def test_rp_cholesky_approximates_better_than_random_on_clusters():
    rng = np.random.default_rng(0)
    sizes = [900, 30, 30, 20, 10, 10]
    X = np.concatenate([rng.normal(6 * j, 0.3, size=(n, 2)) for j, n in enumerate(sizes)])
    kernel = Gaussian(1.0)
    K, y = kernel.block(X, X), np.zeros((len(X), 1))
    errors = {
        name: np.mean(
            [
                trace_error(K, choose(name, kernel, X, y, None, 0.1, 20, np.random.default_rng(s)))
                for s in range(10)
            ]
        )
        for name in ("rp_cholesky", "random")
    }
    assert errors["rp_cholesky"] < 0.3 * errors["random"]


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.0, nu=2.5), Laplace(1.0)])
def test_rp_cholesky_ends_at_the_rank(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 3))[rng.permutation(np.arange(500) % 25)]
    chosen = choose("rp_cholesky", kernel, X, np.zeros((500, 1)), None, 0.1, 100, rng)
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) == 25
    assert trace_error(kernel.block(X, X), chosen) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7])
def test_rp_cholesky_draws_like_the_sequential_method(monkeypatch, size):
    monkeypatch.setattr(basis, "_PIVOTS_AT_ONCE", size)
    X, weight = np.array([[0.0], [0.4], [1.0], [3.0]]), np.array([1.0, 2.0, 1.0, 3.0])
    kernel = Gaussian(1.0)
    K, rng = kernel.block(X, X), np.random.default_rng(0)
    expected = {}
    for i, j in itertools.permutations(range(4), 2):
        second = weight * (1 - K[i] ** 2)
        expected[i, j] = weight[i] / weight.sum() * second[j] / second.sum()
    n_draws = 2000
    counts = dict.fromkeys(expected, 0)
    for _ in range(n_draws):
        chosen = choose("rp_cholesky", kernel, X, np.zeros((4, 1)), weight, 0.1, 2, rng)
        counts[tuple(chosen)] += 1
    chi2 = sum((counts[pair] - n_draws * p) ** 2 / (n_draws * p) for pair, p in expected.items())
    assert chi2 < 31  # the 0.999 quantile at 11 degrees of freedom


# --- drawing and clustering -----------------------------------------------------------------------


@pytest.mark.slow
def test_residual_draws_in_proportion_to_weighted_squares():
    X, rng = np.arange(4.0)[:, None], np.random.default_rng(0)
    y, weight = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [0.0, 0.0]]), np.array([3.0, 2, 1, 9])
    drawn = [choose("residual", KERNEL, X, y, weight, 0.1, 1, rng)[0] for _ in range(4000)]
    shares = np.bincount(drawn, minlength=4) / 4000
    np.testing.assert_allclose(shares, np.array([3, 4, 4, 0]) / 11, atol=0.03)


def test_residual_fills_up_with_fitted_rows():
    X, y = np.arange(20.0)[:, None], np.zeros((20, 1))
    y[[3, 11]] = [[1e-3], [1e3]]
    chosen = choose("residual", KERNEL, X, y, None, 0.1, 6, np.random.default_rng(0))
    assert set(chosen[:2]) == {3, 11}
    assert len(set(chosen)) == 6


def test_k_means_takes_a_row_of_every_cluster():
    rng = np.random.default_rng(0)
    label = rng.integers(8, size=400)
    X = 20 * np.column_stack([label % 3, label // 3]) + rng.normal(size=(400, 2))
    chosen = choose("k_means", KERNEL, X, np.zeros((400, 1)), None, 0.1, 8, rng)
    assert set(label[chosen]) == set(range(8))


# --- all strategies -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forward", "information_gain", "k_means"])
@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_does_not_matter(name, seed):
    X, y, weight = draw(seed, m=80)
    order = np.random.default_rng(seed).permutation(80)
    first, second = (
        choose(name, KERNEL, X[o], y[o], weight[o], 0.3, 12, np.random.default_rng(seed), None)
        for o in (np.arange(80), order)
    )
    np.testing.assert_array_equal(first, order[second])


@pytest.mark.parametrize("name", SELECTIONS)
def test_choices_are_distinct_and_repeatable(name):
    X, y, weight = draw(0, m=300)
    chosen, again, other = (
        choose(name, KERNEL, X, y, weight, 0.3, 40, np.random.default_rng(s)) for s in (0, 0, 1)
    )
    assert chosen.dtype == np.intp
    assert len(set(chosen)) == len(chosen) == 40
    assert chosen.min() >= 0
    assert chosen.max() < 300
    np.testing.assert_array_equal(chosen, again)
    assert name == "information_gain" or set(chosen) != set(other)


@pytest.mark.parametrize("name", SELECTIONS)
def test_rows_without_weight_are_never_chosen(name):
    X, y, weight = draw(0, m=60)
    weight[::2] = 0
    y[::2] *= 100
    chosen = choose(name, KERNEL, X, y, weight, 0.3, 60, np.random.default_rng(0))
    assert (chosen % 2 == 1).all()
    assert len(set(chosen)) == len(chosen) == 30


def degenerate():
    X, y, weight = draw(5, m=40)
    tight = np.concatenate([X, X + 1e-9])
    few = None, 0.1, 48
    long = np.repeat(y, 5, axis=0), None, 1e-6, 200
    return {
        "copies": (KERNEL, X[np.arange(40) % 6], y, None, 0.1, 20),
        "copies_laplace": (Laplace(1.0), X[np.arange(40) % 6], y, weight, 1e-3, 20),
        "nearly_copies": (Gaussian(1.0), tight, np.concatenate([y, y]), None, 0.0, 80),
        "fitted": (KERNEL, X, np.zeros_like(y), weight, 0.1, 20),
        "more_than_rows": (KERNEL, X, y, weight, 0.1, 1000),
        "one_row": (KERNEL, X[:1], y[:1], None, 0.1, 5),
        "one_fitted_row": (KERNEL, X[:1], y[:1] * 0, weight[:1], 0.0, 5),
        "constant_inputs": (KERNEL, np.ones((40, 2)), y, None, 0.1, 20),
        "constant_kernel": (Constant(2.0), X, y, weight, 0.1, 20),
        "no_regularization": (KERNEL, X, y, None, 0.0, 40),
        "smooth_unregularized": (Gaussian(30.0), X, y, weight, 0.0, 40),
        "huge_regularization": (KERNEL, X, y, None, 1e300, 20),
        "tiny_kernel": (1e-200 * Gaussian(1.0), X, y, None, 0.1, 20),
        "small_residual": (KERNEL, X, y * 1e-200, None, 0.1, 20),
        "no_weight": (KERNEL, X, y, np.zeros(40), 0.1, 20),
        "uneven_weight": (KERNEL, X, y, 10.0 ** -np.arange(40), 0.1, 20),
        "one_residual": (Gaussian(0.01), X, y * (np.arange(40) == 7)[:, None], None, 0.1, 20),
        "negative_diagonal": (Sigmoid(), X, y, weight, 0.1, 20),
        "negative": (Sigmoid(), X * 0.01, y, None, 0.0, 20),
        "indefinite": (Waves(), X, y, weight, 0.0, 40),
        "shaky": (Shaky(1.0), X, y, weight, 0.0, 40),
        "shaky_copies": (Shaky(1.0), X[:12].repeat(4, axis=0), y[:12].repeat(4, axis=0), *few),
        "indefinite_long": (Waves(), np.repeat(X, 5, axis=0) + np.arange(200)[:, None], *long),
    }


@pytest.mark.parametrize("case", degenerate())
@pytest.mark.parametrize(
    ("name", "n_candidates"), [*((name, None) for name in SELECTIONS), ("forward", 3)]
)
def test_there_is_always_an_answer(name, n_candidates, case):
    kernel, X, y, weight, regularization, n_basis = degenerate()[case]
    rng = np.random.default_rng(0)
    with np.errstate(all="raise", under="ignore"):
        chosen = choose(name, kernel, X, y, weight, regularization, n_basis, rng, n_candidates)
    assert 1 <= len(chosen) <= min(n_basis, len(X))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(range(len(X)))


class Noisy(Gaussian):
    """Its diagonal tells of noise that its blocks do not show."""

    def diag(self, A):
        return super().diag(A) + 0.1


@pytest.mark.parametrize("name", ["forward", "information_gain", "rp_cholesky"])
def test_a_diagonal_with_noise_does_not_end_the_search(name):
    X, y, weight = draw(4, m=100)
    chosen = choose(name, Noisy(1.0), X, y, weight, 0.1, 30, np.random.default_rng(0))
    assert len(set(chosen)) == 30


@pytest.mark.parametrize("name", ["forward", "information_gain", "k_means", "rp_cholesky"])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0)])
def test_copies_are_not_chosen_twice(name, kernel):
    X, y, weight = draw(3, m=200)
    X = X[np.arange(200) % 9]
    chosen = choose(name, kernel, X, y, weight, 0.1, 50, np.random.default_rng(0))
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) <= 9


def test_names_are_sorted_and_an_unknown_one_is_refused():
    assert sorted(SELECTIONS) == list(SELECTIONS)
    X, y, _ = draw(0)
    with pytest.raises(InvalidParameter, match=r"selection='forwards' is not known\. Did you mean"):
        choose("forwards", KERNEL, X, y, None, 0.1, 3, np.random.default_rng(0))

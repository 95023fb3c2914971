"""Pivoted Cholesky factors: exact ones, truncated ones, and what these do to splits."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference import output_kernel as reference

from hilboost.core.errors import DataWarning, InvalidData, NotPositive
from hilboost.kernels import pivoted_cholesky
from hilboost.kernels.pivoted_cholesky import factor_columns, factor_gram

seeds = st.integers(0, 10**6)
tolerances = st.sampled_from([0.5, 0.1, 0.01, 1e-4, 0.0])


def draw_gram(seed, n=None):
    """Of low rank, of fast decay or of slow decay, with two outputs alike."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25)) if n is None else n
    Y = rng.normal(size=(n, int(rng.integers(1, 6))))
    Y[-1] = Y[0]
    if seed % 2:
        return Y @ Y.T
    return np.exp(-((Y[:, None] - Y[None]) ** 2).sum(axis=2) / rng.uniform(0.5, 20))


def greedy(gram, rank):
    """Pivots by brute force, and what they leave of the matrix."""
    left, pivots = gram.copy(), []
    for _ in range(rank):
        i = int(np.argmax(left.diagonal()))
        pivots.append(i)
        left = left - np.outer(left[i], left[i]) / left[i, i]
    return pivots, left


@given(seeds, tolerances)
def test_the_trace_left_out_is_as_small_as_asked(seed, tolerance):
    gram = draw_gram(seed)
    factor = factor_gram(gram, tolerance)
    approximation = factor.codes @ factor.codes.T
    rounding = 1e-10 * gram.trace()
    assert gram.trace() - approximation.trace() <= tolerance * gram.trace() + rounding
    assert np.linalg.eigvalsh(gram - approximation).min() >= -rounding
    if tolerance == 0:
        np.testing.assert_allclose(approximation, gram, atol=rounding)


@given(seeds, st.sampled_from([0.5, 0.1, 0.01]))
def test_no_column_more_than_needed(seed, tolerance):
    gram = draw_gram(seed)
    rank = factor_gram(gram, tolerance).codes.shape[1]
    assert greedy(gram, rank)[1].trace() <= tolerance * gram.trace() * (1 + 1e-9)
    assert greedy(gram, rank - 1)[1].trace() > tolerance * gram.trace() * (1 - 1e-9)


@given(seeds, tolerances)
def test_pivots_span_the_factor(seed, tolerance):
    gram = draw_gram(seed)
    factor = factor_gram(gram, tolerance)
    triangle = factor.triangle
    np.testing.assert_array_equal(triangle, np.tril(triangle))
    kept = gram[:, factor.pivots]
    np.testing.assert_allclose(factor.codes @ triangle.T, kept, atol=1e-9 * gram.trace())
    scale = np.abs(factor.codes).max()
    np.testing.assert_allclose(factor.encode(kept), factor.codes, atol=1e-5 * scale)
    raw = np.random.default_rng(seed).normal(size=(4, triangle.shape[1]))
    np.testing.assert_allclose(factor.weights(raw) @ triangle, raw, rtol=1e-5, atol=1e-7)


@given(seeds, tolerances, st.sampled_from([1, 3, 100]))
def test_single_columns_give_the_same_factor(seed, tolerance, max_rank):
    gram = draw_gram(seed)
    whole = factor_gram(gram, tolerance, max_rank)
    columns = factor_columns(gram.diagonal(), lambda i: gram[:, i], tolerance, max_rank)
    assert len(whole.pivots) <= max_rank
    for factor in (whole, columns):
        rest = gram - factor.codes @ factor.codes.T
        left = greedy(gram, min(max_rank, len(whole.pivots)))[1].trace()
        assert rest.trace() <= left + 1e-9 * gram.trace()
        assert len(np.unique(factor.pivots)) == len(factor.pivots)


@given(seeds, tolerances)
def test_gains_are_off_by_no_more_than_the_trace_left_out(seed, tolerance):
    """Also of residuals: boosting with 0 <= rate <= 2 makes what is left out no larger (M3)."""
    gram, rng = draw_gram(seed), np.random.default_rng(seed)
    n = len(gram)
    factor = factor_gram(gram, tolerance)
    kept = factor.codes @ factor.codes.T
    allowed = gram.trace() - kept.trace() + 1e-9 * gram.trace()
    residual, kept_residual = gram, kept
    for rate in rng.uniform(0, 2, size=5):
        rows = rng.permutation(n)[: int(rng.integers(2, n + 1))]
        goes_left = rng.permutation(np.arange(len(rows)) < rng.integers(1, len(rows)))
        gains = [len(rows) * reference.score(K, rows, goes_left) for K in (residual, kept_residual)]
        assert abs(gains[0] - gains[1]) <= allowed
        cells = rng.integers(3, size=n)
        means = (cells[:, None] == cells[None]) / np.bincount(cells, minlength=3)[cells]
        step = np.eye(n) - rate * means
        residual, kept_residual = step @ residual @ step, step @ kept_residual @ step


@pytest.mark.parametrize(
    "gram", [np.zeros((3, 3)), np.zeros((1, 1)), np.full((1, 1), 2.0)], ids=str
)
def test_small_matrices(gram):
    for factor in (
        factor_gram(gram),
        factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.0, 5),
    ):
        np.testing.assert_allclose(factor.codes @ factor.codes.T, gram)
        assert factor.encode(gram[:, factor.pivots]).shape == factor.codes.shape
        assert factor.weights(factor.codes).shape == factor.codes.shape


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e150])
def test_units_do_not_matter(scale):
    gram = draw_gram(4, 12)
    factor = factor_gram(gram * scale, 0.01)
    same = factor_gram(gram, 0.01)
    np.testing.assert_array_equal(factor.pivots, same.pivots)
    np.testing.assert_allclose(factor.codes / np.sqrt(scale), same.codes, atol=1e-12)


@given(seeds)
@example(473489)
def test_outputs_that_are_alike_up_to_rounding(seed):
    """Nearly equal rows beside others that are left out are no sign of a kernel that is wrong."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(20, 30)) / np.sqrt(30)
    Y[10:] = Y[:10] + 10.0 ** rng.uniform(-9, -6) * rng.permutation(Y[:10])
    gram, tolerance = Y @ Y.T, float(rng.choice([0.0, 0.1, 0.5]))
    codes = factor_gram(gram, tolerance).codes
    left_out = np.trace(gram) - (codes**2).sum()
    assert left_out <= (tolerance + 1e-6) * np.trace(gram)


# Refusals


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_unfinished_matrices_are_refused(odd):
    gram = np.eye(5)
    gram[3, 1] = odd
    with pytest.raises(InvalidData, match="the Gram matrix Y contains NaN or infinity in row 3"):
        factor_gram(gram, what="the Gram matrix Y")
    with pytest.raises(InvalidData, match="the kernel contains NaN or infinity in row 3"):
        factor_columns(np.ones(5), lambda i: gram[:, i], 0.0, 5)
    with pytest.raises(InvalidData, match="the kernel contains NaN or infinity in row 2"):
        factor_columns(np.array([1, 1, odd, 1, 1]), lambda i: gram[:, i], 0.0, 5)


@pytest.mark.parametrize("n", [4, 1500])
def test_matrices_that_are_not_symmetric_are_refused(n):
    gram = np.eye(n)
    gram[n - 1, 1] = 0.25
    with pytest.raises(
        InvalidData, match=rf"not symmetric: k\((1, {n - 1}|{n - 1}, 1)\) = 0.*0.25"
    ):
        factor_gram(gram)
    gram[1, n - 1] = 0.25 + 1e-12
    factor_gram(gram)


@pytest.mark.parametrize(
    "gram",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.0], [0.0, -1e-3]],
        [[-1.0, 0.0], [0.0, -1.0]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 0.0, 0.9], [0.0, 1.0, 0.9], [0.9, 0.9, 1.0]],
        scipy.linalg.toeplitz([1.0, 0.9, 0.0, 0.0]).tolist(),
        (scipy.linalg.hilbert(6) - 1e-4 * np.eye(6)).tolist(),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("tolerance", [0.0, 0.01])
def test_matrices_that_are_not_positive_are_refused(gram, tolerance):
    gram = np.array(gram)
    assert np.linalg.eigvalsh(gram).min() < 0
    with pytest.raises(
        NotPositive, match=r"not positive semidefinite \(detected in row \d\); use a"
    ):
        factor_gram(gram, tolerance)


def test_columns_of_a_matrix_that_is_not_positive_are_refused():
    gram = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.9], [0.9, 0.9, 1.0]])
    with pytest.raises(NotPositive, match=r"the output kernel is not positive .* row 2"):
        factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.0, 5, "the output kernel")
    with pytest.raises(NotPositive, match="row 1"):
        factor_columns(np.array([1.0, -1.0]), lambda i: np.eye(2)[i], 0.0, 5)


@given(seeds)
def test_columns_that_are_not_symmetric_are_refused(seed):
    gram = draw_gram(2 * seed, 12)
    first, second = factor_gram(gram).pivots[:2]
    gram[first, second] += 1e-3
    pattern = rf"not symmetric: k\({first}, {second}\) = .* and k\({second}, {first}\) = "
    with pytest.raises(InvalidData, match=f"the output kernel is {pattern}"):
        factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.0, 12, "the output kernel")


def test_too_few_columns_by_default_are_told(monkeypatch):
    gram = np.eye(10) + 0.1
    monkeypatch.setattr(pivoted_cholesky, "_MOST_COLUMNS", 4)
    with pytest.warns(DataWarning, match=r"the kernel is approximated by 4 columns, which omit"):
        factor = factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.1)
    assert factor.codes.shape == (10, 4)
    factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.1, 4)  # as asked
    factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.7)
    monkeypatch.undo()
    factor_columns(gram.diagonal(), lambda i: gram[:, i], 0.0)

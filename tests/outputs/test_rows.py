"""Distributions, compositions and positive definite matrices against closed forms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm, logm
from scipy.optimize import minimize
from scipy.stats import wasserstein_distance
from sklearn.isotonic import isotonic_regression
from tests.refusals import refused

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice
from hilboost.outputs import Compositions, Distributions, PositiveMatrices, Vectors

RNG = np.random.default_rng(0)


def squared_distance(embedding, a, b):
    one, other = embedding.encode([a]), embedding.encode([b])
    return float(((one - other) ** 2).sum())


# Rows of numbers


DAY = np.datetime64("2020-01-01")


@pytest.mark.parametrize(
    "odd",
    [
        [1, "2"],
        ["1", "2"],
        [b"1", 2],
        [DAY, DAY],
        [1.0, DAY],
        [DAY - DAY, 2],
        [1, pd.Timestamp(DAY)],
    ],
    ids=str,
)
def test_texts_and_dates_are_no_numbers(odd):
    embedding = Vectors().fit([[1.0, 2.0]])
    for labels in ([[3, 4], odd], pd.DataFrame([[3, 4], odd]), np.array([[3, 4], odd], object)):
        for use in (Vectors().fit, embedding.encode):
            refused(InvalidData, "Y must contain rows of numbers; row 1 is", use, labels)
        with pytest.raises(InvalidData, match="candidates must contain rows of numbers; row 1 is"):
            embedding.decode(np.ones((1, 2)), "exact", Choice(labels))


def test_dates_alone_are_no_numbers():
    for labels in (np.array([DAY, DAY]), pd.Series([DAY, DAY]), np.array(["1", "2"])):
        refused(InvalidData, "Y must contain rows of numbers; row 0 is", Vectors().fit, labels)


@pytest.mark.parametrize(
    "labels", [[[1, True], [2, 0.5]], np.array([[1, 2.5]], object), [[10**30, 1]]], ids=str
)
def test_numbers_of_any_type_are_rows(labels):
    assert Vectors().fit(labels).training.dtype == np.float64


# Distributions


@pytest.mark.parametrize("size", [1, 3, 4, 12])
def test_distances_of_equal_samples_are_wasserstein(size):
    a, b = RNG.normal(size=size), RNG.normal(size=size)
    embedding = Distributions(12).fit([a])
    expected = np.mean((np.sort(a) - np.sort(b)) ** 2)
    assert squared_distance(embedding, a, b) == pytest.approx(expected)


def test_distances_of_samples_whose_sizes_divide_the_grid_are_wasserstein():
    a, b = RNG.normal(size=3), RNG.normal(size=4)
    embedding = Distributions(12).fit([a])
    expected = np.mean((np.repeat(np.sort(a), 4) - np.repeat(np.sort(b), 3)) ** 2)
    assert squared_distance(embedding, a, b) == pytest.approx(expected)
    first = np.abs(embedding.encode([a]) - embedding.encode([b])).sum() / np.sqrt(12)
    assert first == pytest.approx(wasserstein_distance(a, b))


def test_the_distance_of_normal_distributions_has_a_closed_form():
    a, b = RNG.normal(0, 1, 20_000), RNG.normal(2, 3, 20_000)
    embedding = Distributions(500).fit([a])
    assert squared_distance(embedding, a, b) == pytest.approx(2**2 + (3 - 1) ** 2, rel=0.05)


@given(raw=arrays(np.float64, (3, 7), elements=st.floats(-9, 9, width=32)))
def test_exact_decoding_is_the_isotonic_projection(raw):
    embedding = Distributions(7).fit(np.zeros((1, 7)))
    found = embedding.decode(raw / np.sqrt(7), "exact")
    expected = [isotonic_regression(row) for row in raw]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.all(np.diff(found, axis=1) >= 0)


def test_quantiles_are_in_the_units_of_the_samples():
    samples = [np.full(5, 7.5), np.arange(100.0)]
    embedding = Distributions(4).fit(samples)
    np.testing.assert_allclose(embedding.levels, [0.125, 0.375, 0.625, 0.875])
    found = embedding.decode(embedding.encode(samples), "exact")
    np.testing.assert_allclose(found, [[7.5] * 4, [12, 37, 62, 87]])


def test_lists_arrays_and_frames_of_samples_are_alike():
    table = RNG.normal(size=(4, 9))
    expected = Distributions().fit(table).encode(table)
    ragged = np.empty(4, dtype=object)
    ragged[:] = list(table)
    for labels in (
        table.tolist(),
        list(table),
        pd.DataFrame(table),
        pd.Series(list(table)),
        ragged,
    ):
        np.testing.assert_array_equal(Distributions().fit(labels).encode(labels), expected)
    order = RNG.permutation(9)
    np.testing.assert_array_equal(Distributions().fit(table).encode(table[:, order]), expected)


def test_the_nearest_distribution_may_be_a_candidate():
    embedding = Distributions(2).fit([[0.0, 1.0], [5.0, 6.0]])
    raw = embedding.encode([[4.0, 5.0]])
    np.testing.assert_allclose(embedding.decode(raw, "nearest"), [[5, 6]])
    found = embedding.decode(raw, "exact", Choice([[3.0], [1.0, 2.0, 9.0]]))
    np.testing.assert_allclose(found, [[3, 3]])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1.0], []], "row 1 of Y is an empty sample; each sample requires at least one number"),
        ([[1.0], [2.0, np.nan]], "row 1 of Y contains NaN or infinity; samples must be finite"),
        ([[1.0], [2.0, np.inf]], "row 1 of Y contains NaN or infinity"),
        ([[1.0], ["a"]], r"row 1 of Y is \['a'\]; each output must be a sample of numbers"),
        ([[1.0], 2.0], r"row 1 of Y has shape \(\); each output must be a 1-D sample"),
        ([[1.0], [[1.0, 2.0]]], r"row 1 of Y has shape \(1, 2\)"),
        (np.arange(3.0), r"row 0 of Y has shape \(\)"),
        (np.array([[1, 2], [np.nan, 2]]), "Y contains NaN or infinity in row 1"),
        (np.ones((2, 2, 2)), r"each row of Y must contain a sample of one distribution"),
        ([[1.0], ["2"]], r"row 1 of Y is \['2'\]; each output must be a sample of numbers"),
        (
            [[1.0], np.array(["2020-01-01"], "M8[D]")],
            "row 1 of Y is .*; each output must be a sample of numbers",
        ),
    ],
)
def test_odd_samples_are_refused(labels, message):
    for use in (Distributions().fit, Distributions().fit([[1.0]]).encode):
        refused(InvalidData, message, use, labels)


@pytest.mark.parametrize("q", [0, -1, 2.5, True, "64", None])
def test_the_number_of_quantiles_is_positive(q):
    with pytest.raises(InvalidParameter, match="n_quantiles must be a positive integer; got"):
        Distributions(q).fit([[1.0]])


# Compositions


def test_aitchison_counts_ratios_only():
    a, b = np.array([[0.2, 0.3, 0.5]]), np.array([[0.1, 0.6, 0.3]])
    embedding = Compositions("aitchison").fit(a)
    ratios = [np.log(x[:, None] / x[None]) for x in (a[0], b[0])]
    expected = ((ratios[0] - ratios[1]) ** 2).sum() / (2 * 3)
    assert squared_distance(embedding, a[0], b[0]) == pytest.approx(expected)
    assert embedding.encode(a).shape == (1, 2)
    center = embedding.decode((embedding.encode(a) + embedding.encode(b)) / 2, "exact")
    np.testing.assert_allclose(center, np.sqrt(a * b) / np.sqrt(a * b).sum())


def test_hellinger_decoding_is_the_nearest_composition():
    embedding = Compositions().fit(np.eye(3))
    for raw in RNG.normal(size=(20, 3)):
        found = embedding.decode(raw[None], "exact")[0]
        best = min(
            (
                minimize(
                    lambda z, raw=raw: -raw @ np.sqrt(np.exp(z) / np.exp(z).sum()),
                    start,
                    method="Nelder-Mead",
                )
                for start in 3 * np.eye(3)
            ),
            key=lambda result: result.fun,
        )
        assert raw @ np.sqrt(found) >= -best.fun - 1e-9


def test_points_without_a_positive_coordinate_have_the_nearest_vertex():
    embedding = Compositions().fit(np.eye(3))
    raw = np.array([[-3.0, -1.0, -2.0], [0.0, 0.0, 0.0], [1e-200, 0.0, -1.0]])
    found = embedding.decode(raw, "exact")
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("geometry", ["hellinger", "aitchison"])
@given(data=st.data())
def test_decoded_compositions_are_compositions(geometry, data):
    embedding = Compositions(geometry).fit(np.full((1, 4), 0.25))
    shape = (2, 4 if geometry == "hellinger" else 3)
    raw = data.draw(arrays(np.float64, shape, elements=st.floats(-300, 300)))
    found = embedding.decode(raw, "exact")
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("geometry", ["hellinger", "aitchison"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.6, -0.1], r"row 1 of Y, \(0.5, 0.6, -0.1\), has a negative share"),
        ([0.5, 0.4, 0.2], "row 1 of Y sums to 1.1; a composition must sum to 1. Divide each row"),
        ([0.0, 0.0, 0.0], "row 1 of Y sums to 0"),
        ([50, 30, 20], "row 1 of Y sums to 100"),
        ([0.5, 0.5, np.nan], "NaN or infinity in row 1"),
        ([0.5, 0.5], "row 1 has length 2 and row 0 has length 3"),
        ([0.5, 0.3, "x"], "must contain rows of numbers; row 1 is"),
    ],
)
def test_rows_that_are_no_compositions_are_refused(geometry, row, message):
    good = [0.2, 0.3, 0.5]
    embedding = Compositions(geometry).fit([good])
    for use in (Compositions(geometry).fit, embedding.encode):
        refused(InvalidData, message, use, [good, row])
    with pytest.raises(InvalidData, match=message.replace("Y", "candidates")):
        embedding.decode(embedding.encode([good]), "exact", Choice([good, row]))


def test_zeros_have_no_logarithm():
    message = r"row 1 of Y, \(1, 0\), has a share of zero, .* use Compositions\('hellinger'\)"
    refused(InvalidData, message, Compositions("aitchison").fit, [[0.5, 0.5], [1, 0]])


def test_compositions_of_another_width_are_refused():
    with pytest.raises(InvalidData, match="has 3 numbers; .* fitted with 2"):
        Compositions().fit([[0.5, 0.5]]).encode([[0.2, 0.3, 0.5]])
    refused(InvalidData, "row 0 of Y has only one share", Compositions().fit, [[1.0], [1.0]])


def test_unknown_geometries_are_refused():
    with pytest.raises(InvalidParameter, match="geometry must be 'hellinger' or 'aitchison'; got"):
        Compositions("euclidean").fit([[0.5, 0.5]])


# Positive definite matrices


def covariances(n, p):
    roots = RNG.normal(size=(n, p, p + 2))
    return roots @ roots.transpose(0, 2, 1)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_distances_are_log_euclidean(p):
    a, b = covariances(2, p)
    embedding = PositiveMatrices().fit([a, b])
    assert embedding.encode([a]).shape == (1, p * (p + 1) // 2)
    expected = np.linalg.norm(logm(a) - logm(b)) ** 2
    assert squared_distance(embedding, a, b) == pytest.approx(expected)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_exact_decoding_is_the_exponential(p):
    a, b = covariances(2, p)
    embedding = PositiveMatrices().fit([a, b])
    middle = embedding.encode([a, b]).mean(axis=0, keepdims=True)
    found = embedding.decode(middle, "exact")
    np.testing.assert_allclose(found[0], expm((logm(a) + logm(b)) / 2), rtol=1e-8)


@given(raw=arrays(np.float64, (2, 6), elements=st.floats(-3, 3)))
def test_any_point_is_a_positive_definite_matrix(raw):
    embedding = PositiveMatrices().fit(np.eye(3)[None])
    found = embedding.decode(raw, "exact")
    np.testing.assert_array_equal(found, found.transpose(0, 2, 1))
    np.testing.assert_allclose(embedding.encode(found), raw, rtol=1e-6, atol=1e-6)


def test_covariances_in_single_precision_are_symmetric_enough():
    X = RNG.normal(size=(50, 4)).astype(np.float32)
    matrix = np.cov(X.T).astype(np.float32)
    matrix[0, 1] *= 1 + 1e-7
    assert PositiveMatrices().fit([matrix]).training.dtype == np.float64


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "row 1 of Y is not symmetric: it differs .* by 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], "row 1 of Y is not positive definite: its smallest .* is -1"),
        ([[1.0, 1.0], [1.0, 1.0]], "row 1 of Y is not positive definite: .* multiple of the iden"),
        ([[0.0, 0.0], [0.0, 0.0]], "row 1 of Y is not positive definite"),
        ([[1.0, 0.0], [0.0, np.nan]], "NaN or infinity in row 1"),
        ([[1.0]], "row 1 has length 1 and row 0 has length 4"),
        ([[1.0, "x"], ["x", 1.0]], "must contain rows of numbers; row 1 is"),
    ],
)
def test_matrices_that_are_not_positive_definite_are_refused(matrix, message):
    good = np.eye(2).tolist()
    for use in (PositiveMatrices().fit, PositiveMatrices().fit([good]).encode):
        refused(InvalidData, message, use, [good, matrix])


def test_matrices_of_another_shape_are_refused():
    with pytest.raises(
        InvalidData,
        match=r"each row of Y, from row 0, must be a square matrix, .*; got shape \(2, 4\)",
    ):
        PositiveMatrices().fit(np.ones((2, 4)))
    with pytest.raises(InvalidData, match=r"must be a square matrix, .* got shape \(2, 2, 3\)"):
        PositiveMatrices().fit(np.ones((2, 2, 3)))
    with pytest.raises(InvalidData, match="row 0 of Y is a matrix with 3 rows; .* fitted with 2"):
        PositiveMatrices().fit(np.eye(2)[None]).encode(np.eye(3)[None])


@pytest.mark.parametrize("kind", ["shares", "counts", "frame"])
def test_histograms_are_not_samples(kind):
    rng = np.random.default_rng(0)
    table = rng.multinomial(50, np.full(6, 1 / 6), size=20).astype(float)
    if kind != "counts":
        table /= 50
    given = pd.DataFrame(table) if kind == "frame" else table
    with pytest.raises(InvalidData, match="every row of Y has the sum .* look like histograms"):
        Distributions().fit(given)
    embedding = Distributions(6).fit(list(table))  # a list is a list of samples
    np.testing.assert_array_equal(embedding.training, np.sort(table, axis=1))
    embedding.encode(table)


def test_samples_of_equal_sums_that_are_no_histograms():
    same = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    for samples in (same, np.ones((4, 3)), same - 2, np.zeros((3, 2)), [[1.0, 2.0]]):
        embedding = Distributions(3).fit(samples)
        assert embedding.training.shape == (len(samples), 3)

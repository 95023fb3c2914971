"""Rankings: decoders against all permutations."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice
from hilboost.outputs import Rankings
from hilboost.outputs.rankings import _improved, _value, best_orders

DISTANCES = ["kemeny", "spearman", "hamming"]
all_distances = pytest.mark.parametrize("distance", DISTANCES)


def everything(K):
    return np.array(list(permutations(range(1, K + 1))))


def fitted(distance, K):
    return Rankings(distance).fit(np.arange(1, K + 1)[None])


@all_distances
@pytest.mark.parametrize("K", [2, 3, 4, 5])
def test_exact_decoding_finds_the_nearest_of_all_rankings(distance, K):
    embedding = fitted(distance, K)
    codes = embedding.encode(everything(K))
    raw = np.random.default_rng(K).normal(size=(50, codes.shape[1]))
    found = embedding.decode(raw, "exact")
    best = (raw @ codes.T).argmax(axis=1)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, everything(K)[best])


@all_distances
@given(data=st.data())
def test_exact_decoding_is_optimal_where_rankings_are_equal_too(distance, data):
    embedding = fitted(distance, 4)
    codes = embedding.encode(everything(4))
    shape = (2, codes.shape[1])
    raw = data.draw(arrays(np.float64, shape, elements=st.integers(-2, 2).map(float)))
    found = embedding.encode(embedding.decode(raw, "exact"))
    np.testing.assert_allclose((raw * found).sum(axis=1), (raw @ codes.T).max(axis=1), atol=1e-12)


@pytest.mark.parametrize("K", [6, 8])
def test_kemeny_by_subsets_on_more_items(K):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(4, K * (K - 1) // 2))
    embedding = fitted("kemeny", K)
    found = (raw * embedding.encode(embedding.decode(raw, "exact"))).sum(axis=1)
    best = np.full(4, -np.inf)
    for some in np.array_split(everything(K), 8):
        best = np.maximum(best, (raw @ embedding.encode(some).T).max(axis=1))
    np.testing.assert_allclose(found, best)


def preferences(n, K, seed=0):
    M = np.random.default_rng(seed).normal(size=(n, K, K))
    return M - M.transpose(0, 2, 1)


def test_local_search_ends_where_no_insertion_helps():
    M = preferences(6, 10)
    orders = best_orders(M)
    value = _value(M, orders)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(10), (6, 1)))
    for a in range(10):
        rest = np.delete(orders, a, axis=1)
        for b in range(10):
            moved = np.insert(rest, b, orders[:, a], axis=1)
            assert np.all(_value(M, moved) <= value + 1e-9)


def test_local_search_is_mostly_exact_and_never_worse_than_its_start():
    M = preferences(200, 8)
    best = _value(M, best_orders(M))
    start = np.tile(np.arange(8), (200, 1))
    found = _value(M, _improved(M, start))
    assert np.all(found >= _value(M, start))
    assert np.all(found <= best + 1e-9)
    assert np.mean(found >= best - 1e-9) > 0.6


def test_large_rankings_are_decoded_from_noise():
    K, rng = 15, np.random.default_rng(0)
    ranks = np.array([rng.permutation(K) + 1 for _ in range(30)])
    embedding = Rankings().fit(ranks)
    codes = embedding.encode(ranks)
    raw = codes + 0.5 * rng.normal(size=codes.shape) * np.abs(codes).max()
    tau = [
        kendalltau(a, b).statistic
        for a, b in zip(embedding.decode(raw, "exact"), ranks, strict=True)
    ]
    assert np.mean(tau) > 0.95
    nearest = embedding.encode(embedding.decode(raw, "nearest"))
    exact = embedding.encode(embedding.decode(raw, "exact"))
    assert np.all((raw * exact).sum(axis=1) >= (raw * nearest).sum(axis=1) - 1e-12)


def test_distances_are_those_of_the_field():
    ranks = everything(4)
    signs = [
        sum((a[i] - a[j]) * (b[i] - b[j]) < 0 for i, j in combinations(range(4), 2))
        for a in ranks
        for b in ranks
    ]
    counts = {
        "kemeny": np.array(signs) / 6 * 4,
        "spearman": ((ranks[:, None] - ranks) ** 2).sum(axis=2).ravel() / 5,
        "hamming": (ranks[:, None] != ranks).sum(axis=2).ravel() / 4 * 2,
    }
    for distance, expected in counts.items():
        codes = fitted(distance, 4).encode(ranks)
        np.testing.assert_allclose((codes**2).sum(axis=1), 1)
        found = ((codes[:, None] - codes) ** 2).sum(axis=2)
        np.testing.assert_allclose(found.ravel(), expected, atol=1e-12)


def test_ties_of_either_count_are_the_same_point():
    embedding = Rankings(ties=True).fit([[1, 2, 2, 4], [1, 1, 1, 1], [4, 3, 2, 1]])
    one, other = embedding.encode([[1, 2, 2, 4], [1, 2, 2, 3]])
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(embedding.norms([[1, 2, 2, 4], [1, 1, 1, 1]]), [5 / 6, 0])
    np.testing.assert_array_equal(embedding.decode(one[None], "nearest"), [[1, 2, 2, 4]])
    strict = embedding.decode(one[None], "exact")
    np.testing.assert_array_equal(strict[:, [0, 3]], [[1, 4]])


@pytest.mark.parametrize("distance", ["kemeny", "spearman", "hamming"])
def test_the_cosine_differs_from_the_distance_only_with_ties(distance):
    rng = np.random.default_rng(0)
    ranks = np.array([rng.permutation(4) + 1 for _ in range(9)])
    embedding = Rankings(distance).fit(ranks)
    raw = rng.normal(size=(30, embedding.encode(ranks).shape[1]))
    assert "cosine" in embedding.ways
    for way in ("cosine", "nearest"):
        np.testing.assert_array_equal(embedding.decode(raw, way), embedding.decode(raw, "nearest"))
    tied = Rankings(ties=True).fit([[1, 2, 3], [1, 2, 2]])
    codes = tied.encode([[1, 2, 3], [1, 2, 2]])
    point = 0.4 * codes[:1]  # a small point in the direction of the ranking without ties
    np.testing.assert_array_equal(tied.decode(point, "nearest"), [[1, 2, 2]])
    np.testing.assert_array_equal(tied.decode(point, "cosine"), [[1, 2, 3]])


def test_candidates_may_be_lists():
    embedding = fitted("spearman", 3)
    found = embedding.decode(embedding.encode([[3, 1, 2]]), "exact", Choice([[3, 2, 1], [1, 2, 3]]))
    np.testing.assert_array_equal(found, [[3, 2, 1]])
    assert isinstance(found, np.ndarray)


@all_distances
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0, 2, 1, 3], r"row 1 of Y, \(0, 2, 1, 3\), contains rank 0; .*add 1 to all"),
        ([1, 2, 2, 4], r"row 1 of Y, \(1, 2, 2, 4\), has tied ranks; .* ties=True"),
        ([1, 2, 4, 5], r"row 1 of Y, \(1, 2, 4, 5\), omits a rank; it must contain each of 1 to"),
        ([-1, 2, 3, 4], "row 1 of Y, .* omits a rank"),
        ([1, 2.5, 3, 4], "row 1 of Y, .* must contain integers: ranks from 1 to 4"),
        ([1, 2, 3, np.nan], "Y contains NaN or infinity in row 1"),
        ([1, 2, 3, "last"], "Y must contain rows of numbers; row 1 is"),
        ([1, 2, 3], "Y must contain rows of numbers; row 1 has length 3 and row 0 has length 4"),
    ],
)
def test_odd_rankings_are_refused(distance, row, message):
    labels = [[4, 3, 2, 1], row, [1, 2, 3, 4]]
    for use in (Rankings(distance).fit, fitted(distance, 4).encode):
        with pytest.raises(InvalidData, match=message):
            use(labels)
    embedding = fitted(distance, 4)
    with pytest.raises(InvalidData, match=message.replace("Y", "candidates")):
        embedding.decode(embedding.encode([[1, 2, 3, 4]]), "exact", Choice(labels))


@pytest.mark.parametrize("row", [[1, 3, 3, 4], [2, 2, 3, 4], [1, 1, 2, 4], [1, 1, 3, 5]])
def test_tied_ranks_with_gaps_are_refused(row):
    with pytest.raises(
        InvalidData,
        match=r"row 1 of Y, .*, is not a valid ranking with ties; number the ranks like",
    ):
        Rankings(ties=True).fit([[1, 2, 3, 4], row])


@all_distances
def test_rankings_of_another_shape_are_refused(distance):
    with pytest.raises(InvalidData, match="has 3 numbers; .* fitted with 4"):
        fitted(distance, 4).encode([[1, 2, 3]])
    with pytest.raises(InvalidData, match=r"row 0 is .*1 = best; .*\[\[list\(row\)\.index\(name"):
        Rankings(distance).fit([["tea", "milk"], ["milk", "tea"]])
    with pytest.raises(InvalidData, match="row 0 of Y has only one rank; a ranking requires"):
        Rankings(distance).fit([[1], [1]])
    with pytest.raises(
        InvalidData, match=r"each row of Y must contain the ranks of all items.*\(2,\)"
    ):
        Rankings(distance).fit([1, 2])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Rankings("kendall"), "distance must be 'kemeny' or 'spearman' or 'hamming'; got 'kendall"),
        (Rankings("hamming", ties=True), "ties=True requires distance='kemeny'; 'hamming' does"),
    ],
)
def test_odd_parameters_are_refused(space, message):
    with pytest.raises(InvalidParameter, match=message):
        space.fit([[1, 2]])


@pytest.mark.parametrize("kind", [str, np.str_])
def test_names_instead_of_ranks(kind):
    Y = [[kind(name) for name in row] for row in ("cab", "abc")]
    with pytest.raises(InvalidData, match=r"row 0 is \['c', 'a', 'b'\].* convert names") as caught:
        Rankings().fit(Y)
    ranks = eval(str(caught.value).partition("with ")[2].removesuffix("."), {"Y": Y})
    assert ranks == [[2, 3, 1], [1, 2, 3]]

"""Exact decoding of strings against all strings over small alphabets, and its limits."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost import OutputKernelForestRegressor
from hilboost.core.errors import DecodeWarning, InvalidParameter
from hilboost.core.output_space import Choice
from hilboost.outputs import Strings

WAYS = pytest.mark.parametrize("way", ["exact", "exact_cosine"])
N = st.sampled_from([1, 2, 3, (1, 2), (1, 3), (2, 3)])
WORDS = ["abcab", "", "bca", "cc", "abcabc", "b"]


def all_strings(labels, lengths):
    alphabet = sorted({token for label in labels for token in label})
    return ["".join(tokens) for m in lengths for tokens in product(alphabet, repeat=m)]


def costs(embedding, raw, way, strings):
    norms = embedding.norms(strings)
    products = raw @ embedding.encode(strings).T
    if way == "exact":
        return norms - 2 * products
    return -products / np.sqrt(np.where(norms > 0, norms, 1.0))


def points(embedding, seed):
    rng = np.random.default_rng(seed)
    r = len(embedding.vocabulary)
    mixed = rng.dirichlet(np.ones(len(embedding.training)), size=3)
    return np.concatenate(
        [
            rng.normal(size=(3, r)),
            -rng.uniform(size=(1, r)),
            np.zeros((1, r)),
            rng.integers(-1, 3, size=(2, r)),
            mixed @ embedding.encode(embedding.training),
        ]
    )


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.text("abc", max_size=5), max_size=4),
    n=N,
    normalize=st.booleans(),
    low=st.integers(0, 4),
    more=st.integers(0, 3),
    way=st.sampled_from(["exact", "exact_cosine"]),
    seed=st.integers(0, 99),
)
def test_the_best_of_all_strings_is_found(labels, n, normalize, low, more, way, seed):
    labels = [*labels, "abca"]
    embedding = Strings(n, normalize, (low, low + more)).fit(labels)
    raw = points(embedding, seed)
    strings = all_strings(labels, range(low, low + more + 1))
    cost = costs(embedding, raw, way, strings)
    found = [strings.index(string) for string in embedding.decode(raw, way)]
    reached = cost[np.arange(len(raw)), found]
    np.testing.assert_allclose(reached, cost.min(axis=1), rtol=1e-9, atol=1e-9)


@WAYS
@pytest.mark.parametrize("normalize", [False, True])
def test_the_order_of_training_rows_has_no_effect(way, normalize):
    labels = ["abab", "baba", "abba", "bbaa", "aabb", "b"]
    one = Strings(2, normalize).fit(labels)
    raw = points(one, 0)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        other = Strings(2, normalize).fit([labels[i] for i in order])
        assert other.decode(raw, way) == one.decode(raw, way)


@WAYS
@pytest.mark.parametrize("n", [2, 3, (1, 3)])
def test_long_strings_are_found_without_a_search(way, n):
    text = "the quick brown fox jumps over the lazy dog, and the quick dog sleeps"
    labels = [text[i : i + 40] for i in range(len(text) - 30)] + [text]
    embedding = Strings(n, False, (30, 80), max_nodes=1).fit(labels)
    point = embedding.encode([text])
    found = embedding.decode(point, way)
    np.testing.assert_array_equal(embedding.encode(found), point)
    np.testing.assert_array_equal(embedding.norms(found), embedding.norms([text]))


def test_the_eulerian_path_of_a_rounded_point_needs_no_training_string():
    embedding = Strings(2, normalize=False, string_lengths=(3, 60), max_nodes=1).fit(
        ["ab", "bc", "cd", "da", "ac"]
    )
    counts = embedding.encode(["abcdabcdacdabcdabcdacdabcd"])
    near = counts + np.random.default_rng(0).uniform(-0.3, 0.3, counts.shape)
    (found,) = embedding.decode(near, "exact")
    np.testing.assert_array_equal(embedding.encode([found]), counts)


def test_unseen_strings_and_unknown_n_grams_may_be_best():
    embedding = Strings(2, normalize=False, string_lengths=(2, 4)).fit(["ab", "cd", "ba"])
    raw = np.array([[3.0, 0.0, 3.0]])  # of ab, ba, cd
    assert list(embedding.vocabulary) == ["ab", "ba", "cd"]
    assert embedding.decode(raw, "exact") in (["abcd"], ["cdab"])
    assert embedding.decode(raw, "nearest") == ["ab"]


def test_ties_go_to_training_strings_in_order():
    for labels in (["ba", "ab", "bb"], ["bb", "ab", "ba"]):
        embedding = Strings(1, normalize=False).fit(labels)
        assert embedding.decode(np.array([[1.0, 1.0]]), "exact") == ["ab"]


def test_strings_without_n_grams():
    embedding = Strings(3, string_lengths=(1, 5)).fit(["abcd", "bcda"])
    away = -np.ones((1, len(embedding.vocabulary)))
    assert embedding.decode(away, "exact") == ["a"]
    assert len(embedding.decode(-away, "exact")[0]) >= 3
    embedding = Strings(3, string_lengths=(0, 2)).fit(["abcd", "b"])
    assert embedding.decode(np.ones((1, 2)), "exact") == ["b"]
    assert Strings(3, string_lengths=(0, 2)).fit(["abcd"]).decode(np.ones((1, 2)), "exact") == [""]


def test_unknown_characters_do_not_matter():
    """Candidates may have them; searched strings consist of characters of the training strings."""
    embedding = Strings(2, normalize=False).fit(["abab", "bbb"])
    raw = embedding.encode(["ab?ab"])
    assert set(embedding.decode(raw, "exact")[0]) <= set("ab")
    assert embedding.decode(raw, "exact", Choice(["xy", "ab?ab"])) == ["ab?ab"]


def test_candidates_are_chosen_by_angle_or_distance():
    embedding = Strings(1, normalize=False).fit(["ab", "aaab"])
    raw = np.array([[1.4, 0.5]])
    among = Choice(["a", "aaab"])
    assert embedding.decode(raw, "exact", among) == ["a"]
    assert embedding.decode(raw, "exact_cosine", among) == ["aaab"]


@WAYS
def test_a_search_that_stops_says_so(way):
    rng = np.random.default_rng(0)
    labels = ["".join(rng.choice(list("abcd"), 12)) for _ in range(30)]
    raw = rng.normal(size=(3, len(Strings(2).fit(labels).vocabulary)))
    whole = Strings(2, max_nodes=10**7).fit(labels)
    best = costs(whole, raw, way, whole.decode(raw, way)).diagonal()
    short = Strings(2, max_nodes=1).fit(labels)
    with pytest.warns(DecodeWarning, match=r"stopped at max_nodes=1 prefixes for \d of 3 points"):
        found = short.decode(raw, way)
    reached = costs(short, raw, way, found).diagonal()
    trained = costs(short, raw, way, labels).min(axis=1)
    assert (reached >= best - 1e-9).all()
    assert (reached <= trained + 1e-9).all()


def test_a_search_without_memory_returns_training_strings():
    labels = [tuple(range(400)), (7, 8, 9)]
    embedding = Strings(2, string_lengths=(3, 100_000)).fit(labels)
    with pytest.warns(DecodeWarning, match="stopped at its limit of memory for 2 of 2 points"):
        assert embedding.decode(embedding.encode(labels), "exact") == labels


@pytest.mark.parametrize("lengths", [(3, 2), (-1, 2), (1, 2, 3), "3", 1.5, (0, True)])
def test_odd_lengths_of_strings_are_refused(lengths):
    message = "string_lengths must be a nonnegative integer or an ascending pair"
    with pytest.raises(InvalidParameter, match=message):
        Strings(2, string_lengths=lengths).fit(["abc"])


def test_strings_are_no_longer_than_the_limit():
    with pytest.raises(InvalidParameter, match="string_lengths must not exceed 100000"):
        Strings(2, string_lengths=(3, 10**6)).fit(["abc"])


@pytest.mark.parametrize("max_nodes", [0, -1, 2.5, None, True, "5"])
def test_odd_limits_are_refused(max_nodes):
    with pytest.raises(InvalidParameter, match="max_nodes must be a positive integer"):
        Strings(2, max_nodes=max_nodes).fit(["abc"])


def test_a_model_predicts_strings_that_it_has_not_seen():
    X = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)
    labels = ["^" + "a" * int(i) + "b" * int(j) + "$" for i, j in X]
    space = Strings((1, 2), normalize=False)
    train = np.arange(16) != 5
    model = OutputKernelForestRegressor(space, n_estimators=1, decode="exact", random_state=0)
    model.fit(X[train], [label for label, kept in zip(labels, train, strict=True) if kept])
    point = model.output_.encode([labels[5]])
    assert model.output_.decode(point, "exact") == [labels[5]]
    assert model.predict(X[train]) == [y for y, kept in zip(labels, train, strict=True) if kept]

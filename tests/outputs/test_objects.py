"""Strings and hierarchies, and spaces by name."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.core.output_space import Choice
from hilboost.outputs import OUTPUT_NAMES, Hierarchy, Rankings, Strings, as_output

PARENTS = {"cat": "pet", "dog": "pet", "pet": "animal", "elm": "tree", "oak": "tree", "ash": "elm"}
NODES = ["animal", "tree", "pet", "elm", "oak", "cat", "dog", "ash"]


# Strings


def test_n_grams_outside_the_vocabulary_count_in_norms():
    embedding = Strings(2, normalize=False).fit(["abab", "ba"])
    assert dict(embedding.vocabulary) == {"ab": 0, "ba": 1}
    np.testing.assert_array_equal(embedding.encode(["abab", "abxx"]), [[2, 1], [1, 0]])
    np.testing.assert_array_equal(embedding.norms(["abab", "abxx", "", "xyz"]), [5, 3, 0, 2])
    scaled = Strings(2).fit(["abab", "ba"])
    np.testing.assert_allclose(scaled.encode(["abxx", "xyz"]), [[1 / np.sqrt(3), 0], [0, 0]])
    np.testing.assert_array_equal(scaled.norms(["abxx", "xyz", "a"]), [1, 1, 0])


def test_a_candidate_with_foreign_n_grams_is_farther():
    embedding = Strings(1, normalize=False).fit(["ab", "a"])
    raw = embedding.encode(["ab"])
    assert embedding.decode(raw, "nearest", Choice(["abxyz", "ab"])) == ["ab"]
    assert embedding.decode(raw, "cosine", Choice(["abxyz", "ab"])) == ["ab"]


def test_empty_strings_are_legal():
    embedding = Strings().fit(["", "abcd", "ab"])
    np.testing.assert_array_equal(embedding.encode(["", "ab"]), np.zeros((2, 2)))
    raw = np.array([[-1.0, -1.0], [1.0, 1.0]])
    for way in embedding.ways:
        assert embedding.decode(raw, way) == ["", "abcd"]


@pytest.mark.parametrize("labels", [np.array(["abc", "bcd"]), pd.Series(["abc", "bcd"])])
def test_strings_may_be_arrays(labels):
    embedding = Strings().fit(labels)
    assert embedding.decode(embedding.encode(labels), "nearest") == ["abc", "bcd"]
    assert embedding.decode(embedding.encode(labels), "nearest", Choice(labels)) == ["abc", "bcd"]


@given(strings=st.lists(st.text("ab ", max_size=6), min_size=1, max_size=6))
def test_training_strings_are_as_near_as_can_be(strings):
    embedding = Strings((1, 6), normalize=False).fit([*strings, "ab"])
    found = embedding.decode(embedding.encode(strings), "nearest")
    assert found == strings  # the longest n-grams are the strings themselves


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["abc", 3], r"row 1 of Y is 3 \(int\); each output must be a string"),
        (["abc", None], r"row 1 of Y is None \(NoneType\)"),
        (["abc", np.nan], r"row 1 of Y is nan \(float\)"),
        (["abc", ["abc"]], r"row 1 of Y is \['abc'\] \(list\)"),
        ("abc", "Y must be a list of strings, one per row; got 'abc'"),
        (
            ["", "ab"],
            "no string of Y, rows 0 to 1, contains n-grams of 3 characters; use a smaller n",
        ),
        ([], "Y is empty"),
        (pd.DataFrame({"text": ["abc"]}), "Y must be a list of strings, one per row; got a table"),
        (np.array("abc"), "Y must be a list of strings, one per row; got array"),
    ],
)
def test_odd_strings_are_refused(labels, message):
    refused(InvalidData, message, Strings().fit, labels)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, (3, 2), (1, 2, 3), (0, 2), (1, True), "3", None])
def test_odd_lengths_are_refused(n):
    with pytest.raises(InvalidParameter, match="n must be a positive integer or an ascending pair"):
        Strings(n).fit(["abc"])


# Hierarchies


def test_squared_distances_are_lengths_of_paths():
    embedding = Hierarchy(PARENTS).fit(["cat"])
    assert sorted(embedding.nodes) == sorted(NODES)

    def length(a, b):
        codes = embedding.encode([a, b])
        return ((codes[0] - codes[1]) ** 2).sum()

    assert [length("cat", b) for b in ("cat", "pet", "dog", "animal", "ash")] == [0, 1, 2, 2, 6]


@pytest.mark.parametrize("weights", [1.0, 0.5, 2, {node: i + 1 for i, node in enumerate(NODES)}])
def test_exact_decoding_finds_the_nearest_of_all_nodes(weights):
    embedding = Hierarchy(PARENTS, weights).fit(["cat", "oak"])
    raw = np.random.default_rng(0).normal(size=(200, len(NODES)))
    cost = embedding.norms(embedding.nodes) - 2 * raw @ embedding.encode(embedding.nodes).T
    assert embedding.decode(raw, "exact") == [embedding.nodes[j] for j in cost.argmin(axis=1)]
    assert set(embedding.decode(raw, "nearest")) == {"cat", "oak"}


def test_the_higher_one_of_equals_is_taken():
    embedding = Hierarchy({"leaf": "inner", "inner": "root"}).fit(["leaf"])
    assert embedding.decode(np.array([[1.0, 0.5, 0.5]]), "exact") == ["root"]


def test_roots_may_be_named_and_nodes_may_be_anything():
    parents = {(1, 2): 1, 1: None, "x": None}
    embedding = Hierarchy(parents).fit([1, (1, 2), "x"])
    labels = ["x", (1, 2), 1]
    assert embedding.decode(embedding.encode(labels), "exact") == labels
    assert embedding.decode(embedding.encode(labels), "exact", Choice(["x", 1])) == ["x", 1, 1]


def test_numbers_of_arrays_are_nodes():
    labels = np.array([3, 4, 3])
    embedding = Hierarchy({3: 1, 4: 1}).fit(labels)
    assert embedding.decode(embedding.encode(pd.Series(labels)), "exact") == [3, 4, 3]


def test_deep_chains_are_no_trouble():
    parents = {i + 1: i for i in range(1500)}
    embedding = Hierarchy(parents).fit([1500])
    assert embedding.decode(embedding.encode([1500, 7, 0]), "exact") == [1500, 7, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["cat", "dgo"],
            "row 1 of Y is 'dgo', which is not one of the 8 nodes .* Did you mean dog",
        ),
        (["cat", None], "row 1 of Y is None, which is not one of the"),
        (["cat", np.nan], "row 1 of Y is nan, which is not one of the"),
        (["cat", ["dog"]], r"row 1 of Y is \['dog'\], which is not one of the"),
        (["cat", ("dog", ["x"])], "row 1 of Y is .*, which is not one of the"),
        ("cat", "Y must be a list of nodes, one per row; got 'cat'"),
        ({"cat", "dog"}, "Y must be a list of nodes, one per row"),
        ([], "Y is empty"),
    ],
)
def test_labels_that_are_no_nodes_are_refused(labels, message):
    for use in (Hierarchy(PARENTS).fit, Hierarchy(PARENTS).fit(["cat"]).encode):
        refused(InvalidData, message, use, labels)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "b", "b": "c", "c": "a"}, "parents contains a cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ({"x": "a", "a": "a"}, "parents contains a cycle: 'a' -> 'a'"),
        ({}, "parents must map each node to its parent"),
        (["a"], "parents must map each node to its parent"),
        ({None: "a"}, "parents has the key None"),
        ({"a": ["r"]}, r"the parent of 'a' is \['r'\], which is not hashable; give each node one"),
    ],
)
def test_parents_that_are_no_forest_are_refused(parents, message):
    refused(InvalidParameter, message, Hierarchy(parents).fit, ["a"])


@pytest.mark.parametrize(
    "weights",
    [0, -1.0, np.nan, np.inf, "1", None, True, dict.fromkeys(NODES, 0), dict.fromkeys(NODES, "a")],
)
def test_odd_edge_weights_are_refused(weights):
    with pytest.raises(InvalidParameter, match="weights must be a positive number or a mapping"):
        Hierarchy(PARENTS, weights).fit(["cat"])


def test_edge_weights_are_for_all_nodes():
    with pytest.raises(InvalidParameter, match="weights has no value for node 'animal'"):
        Hierarchy(PARENTS, {"cat": 1}).fit(["cat"])


# Names


@pytest.mark.parametrize("name", sorted(OUTPUT_NAMES))
def test_names_stand_for_spaces(name):
    assert type(as_output(name)) is type(OUTPUT_NAMES[name]())


def test_near_names_are_suggested():
    refused(InvalidParameter, "'image' is not known. Did you mean 'linear'", as_output, "image")
    with pytest.raises(InvalidData, match='row 0 is .*; set output="label_set"'):
        as_output("linear").fit([{"a"}, {"b"}])
    with pytest.raises(InvalidParameter, match="output='rankings' is not known. Did you mean 'ran"):
        as_output("rankings")
    refused(InvalidType, r"output=Rankings is a class; write Rankings\(\)", as_output, Rankings)

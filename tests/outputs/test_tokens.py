"""Sequences of tokens in the space of strings."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hilboost
from hilboost import OutputKernelForestRegressor
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.output_space import Choice
from hilboost.outputs import Strings
from hilboost.outputs.label_checks import in_order

TOKENS = st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=5)
X = np.random.default_rng(0).normal(size=(30, 2))


@settings(max_examples=40, deadline=None)
@given(labels=TOKENS, n=st.sampled_from([1, 2, (1, 3)]), normalize=st.booleans())
def test_characters_as_tokens_are_strings(labels, n, normalize):
    labels = [*labels, list("abca")]
    tokens = Strings(n, normalize).fit(labels)
    strings = Strings(n, normalize).fit(["".join(label) for label in labels])
    points = strings.encode(["".join(label) for label in labels])
    np.testing.assert_array_equal(tokens.encode(labels), points)
    raw = points + np.random.default_rng(0).normal(size=points.shape)
    for way in tokens.ways:
        found = ["".join(label) for label in tokens.decode(raw, way)]
        assert found == strings.decode(raw, way)


def test_words_and_numbers_are_tokens():
    labels = [["the", "cat", "sat"], ("the", "dog", "sat"), np.array(["a", "cat"])]
    embedding = Strings(1, normalize=False).fit(labels)
    assert list(embedding.vocabulary) == [("a",), ("cat",), ("dog",), ("sat",), ("the",)]
    assert embedding.decode(embedding.encode(labels), "nearest") == [tuple(y) for y in labels]
    numbers = Strings(1).fit(np.array([[10, 9], [9, 2]]))
    assert list(numbers.vocabulary) == [(2,), (9,), (10,)]
    assert numbers.decode(numbers.encode([[2, 9]]), "nearest") == [(9, 2)]
    assert type(numbers.training[0][0]) is int


def test_tokens_of_several_types_are_in_order_of_type_and_text():
    labels = [[1, "b", None], [("x", 2), "a"]]
    one = Strings(1).fit(labels)
    other = Strings(1).fit(labels[::-1])
    assert list(one.vocabulary) == list(other.vocabulary)
    assert in_order([3, "a", (1,), 10]) == [10, 3, "a", (1,)]
    assert in_order([3, 10, 2.5]) == [2.5, 3, 10]


def test_a_sentence_that_was_never_seen_is_decoded():
    labels = [["red", "cat"], ["blue", "cat"], ["red", "dog"]]
    embedding = Strings((1, 2), normalize=False).fit(labels)
    (blue, dog) = embedding.encode([["blue"], ["dog"]])
    (found,) = embedding.decode((blue + dog)[None], "exact")
    assert sorted(found) == ["blue", "dog"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["a"], "b"], r"row 1 of Y is 'b' \(str\); each output must be a list or tuple of tokens"),
        (["b", ["a"]], r"row 1 of Y is \['a'\] \(list\); each output must be a string"),
        ([["a"], {"b"}], r"row 1 of Y is \{'b'\} \(set\); each output must be a list or tuple"),
        ([["a"], [["b"]]], r"row 1 of Y contains the token \['b'\] \(list\); tokens must be"),
        ([["a"], [np.nan]], r"row 1 of Y contains the token nan \(float\); tokens must be"),
        ([["a"], [pd.NA]], r"row 1 of Y contains the token <NA>"),
        ([["a", "b"]], "no string of Y, rows 0 to 0, contains n-grams of 3 tokens; use a smaller"),
    ],
)
def test_odd_tokens_are_refused(labels, message):
    with pytest.raises(InvalidData, match=message):
        Strings().fit(labels)


def test_strings_and_sequences_do_not_mix():
    of_tokens, of_characters = Strings(1).fit([["a", "b"]]), Strings(1).fit(["ab"])
    with pytest.raises(InvalidData, match="row 0 of Y is 'ab'"):
        of_tokens.encode(["ab"])
    with pytest.raises(InvalidData, match=r"row 0 of Y is \['a'\]"):
        of_characters.encode([["a"]])
    with pytest.raises(InvalidData, match="row 1 of candidates is 'ab'"):
        of_tokens.decode(np.zeros((1, 2)), "exact", Choice([["a"], "ab"]))


def test_models_of_tokens_are_saved(tmp_path):
    words = np.where(X > 0, "up", "down").tolist()
    labels = [[*row, (i % 2, None), 1.5] for i, row in enumerate(words)]
    space = Strings((1, 2), normalize=False, string_lengths=(2, 5), max_nodes=500)
    model = OutputKernelForestRegressor(space, n_estimators=3, random_state=0).fit(X, labels)
    path = tmp_path / "model"
    model.save(path, training_data=True)
    loaded = hilboost.load(path)
    assert loaded.output == space
    for name in ("training", "vocabulary", "lengths", "string_lengths", "max_nodes"):
        assert getattr(loaded.output_, name) == getattr(model.output_, name)
    for way in model.output_.ways:
        assert loaded.set_params(decode=way).predict(X) == model.set_params(decode=way).predict(X)


def test_tokens_that_files_do_not_hold_are_refused(tmp_path):
    labels = [[object, int], [int, str]] * 15
    model = OutputKernelForestRegressor(Strings(1), n_estimators=2).fit(X, labels)
    assert len(model.predict(X)) == 30
    with pytest.raises(IncompatibleParts, match="a label is of type type, which model files do"):
        model.save(tmp_path / "model")


def test_reports_show_sequences_as_text():
    labels = [[int(a > 0), int(b > 0)] for a, b in X]
    model = OutputKernelForestRegressor(Strings(1), n_estimators=3, random_state=0).fit(X, labels)
    facts = model.report_facts(X, labels)
    scores = {one["name"]: one["value"] for one in facts["structured"]["scores"]}
    right = [list(found) == label for found, label in zip(model.predict(X), labels, strict=True)]
    assert scores["exactly right"] == pytest.approx(np.mean(right))
    gallery = facts["structured"]["gallery"]
    assert gallery["kind"] == "text"
    assert gallery["parts"][0]["items"][0]["true"] in ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)")

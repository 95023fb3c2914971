"""Label sets: the kinds of input, and the ways to decode against brute force."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice
from hilboost.outputs import LabelSets

TABLE = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]])
SETS = [{"a"}, {"b", "c"}, set(), {"a", "b"}]
RAW = np.array([[0.9, 0.2, 0.1], [0.4, 0.6, 0.45], [0.1, 0.1, 0.2], [1.2, 0.8, -0.3]])
LISTS = [["a"], ("b", "c"), [], ["b", "a"]]


def scores(n_labels):
    return arrays(np.float64, (3, n_labels), elements=st.floats(-0.5, 1.5, width=16))


def all_sets(n_labels):
    return np.array(list(product([0, 1], repeat=n_labels)))


def expected_f1(p, chosen):
    """The plug-in value; of the empty set the probability that the truth is empty, too."""
    if not chosen.any():
        return np.prod(1 - p)
    return 2 * p[chosen == 1].sum() / (chosen.sum() + p.sum())


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (TABLE, np.int64),
        (TABLE.astype(bool), bool),
        (TABLE.astype(np.float32), np.float32),
        (TABLE.astype(np.uint8), np.uint8),
        (TABLE.tolist(), np.int64),
        (scipy.sparse.csr_array(TABLE), np.int64),
        (scipy.sparse.csc_matrix(TABLE), np.int64),
        (pd.DataFrame(TABLE, columns=["a", "b", "c"]), np.int64),
        (pd.DataFrame(TABLE.astype(object)), np.int64),
    ],
)
def test_tables_come_back_as_arrays(labels, dtype):
    embedding = LabelSets().fit(labels)
    np.testing.assert_array_equal(embedding.encode(labels), TABLE)
    for way in embedding.ways:
        found = embedding.decode(RAW, way)
        assert found.dtype == dtype
        assert found.shape == TABLE.shape
    np.testing.assert_array_equal(embedding.decode(1.0 * TABLE, "nearest"), TABLE)
    again = embedding.decode(1.0 * TABLE, "nearest", Choice(labels))
    np.testing.assert_array_equal(again, TABLE)


@pytest.mark.parametrize(
    "labels",
    [SETS, LISTS, [frozenset(s) for s in SETS], pd.Series(SETS), np.array(SETS), tuple(SETS)],
)
def test_sets_come_back_as_sets(labels):
    embedding = LabelSets().fit(labels)
    assert embedding.names == ("a", "b", "c")
    np.testing.assert_array_equal(embedding.encode(labels), TABLE)
    for way in embedding.ways:
        assert all(type(found) is set for found in embedding.decode(RAW, way))
    assert embedding.decode(1.0 * TABLE, "nearest", Choice(labels)) == SETS


@pytest.mark.parametrize("way", LabelSets().fit(SETS).ways)
def test_sets_and_tables_are_decoded_alike(way):
    as_sets, as_table = LabelSets().fit(SETS), LabelSets().fit(TABLE)
    found = [{"abc"[j] for j in np.flatnonzero(row)} for row in as_table.decode(RAW, way)]
    assert as_sets.decode(RAW, way) == found


def test_labels_of_several_types_have_an_order():
    for labels in ([{2, "b"}, {(1, 2), "a"}], [{(1, 2), "a"}, {"b", 2}]):
        assert LabelSets().fit(labels).names == (2, "a", "b", (1, 2))


def test_lists_of_zeros_and_ones_are_label_lists_where_only_they_can_be():
    embedding = LabelSets().fit([[0], [1], []])
    assert embedding.names == (0, 1)
    assert embedding.decode(embedding.encode([[1, 0]]), "threshold") == [{0, 1}]
    assert LabelSets().fit([[0, 1], [1, 0]]).dtype == np.int64


@pytest.mark.parametrize("weighting", ["uniform", (1.0, 2.0, 0.5, 3.0)])
@given(raw=scores(4))
def test_the_threshold_is_the_nearest_of_all_sets(weighting, raw):
    embedding = LabelSets(weighting).fit(np.ones((1, 4)))
    codes = embedding.encode(all_sets(4))
    raw = raw * embedding.scale
    found = embedding.encode(embedding.decode(raw, "threshold"))
    distance = ((raw[:, None] - codes) ** 2).sum(axis=2)
    np.testing.assert_allclose(((found - raw) ** 2).sum(axis=1), distance.min(axis=1), atol=1e-12)


@given(raw=scores(5))
def test_the_f1_cut_is_the_best_of_all_sets(raw):
    found = LabelSets().fit(np.ones((1, 5))).decode(raw, "f1")
    for row, chosen in zip(raw.clip(0, 1), found, strict=True):
        best = max(expected_f1(row, candidate) for candidate in all_sets(5))
        assert expected_f1(row, chosen) == pytest.approx(best, abs=1e-12)


def test_the_f1_cut_may_be_empty():
    embedding = LabelSets().fit(SETS)
    raw = np.array([[-1.0, 0, 0], [0.05, 0.04, 0.03], [0.4, 0.4, 0.4]])
    assert embedding.decode(raw, "f1") == [set(), set(), {"a", "b", "c"}]


def test_scores_are_free_of_the_weights():
    plain, weighted = LabelSets().fit(TABLE), LabelSets("inverse_frequency").fit(TABLE)
    np.testing.assert_allclose(weighted.scale**2, np.array([0.5, 0.5, 1]) * 3 / 2)
    for way in ("threshold", "f1", "top"):
        np.testing.assert_array_equal(
            plain.decode(RAW, way), weighted.decode(RAW * weighted.scale, way)
        )


def test_top_takes_the_mean_size():
    embedding = LabelSets().fit([{1, 2}, {2, 3}, {1, 3, 4}])
    assert embedding.decode(np.array([[0.1, 0.3, 0.2, 0.3]]), "top") == [{2, 4}]
    assert LabelSets().fit([{1}, set(), set(), set()]).decode(np.zeros((1, 1)), "top") == [{1}]


def test_the_empty_set_has_the_cosine_zero():
    embedding = LabelSets().fit(SETS)
    raw = np.array([[-1.0, -0.5, -0.2], [0.0, 0.1, 0.0]])
    assert embedding.decode(raw, "cosine") == [set(), {"b", "c"}]


def test_training_sets_are_kept_once():
    assert len(LabelSets().fit(SETS * 5).training) == 4


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([{"a"}, "ab"], "row 1 of Y is 'ab', not a set; each output must be a set or a list"),
        (["a,b", "a"], r"such as {'a', 'b'}; split text with Y\.str\.split\(','\)\.$"),
        ([{"a"}, 3], "row 1 of Y is 3, not a set"),
        ([{"a"}, {"b": 1}], "row 1 of Y is {'b': 1}, not a set"),
        ([{"a"}, None], "row 1 of Y is None, not a set"),
        ([["a"], [["b"]]], r"row 1 of Y contains a label that is not hashable: \[\['b'\]\]"),
        ([["a"], ["b", "a", "b"]], "row 1 of Y contains a label twice"),
        ([[0, 1, 2], [0, 0, 1]], "row 1 of Y contains a label twice: .* an array if the rows are"),
        ([{"a"}, {float("nan")}], "row 1 of Y contains a missing label"),
        ([{"a"}, {"b", None}], "row 1 of Y contains a missing label"),
        ([{"a"}, {"b", pd.NA}], "row 1 of Y contains a missing label .*NA or NaT.*<NA>"),
        ([{"a"}, {"b", pd.NaT}], "row 1 of Y contains a missing label .*: .*NaT"),
        ([set(), set()], "all label sets, rows 0 to 1, are empty"),
        (np.zeros((3, 2)), "all label sets, rows 0 to 2, are empty"),
        (np.array([[0, 1], [2, 1]]), "Y contains 2 in row 1; indicators must be 0 or 1"),
        (np.array([[0, 1], [0.5, 1]]), "Y contains 0.5 in row 1"),
        (np.array([[0, 1], [np.nan, 1]]), "NaN or infinity in row 1"),
        (np.array([["a", "b"], ["b", "c"]]), "must contain rows of numbers; row 0 is"),
        (np.array([0, 1, 1]), "row 0 of Y is 0, not a set"),
        (np.ones((2, 2, 2)), r"each row of Y must contain indicators"),
        (np.ones((2, 0)), r"got shape \(2, 0\)"),
        ({"a", "b"}, "Y must be a list of label sets, one per row"),
        ("abc", "Y must be a list of label sets, one per row; got 'abc'"),
        (3, "Y must be a list of label sets, one per row; got 3"),
    ],
)
def test_odd_label_sets_are_refused(labels, message):
    with pytest.raises(InvalidData, match=message):
        LabelSets().fit(labels)


@pytest.mark.parametrize(
    ("training", "labels", "message"),
    [
        (SETS, [{"a"}, {"a", "d"}], "row 1 of Y contains the label 'd', which does not oc"),
        (
            TABLE,
            [{0}, {3}],
            "row 1 of Y contains the label 3, which does not occur in the training labels: 0, ",
        ),
        (TABLE, [[0, 1, 1], {1}], "row 1 is {1}"),
        (TABLE, np.ones((2, 4)), "row 0 of Y has 4 numbers; .* fitted with 3"),
        (SETS, np.ones((2, 4)), "row 0 of Y has 4 numbers; .* fitted with 3"),
    ],
)
def test_label_sets_unlike_the_training_sets_are_refused(training, labels, message):
    embedding = LabelSets().fit(training)
    with pytest.raises(InvalidData, match=message):
        embedding.encode(labels)
    with pytest.raises(InvalidData, match=message.replace("Y", "candidates")):
        embedding.decode(RAW[:, : len(embedding.names)], "nearest", Choice(labels))


def test_data_frames_with_other_columns_are_refused():
    embedding = LabelSets().fit(pd.DataFrame(TABLE, columns=["a", "b", "c"]))
    with pytest.raises(
        InvalidData, match="differ from those in fit: 'd' is new; pass the columns 'a', 'b', 'c'"
    ):
        embedding.encode(pd.DataFrame(TABLE, columns=["a", "b", "d"]))
    with pytest.raises(InvalidData, match="differ from those in fit: .* order"):
        embedding.encode(pd.DataFrame(TABLE, columns=["b", "a", "c"]))
    with pytest.raises(InvalidData, match="the columns of candidates differ .* order"):
        embedding.decode(RAW, "nearest", Choice(pd.DataFrame(TABLE, columns=["b", "a", "c"])))


@pytest.mark.parametrize(
    ("weighting", "message"),
    [
        ("unifrom", "weighting='unifrom' is not known. Did you mean 'uniform'"),
        ((1, 2), "one positive, finite number for each of the 3 labels"),
        ((1, 2, 0), "one positive, finite number"),
        ((1, 2, np.nan), "one positive, finite number"),
        (("a", "b", "c"), "one positive, finite number"),
        ({"a": 1, "b": 2}, "weighting has no value for label 'c'"),
        ({"a": 1, "b": 2, "c": 10**400}, "weighting must contain one positive, finite number"),
    ],
)
def test_odd_weights_are_refused(weighting, message):
    with pytest.raises(InvalidParameter, match=message):
        LabelSets(weighting).fit(SETS)

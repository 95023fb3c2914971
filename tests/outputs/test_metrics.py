"""Metrics of output spaces: their values, and the decoding methods that serve them best."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import f1_score
from tests.cases import OUTPUTS, ids

from hilboost.outputs import (
    Compositions,
    Distributions,
    Hierarchy,
    LabelSets,
    PositiveMatrices,
    Rankings,
    Strings,
    Vectors,
)
from hilboost.testing.contract import ensure_same_labels

TREE = {"dog": "animal", "cat": "animal", "oak": "plant", "animal": None, "plant": None}
RANKINGS = np.array(list(permutations(range(1, 5))))
SETS = np.array(list(product([0, 1], repeat=4)))


def agreement(embedding, name, labels, predicted):
    return embedding.metrics()[name].agreement(labels, predicted)


@pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
def test_every_metric_is_best_for_equal_labels(case):
    rng = np.random.default_rng(0)
    labels, others = case.draw(rng, 12), case.draw(rng, 12)
    embedding = case.make().fit(labels)
    found = embedding.labels_of(embedding.encode(labels))
    if found is not None:
        ensure_same_labels(found, case.settled(labels), "Points must give the labels back.")
    for metric in embedding.metrics().values():
        assert metric.way in embedding.ways
        same = metric.agreement(labels, labels)
        assert same.shape == (12,)
        assert same.dtype == np.float64
        np.testing.assert_allclose(same, same.max(), atol=1e-12)
        assert (metric.agreement(labels, others) <= same + 1e-12).all()


@given(data=st.data())
def test_values_of_sets(data):
    true, predicted = (np.array(data.draw(st.sampled_from(SETS.tolist())))[None] for _ in range(2))
    embedding = LabelSets().fit(np.ones((1, 4)))
    expected = f1_score(true, predicted, average="samples", zero_division=1.0)
    assert agreement(embedding, "f1", true, predicted) == pytest.approx(expected)
    equal = true == predicted
    assert agreement(embedding, "hamming", true, predicted) == equal.mean()
    assert agreement(embedding, "subset_accuracy", true, predicted) == equal.all()


@given(data=st.data())
def test_values_of_rankings(data):
    ranks = st.lists(st.integers(1, 4), min_size=4, max_size=4)
    tied = [
        [1 + sum(other < rank for other in row) for rank in row]
        for row in (data.draw(ranks), data.draw(ranks))
    ]
    true, predicted = np.array(tied)
    embedding = Rankings(ties=True).fit(RANKINGS)
    if len(set(true)) > 1 and len(set(predicted)) > 1:
        for name, of_scipy in (("kendall", kendalltau), ("spearman", spearmanr)):
            expected = of_scipy(true, predicted).statistic
            found = agreement(embedding, name, true[None], predicted[None])
            assert found == pytest.approx(expected, abs=1e-12)
    else:
        both = len(set(true)) == len(set(predicted)) == 1
        assert agreement(embedding, "kendall", true[None], predicted[None]) == both
    found = agreement(embedding, "hamming", true[None], predicted[None])
    assert found == np.mean(true == predicted)


def test_values_of_other_spaces():
    words = Strings(1).fit(["kitten", "sitting"])
    assert agreement(words, "edit", ["kitten", "", "ab"], ["sitting", "abc", "ab"]).tolist() == [
        -3,
        -3,
        0,
    ]
    assert agreement(words, "accuracy", ["a", "b"], ["a", "c"]).tolist() == [1, 0]
    nodes = Hierarchy(TREE).fit(["dog"])
    found = agreement(nodes, "path", ["dog", "dog", "oak"], ["cat", "animal", "dog"])
    np.testing.assert_allclose(found, [-2, -1, -4])
    assert agreement(nodes, "accuracy", ["dog", "dog"], ["cat", "dog"]).tolist() == [0, 1]
    samples = Distributions(4).fit([[0.0, 1.0]])
    found = agreement(samples, "wasserstein", [[0.0, 1.0]], [[3.0, 4.0]])
    np.testing.assert_allclose(found, -3)
    shares = Compositions().fit([[0.5, 0.5]])
    np.testing.assert_allclose(agreement(shares, "hellinger", [[1.0, 0.0]], [[0.0, 1.0]]), -1)
    matrices = PositiveMatrices().fit(np.eye(2)[None])
    found = agreement(matrices, "log_euclidean", np.eye(2)[None], np.exp(2) * np.eye(2)[None])
    np.testing.assert_allclose(found, -np.sqrt(8))
    rows = Vectors().fit([[0.0, 0.0]])
    assert agreement(rows, "mean_squared_error", [[0.0, 0.0]], [[3.0, 4.0]]) == -12.5


def best(embedding, name, labels, probability):
    """The largest expected agreement of one label with a random one, over all labels."""
    values = [
        probability @ agreement(embedding, name, labels, [label] * len(labels)) for label in labels
    ]
    return max(values)


def expected(embedding, name, labels, probability):
    """The expected agreement of the label decoded from the expected point."""
    point = (probability @ embedding.encode(labels))[None]
    metric = embedding.metrics()[name]
    found = embedding.decode(point, metric.way)
    return probability @ metric.agreement(labels, [found[0]] * len(labels))


EXACT = [
    (Rankings("kemeny"), "kendall", RANKINGS),
    (Rankings("kemeny"), "spearman", RANKINGS),
    (Rankings("spearman"), "spearman", RANKINGS),
    (Rankings("hamming"), "spearman", RANKINGS),
    (Rankings("hamming"), "hamming", RANKINGS),
    (LabelSets(), "hamming", SETS),
    (Hierarchy(TREE), "path", list(TREE)),
    (Hierarchy(TREE, weights=0.5), "accuracy", list(TREE)),
]


@pytest.mark.parametrize(
    ("space", "name", "labels"), EXACT, ids=[f"{space}-{name}" for space, name, _ in EXACT]
)
def test_the_decision_has_the_largest_expected_agreement(space, name, labels):
    embedding = space.fit(labels)
    for seed in range(8):
        probability = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.1))
        found = expected(embedding, name, labels, probability)
        assert found == pytest.approx(best(embedding, name, labels, probability), abs=1e-9)


def test_the_f1_decision_is_near_the_largest_expected_f1_of_independent_labels():
    embedding = LabelSets().fit(SETS)
    for seed in range(20):
        p = np.random.default_rng(seed).uniform(size=4)
        probability = np.prod(np.where(SETS == 1, p, 1 - p), axis=1)
        found = expected(embedding, "f1", SETS, probability)
        largest = best(embedding, "f1", SETS, probability)
        assert largest - 0.06 <= found <= largest + 1e-12


def test_borda_is_the_exact_ranking_of_spearman():
    raw = np.random.default_rng(0).normal(size=(30, 5))
    embedding = Rankings("spearman").fit(np.arange(1, 6)[None])
    np.testing.assert_array_equal(embedding.decode(raw, "borda"), embedding.decode(raw, "exact"))

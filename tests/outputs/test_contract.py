"""What every output space promises."""

import pickle

import numpy as np
import pytest
from tests.cases import OUTPUTS, ids
from tests.outputs.pairs import gram

import hilboost.outputs
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice, OutputSpace
from hilboost.outputs import Candidates, PrecomputedOutput

N = 12
all_outputs = pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
EXACT = [case for case in OUTPUTS if case.exact]


def draw(case, n=N, seed=0):
    return case.draw(np.random.default_rng([seed, len(case.id)]), n)


def pick(labels, index):
    return labels[index] if isinstance(labels, np.ndarray) else [labels[i] for i in index]


def assert_same(found, expected):
    assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
    if isinstance(found, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    else:
        assert found == expected


def noisy(case, embedding, labels):
    codes = embedding.encode(labels)
    return codes + np.random.default_rng(1).normal(size=codes.shape) / np.sqrt(codes.shape[1])


def test_every_public_space_has_a_row():
    public = {
        value
        for name in hilboost.outputs.__all__
        if isinstance(value := getattr(hilboost.outputs, name), type)
        and issubclass(value, OutputSpace)
    }
    # The labels of a precomputed matrix are rows of it; its tests are apart.
    assert public == {type(case.make()) for case in OUTPUTS} | {PrecomputedOutput}


@all_outputs
def test_points_are_rows_of_doubles(case):
    labels = draw(case)
    codes = case.make().fit(labels).encode(labels)
    assert codes.dtype == np.float64
    assert codes.shape[0] == N
    assert codes.ndim == 2


@all_outputs
def test_products_of_points_are_the_kernel(case):
    labels, others = draw(case), draw(case, seed=1)
    embedding = case.make().fit(labels)
    codes = embedding.encode(labels)
    expected = gram(case.pair, labels, labels)
    np.testing.assert_allclose(codes @ codes.T, expected, rtol=1e-7, atol=1e-7)
    crossed = gram(case.pair, others, labels)
    np.testing.assert_allclose(embedding.encode(others) @ codes.T, crossed, rtol=1e-7, atol=1e-7)


@all_outputs
def test_norms_are_the_diagonal_of_the_kernel(case):
    labels, others = draw(case), draw(case, seed=1)
    embedding = case.make().fit(labels)
    for some in (labels, others):
        expected = [case.pair(label, label) for label in some]
        np.testing.assert_allclose(embedding.norms(some), expected, rtol=1e-9, atol=1e-12)


@all_outputs
def test_training_labels_are_found_again(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    codes = embedding.encode(labels)
    found = embedding.decode(codes, "nearest")
    if case.distinct:
        assert_same(found, case.settled(labels))
    np.testing.assert_allclose(embedding.encode(found), codes, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", EXACT, ids=ids(EXACT))
def test_exact_ways_find_labels_that_were_never_seen(case):
    labels = draw(case, seed=1)
    embedding = case.make().fit(draw(case))
    assert set(case.exact) <= set(embedding.ways)
    for way in case.exact:
        assert_same(embedding.decode(embedding.encode(labels), way), case.settled(labels))


@pytest.mark.parametrize("case", EXACT, ids=ids(EXACT))
def test_exact_pre_images_are_at_least_as_near_as_the_nearest_training_label(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = noisy(case, embedding, labels)

    def distance(way):
        return ((embedding.encode(embedding.decode(raw, way)) - raw) ** 2).sum(axis=1)

    assert np.all(distance(case.exact[0]) <= distance("nearest") + 1e-9)


@all_outputs
def test_rows_are_decoded_one_by_one(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = noisy(case, embedding, labels)
    raw.flags.writeable = False
    order = np.random.default_rng(2).permutation(N)
    np.testing.assert_array_equal(
        embedding.encode(pick(labels, order[:7])), embedding.encode(labels)[order[:7]]
    )
    for way in embedding.ways:
        whole = embedding.decode(raw, way)
        assert len(whole) == N
        assert_same(embedding.decode(raw[order], way), pick(whole, order))
        assert_same(embedding.decode(raw[3:4], way), pick(whole, np.array([3])))


@all_outputs
def test_predictions_are_labels_of_the_kind_given(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = noisy(case, embedding, labels)
    for way in embedding.ways:
        found = embedding.decode(raw, way)
        assert embedding.encode(found).shape == raw.shape
        assert isinstance(found[0], type(case.settled(labels)[0]))


@all_outputs
def test_the_order_of_training_rows_does_not_matter(case):
    labels = draw(case)
    order = np.random.default_rng(3).permutation(N)
    one, other = case.make().fit(labels), case.make().fit(pick(labels, order))
    if case.id == "kernel":  # another pivot: the same points in other coordinates
        return
    raw = noisy(case, one, labels)
    np.testing.assert_array_equal(one.encode(labels), other.encode(labels))
    if case.distinct:
        for way in one.ways:
            assert_same(one.decode(raw, way), other.decode(raw, way))


@all_outputs
def test_candidates_are_chosen_by_distance(case):
    labels, others = draw(case), draw(case, seed=1)
    embedding = case.make().fit(labels)
    raw = noisy(case, embedding, labels)
    cost = embedding.norms(others) - 2 * raw @ embedding.encode(others).T
    expected = pick(case.settled(others), cost.argmin(axis=1))
    for way in embedding.ways:
        if way != "cosine":
            assert_same(embedding.decode(raw, way, Choice(others)), expected)
    numbers = np.arange(N)[::-1]
    own = Choice(others, [[i] for i in numbers])
    assert_same(embedding.decode(raw, embedding.ways[0], own), pick(case.settled(others), numbers))


@all_outputs
def test_candidates_that_cannot_be_chosen_from_are_refused(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = embedding.encode(labels)
    for way in embedding.ways:
        with pytest.raises(InvalidData, match="candidates is empty; give at least one"):
            embedding.decode(raw, way, Choice(labels[:0]))
        with pytest.raises(InvalidData, match=r"allowed\[2\] must hold the numbers of one"):
            embedding.decode(raw, way, Choice(labels, [[0], [1], [], *([[0]] * (N - 3))]))
        with pytest.raises(InvalidData, match=r"allowed\[0\] names candidate 12; there are"):
            embedding.decode(raw, way, Choice(labels, [[N]] * N))


@all_outputs
def test_unknown_ways_are_refused(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    with pytest.raises(InvalidParameter, match="decode='nearst' is not known. Did you mean 'near"):
        embedding.decode(embedding.encode(labels), "nearst")
    with pytest.raises(InvalidParameter, match="decode='nearst' is not known. Did you mean 'near"):
        embedding.decode(embedding.encode(labels), "nearst", Choice(labels))


@all_outputs
@pytest.mark.parametrize(
    "odd",
    [5, "text", {1, 2}, {"a": 1}, object(), np.array(3.0)],
    ids=["number", "text", "set", "dict", "object", "0-d array"],
)
def test_candidates_without_an_order_are_refused(case, odd):
    labels = draw(case)
    embedding = case.make().fit(labels)
    for way in embedding.ways:
        with pytest.raises(InvalidData, match="candidates must be a list of labels, one a row"):
            embedding.decode(embedding.encode(labels), way, Choice(odd))


@all_outputs
def test_odd_candidates_are_called_so(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    mixed = [*list(labels)[:3], None, *list(labels)[4:]]
    with pytest.raises(InvalidData, match=r"candidates .*row 3|row 3 of candidates"):
        embedding.decode(embedding.encode(labels), embedding.ways[0], Choice(mixed))


@all_outputs
def test_labels_are_taken_by_position(case):
    labels, rows = draw(case), np.array([7, 0, 3])
    space = case.make()
    taken = space.take_rows(labels, rows)
    assert_same(taken, pick(labels, rows))
    embedding = space.fit(labels)
    np.testing.assert_array_equal(embedding.encode(taken), embedding.encode(labels)[rows])


@all_outputs
def test_training_labels_are_encoded_once_for_all_decodings(case, monkeypatch):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = noisy(case, embedding, labels)
    first = embedding.decode(raw, "nearest")
    made = []
    monkeypatch.setattr(Candidates, "__init__", lambda *_: made.append(1))
    assert_same(embedding.decode(raw, "nearest"), first)
    assert not made


@all_outputs
def test_a_pickle_does_not_grow_by_use(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    before = pickle.dumps(embedding)
    raw = noisy(case, embedding, labels)
    found = embedding.decode(raw, "nearest")
    assert len(pickle.dumps(embedding)) == len(before)
    assert_same(pickle.loads(before).decode(raw, "nearest"), found)


@all_outputs
@pytest.mark.parametrize("odd", [None, np.nan, {"a": 1}, object(), b"bytes"])
def test_another_type_in_a_row_is_refused(case, odd):
    labels = draw(case)
    embedding = case.make().fit(labels)
    mixed = [*list(labels)[:3], odd, *list(labels)[4:]]
    for use in (case.make().fit, embedding.encode):
        with pytest.raises(InvalidData, match=r"row 3"):
            use(mixed)


@all_outputs
def test_no_rows_are_refused(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    for use in (case.make().fit, embedding.encode):
        with pytest.raises(InvalidData, match=r"Y is empty|must hold"):
            use([])


@all_outputs
def test_labels_are_not_changed_and_not_kept(case):
    labels = draw(case)
    embedding = case.make().fit(labels)
    raw = embedding.encode(labels)
    before = embedding.decode(raw, "nearest")
    if isinstance(labels, np.ndarray):
        labels.flags.writeable = False
        case.make().fit(labels)
        embedding.encode(labels)
    again = embedding.decode(raw, "nearest")
    assert_same(again, before)
    for label in again:
        if isinstance(label, set):
            label.add("other")
    assert_same(embedding.decode(raw, "nearest"), before)

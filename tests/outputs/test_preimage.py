"""Pre-images: the choice among candidates against brute force, and the continuous ones."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.errors import InvalidData
from hilboost.core.output_space import Choice, Embedding
from hilboost.kernels import Gaussian
from hilboost.outputs import Candidates, KernelOutput, decode, preimage
from hilboost.outputs.preimage import climb, nearest

seeds = st.integers(0, 10**6)
ways = pytest.mark.parametrize("way", ["nearest", "cosine"])


def cost(point, code, norm, way):
    if way == "nearest":
        return norm - 2 * code @ point
    return -code @ point / np.sqrt(norm) if norm > 0 else 0.0


def draw(seed):
    rng = np.random.default_rng(seed)
    n, c, r = rng.integers(1, 20, size=3)
    codes = rng.normal(size=(c, r))
    codes[0] = 0  # at the origin
    norms = (codes**2).sum(axis=1) + rng.integers(2) * rng.uniform(size=c)
    return rng, rng.normal(size=(n, r)), codes, norms


@ways
@pytest.mark.parametrize("cells", [2**22, 7], ids=["whole", "blocks"])
@given(seed=seeds)
def test_the_nearest_candidate_is_the_nearest_of_all(way, cells, seed):
    _, raw, codes, norms = draw(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preimage, "_CELLS_AT_ONCE", cells)
        found = nearest(raw, codes, norms, way)
    for point, best in zip(raw, found, strict=True):
        costs = [cost(point, c, k, way) for c, k in zip(codes, norms, strict=True)]
        assert costs[best] == pytest.approx(min(costs), rel=1e-12, abs=1e-12)


@ways
@given(seed=seeds)
def test_every_row_has_candidates_of_its_own(way, seed):
    rng, raw, codes, norms = draw(seed)
    c = len(codes)
    allowed = [rng.choice(c, int(rng.integers(1, c + 1))).tolist() for _ in raw]
    found = nearest(raw, codes, norms, way, allowed)
    for point, among, best in zip(raw, allowed, found, strict=True):
        assert best in among
        costs = [cost(point, codes[j], norms[j], way) for j in among]
        assert cost(point, codes[best], norms[best], way) == pytest.approx(min(costs))


@ways
def test_the_first_of_equals_is_taken(way):
    codes = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    raw, norms = np.array([[1.0, 0.0]]), np.ones(3)
    assert nearest(raw, codes, norms, way).tolist() == [1]
    assert nearest(raw, codes, norms, way, [[2, 1]]).tolist() == [2]


@ways
@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([[0]], "allowed has 1 entries, but X has 2 rows; pass one list of candidate indices"),
        ([[0], []], r"allowed\[1\] must contain the index of at least one candidate; got \[\]"),
        ([[0], [0.5]], r"allowed\[1\] must contain the index of"),
        ([[0], 0], r"allowed\[1\] must contain the index of at least one candidate; got 0"),
        ([[0], ["a"]], r"allowed\[1\] must contain the index of"),
        ([[0], [[0]]], r"allowed\[1\] must contain the index of"),
        ([[0], [True]], r"allowed\[1\] must contain the index of"),
        ([[3], [0]], r"allowed\[0\] contains index 3; candidates have indices 0 to 2"),
        ([[0], [[0], [0, 1]]], r"allowed\[1\] must contain the index of"),
        ([[0], {1}], r"allowed\[1\] must contain the index of at least one candidate; got {1}"),
        (3, "allowed must be a list of lists of candidate indices, one per row; got 3"),
        ({0: [0], 1: [1]}, "allowed must be a list of lists"),
        ([], "allowed has 0 entries, but X has 2 rows"),
        ([[0], [1, -1]], r"allowed\[1\] contains index -1; candidates have indices 0 to 2"),
    ],
)
def test_odd_numbers_of_candidates_are_refused(way, allowed, message):
    with pytest.raises(InvalidData, match=message):
        nearest(np.zeros((2, 1)), np.zeros((3, 1)), np.zeros(3), way, allowed)


@ways
def test_no_candidates_are_refused(way):
    with pytest.raises(InvalidData, match="there are no candidates; pass at least one"):
        nearest(np.zeros((2, 1)), np.zeros((0, 1)), np.zeros(0), way)


class Columns(Embedding):
    """Two columns, known by their names in a data frame."""

    ways = ("double", "nearest", "cosine")

    def encode(self, labels):
        return np.asarray(labels[["a", "b"]] if hasattr(labels, "columns") else labels)

    def decode(self, raw, way, candidates=None):
        own = np.eye(2)
        return decode(
            self, raw, way, candidates, lambda: Candidates.of(own, own), formula=lambda raw: 2 * raw
        )


def test_a_space_of_ones_own_chooses_among_labels_that_it_encodes():
    raw = np.array([[3.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(Columns().decode(raw, "double"), 2 * raw)
    np.testing.assert_array_equal(Columns().decode(raw, "cosine"), np.eye(2))
    frame = pd.DataFrame({"b": [5.0, 0.0], "a": [0.0, 5.0]})
    for way in Columns.ways:
        found = Columns().decode(raw, way, Choice(frame))
        np.testing.assert_array_equal(found, frame.to_numpy()[[1, 0]])
        assert Columns().decode(raw, way, Choice([[5, 0], [0, 5]])) == [[5, 0], [0, 5]]


# Continuous pre-images under a Gaussian kernel


def value(kernel, y, centers, weights):
    return np.einsum("ij,ij->i", weights, kernel.block(np.ascontiguousarray(y), centers))


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("scale", [1.5, (0.5, 1.0, 4.0)], ids=["one", "three"])
@given(seed=seeds)
def test_climbing_never_ends_below_its_start(negative, scale, seed):
    rng = np.random.default_rng(seed)
    kernel, centers = Gaussian(scale), rng.normal(size=(12, 3)) * 2
    weights = rng.normal(size=(9, 12)) if negative else rng.uniform(size=(9, 12))
    start = rng.normal(size=(9, 3)) * rng.choice([0.1, 2, 50])
    start[0] = centers[weights[0].argmax()]
    before = start.copy()
    found = climb(kernel, start, centers, weights)
    assert np.isfinite(found).all()
    gained = value(kernel, found, centers, weights) - value(kernel, start, centers, weights)
    assert gained.min() >= -1e-12 * np.abs(weights).sum(axis=1).max()
    np.testing.assert_array_equal(start, before)


@given(seed=seeds)
def test_climbing_ends_on_a_summit(seed):
    """With positive weights, no small step in any direction improves by much."""
    rng = np.random.default_rng(seed)
    kernel, centers = Gaussian(1.0), rng.normal(size=(8, 2))
    weights = rng.uniform(size=(6, 8))
    found = climb(kernel, centers[weights.argmax(axis=1)], centers, weights)
    best = value(kernel, found, centers, weights)
    for _ in range(20):
        step = found + 0.01 * rng.normal(size=found.shape)
        assert (value(kernel, step, centers, weights) <= best * (1 + 1e-4)).all()


def test_steep_rows_climb_to_the_end():
    rng = np.random.default_rng(0)
    centers, kernel = rng.normal(size=(500, 10)), Gaussian(1.0)
    weights = rng.uniform(size=(200, 500)) ** 3 * rng.choice(
        [-1, 1], p=[0.45, 0.55], size=(200, 500)
    )

    best = (weights @ kernel.block(centers, centers)).argmax(axis=1)
    found = climb(kernel, centers[best], centers, weights)
    farther = found
    for _ in range(5):
        farther = climb(kernel, farther, centers, weights)
    heights = [value(kernel, y, centers, weights) for y in (found, farther)]
    np.testing.assert_allclose(*heights, rtol=1e-4)


def test_rows_climb_alone():
    rng = np.random.default_rng(0)
    kernel, centers = Gaussian(1.0), rng.normal(size=(8, 2))
    weights, start = rng.normal(size=(6, 8)), rng.normal(size=(6, 2))
    together = climb(kernel, start, centers, weights)
    for i in range(6):
        alone = climb(kernel, start[i : i + 1], centers, weights[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-9, atol=1e-12)


def test_where_nothing_can_be_gained_the_start_is_kept():
    kernel, centers = Gaussian(1.0), np.array([[0.0], [1.0]])
    start = np.array([[0.25], [1e6], [0.5]])
    found = climb(kernel, start, centers, np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(found, start, rtol=1e-12)


def draw_images(seed, n=25):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1, 3)) + rng.normal(size=(n, 2, 3)) / 2


@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
def test_training_outputs_are_recovered_from_their_points(tolerance):
    images = draw_images(0)
    embedding = KernelOutput("gaussian", tolerance=tolerance).fit(images)
    found = embedding.decode(embedding.encode(images), "continuous")
    assert found.shape == images.shape
    np.testing.assert_allclose(found, images, atol=0.05 if tolerance else 2e-3)


def test_outputs_between_candidates_are_recovered():
    """Which no candidate could be."""
    rng = np.random.default_rng(1)
    images = rng.uniform(-1, 1, size=(150, 2))
    embedding = KernelOutput(Gaussian(1.0), tolerance=0).fit(images)
    new = rng.uniform(-0.8, 0.8, size=(20, 2))
    raw = embedding.encode(new)
    found = embedding.decode(raw, "continuous")
    chosen = embedding.decode(raw, "nearest")
    assert np.abs(chosen - new).max() > 0.05
    np.testing.assert_allclose(found, new, atol=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_continuous_pre_images_are_at_least_as_near_as_training_outputs(seed):
    rng = np.random.default_rng(seed)
    images = draw_images(seed)
    embedding = KernelOutput("gaussian").fit(images)
    codes = embedding.encode(images)
    mixed = rng.normal(size=(15, len(images))) @ codes / 3  # weights of both signs
    flat = images.reshape(len(images), -1)
    pivots = flat[embedding.factor.pivots]
    weights = embedding.factor.weights(mixed)
    values = [
        value(embedding.kernel, embedding.decode(mixed, way).reshape(15, -1), pivots, weights)
        for way in ("continuous", "nearest")
    ]
    assert (values[0] >= values[1] - 1e-9).all()
    assert (values[0] > values[1] + 1e-6).any()


def test_candidates_overrule_continuous_pre_images():
    images, others = draw_images(0), draw_images(1)
    embedding = KernelOutput("gaussian").fit(images)
    raw = embedding.encode(others)
    found = embedding.decode(raw, "continuous", Choice(others))
    np.testing.assert_array_equal(found, embedding.decode(raw, "nearest", Choice(others)))
    own = embedding.decode(embedding.encode(images), "continuous", Choice(images))
    np.testing.assert_array_equal(own, images)


def test_centres_out_of_sight_leave_the_start():
    start = np.linspace(35, 60, 200)[:, None]  # the kernel fades to nothing from 38 on
    found = climb(Gaussian(1.0), start, np.zeros((1, 1)), np.ones((200, 1)))
    assert (np.abs(found) <= start).all()
    np.testing.assert_array_equal(found[start > 39.0], start[start > 39.0])


def test_a_climb_ends(monkeypatch):
    monkeypatch.setattr(preimage, "_CLOSE", 0.0)
    rng = np.random.default_rng(0)
    start, weights = rng.normal(size=(5, 2)), rng.normal(size=(5, 9))
    assert np.isfinite(climb(Gaussian(1.0), start, rng.normal(size=(9, 2)), weights)).all()

"""Calibrated candidate sets in output spaces: against brute force, and what they promise."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from tests.cases import OUTPUTS, ids
from tests.estimators.test_prediction_intervals import likely
from tests.reference import conformal as naive
from tests.refusals import refused

from hilboost import (
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.outputs import PrecomputedOutput

RNG = np.random.default_rng(0)
N = 240
X = RNG.uniform(size=(N, 2))
RANKS = np.argsort(np.argsort(X[:, [0, 1, 0]] + 0.4 * RNG.normal(size=(N, 3)), axis=1), axis=1) + 1
TAGS = [
    {name for name, x in zip(("wet", "warm", "far"), row, strict=True) if x > 0.5}
    for row in np.column_stack([X, X[:, 0]]) + 0.2 * RNG.normal(size=(N, 3))
]
FIT, HELD, NEW = slice(0, 80), slice(80, 160), slice(160, N)


def forest(output, **parameters):
    return OutputKernelForestRegressor(output, n_estimators=5, random_state=0, **parameters)


def calibrated(output="ranking", y=RANKS, **groups):
    return forest(output).fit(X[FIT], y[FIT]).calibrate(X[HELD], y[HELD], **groups)


@pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
def test_every_output_space(case):
    labels = case.draw(np.random.default_rng(1), N)
    model = forest(case.make()).fit(X[FIT], labels[FIT]).calibrate(X[HELD], labels[HELD])
    raw, held = model.predict_embedding(X[NEW]), model.predict_embedding(X[HELD])

    def distances(labels, points):
        """|φ(y)|² - 2 ⟨φ(y), F⟩ + |F|², all labels with all points."""
        codes, norms = model.output_.encode(labels), model.output_.norms(labels)
        squares = norms - 2 * points @ codes.T + (points**2).sum(axis=1)[:, None]
        return np.sqrt(np.maximum(squares, 0))

    q = naive.threshold(np.diagonal(distances(labels[HELD], held)), 0.8)
    sets = model.predict_set(X[NEW], 0.8, candidates=labels[NEW])
    for own, found in zip(distances(labels[NEW], raw), sets, strict=True):
        assert len(found) == (own <= q + 1e-7).sum()
    contains = distances(labels[NEW], raw).diagonal() <= q + 1e-7
    assert likely(contains, 0.8, 80)
    known = model.output_.training_labels()
    assert len(model.predict_set(X[NEW], 0.8)) == 80
    codes = model.output_.encode(known)
    assert codes.shape[1] == raw.shape[1]
    training = model.output_.encode_training(labels[FIT])
    assert all(np.isclose(training, code, atol=1e-8).all(axis=1).any() for code in codes)


def test_the_nearest_candidate_comes_first():
    model = calibrated()
    model.set_params(decode="nearest")
    for best, found in zip(model.predict(X[NEW]), model.predict_set(X[NEW], 0.95), strict=True):
        if len(found):
            np.testing.assert_array_equal(found[0], best)


def test_sets_of_labels_in_the_form_of_predictions():
    model = calibrated("label_set", TAGS)
    found = model.predict_set(X[NEW], 0.9)
    assert all(isinstance(tags, set) for one in found for tags in one)
    inside = np.array([y in one for y, one in zip(TAGS[NEW], found, strict=True)])
    assert likely(inside, 0.9, 80)
    table = np.array([[name in tags for name in ("far", "warm", "wet")] for tags in TAGS])
    for form in (table, table.astype(int), pd.DataFrame(table), scipy.sparse.csr_array(table)):
        model = forest("label_set").fit(X[FIT], form[FIT]).calibrate(X[HELD], form[HELD])
        (one,) = model.predict_set(X[:1], 0.9, candidates=form[:9])
        assert np.isin(one, (0, 1)).all()
        assert one.shape[1] == 3


def test_images_keep_their_shape():
    images = RNG.normal(size=(N, 2, 3))
    model = calibrated("gaussian", images)
    for candidates in (None, images):
        (one,) = model.predict_set(X[:1], 0.9, candidates=candidates)
        assert one.shape[1:] == (2, 3)


def test_labels_that_are_hit_exactly_are_in_their_sets():
    y = RANKS.copy()
    y[:] = np.where(X[:, :1] < 0.5, [[1, 2, 3]], [[3, 1, 2]])
    model = OutputKernelTreeRegressor("ranking", random_state=0).fit(X[FIT], y[FIT])
    model.calibrate(X[HELD], y[HELD])
    assert model.fitted_.calibration.threshold(0.5) < 1e-12
    for best, found in zip(model.predict(X[NEW]), model.predict_set(X[NEW], 0.5), strict=True):
        np.testing.assert_array_equal(found, [best])


def test_allowed_candidates():
    model = calibrated()
    candidates = np.array([[1, 2, 3], [3, 2, 1], [2, 1, 3]])
    everything = model.predict_set(X[:2], 0.98, candidates=candidates)
    found = model.predict_set(X[:2], 0.98, candidates=candidates, allowed=[[0], [0, 1, 2]])
    np.testing.assert_array_equal(found[0], [row for row in everything[0] if row[0] == 1])
    np.testing.assert_array_equal(found[1], everything[1])


def test_weights_and_groups():
    weight = RNG.integers(0, 3, 80)
    model = forest("ranking").fit(X[FIT], RANKS[FIT])
    many = np.repeat(X[HELD], weight, 0), np.repeat(RANKS[HELD], weight, 0)
    expected = model.calibrate(*many).fitted_.calibration.threshold(0.9)
    model.calibrate(X[HELD], RANKS[HELD], 3.0 * weight)
    assert model.fitted_.calibration.threshold(0.9) == pytest.approx(expected, rel=1e-12)
    groups = np.where(X[:, 0] > 0.5, "a", "b")
    model.calibrate(X[HELD], RANKS[HELD], groups=groups[HELD])
    found = model.predict_set(X[NEW], groups=groups[NEW])
    for name in "ab":
        held, new = groups[HELD] == name, np.flatnonzero(groups[NEW] == name)
        model.calibrate(X[HELD][held], RANKS[HELD][held])
        for i, one in zip(new, model.predict_set(X[NEW][new]), strict=True):
            np.testing.assert_array_equal(found[i], one)


def test_boosting_and_gram_matrices_with_labels():
    y = RNG.normal(size=(N, 2)) + X

    def kernel(A, B):
        return np.exp(-((np.asarray(A)[:, None] - np.asarray(B)) ** 2).sum(axis=2))

    output = PrecomputedOutput(kernel, list(y[FIT]))
    model = OutputKernelBoostingRegressor(output, n_estimators=5, random_state=0)
    model.fit(X[FIT], kernel(y[FIT], y[FIT])).calibrate(X[HELD], list(y[HELD]))
    assert len(model.predict_set(X[NEW])) == 80
    plain = OutputKernelBoostingRegressor("precomputed", n_estimators=5, random_state=0)
    plain.fit(X[FIT], kernel(y[FIT], y[FIT]))
    refused(InvalidData, "does not contain", plain.calibrate, X[HELD], kernel(y[HELD], y[FIT]))


def test_refusals():
    model = forest("ranking").fit(X[FIT], RANKS[FIT])
    refused(InvalidData, r"predict_set needs rows.*call calibrate", model.predict_set, X)
    refused(InvalidData, "inconsistent numbers of rows", model.calibrate, X[HELD], RANKS[:3])
    refused(InvalidData, "row 0 of Y", model.calibrate, X[:1], [[1, 1, 3]])
    model.calibrate(X[HELD][:8], RANKS[HELD][:8])
    refused(InvalidData, "requires at least 9 calibration rows; got 8", model.predict_set, X)
    model.calibrate(X[HELD], RANKS[HELD])
    for given, message in (
        ({"coverage": 0}, "coverage must be between 0 and 1"),
        ({"candidates": []}, "candidates is empty"),
        ({"candidates": [[1, 1, 3]]}, "row 0 of"),
        ({"allowed": [[0]]}, "allowed contains indices of candidates"),
        ({"candidates": RANKS, "allowed": [[0]]}, "allowed has 1 entries, but X has"),
    ):
        refused((InvalidData, InvalidParameter), message, model.predict_set, X, **given)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_a_space_of_ones_own_needs_candidates():
    class Numbers(OutputSpace):
        def fit(self, labels):
            return Line()

    class Line(Embedding):
        ways = ("exact",)

        def encode(self, labels):
            return np.asarray(labels, dtype=np.float64)[:, None]

        def decode(self, raw, way, candidates=None):
            return raw[:, 0]

    model = forest(Numbers()).fit(X[FIT], X[FIT, 0]).calibrate(X[HELD], X[HELD, 0])
    with pytest.raises(InvalidData, match="Line keeps no labels to choose from; give candidates"):
        model.predict_set(X)
    found = model.predict_set(X[NEW], 0.9, candidates=X[NEW, 0])
    inside = np.array([y in one for y, one in zip(X[NEW, 0], found, strict=True)])
    assert likely(inside, 0.9, 80)

"""Records print the shapes of their arrays, and parts are hashed without cached properties."""

import pickle
from functools import cached_property

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.output_space import OutputSpace
from hilboost.export.shapley import ShapInteractions, ShapValues
from hilboost.learners.mixed import MixedLearner
from hilboost.learners.ridge import RidgeLearner
from hilboost.losses import DiscreteHazard
from hilboost.network import LinkCurves
from hilboost.outputs import Candidates

RECORDS = {
    "curves": lambda a: LinkCurves(a, a, a, a, 0.5, 1 / 3, 9, 4),
    "Shapley values": lambda a: ShapValues(a, a, a, ["age", "size"]),
    "interactions": lambda a: ShapInteractions(a, a, a, ["age", "size"]),
    "candidates": lambda a: Candidates(["cat", "dog"], a, a),
}


@pytest.mark.parametrize("name", RECORDS)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_one_line(name, shape):
    printed = repr(RECORDS[name](np.full(shape, 1.2345)))
    assert "1.23" not in printed
    assert "\n" not in printed
    assert f"<{' × '.join(map(str, shape))} float64>" in printed
    assert len(printed) < 300


def test_numbers_are_short():
    assert "average_precision=0.333333, n_pairs=9" in repr(RECORDS["curves"](np.ones(2)))


class SlottedSpace(OutputSpace):
    """An output space with a slot and a cached property."""

    __slots__ = ("slot",)

    def __init__(self):
        self.slot, self.base = 2, 3

    def fit(self, labels):
        raise NotImplementedError

    @cached_property
    def power(self):
        return self.base**self.slot


CACHED = {
    "learner": (MixedLearner((RidgeLearner(),)), ["capabilities"]),
    "loss": (DiscreteHazard([1.0, 2.0]), ["_cosines", "_inverse"]),
    "slots": (SlottedSpace(), ["power"]),
}


@pytest.mark.parametrize("name", CACHED)
def test_hashes_and_pickles_have_no_cached_properties(name):
    part, names = CACHED[name]
    before = joblib.hash(part)
    values = [getattr(part, one) for one in names]
    copied = pickle.loads(pickle.dumps(part))
    assert joblib.hash(part) == joblib.hash(copied) == before
    assert not vars(copied).keys() & set(names)
    for one, value in zip(names, values, strict=True):
        np.testing.assert_equal(getattr(copied, one), value)

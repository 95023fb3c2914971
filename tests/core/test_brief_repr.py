"""Records that estimators and functions return print the shapes of their arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.export.shapley import ShapInteractions, ShapValues
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

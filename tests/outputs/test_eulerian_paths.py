"""Strings with given n-gram counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.search import count

from hilboost.outputs.string_preimages import eulerian_path


@given(string=st.lists(st.integers(0, 2), min_size=1, max_size=30), n=st.integers(1, 4))
def test_counts_of_a_string_give_a_string_with_these_counts(string, n):
    counts = count(string, [n])
    if not counts:
        return
    found = eulerian_path([*counts, (9,) * n], np.array([*counts.values(), 0]))
    assert count(found, [n]) == counts
    assert len(found) == len(string)


@pytest.mark.parametrize(
    "counts",
    [
        {(0, 1): 1, (2, 3): 1},  # two parts
        {(0, 1): 2},  # a second edge has no way back
        {(0, 1): 1, (0, 2): 1},
        {(0, 0): 1, (1, 1): 1},
    ],
)
def test_counts_of_no_string(counts):
    assert eulerian_path(list(counts), np.array(list(counts.values()))) is None


@given(counts=st.dictionaries(st.tuples(*[st.integers(0, 2)] * 2), st.integers(1, 2), min_size=1))
def test_paths_are_found_if_there_are_any(counts):
    found = eulerian_path(list(counts), np.array(list(counts.values())))
    if found is not None:
        assert count(found, [2]) == counts
        return
    inward, outward = np.zeros(3), np.zeros(3)
    linked = np.zeros((3, 3), dtype=bool)
    for (a, b), times in counts.items():
        outward[a] += times
        inward[b] += times
        linked[a, b] = linked[b, a] = True
    reached = np.linalg.matrix_power(linked + np.eye(3, dtype=int), 3) > 0
    used = np.flatnonzero(inward + outward)
    connected = reached[np.ix_(used, used)].all()
    assert not connected or sorted((outward - inward)[used]) not in (
        [*[0.0] * len(used)],
        [-1.0, *[0.0] * (len(used) - 2), 1.0],
    )

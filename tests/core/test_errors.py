"""Errors that processes send to each other, and the entries that messages name."""

import pickle

import numpy as np

from hilboost.core.errors import InvalidColumn, first_true


def test_an_invalid_column_is_named_in_another_process():
    error = pickle.loads(pickle.dumps(InvalidColumn("{} contains NaN.", 1)))
    assert str(error) == "column 1 contains NaN."
    assert str(pickle.loads(pickle.dumps(error.named(["a", "b"])))) == "column 'b' contains NaN."


def test_the_first_true_entry_is_found():
    assert first_true(np.array([False, True, True])) == 1
    assert first_true(np.zeros(3, bool)) is None
    assert first_true(np.zeros(0, bool)) is None

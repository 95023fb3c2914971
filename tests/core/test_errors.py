"""Errors that processes send to each other."""

import pickle

from hilboost.core.errors import InvalidColumn


def test_an_invalid_column_is_named_in_another_process():
    error = pickle.loads(pickle.dumps(InvalidColumn("{} contains NaN.", 1)))
    assert str(error) == "column 1 contains NaN."
    assert str(pickle.loads(pickle.dumps(error.named(["a", "b"])))) == "column 'b' contains NaN."

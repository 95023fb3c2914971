"""Errors that processes send to each other, and the entries and numbers that messages name."""

import pickle

import numpy as np
import pytest

from hilboost import BoostingRegressor
from hilboost.core.errors import (
    InvalidColumn,
    InvalidData,
    InvalidParameter,
    counted,
    first_true,
    shown,
    with_article,
)

X, Y = np.arange(60.0).reshape(20, 3), np.arange(20.0)
TREES = {"learner": "tree", "n_estimators": 1, "early_stopping": False, "random_state": 0}


def test_an_invalid_column_is_named_in_another_process():
    error = pickle.loads(pickle.dumps(InvalidColumn("{} contains NaN.", 1)))
    assert str(error) == "column 1 contains NaN."
    assert str(pickle.loads(pickle.dumps(error.named(["a", "b"])))) == "column 'b' contains NaN."


def test_the_first_true_entry_is_found():
    assert first_true(np.array([False, True, True])) == 1
    assert first_true(np.zeros(3, bool)) is None
    assert first_true(np.zeros(0, bool)) is None


def test_counted():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


def test_articles():
    assert list(map(with_article, ["dict", "int", "object"])) == ["a dict", "an int", "an object"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.fit(X, 3), "^y is an int; pass"),
        (lambda model: model.fit(X, Y, offset=3), "^offset is an int; pass"),
        (lambda model: model.fit(X, Y, offset=X), "offset must have 1 column, one for each output"),
        (lambda model: model.score(X, X), "y has 3 target columns; the model was fitted with 1"),
        (lambda model: model.shap_values(X[:1]), "^X has 1 row, too few"),
        (lambda model: model.set_params(monotonic_cst=[1, 1]).fit(X[:, :1], Y), "X has 1 column;"),
        (lambda model: model.report(X, Y, X_train=X[:, :1]), "^X_train has 1 column, but X has 3"),
        (
            lambda model: BoostingRegressor(**TREES).fit(X, X).score(X, Y),
            "y has 1 target column; the model was fitted with 3",
        ),
        (
            lambda model: BoostingRegressor(**TREES | {"categorical_features": [True]}).fit(X, Y),
            "a mask of 1 column; X has 3",
        ),
    ],
)
def test_messages_with_numbers(call, message):
    with pytest.raises((InvalidData, InvalidParameter), match=message):
        call(BoostingRegressor(**TREES).fit(X, Y))


def test_models_of_one_stage():
    model = BoostingRegressor(**TREES).fit(X, Y)
    assert repr(model.history_).startswith("<History of 1 stage: ")
    assert model.report_facts(X[:1], Y[:1])["title"].endswith(" on 1 row")


def test_scalars_of_numpy_are_shown_as_those_of_python():
    given = [np.str_("a"), np.float32(0.5), {np.int8(2): np.bool_(True)}]
    assert shown(given) == shown(["a", 0.5, {2: True}]) == "['a', 0.5, {2: True}]"
    time = np.datetime64("2020-01-01T00:00:00.000000001")
    assert shown(time) == repr(time)  # whose item is an integer
    assert shown(np.array(1.5)) == "array(1.5)"


def test_integers_of_thousands_of_digits_are_shown_by_their_size():
    assert shown([10**5000, 2**2048]) == "[<integer of 16610 bits>, <integer of 2049 bits>]"
    assert shown(2**2000).startswith("1148130695")

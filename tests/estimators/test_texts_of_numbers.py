"""Text in the place of numbers, and warnings at the line of the user's code."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from hilboost import BoostingClassifier, BoostingRegressor, BoostingSurvival
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.validation.targets import check_regression_target

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.normal(size=60)
EVENTS = np.array([(True, 1 + abs(y)) for y in Y], dtype=[("event", bool), ("time", float)])
TREES = {"learner": "tree", "n_estimators": 2, "random_state": 0}


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(one.filename == __file__ for one in found)
    return [(one.category, str(one.message)) for one in found]


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("y", lambda texts: BoostingRegressor(**TREES).fit(X, texts)),
        ("y", lambda texts: BoostingRegressor(**TREES).fit(X, Y).score(X, texts)),
        ("offset", lambda texts: BoostingRegressor(**TREES).fit(X, Y, offset=texts)),
        ("sample_weight", lambda texts: BoostingRegressor(**TREES).fit(X, Y, texts)),
        ("entry", lambda texts: BoostingSurvival(**TREES).fit(X, EVENTS, entry=texts)),
    ],
)
def test_texts_of_numbers_warn_where_they_are_converted(argument, call):
    numbers = np.linspace(0.1, 0.9, 60)
    for texts in (numbers.astype(str), pd.Series(numbers.astype(str)), numbers.astype("S")):
        ((category, text),) = caught(lambda texts=texts: call(texts))
        assert category is DataWarning
        assert text.startswith(f"{argument} contains text, such as ")
    assert not caught(lambda: call(pd.Series(numbers, dtype=object)))
    with pytest.raises(InvalidData, match=rf"^{argument} (must contain numbers|contains text)"):
        call(["few", *numbers[1:].tolist()])


@given(st.lists(st.one_of(st.integers(-99, 99), st.floats(-9, 9)), min_size=1), st.data())
def test_one_text_among_the_targets_warns(values, data):
    y = np.array(values, dtype=object)
    assert not caught(lambda: check_regression_target(y, len(y)))
    y[data.draw(st.integers(0, len(y) - 1))] = "1.5"
    found = caught(lambda: check_regression_target(y, len(y)))
    assert found[0][1].startswith("y contains text, such as '1.5'")


@pytest.mark.parametrize(
    ("y", "category"),
    [
        ((np.arange(60) // 1.3).astype(int).astype(float), UserWarning),
        ([f"label {k // 1.3:.0f}" for k in range(60)], UserWarning),
        ((np.arange(60) % 3)[:, None], DataConversionWarning),
        ([[k % 3] for k in range(60)], DataConversionWarning),
    ],
)
def test_warnings_about_classes_are_at_the_line_of_the_user(y, category):
    (found,) = caught(lambda: BoostingClassifier(**TREES).fit(X, y))
    assert found[0] is category

"""A partition is validated as a table is: the same models, and the same sentences."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor
from hilboost.core.errors import HilboostError
from hilboost.kernels import Gaussian
from hilboost.validation.inputs import check_number_of_rows
from hilboost.workers.partitions import Partition

RNG = np.random.default_rng(0)
N, CUT = 60, 20
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
SMALL = PLAIN | {"n_estimators": 2, "random_state": 0}
NUMBERS, CLASSES = BoostingRegressor(**SMALL), BoostingClassifier(**SMALL)
KERNEL = KernelBoostingRegressor(
    stages="full", n_estimators=2, kernel=Gaussian(1.0), regularization=0.01, random_state=0
)
TARGETS = pd.DataFrame({"p": Y, "q": 2 * Y})
LEVELS = pd.DataFrame({"a": list("xyz") * 20, "b": RNG.normal(size=N)})
THIRD = np.arange(N) % 3


def masked(values, row=3):
    return np.ma.masked_array(values, mask=np.arange(N) == row)


@pytest.mark.parametrize(
    ("model", "inputs", "y", "weight"),
    [
        (NUMBERS, pd.DataFrame(X), Y, None),
        (NUMBERS, X.astype(object), Y, None),
        (NUMBERS, X, TARGETS, None),
        (NUMBERS, X, pd.Series(Y, dtype="Float64"), None),
        (NUMBERS, LEVELS, Y, (THIRD < 2) * 1.0),
        (NUMBERS, LEVELS, Y, (np.arange(N) >= CUT) * 1.0),
        (CLASSES, X, pd.Series(list("cab") * 20, dtype="category"), None),
        (CLASSES, X, np.arange(N) // CUT, None),
        (clone(CLASSES).set_params(class_weight={0: 0}), LEVELS, THIRD, None),
        (KERNEL, X.astype(np.float32), Y, None),
        (KERNEL, X, Y, (THIRD < 2) * 0.5),
    ],
)
def test_the_model_of_the_table(model, inputs, y, weight):
    parts = partitions_of(inputs, y, weight, cuts=[0, CUT, CUT])
    alone = saved(clone(model).fit(inputs, y, weight))
    assert {saved(one) for one in fit_together(model, parts, [0, 1, 0, 1])} == {alone}


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (NUMBERS, {"X": None}),
        (NUMBERS, {"y": None}),
        (NUMBERS, {"X": pd.DataFrame({"a": pd.date_range("2020", periods=N)})}),
        (NUMBERS, {"y": masked(Y)}),
        (NUMBERS, {"y": ["text"] * N}),
        (NUMBERS, {"y": Y[1:]}),
        (NUMBERS, {"sample_weight": masked(np.ones(N))}),
        (NUMBERS, {"sample_weight": np.ones((N, 1))}),
        (NUMBERS, {"sample_weight": np.full(N, np.inf)}),
        (NUMBERS, {"sample_weight": ["heavy"] * N}),
        (NUMBERS, {"offset": ["none"] * N}),
        (CLASSES, {"y": ["a", 1] * (N // 2)}),
        (CLASSES, {"y": masked(THIRD)}),
    ],
)
def test_the_sentence_of_the_table(model, change):
    """The sentence about a table follows the number of the partition."""
    part = replace(Partition(0, X, THIRD * 1.0 if model is NUMBERS else THIRD), **change)
    with pytest.raises(HilboostError) as told:
        clone(model).fit(part.X, part.y, part.sample_weight, offset=part.offset)
    sentence = re.escape(f"partition 0: {told.value}")
    for other in (Partition(1, X, Y), Partition(1, X[:0], Y[:0])):
        weight, offset = (
            None if one is None else np.ones(len(other.X))
            for one in (part.sample_weight, part.offset)
        )
        parts = [part, replace(other, sample_weight=weight, offset=offset)]
        with pytest.raises(HilboostError, match=f"^{sentence}$"):
            fit_together(model, parts, [0, 1])


def test_targets_in_another_order():
    parts = [Partition(0, X, TARGETS), Partition(1, X, TARGETS[["q", "p"]])]
    with pytest.raises(HilboostError, match="partition 1: y has the target columns 'q', 'p' inst"):
        fit_together(NUMBERS, parts, [0, 1])
    parts = [Partition(0, X, TARGETS), Partition(1, X, TARGETS.to_numpy())]
    with pytest.raises(HilboostError, match="partition 1: y has no names of targets instead of"):
        fit_together(NUMBERS, parts, [0, 1])


def test_an_empty_list_has_no_columns():
    with pytest.raises(HilboostError, match="partition 0: X is empty; pass an array or a data"):
        fit_together(NUMBERS, partitions_of(X.tolist(), Y, cuts=[0]), [0, 1])


def test_sparse_matrices():
    parts = partitions_of(csr_array(X), Y, cuts=[])
    with pytest.raises(HilboostError, match=r"partition 0: X is a sparse matrix.*X.toarray\(\)"):
        fit_together(NUMBERS, parts, [0])


@given(st.integers(1, 4), st.integers(0, 99), st.booleans(), st.booleans())
def test_any_division_of_categories(n_parts, seed, weighted, held):
    """Levels that no counted row has are unknown, wherever the rows lie."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.choice(list("pqrst"), size=N), "b": rng.integers(0, 3, size=N)})
    frame["b"] = frame["b"].astype("category")
    y = rng.choice(["no", "some", "yes"], size=N)
    y[:3] = ["no", "some", "yes"]
    weight = np.where(np.arange(N) < 3, 1.0, rng.integers(0, 2, size=N)) if weighted else None
    cuts = np.sort(rng.integers(0, N, size=n_parts - 1)).tolist()
    beside = {"X_val": frame[:30], "y_val": y[:30]} if held else {}
    alone = saved(clone(CLASSES).fit(frame, y, weight, **beside))
    of_held = partitions_of(frame[:30], y[:30], cuts=[10]) if held else ()
    owners = rng.integers(0, 2, size=n_parts).tolist()
    parts = partitions_of(frame, y, weight, cuts)
    together = fit_together(CLASSES, parts, owners, of_held, n_workers=2)
    assert {saved(one) for one in together} == {alone}


def test_rows_beyond_the_row_numbers():
    with pytest.raises(HilboostError, match=r"X has 5000000000 rows; at most \d+ are supported"):
        check_number_of_rows(5_000_000_000)


def texts(kind):
    numbers = [f"{value:.1f}" for value in RNG.normal(size=120)]
    if kind == "words":
        return [*numbers[:70], "n/a", *numbers[71:]]
    if kind == "words of a partition":
        return ["none" if k < 30 else text for k, text in enumerate(numbers)]
    if kind == "dates":
        return [f"2020-01-{1 + k % 28}" for k in range(120)]
    return [f"name {k if kind == 'names' else k % 60}" for k in range(120)]


@pytest.mark.parametrize(
    "kind", ["words", "words of a partition", "dates", "names", "names in each partition"]
)
@pytest.mark.filterwarnings("error")
def test_texts_are_judged_over_all_partitions(kind):
    frame, y = pd.DataFrame({"a": texts(kind)}), np.arange(120.0)
    with warnings.catch_warnings(record=True) as alone:
        warnings.simplefilter("always")
        clone(NUMBERS).fit(frame, y)
    parts = partitions_of(frame, y, cuts=[60])
    with warnings.catch_warnings(record=True) as together:
        warnings.simplefilter("always")
        fit_together(NUMBERS, parts, [1, 0])
    expected = {str(one.message) for one in alone}
    found = {re.sub(r"row (\d+) of partition (\d)", told_row, str(one.message)) for one in together}
    assert found == expected
    assert len(found) == (kind != "names in each partition")


def told_row(match):
    return f"row {int(match[1]) + 60 * int(match[2])}"

"""Standard deviations above 5,000 rows, where the first call takes seconds."""

import copy
import json
import pickle
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from tests.model.editing import contents, edit
from threadpoolctl import threadpool_limits

import hilboost
from hilboost.core.errors import InvalidModelFile
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (5100, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(size=len(X)) / 10
NEW = RNG.uniform(-1.2, 1.2, (300, 2))


def timed(model):
    """Standard deviations, and the processor time of the call."""
    begin = time.process_time()
    std = model.predict(NEW, return_std=True)[1]
    return std, time.process_time() - begin


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A model, its standard deviations, and files written before and after their first call."""
    folder = tmp_path_factory.mktemp("first")
    model = hilboost.KernelBoostingRegressor(
        kernel=Gaussian(1.0), n_estimators=2, early_stopping=False, random_state=0, n_jobs=1
    ).fit(X, Y)
    save = partial(hilboost.save, model, training_data=True)
    save(folder / "before")
    std, seconds = timed(model)
    save(folder / "after")
    return SimpleNamespace(
        model=model,
        std=std,
        seconds=seconds,
        before=folder / "before",
        after=folder / "after",
    )


@pytest.mark.parametrize(
    "copied",
    [
        lambda first: hilboost.load(first.after),
        lambda first: pickle.loads(pickle.dumps(first.model)),
        lambda first: copy.deepcopy(first.model),
    ],
    ids=["file", "pickle", "copy"],
)
def test_copies_do_not_compute_them_anew(first, copied):
    std, seconds = timed(copied(first))
    np.testing.assert_array_equal(std, first.std)
    # A busy machine slows some of the calls down.
    assert min(seconds, *(timed(copied(first))[1] for _ in range(2))) <= 0.3 * first.seconds


def test_threads_of_linear_algebra_cost_no_time_and_change_no_bit(first):
    with threadpool_limits(1):
        _, alone = timed(hilboost.load(first.before))
    std, seconds = timed(hilboost.load(first.before).set_params(n_jobs=2))
    np.testing.assert_array_equal(std, first.std)
    assert seconds <= 2 * alone


def test_first_stages_have_the_same_ones_whenever_and_wherever_they_are_asked(first, tmp_path):
    cut = first.model.first_stages(1)
    hilboost.save(cut, tmp_path / "cut", training_data=True)
    expected, _ = timed(hilboost.load(first.before).first_stages(1))
    np.testing.assert_array_equal(timed(cut)[0], expected)
    np.testing.assert_array_equal(timed(hilboost.load(tmp_path / "cut"))[0], expected)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), None, "x", [1.0]])
def test_a_damaged_factor_is_refused(first, tmp_path, factor):
    path = tmp_path / "model"
    path.write_bytes(first.after.read_bytes())
    machine, before = (
        json.loads(contents(file)[1]["header"])["machine"] for file in (path, first.before)
    )
    (name,) = set(machine) - set(before)
    edit(path, header={"machine": machine | {name: factor}})
    with pytest.raises(InvalidModelFile, match="damaged"):
        hilboost.load(path)

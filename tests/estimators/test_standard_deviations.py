"""Standard deviations above 5,000 rows, whose scale takes seconds."""

import copy
import json
import pickle
import time
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


def timed(model, rows=NEW):
    """Standard deviations, and the processor time of the call."""
    begin = time.process_time()
    std = model.predict(rows, return_std=True)[1]
    return std, time.process_time() - begin


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A pickled model, its standard deviations, and the file of a model that computed none."""
    model = hilboost.KernelBoostingRegressor(
        kernel=Gaussian(1.0), n_estimators=2, early_stopping=False, random_state=0, n_jobs=1
    ).fit(X, Y)
    pickled, path = pickle.dumps(model), tmp_path_factory.mktemp("first") / "model"
    std, seconds = timed(pickle.loads(pickled))
    hilboost.save(model, path, training_data=True)
    return SimpleNamespace(model=model, std=std, seconds=seconds, pickled=pickled, path=path)


@pytest.mark.parametrize(
    "copied",
    [
        lambda first: hilboost.load(first.path),
        lambda first: pickle.loads(pickle.dumps(first.model)),
        lambda first: copy.deepcopy(first.model),
    ],
    ids=["file", "pickle", "copy"],
)
def test_copies_of_saved_models_do_not_compute_the_scale_anew(first, copied):
    std, seconds = timed(copied(first))
    np.testing.assert_array_equal(std, first.std)
    limit = 0.3 * first.seconds
    # A busy machine slows some of the calls down.
    assert seconds <= limit or any(timed(copied(first))[1] <= limit for _ in range(2))


def test_the_first_call_of_a_loaded_model_takes_a_few_times_as_long_as_later_ones(first):
    loaded = [hilboost.load(first.path) for _ in range(2)]
    calls = [[timed(model, X[:1000])[1] for model in loaded] for _ in range(2)]
    assert min(calls[0]) <= 10 * min(calls[1])


def test_threads_of_linear_algebra_cost_no_time_and_change_no_bit(first):
    with threadpool_limits(1):
        _, alone = timed(pickle.loads(first.pickled))
    std, seconds = timed(pickle.loads(first.pickled).set_params(n_jobs=2))
    np.testing.assert_array_equal(std, first.std)
    assert seconds <= 2 * alone


def test_first_stages_have_the_same_ones_whenever_and_wherever_they_are_asked(first, tmp_path):
    cut = first.model.first_stages(1)
    hilboost.save(cut, tmp_path / "cut", training_data=True)
    expected, _ = timed(hilboost.load(first.path).first_stages(1))
    np.testing.assert_array_equal(timed(cut)[0], expected)
    np.testing.assert_array_equal(timed(hilboost.load(tmp_path / "cut"))[0], expected)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), None, "x", [1.0]])
def test_a_damaged_factor_is_refused(first, tmp_path, factor):
    path = tmp_path / "model"
    path.write_bytes(first.path.read_bytes())
    machine = json.loads(contents(path)[1]["header"])["machine"]
    assert machine["residual_factor"] > 0
    edit(path, header={"machine": machine | {"residual_factor": factor}})
    with pytest.raises(InvalidModelFile, match="damaged"):
        hilboost.load(path)

"""Approximate standard deviations, whose scale takes seconds above 5,000 rows."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from tests.model.editing import assert_refused, header_of
from threadpoolctl import threadpool_info, threadpool_limits

import hilboost
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine import summary

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(size=len(X)) / 10
NEW = RNG.uniform(-1.2, 1.2, (300, 2))


@pytest.fixture(scope="module", autouse=True)
def scales():
    """Numbers of BLAS threads in each computation of a scale; 400 rows are many here."""
    found, plain = [], summary.PosteriorVariance.fitted_to_residuals

    def spied(*given):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        found.append({pool["num_threads"] for pool in pools})
        return plain(*given)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_EXACT_UP_TO", 300), ("_LANDMARKS", 150), ("_NEIGHBORS", 100)):
            patch.setattr(summary, name, value)
        patch.setattr(summary.PosteriorVariance, "fitted_to_residuals", spied)
        yield found


def deviations(model):
    return model.predict(NEW, return_std=True)[1]


@pytest.fixture(scope="module")
def first(tmp_path_factory, scales):
    """A pickled model, its standard deviations, and the file of a model that computed none."""
    model = hilboost.KernelBoostingRegressor(
        kernel=Gaussian(1.0), n_estimators=2, early_stopping=False, random_state=0, n_jobs=1
    ).fit(X, Y)
    pickled, path = pickle.dumps(model), tmp_path_factory.mktemp("first") / "model"
    assert not scales
    std = deviations(pickle.loads(pickled))
    assert scales == [{1}]
    hilboost.save(model, path, training_data=True)
    return SimpleNamespace(model=model, std=std, pickled=pickled, path=path)


@pytest.mark.parametrize(
    "copied",
    [
        lambda first: hilboost.load(first.path),
        lambda first: pickle.loads(pickle.dumps(first.model)),
        lambda first: copy.deepcopy(first.model),
    ],
    ids=["file", "pickle", "copy"],
)
def test_copies_of_saved_models_do_not_compute_the_scale_anew(first, copied, scales):
    scales.clear()
    np.testing.assert_array_equal(deviations(copied(first)), first.std)
    assert not scales


def test_threads_of_linear_algebra_cost_no_time_and_change_no_bit(first, scales):
    scales.clear()
    with threadpool_limits(2, user_api="blas"):
        std = deviations(pickle.loads(first.pickled).set_params(n_jobs=2))
    np.testing.assert_array_equal(std, first.std)
    assert scales == [{1}]  # several each would take the cores from each other


def test_first_stages_have_the_same_ones_whenever_and_wherever_they_are_asked(first, tmp_path):
    cut = first.model.first_stages(1)
    hilboost.save(cut, tmp_path / "cut", training_data=True)
    expected = deviations(hilboost.load(first.path).first_stages(1))
    np.testing.assert_array_equal(deviations(cut), expected)
    np.testing.assert_array_equal(deviations(hilboost.load(tmp_path / "cut")), expected)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), None, "x", [1.0]])
def test_a_damaged_factor_is_refused(first, tmp_path, factor):
    path = tmp_path / "model"
    path.write_bytes(first.path.read_bytes())
    machine = header_of(path)["machine"]
    assert machine["residual_factor"] > 0
    assert_refused(path, header={"machine": machine | {"residual_factor": factor}})

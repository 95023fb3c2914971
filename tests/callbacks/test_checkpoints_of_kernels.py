"""Fits of kernel machines and in output spaces that go on from their file to the same bits."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from tests.callbacks.killed import LABELS, X, Y

from hilboost import (
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import InvalidModelFile, InvalidParameter
from hilboost.kernels import Gaussian, Linear
from hilboost.training import learner_choice

ROWS = X[:120]
IMAGES = np.c_[Y, np.cos(Y), X[:, 1]][:120]
TWO = np.c_[Y, np.sin(3 * Y)][:120]
HELD = {"early_stopping": True, "n_iter_no_change": 3}


def machine(kernel=Gaussian(2.0), **parameters):  # noqa: B008
    settings = {"regularization": 0.05, "n_basis": 15, "tol": 1e-6, "random_state": 0}
    return KernelBoostingRegressor(kernel=kernel, **settings | parameters), TWO


def classes(**parameters):
    model = KernelBoostingClassifier(kernel=Gaussian(2.0), random_state=0, **parameters)
    return model, LABELS[:120]


def images(output="gaussian", **parameters):
    settings = {"n_estimators": 8, "random_state": 0} | parameters
    return OutputKernelBoostingRegressor(output, **settings), IMAGES


CASES = {
    "full, all chosen": machine("auto", stages="full", regularization="auto"),
    "full, absolute error": machine(stages="full", loss="absolute_error"),
    "sparse, held-out rows": machine(stages="sparse", n_estimators=30, **HELD),
    "sparse, equal rows": machine(stages="sparse", subset_size=60),
    "reweighted kernels": machine(
        [Gaussian(2.0), Linear()], stages="sparse", reweight=True, n_estimators=6
    ),
    "classes": classes(stages="full"),
    "least squares classes": classes(loss="squared_error", stages="sparse", n_basis=20),
    "random trees": images(learner="extra_trees"),
    "trees, absolute error": images(learner="ok3", loss="absolute_error", subsample=0.7),
    "trees, metric": images(learner="ok3", metric="preimage", **HELD | {"n_estimators": 60}),
    "machine": images(learner="kernel", n_estimators=4),
    "machine, huber": images(learner="kernel", loss="huber", n_estimators=4),
    "list": images("linear", learner=["tree", "kernel", "linear"], loss="huber"),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def fit(case, *callbacks):
    model, y = case
    rows = np.r_[ROWS[:-1], ROWS[:1]]  # two of them are equal
    return model.__class__(**model.get_params(deep=False)).fit(rows, y, callbacks=callbacks)


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.predict_raw(ROWS), other.predict_raw(ROWS))
    np.testing.assert_array_equal(one.predict_raw(ROWS + 0.1), other.predict_raw(ROWS + 0.1))
    np.testing.assert_array_equal(one.history_.train, other.history_.train)
    assert (one.history_.validation is None) == (other.history_.validation is None)
    if one.history_.validation is not None:
        np.testing.assert_array_equal(one.history_.validation, other.history_.validation)
    assert one.n_estimators_ == other.n_estimators_
    if hasattr(one, "amplitude_"):
        assert one.amplitude_ == other.amplitude_
        np.testing.assert_array_equal(one.kernel_weights_, other.kernel_weights_)


@pytest.mark.parametrize("name", CASES)
def test_a_resumed_fit_is_the_whole_one(name, path):
    whole = fit(CASES[name])
    fit(CASES[name], Checkpoint(path), lambda event: event.stage == 1)
    seen = []
    fit(CASES[name], Checkpoint(path), lambda event: event.stage == 3)
    resumed = fit(CASES[name], Checkpoint(path), lambda event: seen.append(event.stage))
    assert_same_fit(resumed, whole)
    assert 1 not in seen
    # Once over, it stays over.
    seen.clear()
    assert_same_fit(fit(CASES[name], Checkpoint(path), lambda e: seen.append(e.stage)), whole)
    assert seen == []


def test_standard_deviations_after_a_resumed_fit(path):
    case = machine(stages="full")
    fit(case, Checkpoint(path), lambda event: event.stage == 1)
    resumed, whole = fit(case, Checkpoint(path)), fit(case)
    for one, other in zip(
        resumed.predict(ROWS, return_std=True), whole.predict(ROWS, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("best", ["extra_trees", "kernel"])
def test_learners_are_compared_once(best, path, monkeypatch):
    calls = []

    def best_learner(*_):
        calls.append(1)
        return best

    monkeypatch.setattr("hilboost.estimators.output_kernel_boosting.best_learner", best_learner)
    assert len(ROWS) >= learner_choice.FEWEST_ROWS
    case = images("linear", n_estimators=4)
    whole = fit(case)
    fit(case, Checkpoint(path), lambda event: event.stage == 2)
    assert_same_fit(fit(case, Checkpoint(path)), whole)
    assert len(calls) == 2


def test_what_files_cannot_store(path):
    model = OutputKernelBoostingRegressor(learner=KNeighborsRegressor(3))
    with pytest.raises(InvalidParameter, match=r"Checkpoint is not supported by .* or kernel, or"):
        model.fit(ROWS, TWO, callbacks=[Checkpoint(path)])
    fit(images(learner="ok3"), Checkpoint(path))
    with pytest.raises(InvalidParameter, match="output='gaussian', but this fit has output='lin"):
        fit(images("linear", learner="ok3"), Checkpoint(path))


def test_damaged_stages(path):
    case = images("linear", n_estimators=3)
    fit(case, Checkpoint(path), lambda event: event.stage == 2)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'\\"stages\\": \\"full', b'\\"stages\\": \\"none'))
    assert path.read_bytes() != content
    with pytest.raises(InvalidModelFile, match="damaged"):
        fit(case, Checkpoint(path))

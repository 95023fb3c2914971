"""The same data, parameters and seed give the same model bit for bit, whatever runs it."""

import contextlib
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from tests.cases import LOSSES, PLAIN, TREES, assert_same_model, ids

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.base_model import BaseModel, Term, TermByTerm
from hilboost.core.errors import InvalidData
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.learner import Learner


def draw(loss, n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    y = loss.target(rng, n).y
    X = rng.normal(size=(n, d))
    X[:, 0] += y[:, 0]
    X[rng.uniform(size=(n, d)) < 0.05] = np.nan
    return X, loss.labels(y)


def fit_on(n_threads, model, X, y):
    """The model, fitted by so many threads, on machines of one core too."""
    before, most = threading.active_count(), [0]

    def watch(event):
        most.append(threading.active_count())

    model.set_params(n_jobs=n_threads).fit(X, y, callbacks=[watch])
    assert max(most) - before >= n_threads - 1
    return model


@pytest.mark.parametrize("loss", LOSSES, ids=ids(LOSSES))
@pytest.mark.parametrize("trees", TREES, ids=ids(TREES))
@pytest.mark.usefixtures("threads_at_once")
def test_number_of_threads(loss, trees):
    X, y = draw(loss, n=440, d=40)
    draws = {"subsample": 0.8, "max_features": 0.6, "n_estimators": 3}
    model = loss.build(**PLAIN | trees.parameters | draws)
    one, two = (fit_on(n_threads, clone(model), X, y) for n_threads in (1, 2))
    assert_same_model(one, two)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(one.apply(X), two.apply(X))


LARGE = [
    case for case in LOSSES if case.id in ("squared_error", "huber", "log_loss-2", "log_loss-3")
]


@pytest.mark.parametrize("loss", LARGE[1::2], ids=ids(LARGE[1::2]))
@pytest.mark.parametrize("cv_folds", [1, 3])
@pytest.mark.usefixtures("threads_at_once")
def test_number_of_threads_with_early_stopping(loss, cv_folds):
    X, y = draw(loss, n=500, d=40)
    parameters = {"early_stopping": True, "cv_folds": cv_folds, "n_estimators": 5}
    model = loss.build(**PLAIN | parameters | {"max_features": "auto"})
    one, two = (fit_on(n_threads, clone(model), X, y) for n_threads in (1, 2))
    assert_same_model(one, two)
    np.testing.assert_array_equal(one.history_.validation, two.history_.validation)


def test_defaults_repeat():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 6))
    y = (X[:, 0] + rng.normal(size=250) > 0).astype(int)
    model = BoostingClassifier(random_state=3, n_estimators=20).fit(X, y)
    assert_same_model(model, clone(model).fit(X, y))
    other = clone(model).set_params(random_state=4).fit(X, y)
    assert not np.array_equal(other.model_.predict_raw(X), model.model_.predict_raw(X))


@pytest.mark.parametrize("trees", TREES, ids=ids(TREES))
def test_two_halves_are_one_go_with_draws(trees):
    X, y = draw(LARGE[-1], n=100)
    parameters = PLAIN | trees.parameters | {"subsample": 0.6, "max_features": 0.5}
    whole = LARGE[-1].build(**parameters | {"n_estimators": 6}).fit(X, y)
    halves = LARGE[-1].build(**parameters | {"n_estimators": 3, "warm_start": True}).fit(X, y)
    halves.set_params(n_estimators=6).fit(X, y)
    assert_same_model(whole, halves)


@pytest.mark.parametrize("cv_folds", [1, 4])
def test_two_halves_are_one_go_under_early_stopping(cv_folds):
    X, y = draw(LOSSES[0])
    parameters = dict(PLAIN, learner="tree", learning_rate=0.02)
    parameters |= {"early_stopping": True, "cv_folds": cv_folds}
    whole = BoostingRegressor(**parameters | {"n_estimators": 12}).fit(X, y)
    halves = BoostingRegressor(**parameters | {"n_estimators": 5, "warm_start": True}).fit(X, y)
    assert halves.n_estimators_ == 5
    for _ in range(2):  # the second fit has nothing to do
        halves.set_params(n_estimators=12).fit(X, y)
    assert whole.n_estimators_ == 12
    assert_same_model(whole, halves)
    np.testing.assert_array_equal(whole.history_.validation, halves.history_.validation)


def as_of_an_earlier_build(model):
    """Its pickle did not say how rows were drawn."""
    vars(model.fitted_).pop("row_draws")
    return pickle.loads(pickle.dumps(model)).set_params(n_estimators=12, warm_start=True)


@pytest.mark.parametrize("cv_folds", [1, 4])
def test_held_out_rows_of_an_earlier_build_are_not_learned(cv_folds):
    X, y = draw(LOSSES[0])
    parameters = dict(PLAIN, learner="tree", n_estimators=3)
    parameters |= {"early_stopping": True, "cv_folds": cv_folds}
    earlier = as_of_an_earlier_build(BoostingRegressor(**parameters).fit(X, y))
    with pytest.raises(InvalidData, match="draws other rows at random.*set warm_start=False"):
        earlier.fit(X, y)
    assert earlier.set_params(warm_start=False).fit(X, y).n_estimators_ > 3


def test_fits_of_an_earlier_build_without_held_out_rows_are_continued():
    X, y = draw(LOSSES[0])
    earlier = as_of_an_earlier_build(BoostingRegressor(**PLAIN | {"n_estimators": 3}).fit(X, y))
    assert_same_model(
        earlier.fit(X, y), BoostingRegressor(**PLAIN | {"n_estimators": 12}).fit(X, y)
    )


class Slow(BaseModel):
    """A constant whose sum takes a while to prepare, while others may come in between."""

    together = None

    def __init__(self, value):
        self.value = value

    def predict_raw(self, X):
        return np.full((len(X), 1), self.value)

    @classmethod
    def sum_of(cls, parts):
        if cls.together is not None:
            # Where one waits for the other, as it should, they never meet.
            with contextlib.suppress(threading.BrokenBarrierError):
                cls.together.wait(timeout=0.5)
        return TermByTerm(tuple(parts))


class Means(Learner):
    """The mean gradient."""

    def prepare(self, X, weight, seed, n_threads):
        return X

    def fit(self, data, gradients, sample, rng):
        model = Slow(float(gradients.negative_gradient.mean()) + rng.normal())
        return [FittedTerm(Term.of(model, slice(0, 1)), outputs=model.predict_raw(data))]


def test_two_threads_may_predict_at_once(monkeypatch):
    """Also when both are the first to ask, and find nothing prepared."""
    X, y = draw(LOSSES[0])
    X = np.nan_to_num(X)
    model = BoostingRegressor(learner=Means(), n_estimators=5, random_state=0).fit(X, y)
    expected = model.predict(X)
    model = pickle.loads(pickle.dumps(model))
    monkeypatch.setattr(Slow, "together", threading.Barrier(2))
    results = {}
    workers = [
        threading.Thread(target=lambda k=k: results.update({k: model.predict(X)})) for k in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in (*results.values(), model.predict(X)):
        np.testing.assert_array_equal(result, expected)


def _fit_and_predict(model, X, y, connection):
    connection.send((clone(model).fit(X, y).predict(X), model.predict(X)))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods() or sys.platform == "darwin",
    reason="this platform does not fork",
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("threads_at_once")
def test_a_process_may_fork_after_a_fit():
    X, y = draw(LOSSES[0], n=3000, d=90)
    model = fit_on(2, BoostingRegressor(**PLAIN), X, y)
    expected = model.predict(X)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_fit_and_predict, args=(model, X, y, theirs))
    child.start()
    assert ours.poll(60)
    for predicted in ours.recv():
        np.testing.assert_array_equal(predicted, expected)
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.usefixtures("threads_at_once")
def test_no_thread_outlives_a_fit():
    X, y = draw(LOSSES[0], n=3000, d=90)
    before = set(threading.enumerate())
    model = fit_on(2, BoostingRegressor(**PLAIN), X, y)
    model.predict(X)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()

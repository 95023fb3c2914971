"""An interrupt keeps the stages so far, and reaches the caller."""

import itertools
import pkgutil
import signal
import threading

import numpy as np
import pytest
from tests.cases import PLAIN, assert_same_model

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import FitWarning
from hilboost.kernels import Gaussian
from hilboost.losses import SquaredError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] + 0.3 * RNG.normal(size=200)


def interrupt_at(stage):
    def interrupt(event):
        if event.stage == stage:
            raise KeyboardInterrupt

    return interrupt


def interrupted(model, X, y, *callbacks, match="the fit was interrupted", **data):
    with pytest.warns(FitWarning, match=match) as record, pytest.raises(KeyboardInterrupt):
        model.fit(X, y, callbacks=callbacks, **data)
    assert len(record) == 1
    return model


@pytest.mark.parametrize("cv_folds", [1, 3])
def test_the_stages_so_far_are_kept(cv_folds):
    settings = dict(PLAIN, learner="tree", n_estimators=9)
    settings |= {"early_stopping": True, "cv_folds": cv_folds}
    model = BoostingRegressor(**settings)
    interrupted(model, X, Y, interrupt_at(4), match="fitted with 4 stages")
    whole = BoostingRegressor(**settings | {"n_estimators": 4}).fit(X, Y)
    assert_same_model(model, whole)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    np.testing.assert_array_equal(model.history_.validation, whole.history_.validation)
    whole.set_params(n_estimators=9).fit(X, Y)
    np.testing.assert_array_equal(
        model.set_params(warm_start=True).fit(X, Y).predict(X), whole.predict(X)
    )


def test_of_stages_after_the_best_one_none_is_kept():
    settings = PLAIN | {"early_stopping": True, "n_estimators": 20, "n_iter_no_change": 15}
    data = {"X_val": X + 1e-9, "y_val": -Y}
    model = BoostingRegressor(**settings)
    interrupted(model, X, Y, interrupt_at(4), match="fitted with 0 stages", **data)
    assert model.n_estimators_ == 0
    assert len(model.history_.validation) == 5


class InterruptedValue(SquaredError):
    def value(self, target, raw):
        raise KeyboardInterrupt


class InterruptedGradients(SquaredError):
    def gradients(self, target, raw):
        raise KeyboardInterrupt


@pytest.mark.parametrize("loss", [InterruptedValue(), InterruptedGradients()])
@pytest.mark.parametrize("settings", [PLAIN, {"early_stopping": True}])  # trial runs come first
def test_with_no_stage_there_is_nothing_to_keep(loss, settings):
    model = BoostingRegressor(loss, **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize(
    ("cv_folds", "where", "n_calls"),
    [
        (1, "loop.add_stage", 3),
        (1, "history.mean_loss", 4),
        (1, "history.mean_loss_and_gradients", 4),
        (2, "loop.add_stage", 5),
        (2, "history.mean_loss", 4),
        (2, "history.mean_loss_and_gradients", 8),
    ],
)
def test_stages_are_whole(cv_folds, where, n_calls, one_by_one, monkeypatch):
    """Wherever the third stage is interrupted, it is as if it had not begun."""
    assert_whole(cv_folds, f"boosting.{where}", n_calls, 2, monkeypatch)


@pytest.mark.parametrize("cv_folds", [1, 2])
@pytest.mark.parametrize(
    ("where", "n_calls", "n_stages"),
    [
        ("boosting.stages_ahead.StagesAhead.take", 3, 2),
        ("boosting.stages_ahead.StagesAhead._losses", 3, 2),
        ("boosting.loop.LossRecorder.note", 4, 2),
        ("engine.separate.trees_of", 2, 32),
        ("engine.separate.grow_stages", 2, 32),
    ],
)
def test_stages_fitted_in_one_call_are_whole(cv_folds, where, n_calls, n_stages, monkeypatch):
    n_calls *= cv_folds if where.startswith("engine") else 1
    assert_whole(cv_folds, where, n_calls, n_stages, monkeypatch)


def assert_whole(cv_folds, where, n_calls, stages, monkeypatch):
    """A fit that is interrupted at a call is one of so many stages."""
    place, name = where.rsplit(".", 1)
    module = pkgutil.resolve_name(f"hilboost.{place}")
    calls, function = [], getattr(module, name)

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == n_calls:
            raise KeyboardInterrupt
        return function(*arguments)

    settings = dict(PLAIN, learner="tree", n_jobs=1, n_estimators=40, learning_rate=0.02)
    settings |= {"early_stopping": True, "cv_folds": cv_folds}
    model = BoostingRegressor(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, counted)
        interrupted(model, X, Y, match=f"fitted with {stages} stages")
    whole = BoostingRegressor(**settings | {"n_estimators": stages}).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    np.testing.assert_array_equal(model.history_.train, whole.history_.train)
    np.testing.assert_array_equal(model.history_.validation, whole.history_.validation)


@pytest.mark.parametrize("n_tasks", [5, 60, 201])
@pytest.mark.parametrize("cv_folds", [1, 4])
def test_signals_while_several_threads_work(n_tasks, cv_folds, one_by_one, monkeypatch):
    assert_whole_after_signal(n_tasks, cv_folds, monkeypatch)


@pytest.mark.parametrize("n_tasks", [4, 8, 20])
def test_signals_while_several_stages_are_fitted(n_tasks, monkeypatch):
    assert_whole_after_signal(n_tasks, 4, monkeypatch)


def assert_whole_after_signal(n_tasks, cv_folds, monkeypatch):
    """A fit whose main thread is interrupted while another one works has whole stages."""
    main, tasks, call = threading.main_thread().ident, itertools.count(1), ThreadTeam._call

    def interrupted_call(team, work, *arguments, **options):
        def interrupting(thread):
            if thread == 1 and next(tasks) == n_tasks:
                signal.pthread_kill(main, signal.SIGINT)
            work(thread)

        call(team, interrupting, *arguments, **options)

    n_threads = threading.active_count()
    settings = dict(PLAIN, learner="tree", early_stopping=cv_folds > 1, cv_folds=cv_folds)
    settings |= {"n_iter_no_change": 10**6, "n_jobs": 3, "learning_rate": 1e-4}
    model = BoostingClassifier(**settings | {"n_estimators": 1600})
    with monkeypatch.context() as patch:
        patch.setattr("hilboost.backends.threads.ENTRIES_WORTH_A_THREAD", 1)
        patch.setattr("hilboost.training.recipes.tables._ENTRIES_WORTH_SHARING", 1)
        patch.setattr(ThreadTeam, "_call", interrupted_call)
        patch.setenv("HILBOOST_CORES", "3")
        interrupted(model, X, Y > 0)
    n = model.n_estimators_
    assert n < 1600
    whole = BoostingClassifier(**settings | {"n_estimators": n}).fit(X, Y > 0)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert threading.active_count() == n_threads


GIVEN = {"kernel": Gaussian(1.0), "regularization": 0.1, "random_state": 0}


@pytest.mark.parametrize(
    ("model", "y", "stage"),
    [
        (KernelBoostingRegressor(stages="sparse", **GIVEN), Y, 2),
        (KernelBoostingRegressor(stages="block", **GIVEN), Y, 2),
        (SparseKernelRidge(n_basis=40, **GIVEN), Y, 1),
        (
            OutputKernelBoostingRegressor(learner="extra_trees", n_estimators=9, random_state=0),
            np.outer(Y, [1, 2]),
            2,
        ),
    ],
    ids=["sparse stages", "block stages", "SparseKernelRidge", "output kernel"],
)
def test_every_estimator_that_boosts(model, y, stage):
    interrupted(model, X, y, interrupt_at(stage))
    assert np.isfinite(model.predict(X)).all()
    assert model.n_estimators_ <= 2

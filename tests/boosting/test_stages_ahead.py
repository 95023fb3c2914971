"""Stages fitted several at a time: the same bits as one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting import stages_ahead
from hilboost.core.errors import IncompatibleParts
from hilboost.engine import separate
from hilboost.learners.tree import TreeLearner
from hilboost.losses import SquaredError

N, D = 260, 5
SETTINGS = [
    {},
    {"max_leaf_nodes": 6, "subsample": 0.6},
    {"subsample": 0.7, "max_features": 0.5},
    {"cv_folds": 3, "subsample": 1.0},
    {"growth": "symmetric", "max_leaf_nodes": 8},
    {"interaction_cst": [[0, 1, 2], [2, 3, 4]]},
    {"learning_rate": 1.0, "max_leaf_nodes": 4},
]


def table(seed, task):
    """Some cells are missing; two targets, or two or four classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, D)), 1)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=N)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    y = {
        "numbers": signal,
        "two targets": np.column_stack([signal, rng.normal(size=N)]),
        "two classes": signal > 0,
        "classes": np.digitize(signal, [-1, 0, 1]),
    }[task]
    return X, y


def estimator(task, **parameters):
    kind = BoostingClassifier if "classes" in task else BoostingRegressor
    given_ones = {"n_estimators": 40, "learner": "tree", "random_state": 3, "n_jobs": 1}
    return kind(**{**given_ones, **parameters})


def stages_of(model):
    return [member.stages for member in model.fitted_.members]


def assert_same(model, other, X):
    assert model.n_estimators_ == other.n_estimators_
    np.testing.assert_array_equal(model.fitted_.history.train, other.fitted_.history.train)
    found = model.fitted_.history.validation, other.fitted_.history.validation
    assert (found[0] is None) == (found[1] is None)
    if found[0] is not None:
        np.testing.assert_array_equal(*found)
    for stages in zip(stages_of(model), stages_of(other), strict=True):
        for stage, expected in zip(*stages, strict=True):
            for term, same in zip(stage.terms, expected.terms, strict=True):
                assert term.columns == same.columns
                np.testing.assert_array_equal(term.coefficient, same.coefficient)
                for name in ("column", "threshold", "gain", "leaf_values"):
                    given_ones = getattr(term.model, name), getattr(same.model, name)
                    np.testing.assert_array_equal(*given_ones, err_msg=name)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


@pytest.fixture
def counted(monkeypatch):
    """The numbers of the first ones of stages that were fitted in one call."""
    calls, fit = [], TreeLearner.fit_stages

    def noted(self, data, request):
        fitted = fit(self, data, request)
        if fitted is not None:
            calls.append(request.number)
        return fitted

    monkeypatch.setattr(TreeLearner, "fit_stages", noted)
    return calls


CASES = [*product(["two targets", "two classes"], [{}]), *product(["numbers", "classes"], SETTINGS)]


@pytest.mark.parametrize(("task", "parameters"), CASES, ids=str)
def test_same_model_as_stage_by_stage(task, parameters, counted, request):
    """More stages than fit into one call."""
    X, y = table(0, task)
    model = estimator(task, **{"n_estimators": 20} | parameters).fit(X, y)
    assert counted
    request.getfixturevalue("one_by_one")
    assert_same(model, estimator(task, **{"n_estimators": 20} | parameters).fit(X, y), X)


@given(seed=st.integers(0, 2**20), whole=st.booleans(), fold=st.booleans(), classes=st.booleans())
def test_weights(seed, whole, fold, classes):
    task = "classes" if classes else "two targets"
    X, y = table(seed, task)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 4, size=N).astype(float) if whole else rng.uniform(0.1, 2, size=N)
    model = estimator(task, n_estimators=8, subsample=1.0, early_stopping=fold, cv_folds=2)
    model.fit(X, y, sample_weight=weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeLearner, "fit_stages", lambda *_: None)
        other = estimator(task, n_estimators=8, subsample=1.0, early_stopping=fold, cv_folds=2)
        assert_same(model, other.fit(X, y, sample_weight=weight), X)


@pytest.mark.parametrize("n_stages", [1, 5, 16, 17, 33])
@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_a_fit_in_two_parts(task, n_stages):
    """A callback ends the first part inside of a call."""
    X, y = table(1, task)
    parameters = {"early_stopping": False, "subsample": 0.8, "warm_start": True}
    whole = estimator(task, **parameters).fit(X, y)
    parts = estimator(task, **parameters)
    parts.fit(X, y, callbacks=[lambda event: event.stage == n_stages])
    assert parts.n_estimators_ == n_stages
    assert_same(parts.fit(X, y), whole, X)


def test_interrupts_keep_whole_stages():
    X, y = table(1, "numbers")

    def interrupt(event):
        if event.stage == 21:
            raise KeyboardInterrupt

    parameters = {"early_stopping": False, "subsample": 0.8, "warm_start": True}
    model = estimator("numbers", **parameters)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        model.fit(X, y, callbacks=[interrupt])
    assert model.n_estimators_ >= 20
    whole = estimator("numbers", **parameters).fit(X, y)
    assert_same(model.fit(X, y), whole, X)


def test_held_out_rows_of_the_user(counted, request):
    X, y = table(2, "numbers")
    parameters = {"subsample": 0.8, "n_estimators": 60}
    model = estimator("numbers", **parameters).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert counted
    request.getfixturevalue("one_by_one")
    other = estimator("numbers", **parameters)
    assert_same(model, other.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:]), X)


@pytest.mark.parametrize("parameters", [{}, {"early_stopping": False}], ids=str)
@pytest.mark.parametrize("task", ["two targets", "classes"])
def test_threads_do_not_matter(task, parameters, counted, threads_at_once):
    """Threads share the members of an ensemble, or the trees of a stage."""
    X, y = table(4, task)
    models = [estimator(task, n_jobs=n_jobs, **parameters).fit(X, y) for n_jobs in (1, 2)]
    assert counted
    assert_same(*models, X)


def test_a_thread_that_fails_releases_the_others(threads_at_once, monkeypatch):
    grow = separate.grow_stages

    def failing(threads, *inputs):
        if threads.number == 0:
            raise MemoryError
        grow(threads, *inputs)

    monkeypatch.setattr(separate, "grow_stages", failing)
    with pytest.raises(MemoryError):
        estimator("classes", n_jobs=2, early_stopping=False).fit(*table(4, "classes"))


def test_seconds_of_the_stages_add_up():
    X, y = table(4, "numbers")
    model = estimator("numbers", subsample=0.8, early_stopping=False).fit(X, y)
    seconds = model.fitted_.history.seconds
    assert len(seconds) == 40
    # An interruption may make any stage long, but none so short.
    assert (seconds > 0.1 * np.median(seconds)).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"monotonic_cst": [1, 0, 0, 0, 0]},
        {"bootstrap": True},
        {"loss": "absolute_error"},
        {"eval_metric": "r2"},
        {"multi_output": "shared"},
    ],
    ids=str,
)
def test_other_fits_go_stage_by_stage(parameters, counted):
    X, y = table(5, "two targets" if "multi_output" in parameters else "numbers")
    estimator("numbers", **{"cv_folds": 2, **parameters}).fit(X, y)
    assert not counted


class Doubled(SquaredError):
    """A formula of the user, who starts from a built-in loss."""

    def gradients(self, target, raw):
        return super().gradients(target, 2 * raw)


def test_losses_of_users_are_evaluated_as_they_are_written(counted):
    X, y = table(5, "numbers")
    estimator("numbers", loss=Doubled(), subsample=0.5, early_stopping=False).fit(X, y)
    assert not counted


def test_losses_that_are_not_finite(monkeypatch):
    X, y = table(5, "numbers")
    monkeypatch.setattr(stages_ahead, "is_finite", lambda total: False)
    with pytest.raises(IncompatibleParts, match="SquaredError.value returned NaN or infinity"):
        estimator("numbers", subsample=0.8).fit(X, y)


def test_large_tables_go_stage_by_stage(counted):
    X = np.arange(2**16 + 1.0)[:, None]
    y = np.tile(X % 7, 16)
    stumps = {"max_leaf_nodes": 2, "early_stopping": False}
    estimator("numbers", n_estimators=2, **stumps).fit(X, y)
    assert not counted
    estimator("numbers", n_estimators=5, **stumps).fit(X[1:], y[1:])
    assert counted == [0, 2, 4]

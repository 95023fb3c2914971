"""scikit-learn's own callbacks: ``set_callbacks``, alone and from meta-estimators."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cases import PLAIN

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    SparseKernelRidge,
)
from hilboost.estimators.subset_ensembles import AveragedKernelRidge
from hilboost.kernels import Gaussian

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=120)


class Recorder:
    """Notes what it is told, and asks to stop after some stages."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.told, self.scores, self.data = [], [], None

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.told.append(f"begin {context.task_name}")
        self.data = X, y, metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.told.append(f"end {context.task_name}")
        if hasattr(fitted_estimator, "score"):
            self.scores.append(fitted_estimator.score(X, Y))
        return self.stop_after is not None and self.told.count("end stage") >= self.stop_after


class Propagated(Recorder):
    max_propagation_depth = None


def test_every_stage_and_the_whole_fit():
    recorder, weight = Recorder(), np.ones(120)
    model = BoostingRegressor(**PLAIN).set_callbacks(recorder).fit(X, Y, weight)
    n = model.n_estimators_
    stages = ["begin stage", "end stage"] * n
    assert recorder.told == ["setup", "begin fit", *stages, "end fit", "teardown"]
    assert recorder.data[0] is X
    assert recorder.data[1] is Y
    assert recorder.data[2]["sample_weight"] is weight
    assert recorder.scores[:n] == pytest.approx(
        [1 - ((F - Y) ** 2).mean() / Y.var() for F in model.staged_predict(X)]
    )
    assert recorder.scores[-1] == model.score(X, Y)
    assert (model.predict(X) == BoostingRegressor(**PLAIN).fit(X, Y).predict(X)).all()


def test_one_that_asks_to_stop():
    model = BoostingRegressor(**PLAIN).set_callbacks(Recorder(stop_after=3)).fit(X, Y)
    assert model.n_estimators_ == 3


def test_beside_our_own():
    stages, recorder = [], Recorder()
    model = BoostingRegressor(**PLAIN).set_callbacks(recorder)
    model.fit(X, Y, callbacks=[lambda event: stages.append(event.stage)])
    assert len(stages) == recorder.told.count("end stage") == model.n_estimators_


def test_a_fit_that_fails_is_torn_down():
    recorder = Recorder()
    with pytest.raises(ValueError, match="inconsistent"):
        BoostingRegressor(**PLAIN).set_callbacks(recorder).fit(X, Y[:5])
    assert recorder.told == ["setup", "begin fit", "teardown"]


GIVEN = {"kernel": Gaussian(1.0), "regularization": 0.1}


@pytest.mark.parametrize(
    "model",
    [
        KernelBoostingRegressor(n_estimators=2, **GIVEN),
        OutputKernelBoostingRegressor(n_estimators=3),
        OutputKernelForestRegressor(n_estimators=3),
        AveragedKernelRidge(n_estimators=2, **GIVEN),
        SparseKernelRidge(n_basis=10, **GIVEN),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators(model):
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X, Y)
    assert recorder.told[:2] == ["setup", "begin fit"]
    assert recorder.told[-2:] == ["end fit", "teardown"]
    assert recorder.scores[-1] == model.score(X, Y)


def test_from_a_pipeline_and_a_search():
    recorder = Propagated()
    pipeline = make_pipeline(StandardScaler(), BoostingRegressor(**PLAIN | {"n_estimators": 4}))
    pipeline.set_callbacks(recorder).fit(X, Y)
    assert recorder.told.count("end stage") == 4
    recorder = Propagated()
    grid = {"n_estimators": [2, 3]}
    search = GridSearchCV(BoostingRegressor(**PLAIN), grid, cv=2).set_callbacks(recorder)
    search.fit(X, Y)
    assert recorder.told.count("end stage") == 2 * 2 + 2 * 3 + search.best_params_["n_estimators"]


def test_the_scoring_monitor_of_scikit_learn():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    labels = np.where(Y > 0, "yes", "no")
    model = BoostingClassifier(**PLAIN).set_callbacks(monitor).fit(X, labels)
    log = monitor.get_logs().data_as_pandas
    last = log[log.task_name == "stage"].accuracy.iloc[-1]
    assert last == model.score(X, labels)

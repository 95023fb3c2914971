"""Tools beyond scikit-learn: search, and intervals around any predict."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import cross_val_score, train_test_split
from tests.interoperation.families import REGRESSORS, X, Y, name


class SplitConformal(RegressorMixin, BaseEstimator):
    """Intervals of one width around what any regressor predicts."""

    def __init__(self, estimator, coverage=0.9):
        self.estimator = estimator
        self.coverage = coverage

    def fit(self, X, y):
        X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size=0.4, random_state=0)
        self.estimator_ = clone(self.estimator).fit(X_fit, y_fit)
        errors = np.sort(np.abs(y_held - self.estimator_.predict(X_held)))
        self.width_ = errors[int(np.ceil((len(errors) + 1) * self.coverage)) - 1]
        return self

    def predict(self, X):
        middle = self.estimator_.predict(X)
        return np.column_stack([middle - self.width_, middle + self.width_])


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_conformal_wrappers(model):
    low, high = SplitConformal(model).fit(X[:100], Y[:100]).predict(X[100:]).T
    assert np.mean((low <= Y[100:]) & (Y[100:] <= high)) > 0.75


def test_optuna_searches_and_prunes():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        model = clone(REGRESSORS[0]).set_params(
            max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, 8),
            learning_rate=trial.suggest_float("learning_rate", 0.02, 0.5, log=True),
        )
        return cross_val_score(model, X, Y, cv=2).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=4)
    assert study.best_value > 0.5


def test_a_callback_prunes_trials():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        def report(event):
            trial.report(event.validation_loss, event.stage)
            if trial.should_prune():
                raise optuna.TrialPruned

        rate = [0.3, 1e-4, 1e-5][trial.number]
        model = clone(REGRESSORS[0]).set_params(learning_rate=rate)
        model.fit(X[:120], Y[:120], X_val=X[120:], y_val=Y[120:], callbacks=[report])
        return model.history_.validation.min()

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner(1, 3))
    study.optimize(objective, n_trials=3)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED", "PRUNED"]


def test_intervals_of_mapie_are_those_of_calibrate():
    mapie = pytest.importorskip("mapie.regression")
    model = clone(REGRESSORS[0]).fit(X[:60], Y[:60])
    wrapped = mapie.SplitConformalRegressor(model, confidence_level=0.8, prefit=True)
    _, theirs = wrapped.conformalize(X[60:120], Y[60:120]).predict_interval(X[120:])
    ours = model.calibrate(X[60:120], Y[60:120]).predict_interval(X[120:], 0.8)
    np.testing.assert_allclose(theirs[:, :, 0], ours)

"""Tools beyond scikit-learn: search, and intervals around any predict."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.interoperation.families import REGRESSORS, X, Y


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

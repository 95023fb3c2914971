"""Tables of some tens of rows are fitted with folds and a kernel machine, as larger ones are."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival


def _times(X):
    y = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = True, np.exp(X[:, 0])
    return y


ESTIMATORS = {
    "numbers": (BoostingRegressor(), lambda X: X.sum(axis=1), 40, 8),
    "classes": (BoostingClassifier(), lambda X: X[:, 0] > 0, 40, 4),
    "distributions": (BoostingRegressor("normal"), lambda X: X.sum(axis=1), 8, 4),
    "survival": (BoostingSurvival("cox"), _times, 40, 4),
    "rankings": (BoostingRanker("query_rmse"), lambda X: np.arange(len(X)) % 3, 200, 8),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_are_held_out_from_a_number_of_rows_on(name):
    model, target, fewest, n_folds = ESTIMATORS[name]
    X = np.random.default_rng(0).normal(size=(fewest, 2))
    for n, is_early in ((fewest - 1, False), (fewest, True)):
        more = {"groups": np.arange(n) // 5} if name == "rankings" else {}
        fitted = model.set_params(learner="tree", random_state=0).fit(X[:n], target(X[:n]), **more)
        assert fitted.resolved_.early_stopping is is_early
        assert fitted.resolved_.cv_folds == (n_folds if is_early else 1)


@pytest.mark.parametrize("n", [40, 190])
def test_smooth_functions(n):
    rng = np.random.default_rng(n)
    X, new = rng.random((n, 2)), rng.random((500, 2))
    f = [np.sin(4 * Z[:, 0]) + Z[:, 1] ** 2 for Z in (X, new)]
    model = BoostingRegressor(random_state=0).fit(X, f[0])
    assert model.fitted_.mixes_kernels
    error = np.std(model.predict(new) - f[1]) / np.std(f[1])
    assert error < 0.05 * (40 / n)
    trees = BoostingRegressor(learner="tree", random_state=0).fit(X, f[0])
    assert error < 0.2 * np.std(trees.predict(new) - f[1]) / np.std(f[1])


@pytest.mark.parametrize("n", [12, 60, 190])
@pytest.mark.parametrize("loss", ["normal", "student_t", "lognormal"])
def test_locations_of_distributions_have_the_same_folds(loss, n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    y = np.exp(X[:, 0])
    model = BoostingRegressor(loss, n_estimators=20, random_state=0).fit(X, y)
    assert len(model.fitted_.members) == 4
    assert model.score(X, y) > 0


@pytest.mark.parametrize("n", [40, 80, 190])
def test_noise_is_not_learned(n):
    """Models of nothing but noise are hardly worse than the mean, and better than fixed stages."""
    errors = {"auto": [], False: [], "mean": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y, new = rng.normal(size=(n, 5)), rng.random(n) < 0.4, rng.normal(size=(400, 5))
        truth = rng.random(400) < 0.4
        for early in ("auto", False):
            model = BoostingClassifier(early_stopping=early, random_state=0).fit(X, y)
            errors[early].append(log_loss(truth, model.predict_proba(new)))
        errors["mean"].append(log_loss(truth, np.tile([1 - y.mean(), y.mean()], (400, 1))))
    auto, fixed, mean = (np.mean(errors[key]) for key in ("auto", False, "mean"))
    assert auto < 1.05 * mean
    assert auto < 0.95 * fixed


def test_intervals_of_few_rows_contain_new_targets():
    rng, covered = np.random.default_rng(1), []
    for _ in range(20):
        X, new = rng.normal(size=(60, 3)), rng.normal(size=(200, 3))
        y, truth = (Z[:, 0] + rng.normal(size=len(Z)) for Z in (X, new))
        low, high = (
            BoostingRegressor(random_state=0).fit(X, y).predict_interval(new, coverage=0.9).T
        )
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.87 < np.mean(covered) < 0.97

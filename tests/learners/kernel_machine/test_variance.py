import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from hilboost import KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine import summary

NOISE = 0.01


def table(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y - y.mean()


def approximate(patch, n_landmarks=100):
    """Let the variances of more than ten rows be approximations."""
    sizes = {"_EXACT_UP_TO": 10, "_LANDMARKS": n_landmarks, "_NEIGHBORS": 250}
    for name, value in sizes.items():
        patch.setattr(summary, name, value)


def fitted(X, y, weight=None):
    model = KernelBoostingRegressor(
        kernel=2.0 * Gaussian([1.0, 2.0]), regularization=NOISE, standardize=False
    )
    return model.fit(X, y, weight)


def test_full_rank_model_is_gaussian_process_regression():
    X, y = table()
    peer = GaussianProcessRegressor(
        ConstantKernel(2.0) * RBF([1.0, 2.0]) + WhiteKernel(NOISE), optimizer=None
    ).fit(X, y)
    X_new = np.random.default_rng(1).normal(size=(40, 2)) * 2
    mean, std = fitted(X, y).predict(X_new, return_std=True)
    expected, deviation = peer.predict(X_new, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-7)
    np.testing.assert_allclose(std, deviation, atol=1e-7)


def test_weights_count_as_repetitions():
    X, y = table(60)
    weight = np.random.default_rng(2).integers(1, 4, len(X))
    X_new = np.random.default_rng(1).normal(size=(10, 2))
    model, twin = fitted(X, y, weight), fitted(np.repeat(X, weight, 0), np.repeat(y, weight))
    one = (
        model.predict(X_new, return_std=True)[1] ** 2 - model.fitted_.kernel_machine.regularization
    )
    other = (
        twin.predict(X_new, return_std=True)[1] ** 2 - twin.fitted_.kernel_machine.regularization
    )
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_few_landmarks_never_understate_the_variance_far_away(monkeypatch):
    X, y = table()
    exact = fitted(X, y)
    X_new = np.vstack([X[:20], [[30.0, 30.0]]])
    expected = exact.predict(X_new, return_std=True)[1]
    approximate(monkeypatch, n_landmarks=60)
    std = fitted(X, y).predict(X_new, return_std=True)[1]
    assert abs(std[-1] - expected[-1]) < 1e-6
    np.testing.assert_allclose(std, expected, rtol=0.2)


def test_deviations_and_intervals_of_an_automatic_choice_hold_what_they_promise():
    X, y = table(400)
    model = KernelBoostingRegressor(random_state=0).fit(X[:150], y[:150])
    mean, std = model.predict(X[150:], return_std=True)
    assert 0.8 < np.std((y[150:] - mean) / std) < 1.25
    low, high = model.calibrate(X[150:270], y[150:270]).predict_interval(X[270:], 0.8).T
    covered = np.mean((low <= y[270:]) & (y[270:] <= high))
    assert 0.68 < covered < 0.92


def test_approximate_deviations_of_an_automatic_choice_agree_with_residuals(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, size=(1000, 3))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2] + rng.normal(size=1000) / 10
    model = KernelBoostingRegressor(kernel="matern52", random_state=0).fit(X[:600], y[:600])
    approximate(monkeypatch)
    mean, std = model.predict(X[600:], return_std=True)
    squares = ((y[600:] - mean) / std) ** 2
    assert 0.8 < squares.mean() < 1.25
    fitted = model.fitted_.kernel_machine._variance[0]
    assert squares.mean() * fitted.factors[0] < 0.7  # without it, deviations are too large
    given = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.01)
    given.fit(X[:600], y[:600]).predict(X[600:], return_std=True)
    assert given.fitted_.kernel_machine._variance[0].factors == 1.0


def smooth(X):
    return np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]


@pytest.mark.parametrize("is_approximate", [False, True], ids=["exact", "approximate"])
@pytest.mark.parametrize("noise", ["none", "normal", "heteroscedastic", "heavy"])
def test_deviations_hold_under_every_kind_of_noise(noise, is_approximate, monkeypatch):
    if is_approximate:
        approximate(monkeypatch)
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (1200, 3))
    errors = {
        "none": np.zeros(1200),
        "normal": 0.3 * rng.normal(size=1200),
        "heteroscedastic": np.exp(X[:, 2] - 1) * rng.normal(size=1200) / 2,
        "heavy": 0.3 * rng.standard_t(4, size=1200),
    }[noise]
    y = smooth(X) + errors
    model = KernelBoostingRegressor(kernel="matern52", random_state=0).fit(X[:500], y[:500])
    mean, std = model.predict(X[500:], return_std=True)
    assert std.min() > 0
    assert 0.75 < np.mean(((y[500:] - mean) / std) ** 2) < 1.3


def test_deviations_do_not_depend_on_units():
    X, y = table(120)
    weight = np.random.default_rng(1).uniform(0.2, 2, 120)
    kernel = Gaussian([1.0, 2.0])
    std, scaled = (
        KernelBoostingRegressor(kernel=kernel, random_state=0)
        .fit(X, unit * y, weight / unit)
        .predict(X[:20], return_std=True)[1]
        for unit in (1.0, 1e5)
    )
    np.testing.assert_allclose(scaled, 1e5 * std, rtol=1e-6)


def test_each_of_several_targets_has_a_factor(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (700, 3))
    Y = np.column_stack([smooth(X) + 0.5 * rng.normal(size=700), 1e3 * np.cos(X[:, 1])])
    model = KernelBoostingRegressor(kernel="matern52", random_state=0).fit(X[:300], Y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    squares = (((Y[300:] - mean) / std) ** 2).mean(axis=0)
    assert ((squares > 0.75) & (squares < 1.3)).all()
    approximate(monkeypatch)  # files contain factors of approximations
    model.fit(X[:300], Y[:300]).save(tmp_path / "model", training_data=True)
    loaded = KernelBoostingRegressor.load(tmp_path / "model").predict(X, return_std=True)
    np.testing.assert_allclose(loaded[1], model.predict(X, return_std=True)[1], rtol=1e-12)


def test_one_gross_outlier_does_not_set_the_scale():
    X, y = table(700)
    y[7] = 1e3
    model = KernelBoostingRegressor(kernel="gaussian", random_state=0).fit(X[:300], y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    assert np.mean(((y[300:] - mean) / std) ** 2) > 0.5


def test_repetitions_do_not_change_the_scale():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.uniform(-2, 2, (60, 3)), 8, axis=0)
    new = rng.uniform(-2, 2, (400, 3))
    y, y_new = (smooth(part) + 0.3 * rng.normal(size=len(part)) for part in (X, new))
    model = KernelBoostingRegressor(kernel="gaussian", random_state=0).fit(X, y)
    mean, std = model.predict(new, return_std=True)
    assert 0.7 < np.mean(((y_new - mean) / std) ** 2) < 1.4


def test_several_targets_have_an_interval_each():
    X, y = table(100)
    Y = np.column_stack([y, 3 * y])
    model = fitted(X[:60], Y[:60]).calibrate(X[60:], Y[60:])
    ends = model.predict_interval(X, 0.5)
    assert ends.shape == (100, 2, 2)
    np.testing.assert_allclose(np.diff(ends[:, 1]), 3 * np.diff(ends[:, 0]))


def test_refusals():
    X, y = table(40)
    model = fitted(X, y)
    with pytest.raises(InvalidData, match="call calibrate"):
        model.predict_interval(X)
    model.calibrate(X + 1e-9, y)
    with pytest.raises(InvalidParameter, match="coverage must be between 0 and 1"):
        model.predict_interval(X, 1.5)
    with pytest.raises(InvalidData, match="40"):
        model.predict_interval(X, 0.999)
    sparse = KernelBoostingRegressor(kernel="gaussian", regularization=0.1, stages="sparse")
    with pytest.raises(InvalidData, match="stages='full'"):
        sparse.fit(X, y).predict(X, return_std=True)


def test_a_new_fit_forgets_the_calibration():
    X, y = table(40)
    model = fitted(X, y).calibrate(X + 1e-9, y).fit(X, y)
    with pytest.raises(InvalidData, match="call calibrate"):
        model.predict_interval(X)


def test_sharpness_is_fitted_to_held_out_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0).astype(int) + (X[:, 1] > 1)
    model = KernelBoostingClassifier(random_state=0).fit(X[:200], y[:200])
    proba = model.predict_proba(X[200:])
    fitted_loss = -np.log(proba[np.arange(100), y[200:]]).mean()
    frequencies = np.bincount(y[:200]) / 200
    assert fitted_loss < 0.8 * -np.log(frequencies[y[200:]]).mean()
    np.testing.assert_allclose(proba.sum(axis=1), 1)

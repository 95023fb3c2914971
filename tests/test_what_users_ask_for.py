"""What users of boosting libraries and kernel libraries wish for most often, a test each."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.interoperation.families import FAMILIES, name, target
from tests.interoperation.families import X as X_SMALL
from tests.reloaded import reloaded

from hilboost import (
    BoostingRegressor,
    KernelBoostingRegressor,
    SparseKernelRidge,
    load,
    save,
    to_onnx,
    tree_table,
)
from hilboost.backends import threads as team
from hilboost.core.errors import InvalidData, InvalidParameter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=300)
SHORT = {"n_estimators": 15, "learning_rate": 0.2, "random_state": 0}
PLAIN = SHORT | {"early_stopping": False}


def peak_memory(function):
    """Most bytes held at one time, beyond what there was before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_quantiles_are_right_and_do_not_cross():
    """Each level lies above its share of new rows, in the order of the levels."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(4000, 2))
    y = rows[:, 0] + (0.2 + rows[:, 1]) * rng.normal(size=4000)
    levels = [0.9, 0.1, 0.5]
    settings = {"n_estimators": 60, "learning_rate": 0.2, "random_state": 0}
    model = BoostingRegressor("quantile", quantile=levels, **settings).fit(rows[:2000], y[:2000])
    predicted = model.predict(rows[2000:])
    below = (y[2000:, None] <= predicted).mean(axis=0)
    np.testing.assert_allclose(below, levels, atol=0.05)
    assert (predicted[:, 1] <= predicted[:, 2]).all()
    assert (predicted[:, 2] <= predicted[:, 0]).all()
    median = BoostingRegressor("absolute_error", **settings).fit(rows[:2000], y[:2000])
    constant = np.abs(y[2000:] - np.median(y[:2000])).mean()
    assert np.abs(y[2000:] - median.predict(rows[2000:])).mean() < constant


def test_many_targets_need_memory_for_their_own_numbers_only():
    """Memory grows like the table of targets, not like histograms times targets."""
    many = RNG.normal(size=(2000, 200)) + RNG.normal(size=(2000, 1))
    rows = RNG.normal(size=(2000, 10))
    settings = {"n_estimators": 2, "early_stopping": False, "n_jobs": 1, "random_state": 0}
    model = BoostingRegressor(multi_output="shared", sketch=5, **settings)
    model.fit(rows[:200], many[:200, :2])
    assert peak_memory(lambda: model.fit(rows, many)) < 10 * many.nbytes
    assert model.predict(rows).shape == many.shape


def test_early_stopping_works_within_a_pipeline():
    """Held-out rows go through the same steps as the others."""
    columns = X * [1, 10, 100, 1000] + 5
    with sklearn.config_context(enable_metadata_routing=True):
        model = BoostingRegressor(n_estimators=200, learning_rate=0.3, random_state=0)
        model.set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), model, transform_input=["X_val"])
        pipeline.fit(columns[:200], Y[:200], X_val=columns[200:], y_val=Y[200:])
    scaler = StandardScaler().fit(columns[:200])
    alone = clone(pipeline[-1]).fit(
        scaler.transform(columns[:200]),
        Y[:200],
        X_val=scaler.transform(columns[200:]),
        y_val=Y[200:],
    )
    assert pipeline[-1].n_estimators_ == alone.n_estimators_ < 200
    np.testing.assert_array_equal(
        pipeline.predict(columns), alone.predict(scaler.transform(columns))
    )


@pytest.mark.parametrize("model", FAMILIES, ids=name)
def test_nothing_is_printed(model, capfd):
    """Fit and predict are silent unless asked."""
    clone(model).fit(X_SMALL, target(model)).predict(X_SMALL)
    if isinstance(model, BoostingRegressor):
        clone(model).fit(X_SMALL[:7], np.ones(7)).predict(X_SMALL)
    assert capfd.readouterr() == ("", "")


def test_columns_may_have_any_name():
    """Quotes, brackets, spaces, emoji: through fit, files, tables and exports."""
    names = ['"quoted": {"a": [1, 2]}', "<b>, [x] & y", "  ", "größe ☃ 🎲\n\\t"]
    table = pd.DataFrame(X, columns=names)
    model = BoostingRegressor(**SHORT, learner="tree").fit(table, Y)
    again = reloaded(model)
    assert again.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert set(tree_table(model)["column"].dropna()) <= set(names)
    assert len(to_onnx(model).metadata_props) == 1
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]].rename(columns={"  ": " "}))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 16),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16),
        ({"cpu.max": "what is this"}, 16),
        ({}, 16),
    ],
)
def test_threads_follow_the_container(files, expected, sixteen_cores):
    """No more threads than the container's share of the machine."""
    for file, text in files.items():
        (sixteen_cores / file).parent.mkdir(exist_ok=True)
        (sixteen_cores / file).write_text(text, encoding="ascii")
    assert team.available_cores() == expected


def test_targets_that_are_missing_are_refused_by_row():
    both = np.column_stack([Y, -Y])
    both[::2, 1] = np.nan
    with pytest.raises(InvalidData, match="NaN in row 2; remove rows without a target"):
        BoostingRegressor(**SHORT).fit(X[:5], np.array([1.0, 2.0, np.nan, 4.0, 5.0]))
    with pytest.raises(InvalidData, match=r"row 0 of target 1.* one model per target"):
        KernelBoostingRegressor().fit(X, both)


# Kernel machines


def test_kernels_predict_without_the_training_data(tmp_path):
    """A sparse machine's file holds its basis vectors only."""
    rows = RNG.normal(size=(1500, 20))
    model = SparseKernelRidge(kernel="gaussian", regularization=0.1, n_basis=30, random_state=0)
    model.fit(rows, -rows[:, 0])
    save(model, tmp_path / "model.hilboost", training_data=True)
    assert (tmp_path / "model.hilboost").stat().st_size < rows.nbytes / 4
    again = load(tmp_path / "model.hilboost")
    np.testing.assert_array_equal(again.predict(rows[:9]), model.predict(rows[:9]))


def test_kernels_keep_to_a_memory_budget():
    """Gram matrices stay within it, or a sentence says how much is needed."""
    rows = RNG.normal(size=(8000, 5))
    y = np.sin(rows[:, 0])
    settings = {"kernel": "gaussian", "regularization": 0.1, "random_state": 0, "n_jobs": 1}
    budget = 150e6  # of the whole Gram matrix there would be 256e6
    model = KernelBoostingRegressor(
        **settings, stages="sparse", n_basis=100, n_estimators=2, memory_budget=budget
    )
    assert peak_memory(lambda: model.fit(rows, y)) < budget
    assert model.score(rows, y) > 0.9
    with pytest.raises(InvalidParameter, match=r"memory_budget is 1 MiB, .* requires \d+ MiB"):
        KernelBoostingRegressor(**settings, stages="full", memory_budget=1e6).fit(rows, y)

"""Kernel machines choose kernel, λ and standard deviations by whole groups, or by later rows."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GroupShuffleSplit, PredefinedSplit
from tests.reloaded import reloaded

from hilboost import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    BoostingRegressor,
    ConvexKernelRidge,
    KernelBoostingRegressor,
    MixtureOfKernelExperts,
    OutputKernelBoostingRegressor,
    SparseKernelRidge,
    StackedKernelRidge,
)
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(40), 6)
N = len(GROUPS)
TRAITS = RNG.normal(size=(40, 3))[GROUPS]  # tell the group of a row
X = np.column_stack([TRAITS, RNG.normal(size=(N, 2))])
Y = TRAITS[:, 0] + X[:, 4] + RNG.normal(size=40)[GROUPS] + 0.3 * RNG.normal(size=N)
KNOWN, NEW = GROUPS < 28, GROUPS >= 28
KERNEL = Gaussian(2.0)
SUBSETS = {"n_estimators": 3, "subset_size": 100, "kernel": KERNEL}
ONE_STAGE = KernelBoostingRegressor(stages="full")


@pytest.mark.parametrize(
    ("model", "by"),
    [
        (KernelBoostingRegressor(), "groups"),
        (KernelBoostingRegressor(), "time"),
        (SparseKernelRidge(n_basis=150), "groups"),
        (AveragedKernelRidge(**SUBSETS), "groups"),
        (BayesianCommitteeMachine(**SUBSETS), "time"),
        (StackedKernelRidge(**SUBSETS), "groups"),
        (ConvexKernelRidge(**SUBSETS), "time"),
        (OutputKernelBoostingRegressor(learner="kernel"), "groups"),
        (OutputKernelBoostingRegressor(learner="kernel"), "time"),
        (BoostingRegressor(learner=ONE_STAGE, n_estimators=1, learning_rate=1.0), "groups"),
    ],
)
def test_new_groups_are_predicted_better(model, by):
    model.set_params(random_state=0)
    by_rows = model.fit(X[KNOWN], Y[KNOWN]).score(X[NEW], Y[NEW])
    assert model.fit(X[KNOWN], Y[KNOWN], **{by: GROUPS[KNOWN]}).score(X[NEW], Y[NEW]) > by_rows


@pytest.mark.parametrize(
    ("model", "by"),
    [
        (KernelBoostingRegressor(kernel=[Gaussian(1.0), Gaussian(4.0)]), "time"),
        (KernelBoostingRegressor(tuning="marginal_likelihood"), "groups"),
        (AdaBoostKernelClassifier(n_estimators=2), "groups"),
        (MixtureOfKernelExperts(**SUBSETS), "time"),
        (OutputKernelBoostingRegressor(learner="kernel", loss="absolute_error"), "time"),
        (OutputKernelBoostingRegressor(n_estimators=20), "groups"),
    ],
)
def test_other_estimators_and_losses(model, by):
    y = Y > 0 if sklearn.base.is_classifier(model) else Y
    model.set_params(random_state=0).fit(X[KNOWN], y[KNOWN], **{by: GROUPS[KNOWN]})
    assert np.isfinite(model.predict_raw(X)).all()


def test_standard_deviations_are_those_of_new_groups():
    model = KernelBoostingRegressor(kernel=KERNEL, random_state=0)
    z = {}
    for name, given in {"rows": {}, "groups": {"groups": GROUPS[KNOWN]}}.items():
        model.set_params(regularization="auto").fit(X[KNOWN], Y[KNOWN], **given)
        mean, std = model.predict(X[NEW], return_std=True)
        z[name] = float(np.mean(((Y[NEW] - mean) / std) ** 2))
    assert abs(np.log(z["groups"])) < abs(np.log(z["rows"]))


def test_files_keep_the_scale_of_standard_deviations():
    model = KernelBoostingRegressor(kernel=KERNEL, random_state=0).fit(X, Y, groups=GROUPS)
    loaded = reloaded(model)
    expected = model.predict(X[:9], return_std=True)[1]
    assert np.allclose(loaded.predict(X[:9], return_std=True)[1], expected)


def test_early_stopping_holds_out_the_latest_rows_or_those_of_a_splitter():
    time = np.random.default_rng(1).permutation(N)
    model = KernelBoostingRegressor(kernel=KERNEL, early_stopping=True, random_state=0)
    model.set_params(validation_fraction=0.25)
    residual, held, splitter = Y - Y.mean(), GROUPS < 8, PredefinedSplit(-1 * (GROUPS >= 8))
    model.fit(X, Y, time=time)
    assert np.isclose(model.history_.validation[0], np.mean(residual[time >= 180] ** 2) / 2)
    model.set_params(validation=splitter).fit(X, Y, groups=GROUPS)
    assert np.isclose(model.history_.validation[0], np.mean(residual[held] ** 2) / 2)
    model.set_params(validation=GroupShuffleSplit(1, random_state=0)).fit(X, Y, groups=GROUPS)


def test_weights_are_repetitions_within_groups():
    weight = np.random.default_rng(2).integers(1, 4, N).astype(float)
    rows = np.repeat(np.arange(N), weight.astype(int))
    model = KernelBoostingRegressor(kernel=KERNEL, random_state=0)
    weighted = model.fit(X, Y, weight, groups=GROUPS).predict(X)
    repeated = model.fit(X[rows], Y[rows], groups=GROUPS[rows]).predict(X)
    assert np.array_equal(weighted, repeated)


def test_equal_rows_of_different_groups_stay_apart():
    """A copy of each row in another group tells the target of a row that is left out."""
    model = KernelBoostingRegressor(kernel=KERNEL, random_state=0)
    twice, other = np.tile(X, (2, 1)), np.append(GROUPS, GROUPS + 40)
    together = model.fit(twice, np.tile(Y, 2), groups=np.tile(GROUPS, 2)).regularization_
    apart = model.fit(twice, np.tile(Y, 2), groups=other).regularization_
    assert apart < together


def test_groups_may_have_any_labels_and_times_any_unit():
    model = SparseKernelRidge(n_basis=60, kernel=KERNEL, random_state=0)
    found = model.fit(X, Y, groups=GROUPS).predict(X)
    names = np.array([f"g{k:02}" for k in range(40)])[GROUPS]
    assert np.array_equal(found, model.fit(X, Y, groups=names).predict(X))
    days = np.datetime64("2024-01-01") + GROUPS
    in_days = model.fit(X, Y, time=days).predict(X)
    assert np.array_equal(in_days, model.fit(X, Y, time=1e-6 * GROUPS - 7).predict(X))


def test_one_group_of_rows_is_known_only():
    """A sample of the rows may hold one group, although the table has two."""
    groups = np.where(np.arange(N) == 0, 1, 0)
    model = KernelBoostingRegressor(kernel=KERNEL, random_state=0).fit(X, Y, groups=groups)
    assert np.isfinite(model.predict(X)).all()


def test_structured_outputs_leave_out_rows_without_weight():
    labels = np.argsort(np.column_stack([Y, -Y, X[:, 3]]), axis=1) + 1
    weight = (np.arange(N) % 5 > 0).astype(float)
    model = OutputKernelBoostingRegressor("ranking", learner="kernel", random_state=0)
    kept = weight > 0
    found = model.fit(X, labels, weight, groups=GROUPS).predict_raw(X)
    assert np.allclose(found, model.fit(X[kept], labels[kept], groups=GROUPS[kept]).predict_raw(X))
    with pytest.raises(InvalidData, match="groups must hold one label for each of the 240 rows"):
        model.fit(X, labels, weight, groups=GROUPS[kept])


def test_machines_as_learners_have_the_validation_of_the_estimator():
    model = BoostingRegressor(learner=KernelBoostingRegressor(validation="groups"))
    with pytest.raises(InvalidParameter, match="validation of the KernelBoostingRegressor"):
        model.fit(X, Y)

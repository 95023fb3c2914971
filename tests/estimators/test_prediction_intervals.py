"""Calibrated intervals of every regressor: against naive twins, and what they promise."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from tests.cases import LOSSES, PLAIN
from tests.reference import conformal as naive
from tests.refusals import refused

from hilboost import BoostingRegressor, KernelBoostingRegressor, SparseKernelRidge
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import DataWarning, IncompatibleParts, InvalidData, InvalidParameter
from hilboost.estimators.subset_ensembles import (
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
)
from hilboost.kernels import Gaussian
from hilboost.losses import SquaredError

RNG = np.random.default_rng(0)
N = 360
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + (0.1 + 0.4 * (X[:, 2] > 0)) * RNG.normal(size=N)
FIT, HELD, NEW = slice(0, 120), slice(120, 240), slice(240, N)
KERNEL = {"kernel": Gaussian(1.5), "regularization": 0.1, "random_state": 0}
SUBSETS = {"kernel": Gaussian(1.5), "regularization": 0.1, "n_estimators": 2, "subset_size": 60}
FOLDS = {**PLAIN, "learner": "tree", "early_stopping": True, "cv_folds": 4}
FOLDS |= {"n_estimators": 30, "n_iter_no_change": 5}

REGRESSORS = {
    "trees": BoostingRegressor(**PLAIN),
    "ridge": BoostingRegressor(**PLAIN | {"learner": Ridge()}),
    "full-huber": KernelBoostingRegressor("huber", **KERNEL),
    "sparse": KernelBoostingRegressor(stages="sparse", n_basis=30, n_estimators=2, **KERNEL),
    "nested": SparseKernelRidge(n_basis=40, **KERNEL),
    "averaged": AveragedKernelRidge(**SUBSETS),
    "convex": ConvexKernelRidge(**SUBSETS),
    "committee": BayesianCommitteeMachine(**SUBSETS),
}


def regressor(**parameters):
    return BoostingRegressor(**PLAIN | parameters)


def ensemble(**parameters):
    return BoostingRegressor(**FOLDS | parameters)


def inside(ends, y):
    return (ends[..., 0] <= y) & (y <= ends[..., 1])


def likely(hits, coverage, n_calibration):
    """Whether a number of hits is not in the outermost 1e-5 of its distribution.

    Given the calibration rows, hits are binomial with a coverage that itself has a beta
    distribution, whose standard deviation is that of ``n_calibration`` binomial draws.
    """
    n = len(hits)
    spread = 5 * np.sqrt(coverage * (1 - coverage) / n_calibration)
    low, high = np.clip([coverage - spread, coverage + spread], 1e-9, 1 - 1e-9)
    return binom.ppf(1e-5, n, low) <= hits.sum() <= binom.ppf(1 - 1e-5, n, high)


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS.keys())
def test_every_regressor(model):
    model.fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    ends = model.predict_interval(X[NEW], 0.8)
    assert ends.shape == (len(X[NEW]), 2)
    assert likely(inside(ends, Y[NEW]), 0.8, 120)
    if model.fitted_.kernel_machine is None or model.fitted_.kernel_machine.noise is None:
        half = naive.threshold(np.abs(Y[HELD] - model.predict(X[HELD])), 0.8)
        middle = model.predict(X[NEW])
        np.testing.assert_allclose(ends, np.column_stack([middle - half, middle + half]))


@pytest.mark.filterwarnings("ignore:intervals around the quantile")
@pytest.mark.parametrize(
    "case", [LOSSES[1], *LOSSES[6:8], *LOSSES[10:11]], ids=lambda case: case.id
)
def test_losses_of_all_kinds(case):
    y = case.labels(case.draw(np.random.default_rng(1), N))
    model = case.build(**PLAIN).fit(X[FIT], y[FIT]).calibrate(X[HELD], y[HELD])
    ends = model.predict_interval(X[NEW], 0.8)
    assert ends.shape == (*y[NEW].shape, 2)
    assert (ends[..., 0] <= ends[..., 1]).all()
    for column in np.moveaxis(inside(ends, y[NEW]).reshape(len(ends), -1), 1, 0):
        assert likely(column, 0.8, 120)


def test_intervals_around_one_quantile_name_the_levels_to_fit():
    one = regressor(loss="quantile", quantile=0.95).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    with pytest.warns(
        DataWarning, match=r"quantile 0\.95 alone.*the levels 0\.05 and 0\.95 instead"
    ):
        wide = one.predict_interval(X[NEW], 0.9)
    np.testing.assert_allclose(wide.mean(axis=1), one.predict(X[NEW]))
    two = regressor(loss="quantile", quantile=[0.05, 0.95]).fit(X[FIT], Y[FIT])
    narrow = two.calibrate(X[HELD], Y[HELD]).predict_interval(X[NEW], 0.9)
    assert np.ptp(narrow, axis=1).mean() < 0.8 * np.ptp(wide, axis=1).mean()
    median = regressor(loss="quantile").fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    assert likely(inside(median.predict_interval(X[NEW]), Y[NEW]), 0.9, 120)


def test_a_fit_that_held_out_no_rows_says_so():
    model = regressor().fit(X[:60], Y[:60])
    of_machines = r"and the fit held out none: call calibrate\(X_held_out, y_held_out\) first"
    of_trees = rf"{of_machines}, or fit with early_stopping=True and cv_folds=4\.$"
    refused(InvalidData, of_trees, model.predict_interval, X)
    again = model.set_params(early_stopping=True, cv_folds=4).fit(X[:60], Y[:60])
    assert again.predict_interval(X).shape == (N, 2)
    machine = KernelBoostingRegressor(**KERNEL).fit(X[:60], Y[:60])
    refused(InvalidData, rf"{of_machines}\.$", machine.predict_interval, X)
    held_out = regressor(early_stopping=True).fit(X[FIT], Y[FIT], X_val=X[HELD], y_val=Y[HELD])
    refused(InvalidData, "not fitted to: call calibrate", held_out.predict_interval, X)


def test_quantiles_are_conformalized():
    levels = [0.05, 0.5, 0.95]
    model = regressor(loss="quantile", quantile=levels).fit(X[FIT], Y[FIT])
    ends = model.calibrate(X[HELD], Y[HELD]).predict_interval(X[NEW], 0.9)
    held, new = model.predict(X[HELD]), model.predict(X[NEW])
    rows = list(zip(held[:, 0], held[:, 2], Y[HELD], strict=True))
    expected = [naive.cqr_interval(low, high, rows, 0.9) for low, _, high in new]
    np.testing.assert_allclose(ends, expected)
    assert np.std(np.diff(ends)) > 0.1
    assert likely(inside(ends, Y[NEW]), 0.9, 120)


def test_the_levels_nearest_to_the_coverage_are_conformalized():
    model = regressor(loss="quantile", quantile=[0.05, 0.25, 0.75, 0.95]).fit(X[FIT], Y[FIT])
    model.calibrate(X[HELD], Y[HELD])
    new = model.predict(X[NEW])
    for coverage, low, high in ((0.5, 1, 2), (0.9, 0, 3)):
        ends = model.predict_interval(X[NEW], coverage)
        width = np.diff(ends)[:, 0] - (new[:, high] - new[:, low])
        np.testing.assert_allclose(width, width[0], atol=1e-12)


def test_levels_far_from_the_coverage_warn():
    model = regressor(loss="quantile", quantile=[0.05, 0.5, 0.95]).fit(X[FIT], Y[FIT])
    model.calibrate(X[HELD], Y[HELD])
    with pytest.warns(DataWarning, match=r"cover 0\.5 start from the quantiles 0\.05 and 0\.95"):
        ends = model.predict_interval(X[NEW], 0.5)
    assert likely(inside(ends, Y[NEW]), 0.5, 120)
    refused(InvalidParameter, r"such as 0\.9 for 90 %; got 90", model.predict_interval, X[NEW], 90)


def test_standard_deviations_are_multiplied():
    model = KernelBoostingRegressor(**KERNEL).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    mean, std = model.predict(X[HELD], return_std=True)
    factor = naive.threshold(np.abs(Y[HELD] - mean) / std, 0.9)
    mean, std = model.predict(X[NEW], return_std=True)
    expected = np.column_stack([mean - factor * std, mean + factor * std])
    np.testing.assert_allclose(model.predict_interval(X[NEW]), expected)


def test_weights_count_as_repetitions_and_their_unit_does_not_matter():
    weight = np.random.default_rng(1).integers(0, 4, 120)
    model = regressor().fit(X[FIT], Y[FIT])
    many = np.repeat(X[HELD], weight, 0), np.repeat(Y[HELD], weight)
    expected = model.calibrate(*many).predict_interval(X[NEW])
    model.calibrate(X[HELD], Y[HELD], weight)
    np.testing.assert_array_equal(model.predict_interval(X[NEW]), expected)
    proportions = weight / 7
    expected = model.calibrate(X[HELD], Y[HELD], proportions).predict_interval(X[NEW])
    for unit in (0.125, 7.1):
        model.calibrate(X[HELD], Y[HELD], unit * proportions)
        np.testing.assert_array_equal(model.predict_interval(X[NEW]), expected)
    model.calibrate(X[HELD], Y[HELD], np.full(120, 0.3))
    plain = model.predict_interval(X[NEW])
    np.testing.assert_array_equal(model.calibrate(X[HELD], Y[HELD]).predict_interval(X[NEW]), plain)


def test_each_of_several_targets_uses_the_rows_where_it_is_known():
    targets = np.column_stack([Y, -2 * Y])
    targets[HELD][::2, 1] = np.nan
    model = regressor().fit(X[FIT], targets[FIT]).calibrate(X[HELD], targets[HELD])
    ends, middle = model.predict_interval(X[NEW], 0.8), model.predict(X[NEW])
    held = np.abs(targets[HELD] - model.predict(X[HELD]))
    for j, rows in ((0, slice(None)), (1, slice(1, None, 2))):
        half = naive.threshold(held[rows, j], 0.8)
        np.testing.assert_allclose(ends[:, j], middle[:, [j]] + [[-half, half]])


def test_groups_are_calibrated_separately():
    groups = np.where(X[:, 2] > 0, "loud", "calm")
    model = regressor().fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD], groups=groups[HELD])
    ends = model.predict_interval(X[NEW], 0.8, groups=pd.Series(groups[NEW]))
    for name in ("loud", "calm"):
        rows = groups[NEW] == name
        held = groups[HELD] == name
        alone = regressor().fit(X[FIT], Y[FIT]).calibrate(X[HELD][held], Y[HELD][held])
        np.testing.assert_array_equal(ends[rows], alone.predict_interval(X[NEW][rows], 0.8))
        assert likely(inside(ends, Y[NEW])[rows], 0.8, held.sum())
    assert (
        np.diff(ends[groups[NEW] == "loud"]).mean()
        > 1.2 * np.diff(ends[groups[NEW] == "calm"]).mean()
    )


# Ensembles


def test_ensembles_predict_intervals_without_more_rows():
    model = ensemble().fit(X[FIT], Y[FIT])
    folds = model.fitted_.calibration.folds
    scores = np.empty(120)
    for k, member in enumerate(model.fitted_.members):
        rows = folds == k
        scores[rows] = np.abs(Y[FIT][rows] - member.predict_raw(X[FIT][rows])[:, 0])
    np.testing.assert_allclose(model.fitted_.calibration.scores[:, 0], scores)
    new = np.stack([member.predict_raw(X[NEW])[:, 0] for member in model.fitted_.members])
    expected = [naive.cv_plus_interval(row, row, scores, folds, 0.8) for row in new.T]
    np.testing.assert_allclose(model.predict_interval(X[NEW], 0.8), expected)


@pytest.mark.slow
def test_ensembles_hold_what_they_promise():
    rng = np.random.default_rng(5)
    hits = []
    for seed in range(6):
        X = rng.normal(size=(1000, 3))
        y = X[:, 0] + np.abs(X[:, 1]) + rng.normal(size=1000)
        model = ensemble(random_state=seed).fit(X[:200], y[:200])
        hits.append(inside(model.predict_interval(X[200:], 0.8), y[200:]).mean())
    # Each has a standard deviation of about sqrt(.8 · .2 / 200) = .028, their mean of .011.
    assert 0.77 < np.mean(hits) < 0.87


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_ensembles_with_any_loss_and_unit(loss):
    y = np.exp(0.5 * Y) * 1e5
    model = ensemble(loss=loss).fit(X[FIT], y[FIT])
    ends = model.predict_interval(X[NEW], 0.8)
    assert likely(inside(ends, y[NEW]), 0.84, 60)
    other = ensemble(loss=loss).fit(X[FIT], y[FIT] / 4).predict_interval(X[NEW], 0.8)
    np.testing.assert_allclose(other, ends / 4, rtol=1e-9)


def test_weights_of_ensembles():
    weight = np.random.default_rng(1).integers(1, 4, 120).astype(float)
    model = ensemble().fit(X[FIT], Y[FIT], weight)
    np.testing.assert_array_equal(model.fitted_.calibration.weight, weight)
    other = ensemble().fit(X[FIT], Y[FIT], weight / 8)
    proportions = weight * weight.sum() / (weight @ weight)
    np.testing.assert_allclose(other.fitted_.calibration.weight, proportions)


def test_intervals_do_not_depend_on_threads_or_on_how_the_fit_was_made(tmp_path):
    expected = ensemble(n_jobs=1).fit(X[FIT], Y[FIT]).predict_interval(X[NEW])
    twice = ensemble(n_jobs=2).fit(X[FIT], Y[FIT])
    for model in (twice, pickle.loads(pickle.dumps(twice))):
        np.testing.assert_array_equal(model.predict_interval(X[NEW]), expected)
    warm = ensemble(n_estimators=3, warm_start=True).fit(X[FIT], Y[FIT])
    warm.set_params(n_estimators=30).fit(X[FIT], Y[FIT])
    np.testing.assert_allclose(warm.predict_interval(X[NEW]), expected)
    checkpoint = Checkpoint(tmp_path / "c", every_stages=1)
    with pytest.raises(ZeroDivisionError):
        ensemble().fit(X[FIT], Y[FIT], callbacks=[checkpoint, lambda event: 1 / (event.stage - 4)])
    resumed = ensemble().fit(X[FIT], Y[FIT], callbacks=[checkpoint])
    np.testing.assert_allclose(resumed.predict_interval(X[NEW]), expected)


def test_held_out_rows_replace_the_folds_and_a_new_fit_brings_them_back():
    model = ensemble().fit(X[FIT], Y[FIT])
    crossed = model.predict_interval(X[NEW])
    half = np.diff(model.calibrate(X[HELD], Y[HELD]).predict_interval(X[NEW]))
    np.testing.assert_allclose(half, half.max())
    np.testing.assert_array_equal(model.fit(X[FIT], Y[FIT]).predict_interval(X[NEW]), crossed)


def test_losses_with_other_predictions():
    class Spread(SquaredError):
        def inverse_link(self, raw):
            return np.hstack([raw, raw])

    model = BoostingRegressor(Spread(), **FOLDS).fit(X[FIT], Y[FIT])
    assert model.fitted_.calibration is None
    with pytest.raises(IncompatibleParts, match="nothing to put an interval around"):
        model.calibrate(X[HELD], Y[HELD])


# Refusals


def test_too_few_rows():
    model = regressor().fit(X[FIT], Y[FIT]).calibrate(X[HELD][:8], Y[HELD][:8])
    with pytest.raises(
        InvalidData, match=r"coverage of 0.9 requires at least 9 calibration rows; got 8\."
    ):
        model.predict_interval(X[NEW])
    groups = ["a"] * 3 + ["b"] * 17
    model.calibrate(X[HELD][:20], Y[HELD][:20], groups=groups)
    refused(InvalidData, "got 3 of group 'a'", model.predict_interval, X[:20], groups=groups)
    model.predict_interval(X[5:20], groups=groups[5:])
    few = ensemble(cv_folds=2).fit(X[:12], Y[:12])
    with pytest.raises(InvalidData, match="requires at least 19 calibration rows; got 12"):
        few.predict_interval(X[NEW], 0.95)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], "one label for each of the 120 rows"),
        (np.zeros((120, 1)), r'Pass one column, as in groups=table\["query"\]'),
        ([*["a"] * 119, None], "row 119 of groups is missing"),
        (np.array([b"a"] * 120), "groups must hold text or numbers"),
        (np.zeros(120, dtype="M8[D]"), "groups contains dates"),
        ("class", "groups is the text 'class'; pass the values of the rows"),
    ],
)
def test_groups_that_are_refused(groups, message):
    with pytest.raises(InvalidData, match=message):
        regressor(n_estimators=1).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD], groups=groups)


def test_groups_of_predictions_that_are_refused():
    model = regressor().fit(X[FIT], Y[FIT])
    folds = ensemble(n_estimators=2).fit(X[FIT], Y[FIT])
    for alone in (model.calibrate(X[HELD], Y[HELD]), folds):
        with pytest.raises(InvalidData, match="groups has no effect"):
            alone.predict_interval(X[:2], groups=["a", "b"])
    model.calibrate(X[HELD], Y[HELD], groups=["a"] * 120)
    refused(InvalidData, "give groups, one for each row", model.predict_interval, X[:2])
    with pytest.raises(InvalidData, match="row 1 of groups is 'b', a group without"):
        model.predict_interval(X[:2], groups=["a", "b"])


def test_rows_that_are_refused():
    with pytest.raises(NotFittedError):
        regressor().calibrate(X[HELD], Y[HELD])
    with pytest.raises(NotFittedError):
        regressor().predict_interval(X[NEW])
    model = regressor().fit(X[FIT], Y[FIT])
    for rows, message in (
        ((X[HELD], Y[:3]), "inconsistent numbers of rows: 120 and 3"),
        ((X[:1], [np.nan]), "NaN in row 0"),
        ((X[HELD, :2], Y[HELD]), "features"),
        ((X[:2], Y[:2], [1, -1]), "sample_weight must not be negative"),
        ((X[:2], Y[:2], [0, 0]), "at least one must be positive"),
    ):
        refused(ValueError, message, model.calibrate, *rows)
    model.calibrate(X[HELD], Y[HELD])
    for coverage in (0, 1, "half"):
        with pytest.raises(InvalidParameter, match="coverage must be between 0 and 1"):
            model.predict_interval(X[NEW], coverage)


@pytest.mark.parametrize("parameters", [PLAIN, FOLDS], ids=["calibrated", "folds"])
def test_intervals_of_counts_are_not_negative(parameters):
    counts = np.random.default_rng(3).poisson(np.exp(X[:, 0] - 1)).astype(float)
    model = BoostingRegressor("poisson", **parameters).fit(X[FIT], counts[FIT])
    if parameters is PLAIN:
        model.calibrate(X[HELD], counts[HELD])
    ends = model.predict_interval(X[NEW], 0.9)
    assert (ends[:, 0] == 0).any()
    assert (ends >= 0).all()
    assert inside(ends, counts[NEW]).mean() > 0.82

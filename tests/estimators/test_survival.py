"""Survival models: their functions, learners, files, and invalid times."""

import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor
from tests.cases import PLAIN, assert_same_model
from tests.refusals import refused
from tests.reloaded import reloaded

from hilboost import BoostingSurvival
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter

SHORT = {name: value for name, value in PLAIN.items() if name != "multi_output"}
SHORT |= {"min_samples_leaf": 5}


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = rng.weibull(1.5, size=n) * np.exp(-0.8 * X[:, 0])
    end = rng.exponential(2.0, size=n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= end, np.minimum(time, end) + 1e-3
    return X, y


def alike(event, time, n=300):
    return np.array([(event, time)] * n, dtype=Y.dtype)


X, Y = draw()
KINDS = [{"loss": "cox"}, {"loss": "cox", "ties": "efron"}] + [
    {"loss": "aft", "distribution": name} for name in ("normal", "logistic", "extreme")
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda k: "-".join(k.values()))


@kinds
def test_fits_predict_risks_and_survival(kind):
    model = BoostingSurvival(**kind, **SHORT | {"n_estimators": 30}).fit(X, Y)
    assert model.score(X, Y) > 0.72
    predicted = model.predict(X)
    sign = 1 if kind["loss"] == "cox" else -1
    assert model._predict_risk_score == (sign == 1)
    assert np.corrcoef(sign * predicted, X[:, 0])[0, 1] > 0.5
    times = np.array([0.0, 0.5, 1.0, 2.0])
    survival = model.predict_survival_function(X, times)
    hazard = model.predict_cumulative_hazard_function(X, times)
    np.testing.assert_allclose(survival, np.exp(-hazard))
    assert (np.diff(survival, axis=1) <= 0).all()
    np.testing.assert_array_equal(survival[:, 0], 1)
    functions = model.predict_survival_function(X[:2])
    np.testing.assert_array_equal(functions[0].x, model.event_times_)
    at = functions[1](model.event_times_[[3, 7]])
    np.testing.assert_allclose(
        at, model.predict_survival_function(X[1:2], functions[0].x)[0, [3, 7]]
    )
    first, last = model.event_times_[[0, -1]]
    shown = f"StepFunction({len(model.event_times_)} times from {first:g} to {last:g})"
    assert repr(functions[0]) == shown
    assert functions[0](0.0) == 1
    assert functions[0].domain == (0.0, model.event_times_[-1])
    if sign < 0:  # half of the events happen before the median
        median = [
            model.predict_survival_function(X[k : k + 1], predicted[k : k + 1])[0, 0]
            for k in (0, 1)
        ]
        np.testing.assert_allclose(median, 0.5)


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_medians(loss):
    y, late = Y.copy(), Y["time"] > 0.8
    y["event"][late], y["time"][late] = False, 0.8
    model = BoostingSurvival(loss, **SHORT | {"n_estimators": 40}).fit(X, y)
    median = model.predict_median(X)
    never = model.predict_survival_function(X, [model.event_times_[-1]])[:, 0] > 0.5
    assert loss == "aft" or never.any()
    np.testing.assert_array_equal(np.isinf(median), never & (loss != "aft"))
    rows = np.flatnonzero(np.isfinite(median))[:20]
    before = model.event_times_[np.searchsorted(model.event_times_, median[rows]) - 1]
    for times, sign in ((median[rows] * (1 + 1e-9), 1), (before, -1)):
        survival = np.diag(model.predict_survival_function(X[rows], times))
        assert (sign * survival <= sign * 0.5).all()
    if loss == "aft":
        np.testing.assert_array_equal(median, model.predict(X))


def test_times_that_overflow_are_large_numbers():
    model = BoostingSurvival("aft", **SHORT).fit(X, Y, offset=np.zeros(len(X)))
    far = np.where(X[:, 0] > 0, -1e4, 1e4)
    assert np.isfinite(model.predict(X, offset=far)).all()
    assert np.isfinite(model.predict_distribution(X, offset=far).quantile([0.1, 0.9])).all()


@pytest.mark.parametrize("kind", KINDS[::2], ids=lambda k: "-".join(k.values()))
def test_calibration(kind):
    """On other rows, the expected number of events is about the number of events."""
    model = BoostingSurvival(**kind, n_estimators=100, random_state=0).fit(X, Y)
    new, labels = draw(1000, seed=1)
    hazards = model.predict_cumulative_hazard_function(new, labels["time"])
    assert 0.8 < labels["event"].sum() / np.diag(hazards).sum() < 1.25


def test_baseline_by_hand():
    model = BoostingSurvival(**SHORT).fit(X, Y)
    risk, total, found = np.exp(model.predict(X)), 0.0, []
    for t in model.event_times_:
        total += (Y["event"] & (Y["time"] == t)).sum() / risk[Y["time"] >= t].sum()
        found.append(total)
    np.testing.assert_allclose(model.fitted_.survival.hazard[0], found, rtol=1e-12)


def test_forms_of_the_times():
    upper = np.where(Y["event"], Y["time"], np.inf)
    bounds = np.column_stack([Y["time"], upper])
    missing = np.where(np.isinf(bounds), np.nan, bounds)
    other = Y[["time", "event"]]
    one = BoostingSurvival(**SHORT).fit(X, Y)
    for y in (bounds, missing, other):
        assert_same_model(one, BoostingSurvival(**SHORT).fit(X, y))
        assert one.score(X, y) == one.score(X, Y)


def test_weights_entry_and_strata():
    times = np.random.default_rng(2).integers(0, 3, size=len(X))
    entry, strata = 0.3 * Y["time"], np.where(X[:, 1] > 0, "b", "a")
    given = {"entry": entry, "strata": strata}
    weighted = BoostingSurvival(**SHORT).fit(X, Y, times, **given)
    rows = np.repeat(np.arange(len(X)), times)
    repeated = BoostingSurvival(**SHORT).fit(
        X[rows], Y[rows], entry=entry[rows], strata=strata[rows]
    )
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    survival = weighted.predict_survival_function(X[:9], [1.0], strata=strata[:9])
    np.testing.assert_array_equal(
        survival, repeated.predict_survival_function(X[:9], [1.0], strata=strata[:9])
    )
    assert len(np.unique(weighted.fitted_.survival.hazard[:, -1])) == 2
    assert weighted.score(X, Y, strata=strata) > 0.7


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_order_of_the_rows_and_repetition_change_no_bit(loss):
    rng = np.random.default_rng(4)
    times, order = rng.integers(0, 3, size=len(X)), rng.permutation(len(X))
    weighted = BoostingSurvival(loss, **SHORT).fit(X, Y, times)
    moved = BoostingSurvival(loss, **SHORT).fit(X[order], Y[order], times[order])
    assert_same_model(weighted, moved)
    rows = np.repeat(np.arange(len(X)), times)
    repeated = BoostingSurvival(loss, **SHORT).fit(X[rows], Y[rows])
    for name in ("predict", "predict_survival_function"):
        arguments = (X, [0.5, 1.0])[: 1 + (name != "predict")]
        expected = getattr(weighted, name)(*arguments)
        np.testing.assert_array_equal(getattr(repeated, name)(*arguments), expected)
        np.testing.assert_array_equal(getattr(moved, name)(*arguments), expected)


@pytest.mark.parametrize("loss", ["cox", "aft"])
@pytest.mark.parametrize("cv_folds", [1, 3])
def test_held_out_rows(loss, cv_folds):
    parameters = SHORT | {"early_stopping": True, "n_estimators": 40, "n_iter_no_change": 5}
    model = BoostingSurvival(loss, **parameters, cv_folds=cv_folds, eval_metric="concordance")
    model.fit(X, Y)
    found = model.history_.metrics["concordance"]
    assert found[0] == 0.5
    assert model.n_estimators_ == np.argmax(found)
    assert found.max() > 0.65


def test_rows_of_the_user_and_files():
    held = draw(seed=3)
    strata, strata_val = X[:, 1] > 0, held[0][:, 1] > 0
    for loss, given in (("cox", {"strata": strata}), ("aft", {})):
        val = {"strata_val": strata_val} if given else {}
        model = BoostingSurvival(loss, **SHORT, eval_metric="c_index")
        model.fit(X, Y, X_val=held[0], y_val=held[1], **given, **val)
        more = {"strata": strata_val} if given else {}
        assert model.history_.metrics["concordance"][-1] == model.score(*held, **more)
        loaded = reloaded(model)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(
            loaded.predict_survival_function(held[0], [0.5, 2.0], **more),
            model.predict_survival_function(held[0], [0.5, 2.0], **more),
        )


def test_warm_start():
    whole = BoostingSurvival(**SHORT).fit(X, Y)
    part = BoostingSurvival(**SHORT | {"n_estimators": 4}, warm_start=True).fit(X, Y)
    assert_same_model(part.set_params(n_estimators=10).fit(X, Y), whole)


@pytest.mark.parametrize(
    ("loss", "learner"),
    [
        *(("cox", "kernel"), ("aft", "linear"), ("cox", ["tree", "linear"])),
        ("aft", DecisionTreeRegressor(max_depth=2)),
    ],
    ids=["kernel", "linear", "mixed", "own"],
)
def test_learners(loss, learner):
    model = BoostingSurvival(loss, learner=learner, n_estimators=5, random_state=0)
    assert model.fit(X, Y).score(X, Y) > 0.7


def test_concordance_is_that_of_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics")
    model = BoostingSurvival(**SHORT | {"n_estimators": 2}).fit(X, Y)
    time = np.ceil(4 * Y["time"])
    y = np.array(list(zip(Y["event"], time, strict=True)), dtype=Y.dtype)
    expected = metrics.concordance_index_censored(Y["event"], time, model.predict(X))[0]
    assert model.score(X, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_scores_of_scikit_survival(loss):
    metrics = pytest.importorskip("sksurv.metrics")
    late = Y["time"] > np.quantile(Y["time"], 0.95)
    train, test = np.flatnonzero(~late | (np.arange(300) < 150)), np.flatnonzero(~late)
    model = BoostingSurvival(loss, **SHORT).fit(X[train], Y[train])
    Z, y, risk = X[test], Y[test], -model.predict(X[test])
    risk = risk if loss == "aft" else -risk
    times = np.quantile(y["time"][y["event"]], np.linspace(0.1, 0.9, 50))
    survival = model.predict_survival_function(Z, times)
    ipcw = metrics.concordance_index_ipcw(Y[train], y, risk)[0]
    brier = metrics.integrated_brier_score(Y[train], y, survival, times)
    given = {"y_train": Y[train]}
    assert model.score(Z, y, metric="concordance_ipcw", **given) == pytest.approx(ipcw)
    assert model.score(Z, y, metric="neg_integrated_brier", **given) == pytest.approx(-brier)
    own = metrics.concordance_index_ipcw(y, y, risk)[0]
    assert model.score(Z, y, metric="concordance_ipcw") == pytest.approx(own)
    # Rows that are observed longer than all training rows
    for metric in ("concordance_ipcw", "neg_integrated_brier"):
        assert np.isfinite(model.score(X, Y, metric=metric, y_train=Y[~late]))


def test_refused_scores():
    model = BoostingSurvival(**SHORT).fit(X, Y)
    refused(InvalidParameter, "Did you mean 'concordance'", model.score, X, Y, metric="concordence")
    with pytest.raises(InvalidParameter, match="Did you mean 'neg_integrated_brier'"):
        model.score(X, Y, metric="integrated_brier_score")
    pytest.importorskip("sksurv")
    with pytest.raises(InvalidData, match="does not support sample_weight"):
        model.score(X, Y, np.ones(300), metric="concordance_ipcw")
    bounds = np.column_stack([Y["time"], Y["time"] + 1])
    with pytest.raises(InvalidData, match="row 0 of y has bounds of an interval"):
        model.score(X, bounds, metric="concordance_ipcw")
    with pytest.raises(InvalidData, match="events at two different times"):
        model.score(X, alike(True, 1.0), metric="neg_integrated_brier")


def test_concordance_is_that_of_lifelines():
    utils = pytest.importorskip("lifelines.utils")
    model = BoostingSurvival("aft", **SHORT).fit(X, Y)
    expected = utils.concordance_index(Y["time"], model.predict(X), Y["event"])
    assert model.score(X, Y) == pytest.approx(expected, rel=1e-12)


def test_defined_results():
    y = alike(True, 1.0)
    cox, aft, hazard = (
        BoostingSurvival(loss, **SHORT).fit(X, y) for loss in ("cox", "aft", "discrete_hazard")
    )
    np.testing.assert_array_equal(cox.predict(X), 0)
    found = cox.predict_survival_function(X[:1], [0.5, 1.0])
    np.testing.assert_allclose(found, [[1, np.exp(-1)]])
    np.testing.assert_allclose(aft.predict(X), 1)
    assert len(np.unique(hazard.predict(X))) == 1
    np.testing.assert_allclose(hazard.predict_survival_function(X[:1], [1.0, 2.0]), 0, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": Y["time"]}, "structured array"),
        ({"y": np.column_stack([Y["time"]] * 3)}, "structured array"),
        ({"y": np.zeros(300, dtype="f8,f8")}, "structured array"),
        ({"y": Y[:-1]}, "inconsistent numbers of rows"),
        ({"y": alike(True, -1.0)}, "negative"),
        ({"y": alike(True, np.nan)}, "missing"),
        ({"y": alike(False, np.inf)}, "infinite"),
        ({"y": np.tile([2.0, 1.0], (300, 1))}, "exchange them, or pass events"),
        ({"y": alike(False, 1.0)}, "no event"),
        ({"y": alike(True, 0.0)}, "all times of y are 0"),
        ({"y": alike(False, 0.0)}, "all times of y are 0"),
        ({"y": np.zeros((300, 2))}, "all times of y are 0"),
        ({"y": None}, "requires y"),
        ({"y": Y["event"], "sample_weight": Y["time"]}, "together as y: the third argument is"),
        ({"y": Y["time"], "sample_weight": Y["event"]}, "together as y: the third argument is"),
        ({"entry": Y["time"]}, "entry time of row 0"),
        ({"entry": Y["time"][:-1]}, "entry must hold"),
        ({"strata": Y["time"][:-1]}, "strata must hold"),
    ],
)
def test_bad_times(change, message):
    refused(InvalidData, message, BoostingSurvival(**SHORT).fit, **{"X": X, "y": Y} | change)


def test_bad_use():
    model = BoostingSurvival(**SHORT).fit(X, Y)
    refused(InvalidData, "without strata", model.predict_survival_function, X, strata=Y["event"])
    with pytest.raises(InvalidParameter, match="Valid values: aft, cox, discrete_hazard"):
        BoostingSurvival("log_loss").fit(X, Y)
    for times, message in (
        (1.0, "a list of one or more numbers; got 1.0"),
        ([[1.0]], "a list of one"),
        (["a"], "a list of one"),
        ([], "a list of one"),
        ([1.0, -1.0], "0 or more; number 1 is -1"),
        ([np.nan], "0 or more; number 0 is nan"),
    ):
        refused(InvalidData, message, model.predict_survival_function, X, times)
    with pytest.raises(IncompatibleParts, match="not a finite number on these rows"):
        model.score(X[:2], alike(False, 1.0, 2))
    model.fit(X, Y, strata=Y["event"])
    refused(InvalidData, "pass the stratum", model.predict_survival_function, X)
    with pytest.raises(InvalidData, match="not one of the strata"):
        model.predict_survival_function(X, strata=np.full(300, 7))


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_functions_have_the_values_of_the_times(loss):
    model = BoostingSurvival(loss, n_estimators=3, early_stopping=False).fit(X, Y)
    last = model.event_times_[-1]
    times = [0.0, 0.3, last / 2, last, 2 * last, 10 * last]
    for predict in (model.predict_survival_function, model.predict_cumulative_hazard_function):
        values = predict(X[:3], times)
        functions = pickle.loads(pickle.dumps(predict(X[:3])))
        np.testing.assert_array_equal([one(times) for one in functions], values)
        assert functions[1](times[-1]) == values[1, -1]
        assert (values[0, -1] == values[0, -3]) == (loss != "aft")


def test_metrics_of_scikit_survival_accept_the_model():
    metrics = pytest.importorskip("sksurv.metrics")
    late = Y["time"] > np.quantile(Y["time"], 0.95)
    train, times = (
        np.flatnonzero(~late | (np.arange(300) < 150)),
        np.quantile(Y["time"], [0.2, 0.5]),
    )
    test = np.flatnonzero(~late)
    for loss in ("cox", "aft", "discrete_hazard"):
        model = BoostingSurvival(loss, **SHORT).fit(X[train], Y[train])
        risk = model.predict(X[test]) if loss != "aft" else -model.predict(X[test])
        assert metrics.concordance_index_ipcw(Y[train], Y[test], risk)[0] > 0.6
        curves = model.predict_survival_function(X[test], times)
        brier = metrics.integrated_brier_score(Y[train], Y[test], curves, times)
        functions = [curve(times) for curve in model.predict_survival_function(X[test])]
        again = metrics.integrated_brier_score(Y[train], Y[test], functions, times)
        assert again < 0.25
        assert brier == pytest.approx(again)
    scorer = metrics.as_concordance_index_ipcw_scorer(BoostingSurvival(**SHORT))
    assert scorer.fit(X[train], Y[train]).score(X[test], Y[test]) > 0.6
    scorer = metrics.as_integrated_brier_score_scorer(BoostingSurvival(**SHORT), times=times)
    assert scorer.fit(X[train], Y[train]).score(X[test], Y[test]) > -0.25

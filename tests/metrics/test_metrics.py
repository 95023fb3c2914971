"""Metrics of held-out rows: their values, and early stopping by them."""

import threading

import numpy as np
import pytest
from sklearn import metrics as sk
from tests.cases import PLAIN
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting.history import metric_value
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter, InvalidType
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses import MultinomialLogLoss, SquaredError
from hilboost.metrics import FunctionMetric, RootMeanSquaredError, metrics_by_name
from hilboost.metrics.registry import metrics_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + 0.5 * RNG.normal(size=300)
WEIGHT = RNG.uniform(0.1, 3, size=300)
EARLY = PLAIN | {"early_stopping": True, "n_estimators": 60, "n_iter_no_change": 5}
NUMBERS = {
    "mse": sk.mean_squared_error,
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
    "mape": sk.mean_absolute_percentage_error,
    "r2": sk.r2_score,
}


class Probabilities(Loss):
    """``raw`` is what the metric sees."""

    initial_raw = value = gradients = None


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["ones", "weights"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, weight):
    (metric,) = metrics_of(name, "numbers")
    predicted = Y[:, None] + RNG.normal(size=(300, 1))
    found = metric_value(metric, SquaredError(), None, [(Target(Y[:, None], weight), predicted)])
    assert found == pytest.approx(NUMBERS[name](Y, predicted[:, 0], sample_weight=weight))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["ones", "weights"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes, weight):
    raw = RNG.normal(size=(300, n_classes))
    p = MultinomialLogLoss(n_classes).inverse_link(raw)
    codes = np.array([RNG.choice(n_classes, p=row) for row in p])
    second = p[:, 1] if n_classes == 2 else p
    one_hot = np.eye(n_classes)[codes]
    given = {"sample_weight": weight}
    expected = {
        "log_loss": sk.log_loss(codes, p, **given),
        "accuracy": sk.accuracy_score(codes, p.argmax(axis=1), **given),
        "balanced_accuracy": sk.balanced_accuracy_score(codes, p.argmax(axis=1), **given),
        "auc": sk.roc_auc_score(codes, second, multi_class="ovr", **given)
        if n_classes == 2
        else np.mean([sk.roc_auc_score(codes == k, p[:, k], **given) for k in range(n_classes)]),
        "average_precision": sk.average_precision_score(
            codes if n_classes == 2 else one_hot, second, **given
        ),
        "brier": np.average(((p - one_hot) ** 2).sum(axis=1), weights=weight)
        / (2 if n_classes == 2 else 1),
    }
    names = {metric.names[0] for metric in metrics_by_name().values() if metric.kind == "classes"}
    assert names == expected.keys()
    target = Target(codes[:, None].astype(float), weight)
    for name in names:
        (metric,) = metrics_of(name, "classes")
        assert metric_value(metric, Probabilities(), None, [(target, p)]) == pytest.approx(
            expected[name]
        ), name


def test_scorer_names_of_sklearn():
    known = set(sk.get_scorer_names())
    aliases = [n for n in metrics_by_name() if n.startswith("neg_") or n in known]
    assert {"neg_mean_squared_error", "roc_auc", "accuracy", "r2"} <= set(aliases) <= known


@pytest.mark.parametrize(
    ("kind", "others", "same"),
    [
        ("numbers", "l1 MAE absolute_error", "mae"),
        ("numbers", "l2 squared_error", "mse"),
        ("numbers", "RMSE l2_root", "rmse"),
        ("classes", "acc Accuracy accuracy_score error error@0.7 merror multi_error", "accuracy"),
        ("classes", "AUC roc_auc_score auc_mu", "auc"),
        ("classes", "aucpr PRAUC average_precision_score", "average_precision"),
        ("classes", "logloss mlogloss binary_logloss multi_logloss CrossEntropy", "log_loss"),
        ("classes", "brier_score_loss", "brier"),
        ("groups", "NDCG ndcg_score ndcg-", "ndcg"),
        ("groups", "NDCG@5 NDCG:top=5 ndcg@5-", "ndcg@5"),
        ("groups", "MAP mean_average_precision", "map"),
        ("survival", "concordance_index cindex", "concordance"),
    ],
)
def test_names_of_other_libraries(kind, others, same):
    metrics_of(same, kind)
    for name in others.split():
        with pytest.raises(InvalidParameter, match=f"Did you mean '{same}'"):
            metrics_of(name, kind)
    for other in {"numbers", "classes", "groups", "survival"} - {kind}:
        with pytest.raises(InvalidParameter, match="is a metric of"):
            metrics_of(others.split()[0], other)


@pytest.mark.parametrize("name", ["poisson", "quantile", "gamma_deviance", "cox-nloglik", "huber"])
def test_names_of_losses(name):
    with pytest.raises(InvalidParameter, match=f"eval_metric='{name}' is a loss; set it as the l"):
        metrics_of(name, "numbers")


def test_several_targets_with_missing_values():
    y = np.column_stack([Y, Y**2])
    y[::3, 1] = np.nan
    known = ~np.isnan(y)
    found = metric_value(
        RootMeanSquaredError(), SquaredError(), None, [(Target(y, WEIGHT), np.zeros_like(y))]
    )
    weights = np.broadcast_to(WEIGHT[:, None], y.shape)[known]
    assert found == pytest.approx(np.sqrt(np.average(y[known] ** 2, weights=weights)))


def test_all_metrics_are_recorded_and_the_first_one_stops():
    model = BoostingRegressor(**EARLY, eval_metric=["mae", "r2"]).fit(X, Y)
    history = model.history_
    assert list(history.metrics) == ["mae", "r2"]
    assert all(len(v) == len(history.train) for v in history.metrics.values())
    assert model.n_estimators_ == np.argmin(history.metrics["mae"])
    by_r2 = BoostingRegressor(**EARLY, eval_metric=["r2", "mae"]).fit(X, Y)
    assert by_r2.n_estimators_ == np.argmax(by_r2.history_.metrics["r2"])


@pytest.mark.parametrize("cv_folds", [1, 3])
def test_metrics_of_held_out_rows(cv_folds):
    labels = np.where(Y > 0, "yes", "no")
    parameters = EARLY | {"cv_folds": cv_folds, "n_estimators": 4, "n_iter_no_change": 9}
    model = BoostingClassifier(**parameters, eval_metric=["log_loss", "auc"])
    model.fit(X, labels, sample_weight=WEIGHT)
    history = model.history_
    np.testing.assert_allclose(history.metrics["log_loss"], history.validation, rtol=1e-12)
    assert history.metrics["auc"][0] == 0.5
    assert history.metrics["auc"][-1] > 0.8


def test_validation_rows_of_the_user_without_stopping():
    model = BoostingRegressor(**PLAIN | {"n_estimators": 5}, eval_metric="rmse")
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    expected = [sk.root_mean_squared_error(Y[200:], p) for p in model.staged_predict(X[200:])]
    np.testing.assert_allclose(model.history_.metrics["rmse"][1:], expected)


def test_units_of_the_loss_do_not_matter():
    y = np.exp(Y) * 1e-3
    model = BoostingRegressor("gamma", **PLAIN | {"n_estimators": 5}, eval_metric="mae")
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    expected = sk.mean_absolute_error(y[200:], model.predict(X[200:]))
    assert model.history_.metrics["mae"][-1] == pytest.approx(expected)


def test_functions():
    metric = FunctionMetric(sk.median_absolute_error, name="median")
    model = BoostingRegressor(**EARLY, eval_metric=metric).fit(X, Y)
    assert model.n_estimators_ == np.argmin(model.history_.metrics["median"])
    weighted = FunctionMetric(sk.r2_score, higher_is_better=True)
    model = BoostingRegressor(**EARLY, eval_metric=weighted).fit(X, Y, sample_weight=WEIGHT)
    assert model.n_estimators_ == np.argmax(model.history_.metrics["r2_score"])


def test_small_tables_hold_rows_out_for_a_metric():
    assert BoostingRegressor(eval_metric="mae").fit(X[:50], Y[:50]).history_.metrics


def test_files_and_warm_starts_keep_the_metrics():
    parameters = EARLY | {"n_iter_no_change": 60}
    whole = BoostingRegressor(**parameters, eval_metric="mae").fit(X, Y)
    part = BoostingRegressor(**parameters | {"n_estimators": 20}, eval_metric="mae")
    part.set_params(warm_start=True).fit(X, Y)
    kept = part.n_estimators_
    part.set_params(n_estimators=60).fit(X, Y)
    np.testing.assert_array_equal(
        part.history_.metrics["mae"][: kept + 1], whole.history_.metrics["mae"][: kept + 1]
    )
    loaded = reloaded(whole)
    np.testing.assert_array_equal(loaded.history_.metrics["mae"], whole.history_.metrics["mae"])
    with pytest.raises(InvalidData, match="another eval_metric"):
        part.set_params(eval_metric="r2", n_estimators=70).fit(X, Y)


def test_checkpoints_keep_the_metrics(tmp_path):
    parameters = EARLY | {"eval_metric": "mae", "n_estimators": 8, "n_iter_no_change": 9}

    def stop(event):
        if event.stage == 4:
            raise KeyboardInterrupt

    def fit(*callbacks):
        return BoostingRegressor(**parameters).fit(
            X, Y, callbacks=[Checkpoint(tmp_path / "fit", every_stages=1), *callbacks]
        )

    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        fit(stop)
    resumed = fit()
    whole = BoostingRegressor(**parameters).fit(X, Y)
    np.testing.assert_array_equal(resumed.history_.metrics["mae"], whole.history_.metrics["mae"])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("rmsee", InvalidParameter, "Did you mean 'rmse'"),
        ("RMSE", InvalidParameter, r"Did you mean 'rmse'\?"),
        ("L1", InvalidParameter, r"Did you mean 'mae'\?"),
        (
            "auc",
            InvalidParameter,
            "is a metric of classes; for numbers, use one of crps, interval_score",
        ),
        (["mae", "neg_mean_absolute_error"], InvalidParameter, "contains 'mae' twice"),
        ([sk.r2_score], InvalidType, "FunctionMetric"),
        (metrics_by_name()["auc"], InvalidParameter, "'auc' is a metric of classes; for"),
    ],
)
def test_refusals(given, error, message):
    with pytest.raises(error, match=message):
        BoostingRegressor(**EARLY, eval_metric=given).fit(X, Y)


def test_functions_that_do_not_fit_the_predictions():
    def fit(function):
        return BoostingClassifier(**EARLY, eval_metric=FunctionMetric(function)).fit(X, Y > 0)

    with pytest.raises(
        IncompatibleParts, match=r"'f1_score' fails .* of shape \(\d+, 2\), in clas"
    ):
        fit(sk.f1_score)
    with pytest.raises(
        IncompatibleParts, match=r"'<lambda>' must return a number; it returned \('"
    ):
        fit(lambda y, p: ("cost", 1.0, False))
    fit(lambda y, p: np.float32(sk.f1_score(y, p[:, 1] > 0.5)))


def test_no_held_out_rows():
    with pytest.raises(InvalidParameter, match="computed on held-out rows"):
        BoostingRegressor(early_stopping=False, eval_metric="mae").fit(X, Y)


def correlation(y, predicted, sample_weight=None):
    return np.corrcoef(y, predicted - predicted[0])[0, 1]


@pytest.mark.parametrize("cv_folds", [1, 3, 4])
@pytest.mark.parametrize("stopping", [True, False])
def test_stages_without_a_value_are_skipped(cv_folds, stopping, tmp_path):
    metric = FunctionMetric(correlation, higher_is_better=True)
    parameters = EARLY | {"cv_folds": cv_folds, "early_stopping": stopping, "n_estimators": 30}
    model = BoostingRegressor(**parameters, eval_metric=[metric, "mae"], warm_start=True)
    held_out = {} if stopping else {"X_val": X[200:], "y_val": Y[200:]}
    values = model.fit(X[:200], Y[:200], **held_out).history_.metrics["correlation"]
    assert np.isfinite(values[1:]).all()
    assert np.isnan(values[0])
    if stopping:
        assert model.n_estimators_ == np.nanargmax(values) > 0
    again = model.set_params(n_estimators=40).fit(X[:200], Y[:200], **held_out).history_
    known = min(len(values), model.n_estimators_ + 1)
    np.testing.assert_array_equal(again.metrics["correlation"][:known], values[:known])
    model.set_params(eval_metric=None).save(tmp_path / "model")
    loaded = hilboost.load(tmp_path / "model").history_
    np.testing.assert_array_equal(loaded.metrics["correlation"], again.metrics["correlation"])


def test_a_metric_that_never_has_a_value_names_the_stages():
    metric = FunctionMetric(lambda y, p: np.nan, name="odd")
    given = EARLY | {"n_estimators": 50, "n_iter_no_change": 5, "cv_folds": 1}
    with pytest.raises(IncompatibleParts, match=r"'odd' is not .* at any of the stages 0 to 5,"):
        BoostingRegressor(**given, eval_metric=metric).fit(X, Y)
    tried = given | {"max_features": "auto", "l2_regularization": "auto"}  # by trial runs
    with pytest.raises(IncompatibleParts, match="'odd' is not a finite number"):
        BoostingRegressor(**tried, eval_metric=metric).fit(X, Y)
    model = BoostingRegressor(**given, eval_metric=["mae", metric]).fit(X, Y)
    assert np.isnan(model.history_.metrics["odd"]).all()


def test_metrics_that_have_no_value():
    with pytest.raises(InvalidData, match="all 2 classes"):
        BoostingClassifier(**EARLY, eval_metric="auc").fit(
            X, Y > 0, X_val=X[:9] + 1e-9, y_val=np.ones(9, dtype=bool)
        )
    with pytest.raises(IncompatibleParts, match="not a finite number"):
        BoostingRegressor(**EARLY, eval_metric=FunctionMetric(lambda y, p: np.nan)).fit(X, Y)
    with pytest.raises(IncompatibleParts, match="one prediction for each target"):
        BoostingRegressor("quantile", quantile=[0.1, 0.9], **EARLY, eval_metric="mae").fit(X, Y)
    with pytest.raises(IncompatibleParts, match="requires probabilities"):
        BoostingClassifier("hinge", **EARLY, eval_metric="log_loss").fit(X, Y > 0)


def test_metrics_and_losses_that_count_their_calls_in_several_threads():
    calls, threads = [], set()

    def errors(y, raw):
        calls.append(len(y))
        threads.add(threading.get_ident())
        return raw - y, np.ones_like(y)

    def spread(y, predicted):
        calls.append(-len(y))
        return float(np.mean(np.abs(y - predicted)))

    rng = np.random.default_rng(0)
    table = rng.normal(size=(20_000, 14))
    target = table[:, 0] + rng.normal(size=20_000)
    settings = EARLY | {"learner": "tree", "cv_folds": 3, "n_estimators": 4}
    plain = BoostingRegressor(**settings, eval_metric=["mae"], n_jobs=1).fit(table, target)
    metric = FunctionMetric(spread)
    models = [
        BoostingRegressor(errors, **settings, eval_metric=[metric], n_jobs=n_jobs).fit(
            table, target
        )
        for n_jobs in (1, 3)
    ]
    np.testing.assert_array_equal(models[0].predict(table), models[1].predict(table))
    assert models[1].n_estimators_ == plain.n_estimators_
    assert min(calls) < 0 < max(calls)
    assert len(threads) > 1

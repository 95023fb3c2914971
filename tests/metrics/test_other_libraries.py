"""Metrics of rankings, and likelihoods of times, against XGBoost and CatBoost where installed."""

import warnings

import numpy as np
import pytest

from hilboost.boosting import metric_value
from hilboost.core.target import Target
from hilboost.losses import AFT, LambdaRank
from hilboost.metrics import NDCG, MeanAveragePrecision, MeanReciprocalRank

RNG = np.random.default_rng(0)
QUERY = np.repeat(np.arange(30), RNG.integers(2, 25, size=30))
LABELS, SCORES = RNG.integers(0, 5, size=len(QUERY)), RNG.normal(size=len(QUERY))
RELEVANT = (LABELS > 2).astype(int)
SCORES = SCORES.astype(np.float32).astype(np.float64)  # without ties, which others do not average


def library(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def value(metric, y):
    target = Target(y[:, None].astype(np.float64), None, QUERY)
    return metric_value(metric, LambdaRank(), None, [(target, SCORES[:, None])])


def by_xgboost(parameters, labels, margin):
    """The numbers that XGBoost finds for predictions, by name."""
    xgboost = library("xgboost")
    rows = xgboost.DMatrix(np.zeros((len(margin), 1)), base_margin=margin)
    for name, given in labels.items():
        rows.set_info(**{name: given})
    printed = xgboost.Booster(parameters, [rows]).eval(rows)
    return {
        key.partition("-")[2]: float(x) for key, x in (p.split(":") for p in printed.split()[1:])
    }


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_rankings_of_xgboost(gain):
    names = ["ndcg", "ndcg@1", "ndcg@5"]
    given = {"objective": "rank:ndcg", "ndcg_exp_gain": gain == "exponential", "eval_metric": names}
    found = by_xgboost(given, {"label": LABELS, "qid": QUERY}, SCORES)
    for name, k in zip(names, (None, 1, 5), strict=True):
        assert found[name] == pytest.approx(value(NDCG(k, gain), LABELS), abs=2e-6)
    given = {"objective": "rank:map", "eval_metric": ["map"]}
    found = by_xgboost(given, {"label": RELEVANT, "qid": QUERY}, SCORES)
    assert found["map"] == pytest.approx(value(MeanAveragePrecision(), RELEVANT), abs=2e-6)


@pytest.mark.parametrize(
    ("name", "metric", "y"),
    [
        ("NDCG:top=5;type=Exp", NDCG(5), LABELS),
        ("NDCG:top=10;type=Base", NDCG(10, "linear"), LABELS),
        ("MRR:top=5", MeanReciprocalRank(5), RELEVANT),
    ],
)
def test_rankings_of_catboost(name, metric, y):
    library("catboost")
    from catboost.utils import eval_metric

    seen = np.isin(QUERY, QUERY[y > 0])  # groups without a relevant row have other values there
    found = eval_metric(y[seen], SCORES[seen], name, group_id=QUERY[seen])[0]
    n_groups, n_seen = len(np.unique(QUERY)), len(np.unique(QUERY[seen]))
    expected = (found * n_seen + (n_groups - n_seen)) / n_groups
    assert value(metric, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("distribution", ["normal", "logistic", "extreme"])
def test_likelihoods_of_xgboost(distribution):
    n, scale = 60, 0.7
    lower = RNG.uniform(0.5, 4, size=n)
    upper = np.choose(np.arange(n) % 3, [lower, 1.5 * lower, np.full(n, np.inf)])
    log_time = np.log(lower) + 0.5 * RNG.normal(size=n)
    bounds = {"label_lower_bound": lower, "label_upper_bound": upper}
    given = {
        "objective": "survival:aft",
        "eval_metric": "aft-nloglik",
        "aft_loss_distribution": distribution,
        "aft_loss_distribution_scale": scale,
    }
    found = by_xgboost(given, bounds, log_time)["aft-nloglik"]
    target = Target(np.column_stack([lower, upper, 0 * lower, 0 * lower]))
    own = AFT(distribution, scale).value(target, -log_time[:, None]).mean()
    assert found == pytest.approx(own, rel=2e-6)

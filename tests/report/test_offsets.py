"""Reports with offsets: scores, baselines, intervals and importances of the whole prediction."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, mean_absolute_error

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    report,
)
from hilboost.core.errors import DataWarning, InvalidData, InvalidParameter
from hilboost.report import compare, scores

FAST = {"n_estimators": 8, "early_stopping": False, "random_state": 0}
RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 3))
OFFSET = RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(X[:, 0] + OFFSET)).astype(float)
CLASSES = (RNG.uniform(size=N) < expit(X[:, 0] + OFFSET)).astype(int)


def by_key(facts):
    return {one["key"]: one for one in facts["scores"]}


def test_numbers():
    model = BoostingRegressor("poisson", learner="tree", **FAST).fit(X, COUNTS, offset=OFFSET)
    model.calibrate(X + 1e-9, COUNTS, offset=OFFSET)
    facts = model.report(X, COUNTS, X_train=X[:50], offset=OFFSET, sample_weight=np.ones(N)).facts
    mae = by_key(facts)["mae"]
    assert mae["value"] == pytest.approx(mean_absolute_error(COUNTS, model.predict(X, OFFSET)))
    start = np.exp(model.model_.initial_raw + OFFSET)
    assert mae["guess"] == pytest.approx(mean_absolute_error(COUNTS, start))
    assert facts["regression"][0]["scores"][0]["value"] == by_key(facts)["r2"]["value"]
    assert facts["importance"]["loss"] == pytest.approx(
        model.loss_.value(
            type("T", (), {"y": COUNTS[:, None]}), model.predict_raw(X, OFFSET)
        ).mean()
    )
    covered = {one["nominal"]: one["calibrated"] for one in facts["intervals"]["coverage"]}
    assert covered[0.9] == pytest.approx(0.9, abs=0.02)
    assert facts["drift"]["predictions"][0]["distance"] < 0.2  # of the model without offsets
    found = {one["key"]: one for one in scores(model, X, COUNTS, offset=OFFSET)}
    assert found["mae"]["value"] == pytest.approx(mae["value"])


@pytest.mark.slow
def test_classes_and_comparisons():
    with_offset = BoostingClassifier(**FAST).fit(X, CLASSES, offset=OFFSET)
    facts = with_offset.report_facts(X, CLASSES, offset=OFFSET)
    found = by_key(facts)["log_loss"]
    assert found["value"] == pytest.approx(log_loss(CLASSES, with_offset.predict_proba(X, OFFSET)))
    start = expit(with_offset.model_.initial_raw + OFFSET)
    assert found["guess"] == pytest.approx(log_loss(CLASSES, start))
    models = {"one": with_offset, "other": BoostingClassifier(**FAST).fit(X, CLASSES)}
    page = compare(models, X, CLASSES, offset=OFFSET)
    assert by_key(page.facts)["log_loss"]["values"][0] == pytest.approx(found["value"])


def test_rankings_and_survival_times():
    query = RNG.permutation(np.repeat(np.arange(20), 10))
    ranker = BoostingRanker(**FAST).fit(X, COUNTS, groups=query, offset=OFFSET)
    facts = ranker.report_facts(X, COUNTS, groups=query, offset=OFFSET)
    expected = ranker.score(X, COUNTS, groups=query, offset=OFFSET)
    assert by_key(facts)["ndcg@10"]["value"] == pytest.approx(expected)
    y = np.empty(N, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = CLASSES, RNG.exponential(np.exp(-OFFSET))
    model = BoostingSurvival(**FAST).fit(X, y, offset=OFFSET)
    facts = report.facts(model, X, y, offset=OFFSET)
    concordance = by_key(facts)["concordance"]["value"]
    assert concordance == pytest.approx(model.score(X, y, offset=OFFSET))
    with pytest.warns(DataWarning, match="fitted with offsets"):
        alone = model.report_facts(X, y)
    assert by_key(facts)["ibs"]["value"] < by_key(alone)["ibs"]["value"]


def test_bad_offsets():
    model = BoostingRegressor(learner="tree", **FAST).fit(X, COUNTS)
    with pytest.raises(InvalidData, match="one number for each of the 200 rows"):
        model.report_facts(X, COUNTS, offset=OFFSET[:5])
    kernel = KernelBoostingRegressor(n_estimators=2).fit(X, COUNTS)
    with pytest.raises(InvalidParameter, match="KernelBoostingRegressor does not support offset"):
        kernel.report_facts(X, COUNTS, offset=OFFSET)

"""Reports on rankings and survival times: figures by their definitions and by scikit-survival."""

import json

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from tests.refusals import refused

from hilboost import BoostingRanker, BoostingRegressor, BoostingSurvival, GroupLoss
from hilboost.core.errors import InvalidParameter, InvalidType
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.report import compare, scores
from hilboost.report.ranking import ranking_facts
from hilboost.report.survival import Seen, brier
from hilboost.training.data import in_order_of_groups

FAST = {"n_estimators": 10, "early_stopping": False, "random_state": 0}
RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 3))
LABELS = np.clip(np.round(X[:, 0] + RNG.normal(size=N) + 1), 0, 3)
QUERY = np.array([f"query {k}" for k in np.sort(RNG.integers(20, size=N))])
TIME, END = RNG.exponential(np.exp(-X[:, 0])), RNG.exponential(2.0, size=N)
Y = np.empty(N, dtype=[("event", bool), ("time", float)])
Y["event"], Y["time"] = TIME <= END, np.ceil(20 * np.minimum(TIME, END)) / 20  # with ties


@pytest.fixture(scope="module")
def ranker():
    return BoostingRanker(**FAST).fit(X, LABELS, groups=QUERY)


def checked(report):
    """The facts of a page that is complete and can be written as JSON."""
    assert 'id="errors"' in report.html
    assert "nan" not in report.html
    assert json.loads(json.dumps(report.facts)) == report.facts
    return report.facts


def test_rankings(ranker):
    report = ranker.report(X, LABELS, groups=QUERY)
    facts = checked(report)
    shares = [one["ndcg"] for one in facts["ranking"]["by_length"]]
    assert all(f'width:{round(100 * share, 1)}%"' in report.html for share in shares)  # of 1
    found = {one["key"]: one for one in facts["scores"]}
    expected = ranker.score(X, LABELS, groups=QUERY)
    assert found["ndcg@10"]["value"] == pytest.approx(expected, rel=1e-12)
    assert found["ndcg@10"]["guess"] < found["ndcg@10"]["low"] < found["ndcg@10"]["value"]
    predicted, of_query = ranker.predict(X), {}
    for query in np.unique(QUERY):
        here = query == QUERY
        gains = 2.0 ** LABELS[here] - 1
        of_query[query] = ndcg_score(gains[None], predicted[here][None], k=10) if gains.any() else 1
    ranking = facts["ranking"]
    assert np.mean(list(of_query.values())) == pytest.approx(found["ndcg@10"]["value"])
    counted = sum(one["count"] * one["ndcg"] for one in ranking["by_length"])
    assert counted == pytest.approx(sum(of_query.values()))
    lowest = {one["group"]: one["value"] for one in ranking["worst"]}
    assert lowest == {query: pytest.approx(of_query[query]) for query in lowest}
    assert min(of_query, key=of_query.__getitem__) in lowest
    highest = {q: predicted[q == QUERY].max() for q in of_query}
    first = [LABELS[(q == QUERY) & (predicted == highest[q])].mean() for q in of_query]
    assert ranking["by_position"]["model"][0] == pytest.approx(np.mean(first))
    best = [LABELS[q == QUERY].max() for q in of_query]
    assert ranking["by_position"]["best"][0] == pytest.approx(np.mean(best))
    order = np.random.default_rng(1).permutation(N)
    again = ranker.report_facts(X[order], LABELS[order], groups=QUERY[order])
    assert again["ranking"]["by_length"] == ranking["by_length"]
    for name, values in ranking["by_position"].items():
        assert again["ranking"]["by_position"][name] == pytest.approx(values)
    assert scores(ranker, X, LABELS, groups=QUERY) == [
        {**one, "low": pytest.approx(one["low"]), "high": pytest.approx(one["high"])}
        for one in facts["scores"]
    ]


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_survival_times(loss):
    model = BoostingSurvival(loss, **FAST).fit(X, Y)
    facts = checked(model.report(X, Y))
    found = {one["key"]: one for one in facts["scores"]}
    assert found["concordance"]["value"] == model.score(X, Y)
    assert found["ibs"]["value"] < found["ibs"]["guess"]
    curves = facts["survival"]["curves"]
    assert sum(group["rows"] for group in curves["groups"]) == N
    assert sum(group["events"] for group in curves["groups"]) == Y["event"].sum()
    ends = [group["observed"][-1] for group in curves["groups"]]
    assert ends[0] > ends[-1]
    given = checked(model.report(X, Y, times=[0.25, 3.0]))["survival"]["curves"]["horizons"]
    assert [one["time"] for one in given] == [0.25, 3.0]
    assert given == model.report_facts(X, Y, times=[0.25, 3.0])["survival"]["curves"]["horizons"]
    for horizon in curves["horizons"] + given:
        predicted = model.predict_survival_function(X, [horizon["time"]])
        assert horizon["predicted"] == pytest.approx(1 - predicted.mean())
        stated = [one["stated"] for one in horizon["bins"]]
        assert stated == sorted(stated)


def test_rows_that_end_at_time_zero_are_at_risk_then():
    at_zero = np.arange(N) % 8
    y = Y.copy()
    y["time"][at_zero < 2], y["event"][at_zero < 2] = 0.0, at_zero[at_zero < 2] == 0
    seen = Seen(y["time"], y["event"], np.zeros(N))
    assert seen.survival(np.zeros(1)) == pytest.approx([7 / 8])
    assert seen.not_censored(np.zeros(1)) == pytest.approx([6 / 7])  # events end first
    found = {s["key"]: s for s in BoostingSurvival(**FAST).fit(X, y).report_facts(X, y)["scores"]}
    assert 0 < found["ibs"]["low"] < found["ibs"]["value"] < found["ibs"]["guess"]


def test_an_undefined_brier_score_says_why():
    y, entry = Y.copy(), np.full(N, 1.0)
    y["time"] += 1.5
    y[0], entry[0] = (False, 1.0), 0.0  # censored while no other row is at risk
    model = BoostingSurvival(**FAST).fit(X, y)
    found = {one["key"]: one for one in model.report_facts(X, y, entry=entry)["scores"]}
    assert found["ibs"]["value"] is None
    assert "undefined, because all rows at risk are censored" in found["ibs"]["says"]


def test_estimates_are_those_of_scikit_survival():
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    metrics = pytest.importorskip("sksurv.metrics")
    entry = np.where(np.arange(N) % 3 == 0, Y["time"] / 2, 0.0)
    times, expected = nonparametric.kaplan_meier_estimator(Y["event"], Y["time"], time_enter=entry)
    found = Seen(Y["time"], Y["event"], entry).survival(times)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    seen = Seen(Y["time"], Y["event"], np.zeros(N))
    times, expected = nonparametric.kaplan_meier_estimator(Y["event"], Y["time"], reverse=True)
    np.testing.assert_allclose(seen.not_censored(times), expected, rtol=1e-12)
    asked = []

    def predicted(times):
        asked.append(times)
        return 1 - np.exp(-np.exp(0.5 * X[:, :1]) * times)

    own, _ = brier(seen, predicted, None)
    expected = metrics.integrated_brier_score(Y, Y, 1 - predicted(asked[0]), asked[0])
    assert own.mean() == pytest.approx(expected, rel=1e-10)


def test_strata_and_intervals():
    strata, entry = np.where(X[:, 1] > 0, "a", "b"), Y["time"] / 3
    model = BoostingSurvival(**FAST).fit(X, Y, strata=strata, entry=entry)
    facts = checked(model.report(X, Y, strata=strata, entry=entry))
    assert facts["scores"][0]["value"] == model.score(X, Y, strata=strata)
    bounds = np.column_stack([Y["time"], Y["time"] + 0.5])
    model = BoostingSurvival("aft", **FAST).fit(X, bounds)
    facts = checked(model.report(X, bounds))
    expected = {"n_events": N, "n_causes": 1, "curves": None, "scores": [], "causes": []}
    assert facts["survival"] == expected


CAUSES = np.empty(N, dtype=[("cause", int), ("time", float)])
CAUSES["cause"], CAUSES["time"] = Y["event"] * (1 + (X[:, 2] > 0)), Y["time"]


def test_causes():
    asked = []

    class Asked(BoostingSurvival):
        def predict_cumulative_incidence_function(self, *arguments, **named):
            asked.append(arguments)
            return super().predict_cumulative_incidence_function(*arguments, **named)

    model = Asked("discrete_hazard", **FAST).fit(X, CAUSES)
    report = model.report(X, CAUSES)
    assert len(asked) == 1  # for all causes and times
    assert report.html.count("Probability of an event in all rows") == 1
    assert report.html.count("Probability of an event of this cause in all rows") == 2
    facts = checked(report)["survival"]
    assert facts["curves"] is not None
    assert "Events of cause 2" in report.html
    for one in facts["causes"]:
        event = CAUSES["cause"] == one["cause"]
        assert one["n_events"] == event.sum()
        assert sum(group["events"] for group in one["curves"]["groups"]) == event.sum()
        for horizon in one["curves"]["horizons"]:
            found = model.predict_cumulative_incidence_function(X, [horizon["time"]])
            assert horizon["predicted"] == pytest.approx(found[:, one["cause"] - 1].mean())
        c, ibs = one["scores"]
        times = np.array(one["curves"]["times"])
        found = model.predict_cumulative_incidence_function(X, times)[:, one["cause"] - 1]
        assert c["value"] == pytest.approx(concordance_of(one["cause"], found.mean(axis=1)))
        assert ibs["value"] < ibs["guess"]
        low, high = (one["curves"]["groups"][k]["observed"][-1] for k in (0, -1))
        assert low < high


def concordance_of(cause, risk):
    """Share of the pairs whose first row has the event while the other one does not (Wolbers)."""
    time = np.where((CAUSES["cause"] > 0) & (CAUSES["cause"] != cause), np.inf, CAUSES["time"])
    event = CAUSES["cause"] == cause
    later = (time[None] > time[:, None]) | ((time[None] == time[:, None]) & ~event[None])
    pairs = event[:, None] & later
    right = (risk[:, None] > risk[None]) + 0.5 * (risk[:, None] == risk[None])
    return right[pairs].mean()


def test_incidences_of_causes_are_those_of_scikit_survival():
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    seen = Seen(CAUSES["time"], CAUSES["cause"], np.zeros(N))
    times, expected = nonparametric.cumulative_incidence_competing_risks(
        CAUSES["cause"], CAUSES["time"]
    )
    for row, cause in zip(expected, [None, 1, 2], strict=True):
        np.testing.assert_allclose(seen.incidence(times, cause), row, rtol=1e-10, atol=1e-14)
    asked = []

    def predicted(times):
        asked.append(times)
        return np.full((N, len(times)), 0.2)

    own, _ = brier(seen, predicted, 2)
    errors = np.zeros((N, len(asked[0])))
    for i in range(N):
        for j, t in enumerate(asked[0]):
            time, cause = CAUSES["time"][i], CAUSES["cause"][i]
            if time > t or cause > 0:
                of = seen.not_censored(np.array([min(time, t)]))[0]
                errors[i, j] = ((time <= t and cause == 2) - 0.2) ** 2 / of
    span = asked[0][-1] - asked[0][0]
    np.testing.assert_allclose(own, np.trapezoid(errors, asked[0], axis=1) / span, rtol=1e-10)


def test_few_events_of_a_cause():
    causes = CAUSES.copy()
    causes["cause"][causes["cause"] == 2] = 0
    causes["cause"][0] = 2
    model = BoostingSurvival("discrete_hazard", **FAST).fit(X, causes)
    first, second = checked(model.report(X, causes))["survival"]["causes"]
    assert first["curves"] is not None
    assert second == {"cause": 2, "n_events": 1, "curves": None, "scores": []}


def test_bad_use(ranker):
    with pytest.raises(InvalidParameter, match="strata is only supported by survival models"):
        ranker.report(X, LABELS, groups=QUERY, strata=QUERY)
    with pytest.raises(InvalidParameter, match="times is only supported by survival models"):
        ranker.report_facts(X, LABELS, groups=QUERY, times=[1.0])
    with pytest.raises(InvalidParameter, match="groups is only supported by rankings"):
        BoostingRegressor("squared_error", learner="tree", **FAST).fit(X, LABELS).report(
            X, LABELS, groups=QUERY
        )

    class Total(GroupLoss):
        def initial_raw(self, target):
            return np.zeros(1)

        def value(self, target, raw):
            return 0.5 * (target.y - raw)[:, 0] ** 2

        def gradients(self, target, raw):
            return Gradients(target.y - raw, np.ones_like(raw))

    model = BoostingRegressor(Total, learner="tree", **FAST).fit(X, LABELS)
    refused(InvalidType, "only for rankings and survival times", model.report, X, LABELS)


def test_rows_of_equal_scores_have_their_mean_label(ranker):
    target = Target(LABELS[:, None])
    of_query = np.unique(QUERY, return_inverse=True)[1]
    order = np.random.default_rng(2).permutation(N)
    found = [
        ranking_facts(ranker, *in_groups(target.rows(rows), of_query[rows]), np.unique(QUERY))
        for rows in (np.arange(N), order)
    ]
    for one in found:
        assert one["by_position"]["model"] == pytest.approx(one["by_position"]["chance"])
        assert all(group["position"] == 1 for group in one["worst"])


def in_groups(target, numbers):
    """Rows of equal scores, in the order of their groups."""
    raw, target = in_order_of_groups(np.zeros((len(numbers), 1)), target, numbers)
    return target, raw


def test_a_ranking_without_groups_is_told(ranker):
    with pytest.raises(InvalidParameter, match="requires the groups of the rows; pass groups="):
        ranker.report(X, LABELS)
    with pytest.raises(InvalidType, match="comparisons do not support BoostingRanker"):
        compare({"a": ranker, "b": ranker}, X, LABELS)

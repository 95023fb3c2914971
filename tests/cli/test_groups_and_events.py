"""`hilboost fit` for rankings and survival times."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import mean_poisson_deviance
from tests.cli.commands import passed, refused, run
from tests.cli.test_fit_predict import write

import hilboost
from hilboost import BoostingRanker, BoostingRegressor, BoostingSurvival, KernelBoostingRegressor
from hilboost.cli.columns import survival_target
from hilboost.cli.tables import read_table

FAST = ("--n-estimators", 5)


def pages(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    frame["query"] = [f"q{k}" for k in rng.integers(24, size=240)]
    frame["relevance"] = np.clip(np.round(frame["a"] + 1), 0, 3).astype(int)
    return frame


def machines(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    time, end = rng.exponential(np.exp(-frame["a"])), rng.exponential(2.0, size=240)
    frame["failed"], frame["hours"] = (time <= end).astype(int), np.minimum(time, end) + 0.01
    return frame


@pytest.mark.usefixtures("folder")
def test_ranking():
    write(pages(), "train.csv")
    write(pages(1), "valid.csv")
    start = ("fit", "train.csv", "--target", "relevance", "--out", "model", *FAST)
    done = passed(*start, "--group", "query", "--valid", "valid.csv", "--json")
    frame, held = pages(), pages(1)
    model = BoostingRanker(n_estimators=5, random_state=0).fit(
        frame[["a", "b", "c"]], frame["relevance"], groups=frame["query"],
        X_val=held[["a", "b", "c"]], y_val=held["relevance"], groups_val=held["query"],
    )  # fmt: skip
    score = model.score(held[["a", "b", "c"]], held["relevance"], groups=held["query"])
    assert json.loads(done.stdout)["scores"] == {"ndcg@10": pytest.approx(score)}
    assert run("predict", "model", "train.csv", "--out", "p.csv").exit_code == 0
    found = pd.read_csv("p.csv")["prediction"]
    np.testing.assert_allclose(found, model.predict(frame[["a", "b", "c"]]))


@pytest.mark.usefixtures("folder")
def test_survival():
    write(machines(), "train.csv")
    write(machines(1), "valid.csv")
    start = ("fit", "train.csv", "--target", "hours", "--out", "model", "--loss", "aft", *FAST)
    done = passed(*start, "--event", "failed", "--task", "survival", "--valid", "valid.csv")
    assert "concordance" in done.stdout
    model = hilboost.load("model")
    assert isinstance(model, BoostingSurvival)
    assert run("predict", "model", "train.csv", "--out", "p.csv").exit_code == 0
    np.testing.assert_allclose(
        pd.read_csv("p.csv")["prediction"], model.predict(machines()[["a", "b", "c"]])
    )


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_evaluation_and_reports():
    write(pages(), "pages.csv")
    write(machines(), "machines.csv")
    run("fit", "pages.csv", "--target", "relevance", "--group", "query", "--out", "r", *FAST)
    run("fit", "machines.csv", "--target", "hours", "--event", "failed", "--out", "s", *FAST)
    done = run("evaluate", "r", "pages.csv", "--group", "query", "--json")
    frame, model = pages(), hilboost.load("r")
    score = model.score(frame[["a", "b", "c"]], frame["relevance"], groups=frame["query"])
    assert json.loads(done.stdout)["scores"]["ndcg@10"] == pytest.approx(score)
    chosen = ("--metric", "ndcg@3", "--metric", "map@2", "--metric", "ndcg@10")
    done = run("evaluate", "r", "pages.csv", "--group", "query", *chosen, "--json")
    model.k = 3
    first = model.score(frame[["a", "b", "c"]], frame["relevance"], groups=frame["query"])
    scores = json.loads(done.stdout)["scores"]
    assert list(scores) == ["ndcg@3", "map@2", "ndcg@10"]
    assert (scores["ndcg@3"], scores["ndcg@10"]) == (pytest.approx(first), pytest.approx(score))
    assert 0.5 < scores["map@2"] <= 1
    done = run("evaluate", "s", "machines.csv", "--event", "failed", "--metric", "ibs", "--json")
    assert 0 < json.loads(done.stdout)["scores"]["ibs"] < 0.25
    report = ("report", "s", "machines.csv", "--event", "failed", "--out", "s.html")
    for times, shown in (((), "Survival by predicted"), (("--times", "0.4"), "until time 0.4")):
        assert run(*report, *times).exit_code == 0
        assert shown in Path("s.html").read_text()


@pytest.mark.usefixtures("folder")
def test_several_tables_of_validation_data():
    for name, seed in (("train", 0), ("spring", 1), ("autumn", 2)):
        write(pages(seed), f"{name}.csv")
    start = ("fit", "train.csv", "--target", "relevance", "--group", "query", "--out", "m", *FAST)
    both = ("--valid", "spring.csv", "--valid", "autumn.csv", "--set", "eval_metric=ndcg@10")
    done = passed(*start, *both, "--json")
    scores = json.loads(done.stdout)["scores"]
    history = hilboost.load("m").history_.metrics
    kept = hilboost.load("m").n_estimators_
    assert scores["autumn"]["ndcg@10"] == pytest.approx(history["autumn: ndcg@10"][kept])
    assert scores["spring"]["ndcg@10"] == pytest.approx(history["ndcg@10"][kept])
    assert "Metrics on 'autumn.csv': ndcg@10" in run(*start, *both).stdout
    Path("fit.toml").write_text('valid = ["spring.csv", "autumn.csv"]')
    assert run(*start, "--config", "fit.toml").stdout.count("Metrics on") == 2


@pytest.mark.parametrize("words", [("no", "yes"), ("No", "Yes")])
def test_events_may_be_yes_and_no(words):
    event = np.array([True, False, True])
    time = pd.Series([3.0, 1.0, 2.0])
    y = survival_target(time, pd.Series(np.array(words, dtype=object)[event * 1]))
    assert y.to_dict("list") == {"event": event.tolist(), "time": time.tolist()}


@pytest.mark.usefixtures("folder")
def test_svmlight_files(monkeypatch):
    frame = pages()
    codes = np.unique(frame["query"], return_inverse=True)[1] + 1
    dump_svmlight_file(
        frame[["a", "b", "c"]], frame["relevance"], "train.svm", zero_based=False, query_id=codes
    )
    passed("fit", "train.svm", "--target", "label", "--group", "qid", "--out", "model", *FAST)
    assert list(hilboost.load("model").feature_names_in_) == ["1", "2", "3"]
    assert run("predict", "model", "train.svm", "--out", "p.csv").exit_code == 0
    model = BoostingRanker(n_estimators=5, random_state=0)
    model.fit(frame[["a", "b", "c"]], frame["relevance"], groups=codes)
    expected = model.predict(frame[["a", "b", "c"]])
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], expected)
    Path("plain.libsvm").write_text("1 1:0.5 2:1\n0 2:3\n")
    assert list(read_table(Path("plain.libsvm")).columns) == ["label", "1", "2"]
    Path("bad.svm").write_text("label,a\n1,2\n")
    more = ("--target", "label", "--out", "m")
    assert "not a valid SVMlight file" in refused("fit", "bad.svm", *more)
    Path("wide.libsvm").write_text("1 600000000:1\n")
    assert "too many for the command line" in refused("fit", "wide.libsvm", *more)


@pytest.mark.usefixtures("folder")
def test_an_exposure_beside_its_logarithm_is_noted():
    frame = machines().assign(log_hours=lambda rows: np.log(rows["hours"]))
    write(frame, "train.csv")
    start = ("fit", "train.csv", "--target", "failed", "--loss", "poisson", "--out", "m", *FAST)
    done = passed(*start, "--task", "regression", "--offset", "log_hours")
    assert "note: the --offset is the logarithm of column 'hours', which is" in done.stderr
    assert "exclude it with --ignore unless this is meant." in done.stderr
    done = run(*start, "--task", "regression", "--offset", "log_hours", "--ignore", "hours")
    assert "is the logarithm" not in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_offsets():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "years"])
    frame["claims"] = rng.poisson(np.exp(frame["a"] + frame["years"]))
    write(frame, "train.csv")
    start = ("fit", "train.csv", "--target", "claims", "--out", "model", "--loss", "poisson")
    more = ("--set", "learner=tree", "--valid", "train.csv", "--json", *FAST)
    done = passed(*start, "--offset", "years", *more)
    X, y, years = frame[["a", "b"]], frame["claims"], frame["years"]
    model = BoostingRegressor("poisson", learner="tree", n_estimators=5, random_state=0)
    model.fit(X, y, offset=years, X_val=X + 1e-9, y_val=y, offset_val=years)
    expected = model.predict(X, years)
    rmse = pytest.approx(np.sqrt(np.mean((y - expected) ** 2)))
    scores = json.loads(done.stdout)["scores"]
    assert scores["rmse"] == rmse
    assert scores["mean_poisson_deviance"] == pytest.approx(mean_poisson_deviance(y, expected))
    assert run("predict", "model", "train.csv", "--offset", "years", "--out", "p").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("p")["prediction"], expected)
    done = run("evaluate", "model", "train.csv", "--offset", "years", "--metric", "rmse", "--json")
    assert json.loads(done.stdout)["scores"]["rmse"] == rmse
    done = passed("report", "model", "train.csv", "--offset", "years", "--out", "page.html")
    hilboost.save(model.fit(frame[["a", "years"]], y, offset=years), "both")
    assert run("predict", "both", "train.csv", "--offset", "years", "--out", "p").exit_code == 0
    expected = model.predict(frame[["a", "years"]], years)
    np.testing.assert_allclose(pd.read_csv("p")["prediction"], expected)
    done = run("evaluate", "both", "train.csv", "--offset", "years", "--target", "claims", "--json")
    assert json.loads(done.stdout)["scores"]["mae"] == pytest.approx(np.mean(abs(y - expected)))


@pytest.mark.usefixtures("folder")
def test_competing_causes():
    frame = machines()
    frame["failed"] *= 1 + (frame["b"] > 0)
    write(frame, "train.csv")
    start = ("fit", "train.csv", "--target", "hours", "--event", "failed", "--out", "model", *FAST)
    done = passed(*start, "--loss", "discrete_hazard")
    model = hilboost.load("model")
    at = model.predict_cumulative_incidence_function(frame[["a", "b", "c"]], [1.0])
    assert at.shape == (240, 2, 1)
    done = run("evaluate", "model", "train.csv", "--event", "failed", "--json")
    assert json.loads(done.stdout)["scores"]["concordance"] > 0.5, done.output
    assert "several causes require --loss discrete_hazard" in refused(*start)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_rows_that_depend_on_each_other():
    frame = pages().rename(columns={"query": "patient"})
    frame["day"] = pd.date_range("2024-01-01", periods=240)[::-1].astype(str)
    frame["score"] = frame["a"] + frame["relevance"]
    write(frame, "train.csv")
    start = ("fit", "train.csv", "--target", "score", "--out", "model", "--set", "learner=tree")
    X, y = frame[["a", "b", "c", "relevance"]], frame["score"]
    for options, given in (
        (("--group-rows", "patient", "--ignore", "day"), {"groups": frame["patient"]}),
        (("--time", "day", "--ignore", "patient"), {"time": pd.to_datetime(frame["day"])}),
    ):
        passed(*start, *options, *FAST)
        model = BoostingRegressor(n_estimators=5, random_state=0, learner="tree").fit(X, y, **given)
        np.testing.assert_allclose(hilboost.load("model").predict(X), model.predict(X))
        passed(*start[:-2], *options, "--family", "kernel", "--random-state", 0)
        machine = KernelBoostingRegressor(random_state=0).fit(X, y, **given)
        np.testing.assert_allclose(hilboost.load("model").predict(X), machine.predict(X))
    passed(*start, "--time", "day", "--ignore", "patient", "--valid", "train.csv", *FAST)

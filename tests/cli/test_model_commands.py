"""`hilboost evaluate`, `report`, `inspect`, `export`, and the wider options of `fit`."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from tests.cli.commands import done, refused, run

import hilboost
from hilboost.export.registry import export_formats

GUIDE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
FAST = ("--n-estimators", 5, "--random-state", 0)


def houses(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=["area", "age", "floor"])
    frame["price"] = (3 * frame["area"] + frame["age"] + rng.normal(scale=0.1, size=n)).round(4)
    return frame


@pytest.fixture
def folder(folder):
    houses(150, 0).to_csv("houses.csv", index=False)
    houses(60, 1).to_csv("sold.csv", index=False)
    return folder


@pytest.fixture
def model(folder):
    done("fit", "houses.csv", "--target", "price", "--out", "model", *FAST)
    return hilboost.load("model")


@pytest.mark.slow
def test_every_line_of_the_guide_runs(folder, monkeypatch):
    weighted = houses(150, 0).assign(importance=1.0)
    houses(5, 2).drop(columns="price").to_csv("new.csv", index=False)
    grades = np.random.default_rng(0).integers(3, size=150)
    houses(150, 0).assign(relevance=grades, query=np.arange(150) // 10).to_csv("pages.csv")
    houses(150, 0).assign(hours=1.0 + grades, failed=grades > 0).to_csv("machines.csv")
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    Path("fit.toml").write_text(toml)
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) > 12
    for line in lines:
        frame = weighted if "importance" in line else houses(150, 0)
        frame.to_csv("houses.csv", index=False)
        piped = re.match(r"cat (\S+) \| ", line)
        stdin = Path(piped[1]).read_bytes() if piped else None
        words = shlex.split(line[piped.end() :] if piped else line)
        assert words[0] == "hilboost"
        done(*words[1:], input=stdin)
    assert hilboost.load("toml.model").get_params()["max_depth"] == 4
    assert hilboost.load("toml.model").random_state == 1


@pytest.mark.parametrize("name", ["folder", "nothing", "nothing/at_all", "empty"])
def test_paths_without_a_file(name, model):
    Path("folder").mkdir(exist_ok=True)
    Path("empty").touch()
    for line in (
        ("evaluate", name, "sold.csv"),
        ("evaluate", "model", name),
        ("predict", name, "sold.csv"),
        ("predict", "model", name),
        ("inspect", name),
        ("export", name, "--format", "onnx", "--out", "x.onnx"),
        ("report", "model", name, "--out", "x.html"),
        ("report", "model", "sold.csv", "--train", name, "--out", "x.html"),
        ("report", "model", "sold.csv", "--versus", name, "--out", "x.html"),
        ("fit", name, "--target", "price", "--out", "other"),
        ("fit", "houses.csv", "--target", "price", "--valid", name, "--out", "other", *FAST),
    ):
        assert name in refused(*line)


@pytest.mark.parametrize(("name", "verb"), [("sold.csv", "use"), ("model", "read")])
def test_files_without_permission(name, verb, model):
    Path(name).chmod(0)
    before = os.geteuid()
    Path().chmod(0o755)
    os.seteuid(before or 65534)  # a superuser may read every file
    try:
        message = refused("predict", "model", "sold.csv")
    finally:
        os.seteuid(before)
    assert f"Cannot {verb} '{name}': permission denied; choose another path, or ask" in message


def test_evaluate_scores_distributions(folder):
    done("fit", "houses.csv", "--target", "price", "--loss", "normal", "--out", "model", *FAST)
    sold = pd.read_csv("sold.csv")
    predicted = hilboost.load("model").predict_distribution(sold[["area", "age", "floor"]])
    for name in ("crps", "log_score", "interval_score"):
        (line,) = done("evaluate", "model", "sold.csv", "--metric", name).splitlines()
        expected = getattr(predicted, name)(sold["price"]).mean()
        np.testing.assert_allclose(float(line.split()[1]), expected, rtol=1e-4)


def test_figures_are_scikit_learns(model):
    sold = pd.read_csv("sold.csv")
    predicted = model.predict(sold.drop(columns="price"))
    told = json.loads(done("evaluate", "model", "sold.csv", "--json"))
    assert told["rows"] == 60
    assert told["scores"]["r2"] == pytest.approx(metrics.r2_score(sold["price"], predicted))
    rmse = metrics.root_mean_squared_error(sold["price"], predicted)
    (line,) = done("evaluate", "model", "sold.csv", "--metric", "rmse").splitlines()
    assert line.split() == ["rmse", f"{rmse:.6g}"]


def test_figures_of_classes(folder):
    frame = houses(150, 0)
    frame["kind"] = np.where(frame.pop("price") > 0, "dear", "cheap")
    frame.to_csv("kinds.csv", index=False)
    done("fit", "kinds.csv", "--target", "kind", "--out", "model", *FAST)
    scores = json.loads(done("evaluate", "model", "kinds.csv", "--json"))["scores"]
    proba = hilboost.load("model").predict_proba(frame.drop(columns="kind"))[:, 1]
    assert scores["roc_auc"] == pytest.approx(metrics.roc_auc_score(frame["kind"], proba))
    frame["kind"] = "free"
    frame.to_csv("other.csv", index=False)
    assert "'free', which is not one of" in refused("evaluate", "model", "other.csv")


def test_the_target_must_be_clear(model):
    houses(9, 0).assign(color=1).to_csv("more.csv", index=False)
    message = refused("evaluate", "model", "more.csv", code=2)
    assert "--target" in message
    assert "'price', 'color'" in message
    assert "note: using 'price' as the target" in run("evaluate", "model", "sold.csv").stderr
    houses(9, 0).assign(price=[None, *range(8)]).to_csv("gap.csv", index=False)
    message = refused("evaluate", "model", "gap.csv")
    assert "missing in 1 of 9 rows (first in data row 1; NA" in message
    houses(9, 0).assign(price="dear").to_csv("text.csv", index=False)
    assert "must contain numbers" in refused("report", "model", "text.csv", "--out", "r.html")


def test_a_model_without_names_needs_the_target(folder):
    frame = houses(60, 0)
    X = frame.drop(columns="price").to_numpy()
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=2)
    model.fit(X, frame["price"]).save("model")
    assert "--target" in refused("evaluate", "model", "sold.csv", code=2)
    assert "r2" in done("evaluate", "model", "sold.csv", "--target", "price")
    assert "column 2" in done("inspect", "model")


@pytest.mark.slow
def test_report_writes_a_page(model, folder):
    assert "Saved the report to 'r.html'." in done("report", "model", "sold.csv", "--out", "r.html")
    assert "<title>model on 60 rows of sold.csv</title>" in Path("r.html").read_text()
    done("report", "model", "sold.csv", "--out", "r.html", "--title", "A & B")
    assert "<title>A &amp; B</title>" in Path("r.html").read_text()


@pytest.mark.slow
def test_reports_compare_tables_and_models(model, folder):
    more = ("sold.csv", "--target", "price", "--out", "r.html")
    houses(150, 0).assign(note=1).to_csv("noted.csv", index=False)
    ignored = "ignoring 1 column that the model does not use: 'note'."
    told = run("report", "model", "noted.csv", *more[1:], "--train", "noted.csv").stderr
    assert [line for line in told.splitlines() if ignored in line] == [
        f"note: {ignored}",
        f"note: 'noted.csv': {ignored}",
    ]
    done("report", "model", *more, "--train", "houses.csv")
    assert "compared with 150 training rows" in Path("r.html").read_text()
    done("fit", "houses.csv", "--target", "price", "--out", "other", *FAST, "--set", "max_depth=1")
    assert "Saved the comparison to 'r.html'." in done(
        "report", "model", *more, "--versus", "other"
    )
    assert "<title>2 models on 60 rows</title>" in Path("r.html").read_text()
    for option in (("--train", "houses.csv"), ("--times", "1")):
        both = (*more, "--versus", "other", *option)
        assert "not supported with --versus" in refused("report", "model", *both, code=2)


def test_inspect_says_what_a_model_is(model):
    text = done("inspect", "model")
    assert "BoostingRegressor, loss squared_error" in text
    assert "n_estimators=5" in text
    assert re.search(r"area +\d+\.\d % importance", text)
    facts = json.loads(done("inspect", "model", "--json"))
    assert facts["class"] == "BoostingRegressor"
    assert facts["n_stages"] == model.n_estimators_
    assert [c["name"] for c in facts["columns"]] == ["area", "age", "floor"]
    assert sum(one["gain"] for one in facts["importances"]) == pytest.approx(1)
    assert facts["bytes"] == Path("model").stat().st_size


@pytest.mark.parametrize(
    ("options", "n_members"),
    [
        (("--set", "early_stopping=true"), 8),
        (("--set", "early_stopping=false"), 1),
        (("--valid", "sold.csv"), 1),
        (("--set", "early_stopping=true", "--set", "validation_fraction=none"), 1),
    ],
)
def test_inspect_counts_the_members_that_were_fitted(folder, options, n_members):
    tree = ("--set", "learner=tree", *options)
    done("fit", "houses.csv", "--target", "price", "--out", "model", *FAST, *tree)
    assert f"cv_folds={n_members}, " in done("inspect", "model")


def test_inspect_knows_kernel_machines(folder):
    given = "--family kernel --set kernel=gaussian --set regularization=0.1"
    done("fit", "houses.csv", "--target", "price", "--out", "smooth", *given.split())
    text = done("inspect", "smooth")
    assert "kernel: Gaussian" in text
    assert "λ 0.1" in text
    assert "1 stage;" in text


def test_export_calls_the_function_of_the_format(model, monkeypatch):
    calls = []

    def write(exported, path):
        calls.append((type(exported).__name__, path))
        Path(path).write_text("model")

    formats = {**export_formats(), "text": write}
    monkeypatch.setattr("hilboost.export.registry.export_formats", lambda: formats)
    assert "'m.text'" in done("export", "model", "--format", "text", "--out", "m.text")
    assert calls == [("BoostingRegressor", Path("m.text"))]
    message = refused("export", "model", "--format", "pmml", "--out", "m", code=2)
    assert ", ".join(sorted(formats)) in message


@pytest.mark.parametrize("name", ["houses.parquet", "houses.pq", "houses.csv.gz"])
def test_other_files_give_the_same_model(model, name):
    frame = houses(150, 0)
    frame.to_csv(name, index=False) if "csv" in name else frame.to_parquet(name)
    done("fit", name, "--target", "price", "--out", "again", *FAST)
    assert done("predict", "again", "sold.csv") == done("predict", "model", "sold.csv")


def test_standard_input_gives_the_same_model(model):
    data = Path("houses.csv").read_bytes()
    done("fit", "-", "--target", "price", "--out", "again", *FAST, input=data)
    sold = Path("sold.csv").read_bytes()
    assert done("predict", "again", "-", input=sold) == done("predict", "model", "sold.csv")
    assert "'-' is empty" in refused("predict", "model", "-")


def test_broken_files_are_refused(folder, monkeypatch):
    Path("bad.parquet").write_bytes(b"PAR1 and no more")
    start = ("--target", "price", "--out", "model")
    assert "cannot be read as Parquet" in refused("fit", "bad.parquet", *start)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "requires the package pyarrow" in refused("fit", "bad.parquet", *start)


def test_columns_may_be_left_out(folder):
    """In rows held out, predictions and configuration files too."""
    table = pd.read_csv("houses.csv").assign(key=range(len(pd.read_csv("houses.csv"))), late=1.5)
    table.to_csv("keyed.csv", index=False)
    fit = ("fit", "keyed.csv", "--target", "price", "--valid", "keyed.csv", *FAST)
    done(*fit, "--out", "lean", "--ignore", "key", "--ignore", "late")
    assert set(hilboost.load("lean").feature_names_in_) == set(table) - {"price", "key", "late"}
    assert "ignoring 3 columns" in run("predict", "lean", "keyed.csv").stderr
    Path("lean.toml").write_text('ignore = ["key", "late"]\n')
    done(*fit, "--out", "same", "--config", "lean.toml")
    assert "key" not in hilboost.load("same").feature_names_in_
    weighed = ("--weights", "late", "--ignore", "late")
    message = refused(*fit, "--out", "lean", "--ignore", "kee")
    assert "no column 'kee' for --ignore; similar names are 'key'" in message
    done("fit", "keyed.csv", "--target", "price", *FAST, "--out", "lean", *weighed)
    assert set(hilboost.load("lean").feature_names_in_) == set(table) - {"price", "late"}
    every = [word for name in set(table) - {"price"} for word in ("--ignore", name)]
    assert "No feature column is left" in refused(*fit, "--out", "lean", *every)


@pytest.mark.slow
def test_weights_are_those_of_a_column(folder):
    frame = houses(150, 0).assign(weight=np.arange(150) % 3)
    frame.to_csv("weighted.csv", index=False)
    done("fit", "weighted.csv", "--target", "price", "--out", "model", "--weights", "weight", *FAST)
    X = frame[["area", "age", "floor"]]
    expected = hilboost.BoostingRegressor(n_estimators=5, random_state=0)
    expected.fit(X, frame["price"], frame["weight"])
    np.testing.assert_array_equal(hilboost.load("model").predict(X), expected.predict(X))
    weighted = ("weighted.csv", "--target", "price", "--weights", "weight")
    measured = json.loads(done("evaluate", "model", *weighted, "--json"))["scores"]
    mae = np.average(abs(frame["price"] - expected.predict(X)), weights=frame["weight"])
    assert measured["mae"] == pytest.approx(mae)
    done("report", "model", *weighted, "--out", "page.html", "--train", "weighted.csv")
    assert "Rows have weights, of sum 150" in Path("page.html").read_text(encoding="utf-8")
    shutil.copy("model", "same")
    done("report", "model", *weighted, "--out", "page.html", "--versus", "same")
    assert "weights of sum 150" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_held_out_rows_stop_the_fit(folder):
    start = ("fit", "houses.csv", "--target", "price", "--out", "model", "--random-state", 0)
    told = json.loads(done(*start, "--valid", "sold.csv", "--metric", "mae", "--json"))
    assert set(told["scores"]) == {"mae"}
    assert hilboost.load("model").history_.validation is not None
    text = done(*start, "--valid", "sold.csv", "--n-estimators", 5)
    assert "Metrics on 'sold.csv': r2 " in text
    houses(9, 0).drop(columns="age").to_csv("lacking.csv", index=False)
    assert "1 of the 3 columns" in refused(*start, "--valid", "lacking.csv")


def test_a_time_budget_ends_the_fit(folder):
    start = ("fit", "houses.csv", "--target", "price", "--out", "model", "--time-budget")
    options = ("--n-estimators", 100_000, "--set", "early_stopping=False")
    assert 1 <= json.loads(done(*start, 0.2, *options, "--json"))["stages"] < 100_000
    assert "note: time_budget=1e-06 ended the fit after 1 stage" in run(*start, 1e-6).stderr


def test_any_parameter_can_be_set(folder):
    start = ("fit", "houses.csv", "--target", "price", "--out", "model", *FAST)
    given = "max_depth=3 monotonic_cst=[1,0,0] tol=1e-3 multi-output=shared max_leaf_nodes=none"
    done(*start, *(word for one in given.split() for word in ("--set", one)))
    parameters = hilboost.load("model").get_params()
    assert parameters["max_depth"] == 3
    assert parameters["monotonic_cst"] == [1, 0, 0]
    assert parameters["multi_output"] == "shared"
    assert parameters["max_leaf_nodes"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tabel = 'a.csv'", "unknown key 'tabel'; did you mean 'table'"),
        ("n-estimators = 'many'", "Invalid value for '--n-estimators'"),
        ("n-estimators = [1, 2]", "Invalid value for '--n-estimators'"),
        ("learning-rate = true", "Invalid value for '--learning-rate'"),
        ("family = 'forest'", "'forest' is not one of 'tree', 'kernel'"),
        ("set = 3", "set must be a table"),
        ("loss = 'a'\nloss = 'b'", "not a valid TOML file"),
        ("n-estimators = 1\nn_estimators = 2", "sets 'n_estimators' twice"),
        ("label = 'price'", "unknown key 'label'; use --target."),
        ("num_leaves = 3", "unknown key 'num_leaves'; use --set max_leaf_nodes=VALUE."),
        ("nothing at all", "not a valid TOML file"),
    ],
)
def test_mistakes_in_a_toml_file_are_told(folder, text, message):
    Path("fit.toml").write_text(text)
    start = ("fit", "houses.csv", "--target", "price", "--out", "model", "--config")
    assert message in refused(*start, "fit.toml", code=2)
    assert "no file 'none.toml'; check the path" in refused(*start, "none.toml", code=2)


def test_options_win_over_the_toml_file(folder):
    Path("inner").mkdir()
    Path("inner/fit.toml").write_text(
        "table = '../houses.csv'\ntarget = 'price'\nout = 'model'\nloss = 'quantile'\n"
        "quantile = [0.1, 0.9]\nn-estimators = 3\n[set]\nmax_depth = 2"
    )
    done("fit", "--config", "inner/fit.toml", "--n-estimators", 4, "--set", "max_depth=3")
    model = hilboost.load("inner/model")
    assert (model.n_estimators, model.max_depth, model.quantile) == (4, 3, [0.1, 0.9])


def test_models_of_several_targets(folder):
    """Fitted in Python: evaluated and reported by target."""
    frame = houses(150, 0).assign(rent=lambda table: table["area"] - table["age"])
    frame = frame.rename(columns={"price": "Price"})
    targets = ["Price", "rent"]
    X, y = frame.drop(columns=targets), frame[targets]
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=5, random_state=0).fit(X, y)
    model.save("pair")
    frame.to_csv("pairs.csv", index=False)
    expected = {"r2": model.score(X, y)}
    for k, name in enumerate(targets):
        true, predicted = y[name], model.predict(X)[:, k]
        expected |= {
            f"r2_of_{name}": metrics.r2_score(true, predicted),
            f"rmse_of_{name}": metrics.root_mean_squared_error(true, predicted),
            f"mae_of_{name}": metrics.mean_absolute_error(true, predicted),
            f"median_error_of_{name}": metrics.median_absolute_error(true, predicted),
            f"bias_of_{name}": np.mean(true - predicted),
        }
    frame[["rent", "area", "age", "floor", "Price"]].to_csv("other_order.csv", index=False)
    for given in (
        ["pairs.csv"],
        ["other_order.csv"],
        ["pairs.csv", "--target", "Price,rent"],
        ["pairs.csv", "--target", "rent,Price"],
    ):
        scores = json.loads(done("evaluate", "pair", *given, "--json"))["scores"]
        assert scores == pytest.approx(expected, abs=1e-12)
    lines = done("evaluate", "pair", "pairs.csv", "--metric", "rmse", "--metric", "mae_of_rent")
    assert [line.split()[0] for line in lines.splitlines()] == [
        *("rmse_of_Price", "rmse_of_rent", "mae_of_rent")
    ]
    done("report", "pair", "pairs.csv", "--out", "pairs.html")
    assert '<th scope="row">rent</th>' in Path("pairs.html").read_text(encoding="utf-8")
    message = refused("evaluate", "pair", "pairs.csv", "--target", "Price", code=2)
    assert "predicts 2 targets; name their columns, as --target 'Price,rent'." in message
    assert "write 'rent'" in refused("evaluate", "pair", "pairs.csv", "--target", "Price,Rent")
    message = refused("evaluate", "pair", "pairs.csv", "--target", "rent,rent")
    assert "names a column twice" in message
    without_names = hilboost.BoostingRegressor(learner="tree", n_estimators=2)
    without_names.fit(X, y.to_numpy()).save("pair")
    message = refused("evaluate", "pair", "pairs.csv", "--target", "Price", code=2)
    assert "predicts 2 targets; name their columns, as --target FIRST,SECOND." in message


@pytest.mark.slow
def test_training_rows_are_noted(model):
    for table, known in (("houses.csv", True), ("sold.csv", False)):
        for command in (("evaluate",), ("report", "--out", "report.html")):
            said = run(command[0], "model", table, *command[1:]).stderr
            assert ("training data" in said) == known
    for valid, known in (("houses.csv", True), ("sold.csv", False)):
        fit = ("fit", "houses.csv", "--target", "price", "--out", "other", *FAST)
        said = run(*fit, "--valid", valid).stderr
        assert ("100% of the 150 rows of the validation data are training rows" in said) == known


METRICS_OF_OTHERS = {
    "price": {
        "neg_root_mean_squared_error": {"rmse"},
        "mean_absolute_error": {"mae"},
        "l1": "Did you mean 'mae'?",
        "l2": "Did you mean 'rmse'?",
        "MSE": "Did you mean 'rmse'?",
        "logloss": "--metric='logloss' is not known. Valid values: bias, mae, median_error, r2",
    },
    "kind": {
        "auc": {"roc_auc"},
        "neg_log_loss": {"log_loss"},
        "acc": "Did you mean 'accuracy'?",
        "merror": "Did you mean 'accuracy'?",
        "multi_logloss": "Did you mean 'log_loss'?",
        "aucpr": "Did you mean 'average_precision'?",
    },
}


@pytest.mark.parametrize("target", METRICS_OF_OTHERS)
def test_names_of_metrics_in_other_libraries(target, folder):
    frame = houses(150, 0)
    if target == "kind":
        frame["kind"] = np.where(frame.pop("price") > 0, "dear", "cheap")
    frame.to_csv("table.csv", index=False)
    done("fit", "table.csv", "--target", target, "--out", "model", *FAST)
    for name, expected in METRICS_OF_OTHERS[target].items():
        found = run("evaluate", "model", "table.csv", "--metric", name, "--json")
        if isinstance(expected, set):
            assert json.loads(found.stdout)["scores"].keys() == expected, name
        else:
            assert found.exit_code > 0
            assert expected in found.stderr, name

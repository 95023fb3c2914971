"""`hilboost fit` and `hilboost predict` on CSV tables."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import passed, refused, run

import hilboost


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["width", "height", "depth"])
    frame["price"] = 3 * frame["width"] + frame["height"] + rng.normal(scale=0.1, size=n)
    frame = frame.round(4)  # some versions of pandas read longer numbers with an error of one bit
    frame["kind"] = np.where(frame["width"] > 0, "große Kiste", "box, small")
    return frame


def write(frame, name):
    frame.to_csv(name, index=False)
    return name


def fit(frame, target, *options, name="train.csv", out="model"):
    return run(
        "fit", write(frame, name), "--target", target, "--out", out, "--n-estimators", 5, *options
    )


@pytest.fixture
def regression_model(folder):
    frame = table().drop(columns="kind")
    result = fit(frame, "price", "--random-state", 0)
    assert result.exit_code == 0, result.output
    return frame


def test_regression_round_trip(regression_model):
    frame = regression_model
    write(frame, "new.csv")
    passed("predict", "model", "new.csv", "--out", "predictions.csv")
    written = pd.read_csv("predictions.csv")
    model = hilboost.BoostingRegressor(n_estimators=5, random_state=0)
    X = frame.drop(columns="price")
    expected = model.fit(X, frame["price"]).predict(X)
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-12)
    assert list(written.columns) == ["prediction"]


def test_text_labels_round_trip_with_probabilities(folder):
    frame = table().drop(columns="price")
    result = fit(frame, "kind")
    assert result.exit_code == 0, result.output
    assert "classification, because the target 'kind' is text" in result.stderr
    result = passed("predict", "model", write(frame, "new.csv"), "--proba", "--out", "out.csv")
    written = pd.read_csv("out.csv")
    assert list(written.columns) == [
        "prediction",
        "probability_box, small",
        "probability_große Kiste",
    ]
    np.testing.assert_allclose(written.iloc[:, 1:].sum(axis=1), 1.0)
    assert (written["prediction"] == frame["kind"]).mean() > 0.95


def test_columns_are_matched_by_name(regression_model):
    frame = regression_model
    first = run("predict", "model", write(frame, "new.csv"))
    other_order = frame[["depth", "height", "width"]].assign(color="red")
    second = run("predict", "model", write(other_order, "other.csv"))
    assert first.stdout == second.stdout
    assert "ignoring 1 column that the model does not use: 'color'" in second.stderr
    assert "price" in first.stderr


def test_missing_feature_is_named(regression_model):
    write(regression_model.drop(columns=["height", "depth"]), "new.csv")
    message = refused("predict", "model", "new.csv", "--out", "out.csv")
    assert "2 of the 3 columns" in message
    assert "'height', 'depth'" in message


def test_empty_fields_are_missing_values(folder):
    frame = table().drop(columns="kind")
    frame.loc[::3, "width"] = np.nan
    frame["flag"] = np.where(frame["depth"] > 0, True, None)
    assert fit(frame, "price").exit_code == 0
    result = passed("predict", "model", write(frame, "new.csv"))
    assert np.isfinite([float(line) for line in result.stdout.splitlines()[1:]]).all()


@pytest.mark.slow
def test_text_columns_are_categories_in_every_table(folder):
    frame = table(300).drop(columns="kind")
    code = np.random.default_rng(0).choice(["007", "12", "x"], 300)
    frame["code"], frame["price"] = code, (frame["price"] + 5.0 * (code == "12")).round(4)
    assert fit(frame, "price", "--random-state", 0).exit_code == 0
    model = hilboost.BoostingRegressor(n_estimators=5, random_state=0)
    expected = model.fit(frame.drop(columns="price"), frame["price"])
    for kept in ["007", "12"], ["12"], ["x"]:  # the first two look like numbers by themselves
        rows = frame[frame["code"].isin(kept)].drop(columns="price")
        write(rows, "new.csv")
        passed("predict", "model", "new.csv", "--out", "out.csv")
        written = pd.read_csv("out.csv").prediction
        np.testing.assert_allclose(written, expected.predict(rows), rtol=1e-15)
    valid = write(frame[frame["code"] == "12"], "valid.csv")
    assert fit(frame, "price", "--valid", valid).exit_code == 0


def test_names_must_match_exactly(regression_model):
    other = regression_model.rename(columns={"depth": "Depth"}).drop(columns=["price", "width"])
    message = refused("predict", "model", write(other, "new.csv"))
    assert "lacks 'width', 'depth', 2 of the 3 columns that the model uses; rename" in message
    assert "rename 'Depth' to 'depth': names must match exactly." in message
    other = regression_model.drop(columns="width")
    message = refused("predict", "model", write(other, "new.csv"))
    assert "lacks 'width', 1 of the 3 columns that the model uses; add" in message


def test_intervals_of_a_regression(folder):
    frame = table(220).drop(columns="kind")
    fit(frame, "price")
    run("predict", "model", write(frame, "new.csv"), "--coverage", 0.8, "--out", "out.csv")
    written = pd.read_csv("out.csv")
    assert list(written.columns) == ["prediction", "lower", "upper"]
    ends = hilboost.load("model").predict_interval(frame.drop(columns="price"), 0.8)
    np.testing.assert_allclose(written[["lower", "upper"]], ends, rtol=1e-12)


def test_identifiers_are_kept(folder):
    frame = table(220).drop(columns="kind")
    frame.insert(1, "id", [f"{k:05d}" for k in range(220)])
    frame["note"] = "=1+1"
    fit(frame, "price", "--ignore", "id", "--ignore", "note", name="ids.csv")
    plain = run("predict", "model", "ids.csv").stdout.splitlines()
    keep = ("--keep", "id", "--keep", "width", "--keep", "note", "--keep", "id")
    result = passed("predict", "model", "ids.csv", *keep, "--out", "out.csv")
    written = pd.read_csv("out.csv", dtype=str)
    assert list(written.columns) == ["id", "width", "note", "prediction"]
    assert list(written["id"]) == list(frame["id"])
    assert list(written["width"].astype(float)) == list(frame["width"])
    assert set(written["note"]) == {"'=1+1"}
    assert list(written["prediction"]) == plain[1:]
    ignored = " ".join(result.stderr.split())
    assert "ignoring 1 column that the model does not use: 'price'." in ignored
    assert "no column 'ID' for --keep" in refused("predict", "model", "ids.csv", "--keep", "ID")
    write(frame.rename(columns={"id": "prediction"}), "same.csv")
    assert "rename it in the table" in refused(
        "predict", "model", "same.csv", "--keep", "prediction"
    )


def test_identifiers_beside_columns_without_names(folder):
    frame = table().drop(columns=["kind", "price"])
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=2)
    model.fit(frame.to_numpy(), -frame["width"]).save("model")
    frame.insert(0, "id", [f"{k:05d}" for k in range(120)])
    result = passed("predict", "model", write(frame, "new.csv"), "--keep", "id")
    assert result.stdout.splitlines()[1].startswith("00000,")


def test_sets_of_classes(folder):
    frame = table(220).drop(columns="price")
    fit(frame, "kind")
    run("predict", "model", write(frame, "new.csv"), "--coverage", 0.99, "--out", "out.csv")
    written = pd.read_csv("out.csv")
    expected = hilboost.load("model").predict_set(frame[["width", "height", "depth"]], 0.99)
    labels = ["box, small", "große Kiste"]
    assert list(written["set"]) == [
        "; ".join(label for label, here in zip(labels, row, strict=True) if here)
        for row in expected
    ]


@pytest.mark.slow
def test_coverage_that_is_not_available(regression_model):
    command = ("predict", "model", write(regression_model, "new.csv"), "--coverage")
    small = table(220).drop(columns="kind")
    for options, fitted in (
        (("--valid", write(small, "valid.csv")), False),
        (("--family", "kernel"), False),
        ((), True),
    ):
        fit(small, "price", *options)
        if fitted:
            assert "coverage must be between 0 and 1, such as 0.9 for 90 %" in refused(*command, 90)
            passed(*command, 0.9)
        else:
            message = refused(*command, 0.9)
            assert "fit without --valid to 40 rows or more with --set cv_folds=4, or" in message
    model, features = hilboost.load("model"), regression_model.drop(columns="price") + 1e-9
    part = (features["width"] > 0).to_numpy()
    model.calibrate(features, regression_model["price"], groups=part)
    model.save("by_group", training_data=True)
    assert "groups" in refused("predict", "by_group", "new.csv", "--coverage", 0.9)


def test_debug_lets_the_traceback_through(folder):
    result = run("fit", "a.csv", "--target", "y", "--out", "model", "--debug")
    assert isinstance(result.exception, OSError)


@pytest.mark.parametrize(
    ("values", "task", "reason"),
    [
        (np.arange(120) % 20, "classification", "20 distinct integers"),
        (np.arange(120) % 21, "regression", "21 distinct integers"),
        (np.arange(120) % 2 == 0, "classification", "is boolean"),
        (np.arange(120) % 2 + 0.5, "regression", "has decimal numbers"),
    ],
)
def test_automatic_task(folder, values, task, reason):
    result = fit(table().drop(columns="kind").assign(price=values), "price")
    assert result.exit_code == 0, result.output
    assert f"note: {task}, because" in result.stderr
    assert reason in result.stderr


def test_labels_keep_their_kind(folder):
    frame = table().drop(columns="kind").assign(price=np.arange(120) % 2 == 0)
    fit(frame, "price")
    result = run("predict", "model", write(frame, "new.csv"), "--proba")
    header, *rows = result.stdout.splitlines()
    assert header == "prediction,probability_False,probability_True"
    assert {row.split(",")[0] for row in rows} <= {"True", "False"}


def test_a_count_loss_makes_whole_numbers_a_regression(folder):
    frame = table().drop(columns="kind").assign(price=np.arange(120) % 5)
    result = fit(frame, "price", "--loss", "poisson", "--threads", 1, "--learning-rate", 0.2)
    assert result.exit_code == 0, result.output
    assert "regression, because --loss poisson is for regression" in result.stderr


def test_quantiles_have_a_column_each(folder):
    frame = table().drop(columns="kind")
    result = fit(frame, "price", "--loss", "quantile", "-q", 0.05, "-q", 0.95)
    assert result.exit_code == 0, result.output
    result = run("predict", "model", write(frame, "new.csv"))
    assert result.stdout.splitlines()[0] == "prediction_q0.05,prediction_q0.95"


def test_models_fitted_without_names_take_columns_by_place(folder):
    frame = table().drop(columns="kind")
    X = frame[["width", "height", "depth"]]
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=2)
    model.fit(X.to_numpy(), frame["price"])
    hilboost.save(model, folder / "model")
    result = run("predict", "model", write(X, "new.csv"))
    assert "order of the table" in result.stderr
    written = [float(line) for line in result.stdout.splitlines()[1:]]
    np.testing.assert_allclose(written, model.predict(X.to_numpy()), rtol=1e-12)
    assert "the table has 4" in refused("predict", "model", write(frame, "wide.csv"))


@pytest.mark.parametrize(
    ("output", "labels", "expected"),
    [
        ("label_set", [{"b", "a"}, {"c"}], [["a; b"], ["c"]]),
        ("string", ["abc", "bcd"], [["abc"], ["bcd"]]),
        ("ranking", [[1, 2], [2, 1]], [["1", "2"], ["2", "1"]]),
        ("linear", np.arange(8).reshape(2, 2, 2), [list("0123"), list("4567")]),
    ],
    ids=["sets", "texts", "rankings", "images"],
)
def test_models_of_structured_outputs(output, labels, expected, folder):
    frame = pd.DataFrame({"x": [0.0, 1.0]})
    model = hilboost.OutputKernelTreeRegressor(output, random_state=0).fit(frame, labels)
    model.save("model", training_data=True)
    lines = run("predict", "model", write(frame, "new.csv")).stdout.splitlines()
    assert [[x.removesuffix(".0") for x in line.split(",")] for line in lines[1:]] == expected


def test_failed_writes_leave_the_old_file_and_nothing_else(regression_model, folder, monkeypatch):
    (folder / "out.csv").write_text("old")
    write(regression_model, "new.csv")
    before = sorted(path.name for path in folder.iterdir())

    def fail(self, path, **_):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    assert "No space left" in refused("predict", "model", "new.csv", "--out", "out.csv")
    assert (folder / "out.csv").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == before

"""Models of categories predict in onnxruntime what they predict here."""

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from tests.refusals import refused
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor, to_onnx
from hilboost.core.errors import IncompatibleParts
from hilboost.learners.tree import TreeLearner

RNG = np.random.default_rng(0)
N = 600
TABLE = pd.DataFrame(
    {
        "color": RNG.choice(["red", "green", "blue", None], N),
        "street": [f"s{k}" for k in RNG.integers(0, 300, N)],
        "floor": RNG.choice([0.5, 1.0, 2.0, np.nan], N),
        "label": RNG.normal(size=N),
        "/1": np.where(RNG.uniform(size=N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)
NEW = pd.concat(
    [
        TABLE.iloc[:50],
        TABLE.iloc[:4].assign(
            color=["mauve", None, "red", "é"],
            street=["s1", "nowhere", None, "s2"],
            floor=[7.0, np.nan, 1.0, -1.0],
        ),
    ]
)
Y = TABLE["street"].str[1:].astype(float) % 7 + 2 * (TABLE["color"] == "red") + TABLE["label"]
Y += 3 * (TABLE["floor"] == 1.0)
NAMED = {"categorical_features": ["color", "street", "floor"]}
SHORT = {"learner": "tree", "n_estimators": 12, "random_state": 0}


def run(model, rows, dtype="float64"):
    proto = to_onnx(model, dtype=dtype)
    onnx.checker.check_model(proto, full_check=True)
    used = {name for node in proto.graph.node for name in node.input}
    assert used >= {constant.name for constant in proto.graph.initializer}  # or runtimes warn
    running = onnxruntime.InferenceSession(proto.SerializeToString())
    inputs = running.get_inputs()
    if inputs[0].name == "X":
        return running.run(None, {"X": np.asarray(rows, dtype=dtype)})
    feed = {}
    for one, (_, column) in zip(inputs, rows.items(), strict=True):
        text = one.type == "tensor(string)"
        values = column.fillna("").to_numpy(object) if text else column.to_numpy().astype(dtype)
        feed[one.name] = values[:, None]
    return running.run(None, feed)


@pytest.mark.parametrize("statistics", ["auto", True, False])
@pytest.mark.parametrize("settings", [{}, {"early_stopping": True, "cv_folds": 3}])
def test_regression(statistics, settings):
    """Levels divided, merged where there are more than 255, or by their targets' means."""
    model = BoostingRegressor(**SHORT, **NAMED, **settings, target_encoding=statistics)
    model.fit(TABLE, Y)
    for rows in (NEW, NEW.iloc[-1:]):
        np.testing.assert_allclose(run(model, rows)[0], model.predict(rows), rtol=1e-12)


def test_classes_and_shared_trees():
    classes = pd.Series(np.where(Y > 5, "high", np.where(Y > 2, "middle", "low")))
    model = BoostingClassifier(**SHORT, **NAMED, multi_output="shared").fit(TABLE, classes)
    label, probabilities = run(reloaded(model), NEW)
    assert (label == model.predict(NEW)).all()
    np.testing.assert_allclose(probabilities, model.predict_proba(NEW), rtol=1e-12)


def test_categories_that_are_numbers_stay_in_one_matrix():
    X = np.column_stack([TABLE["floor"], TABLE["label"], RNG.integers(0, 2, N)])
    new = np.vstack([X[:40], [[9.0, 0.0, 1.0], [np.nan, np.nan, np.nan]]])
    for statistics in (True, False):
        model = BoostingRegressor(
            **SHORT, categorical_features=[0, 2], target_encoding=statistics
        ).fit(X, Y)
        np.testing.assert_allclose(run(model, new)[0], model.predict(new), rtol=1e-12)
    rounded = new.astype(np.float32)
    np.testing.assert_allclose(run(model, rounded, "float32")[0], model.predict(rounded), rtol=1e-6)


def test_levels_of_a_learner_of_ones_own():
    X = np.column_stack([TABLE["label"], np.arange(N) % 5])
    learner = TreeLearner(categorical=((1, 5),), min_samples_leaf=2)
    model = BoostingRegressor(learner=learner, n_estimators=5).fit(X, 9.0 * (X[:, 1] % 2))
    new = np.column_stack([X[:9, 0], [0, 1, 2, 3, 4, 7, 1000, -3, np.nan]])
    np.testing.assert_allclose(run(model, new)[0], model.predict(new), rtol=1e-12)


def test_kernel_machines():
    columns = ["color", "street", "label"]
    table = TABLE[columns].fillna("")  # the empty text is a level here
    model = KernelBoostingRegressor(random_state=0).fit(table.iloc[:200], Y[:200])
    rows = pd.concat([table.iloc[190:210], table.iloc[:1].assign(color="mauve")])
    np.testing.assert_allclose(run(model, rows)[0], model.predict(rows), rtol=1e-9)


def test_inputs_are_called_as_the_columns_are():
    model = BoostingRegressor(**SHORT).fit(TABLE, Y)
    inputs = to_onnx(model).graph.input
    named = ["color", "street", "floor", "column label", "column /1"]
    assert [one.name for one in inputs] == named
    text = onnx.TensorProto.STRING
    assert [one.type.tensor_type.elem_type == text for one in inputs] == [True, True] + 3 * [False]
    unnamed = BoostingRegressor(**SHORT).fit(TABLE.to_numpy(object), Y)
    assert [one.name for one in to_onnx(unnamed).graph.input] == [f"x{k}" for k in range(5)]


def test_no_two_inputs_are_called_the_same():
    table = TABLE[["color", "label", "/1"]].set_axis(["column label", "label", ""], axis=1)
    model = BoostingRegressor(**SHORT).fit(table, Y)
    inputs = to_onnx(model).graph.input
    assert [one.name for one in inputs] == ["column label", "column column label", "column "]
    np.testing.assert_allclose(run(model, table)[0], model.predict(table), rtol=1e-12)


def test_a_column_without_any_level():
    table = TABLE[["color", "label"]].assign(shade=pd.Series([None] * N, dtype="str"))
    model = BoostingRegressor(**SHORT).fit(table, Y)
    rows = table.iloc[:9]
    np.testing.assert_allclose(run(model, rows)[0], model.predict(rows), rtol=1e-12)


@pytest.mark.parametrize(
    ("levels", "dtype", "reason"),
    [
        (
            [1, 2**53 + 1],
            "float64",
            f"level {2**53 + 1} cannot be represented in float64; fit with",
        ),
        ([0.5, 0.1], "float32", "level 0.1 cannot be represented in float32; use dtype='float64'"),
        ([-1e300, 2.0], "float32", r"level -1e\+300 cannot be represented in float32"),
        (["a", "b\udcff"], "float64", r"level 'b\\udcff' is not valid Unicode text; correct it"),
    ],
)
def test_levels_that_inputs_cannot_hold(levels, dtype, reason):
    shade = pd.Categorical.from_codes(np.arange(N) % 2, pd.Index(levels, dtype=object))
    model = BoostingRegressor(**SHORT).fit(TABLE[["label"]].assign(shade=shade), Y)
    refused(IncompatibleParts, f"column 'shade', because its {reason}", to_onnx, model, dtype=dtype)

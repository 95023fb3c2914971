"""Trees as a table and as a picture."""

import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    SparseKernelRidge,
    plot_tree,
    to_onnx,
    tree_table,
)
from hilboost.core.errors import IncompatibleParts, InvalidParameter, InvalidType
from hilboost.learners.tree import TreeLearner

matplotlib.use("agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
X[RNG.uniform(size=X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
TABLE = pd.DataFrame(X, columns=["a", "b $x$", "a very long name of a column, indeed"])
SHOPS = pd.DataFrame(
    {
        "color": RNG.choice(["red", "green", "blue", None], 1200),
        "street": [f"s{k}" for k in RNG.integers(0, 400, 1200)],
        "size": RNG.normal(size=1200),
    }
)
SALES = SHOPS["street"].str[1:].astype(float) % 7 + (SHOPS["color"] == "red") + SHOPS["size"]
KNOWN = {name: set(SHOPS[name].iloc[:900].dropna()) for name in ("color", "street")}
SHORT = {"learner": "tree", "n_estimators": 4, "max_leaf_nodes": 6, "random_state": 0}
SHORT |= {"early_stopping": False}


def walk(nodes, row):
    """Value of the leaf where a row ends, from the rows of one tree of the table."""
    node = nodes.iloc[0]
    while pd.isna(node["value"]):
        value = row[node["column"]]
        if pd.isna(value):
            left = node["missing"] == "left"
        elif node["levels"] is None:
            left = value <= node["threshold"]
        else:
            known = value in KNOWN[node["column"]]
            left = value in node["levels"] if known else node["unseen"] == "left"
        node = nodes.iloc[int(node["left"] if left else node["right"])]
    return node["value"]


@pytest.mark.parametrize(
    ("settings", "y"),
    [
        ({}, Y),
        ({}, np.column_stack([Y, -Y])),
        ({"multi_output": "shared"}, np.column_stack([Y, -Y])),
        ({"early_stopping": True, "cv_folds": 2}, Y),
    ],
    ids=["one", "two", "shared", "committee"],
)
@pytest.mark.parametrize("data", [X, TABLE], ids=["array", "table"])
def test_the_table_predicts_what_the_model_predicts(settings, y, data):
    model = BoostingRegressor(**SHORT | settings).fit(data, y)
    rows = data.iloc[:15] if data is TABLE else X[:15]
    raw = np.tile(model.model_.initial_raw, (15, 1))
    for (_, _, output), nodes in tree_table(model).groupby(["stage", "tree", "output"], sort=False):
        assert (nodes["node"] == np.arange(len(nodes))).all()
        for i in range(15):
            raw[i, output] += walk(nodes, rows.iloc[i] if data is TABLE else X[i])
    np.testing.assert_allclose(raw, model.predict(rows).reshape(raw.shape), rtol=1e-12)


def test_columns_of_the_table():
    model = BoostingRegressor(**SHORT).fit(TABLE, Y)
    table = tree_table(model)
    inner = table[table["value"].isna()]
    assert len(table) == 4 * 11
    assert set(inner["column"]) <= set(TABLE.columns)
    assert set(inner["missing"]) <= {"left", "right"}
    assert (inner["gain"] > 0).all()
    leaves = table[~table["value"].isna()]
    assert leaves[["column", "threshold", "missing", "left", "right", "gain"]].isna().all(axis=None)
    depth = table.set_index(["stage", "node"])["depth"]
    for _, node in inner.iterrows():
        assert depth[node["stage"], node["left"]] == node["depth"] + 1
    importance = inner.groupby("column")["gain"].sum().reindex(TABLE.columns, fill_value=0)
    np.testing.assert_allclose(importance / importance.sum(), model.feature_importances_)


@pytest.mark.parametrize("parameters", [{"target_encoding": False}, {"multi_output": "shared"}])
def test_rows_of_the_nodes_are_counted(parameters):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(list("xyz"), size=200)})
    labels = np.digitize(frame["a"] + (frame["b"] == "x"), [-0.5, 0.5])
    model = BoostingClassifier(**PLAIN | parameters).fit(frame, labels)
    table = tree_table(model, frame)
    for _, tree in table.groupby(["stage", "tree", "output"]):
        tree = tree.set_index("node")
        assert tree.loc[0, "rows"] == 200
        for node, split in tree[tree["left"].notna()].iterrows():
            assert tree.loc[[split["left"], split["right"]], "rows"].sum() == split["rows"]
            if not pd.isna(split["threshold"]) and node == 0 and split["column"] == "a":
                assert tree.loc[split["left"], "rows"] == (frame["a"] <= split["threshold"]).sum()
    assert "rows" not in tree_table(model)


def test_tables_of_constants():
    constant = BoostingRegressor(**SHORT).fit(X, np.ones(len(X)))
    leaves = tree_table(constant)
    assert (leaves["value"] == 0).all()
    assert len(leaves) == constant.n_estimators_
    empty = BoostingRegressor(**SHORT | {"early_stopping": True}).fit(X, np.ones(len(X)))
    assert empty.n_estimators_ == 0
    table = tree_table(empty)
    assert len(table) == 0
    assert (table.dtypes == leaves.dtypes)[["stage", "left", "value"]].all()
    assert to_onnx(empty).graph.output[0].name == "prediction"
    refused(InvalidParameter, "the model has 0 stages", plot_tree, empty)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_tree_is_drawn():
    model = BoostingRegressor(**SHORT).fit(TABLE, Y)
    ax = plot_tree(model, stage=-1)
    assert ax.get_title(loc="left") == "Stage 4 of 4"
    table = tree_table(model).query("stage == 3")
    drawn = texts(ax)
    assert len(drawn) == len(table) + 1  # and what the picture means
    assert len(ax.patches) == len(table) - 1
    for value in table["value"].dropna():
        assert f"{value:+.4g}".replace("-", "−") in drawn
    assert all("$x" not in text.replace(r"\$", "") for text in drawn)
    assert not any("indeed" in text for text in drawn)
    ax.figure.canvas.draw()
    matplotlib.pyplot.close(ax.figure)


def test_splits_of_expanded_dates_are_drawn_as_dates():
    days = np.arange(19000, 19160.0)
    frame = pd.DataFrame({"sold: year": 2022 + 0 * days, "sold: days": days})
    model = BoostingRegressor(**SHORT).fit(frame, days > 19080)
    assert "sold: days ≤ 2022-03-29" in texts(plot_tree(model))
    matplotlib.pyplot.close("all")


def test_axes_of_ones_own_classes_and_single_leaves():
    figure, (left, right) = matplotlib.pyplot.subplots(1, 2)
    classifier = BoostingClassifier(**SHORT).fit(X, np.digitize(Y, [0, 1]))
    assert plot_tree(classifier, 1, 2, ax=left) is left
    assert left.get_title(loc="left") == "Stage 2 of 4, class 2"
    with_constant = BoostingRegressor(**SHORT).fit(X, np.column_stack([Y, np.ones(len(Y))]))
    plot_tree(with_constant, 0, 1, ax=right)
    assert right.get_title(loc="left") == "Stage 1 of 4, output 1"
    figure.canvas.draw()
    matplotlib.pyplot.close(figure)


def test_trees_of_a_committee_are_told_apart():
    committee = {"early_stopping": True, "cv_folds": 2}
    model = BoostingRegressor(**SHORT | committee).fit(X, Y)
    drawn = [texts(plot_tree(model, tree=k)) for k in range(2)]
    assert drawn[0] != drawn[1]
    with pytest.raises(InvalidParameter, match="tree is 2, but output 0 of stage 0 has 2 trees"):
        plot_tree(model, tree=2)
    matplotlib.pyplot.close("all")


def test_what_cannot_be_drawn_is_refused_in_a_sentence():
    model = BoostingRegressor(**SHORT).fit(X, Y)
    refused(InvalidParameter, "stage is 4, but the model has 4 stages", plot_tree, model, 4)
    refused(InvalidParameter, "output is 1, but the model has 1 outputs", plot_tree, model, 0, 1)
    refused(InvalidParameter, r"stage is 1.5, but the model has 4 stages", plot_tree, model, 1.5)
    with pytest.raises(InvalidParameter, match=r"output is 'a', but the model has 1 outputs"):
        plot_tree(model, output="a")
    for function in (plot_tree, tree_table):
        refused(InvalidType, "got SparseKernelRidge", function, SparseKernelRidge())
        refused(ValueError, "not fitted", function, BoostingRegressor())
        with pytest.raises(IncompatibleParts, match="fit with learner='tree'"):
            function(BoostingRegressor(learner=Ridge(), n_estimators=1).fit(np.nan_to_num(X), Y))


def summed(model, rows):
    """Raw outputs by the table of the trees, for rows as mappings."""
    raw = np.tile(model.model_.initial_raw, (len(rows), 1))
    for (_, _, output), nodes in tree_table(model).groupby(["stage", "tree", "output"], sort=False):
        raw[:, output] += [walk(nodes, row) for row in rows]
    return raw[:, 0]


@pytest.mark.slow
def test_the_table_knows_which_levels_go_left():
    """Also of a column with more levels than trees tell apart, of missing and unseen ones."""
    table = SHOPS.iloc[:900]
    model = BoostingRegressor(**SHORT | {"n_estimators": 20}, target_encoding=False)
    model.fit(table, SALES[:900])
    shown = tree_table(model)
    assert set(shown["column"].dropna()) == {"color", "street", "size"}
    assert shown["levels"].map(type, na_action="ignore").dropna().unique().tolist() == [tuple]
    assert (shown["levels"].isna() == shown["unseen"].isna()).all()
    assert (shown["levels"].notna() & shown["threshold"].isna()).sum() == shown["levels"].count()
    odd = table.iloc[:3].assign(color=["mauve", None, "red"], street=["s1", "nowhere", None])
    rows = pd.concat([table.iloc[:40], odd])
    np.testing.assert_allclose(
        summed(model, rows.to_dict("records")), model.predict(rows), rtol=1e-12
    )


def test_the_table_names_target_statistics():
    alone = {"n_estimators": 20, "early_stopping": False}  # no committee: every name once
    model = BoostingRegressor(**SHORT | alone, target_encoding=True).fit(SHOPS, SALES)
    names = ["share of color", "share of street", "size"]
    names += ["mean by color", "mean by color × street", "mean by street"]
    assert set(tree_table(model)["column"].dropna()) <= set(names)
    rows = [
        dict(zip(names, row, strict=True))
        for row in model.fitted_.encode_inputs(model._checked(SHOPS.iloc[:30]))
    ]
    np.testing.assert_allclose(summed(model, rows), model.predict(SHOPS.iloc[:30]), rtol=1e-12)
    classes = BoostingClassifier(**SHORT | alone, target_encoding=True)
    classes.fit(SHOPS[["street"]].to_numpy(), SHOPS["street"].str[1:].astype(int) % 3)
    assert set(tree_table(classes)["column"].dropna()) == {
        *(f"mean {k} by x0" for k in range(3)),
        "share of x0",
    }


def test_levels_are_drawn():
    model = BoostingRegressor(**SHORT, target_encoding=False)
    model.fit(SHOPS[["color"]], -9.0 * SHOPS["color"].isin(["blue", "red"]))
    assert "color: blue, red" in texts(plot_tree(model))
    lines = SHOPS[["color"]].rename(columns={"color": "color\nof it"}).replace("red", "re\nd")
    model.fit(lines, -9.0 * SHOPS["color"].isin(["blue", "red"]))
    assert "color of it: blue, re d" in texts(plot_tree(model))
    long = SHOPS[["street"]].map("avenue ${}".format)
    model.fit(long, SHOPS["street"].str[1:].astype(int) % 7 < 3)
    drawn = [text for text in texts(plot_tree(model)) if text.startswith("street")]
    assert all(len(text.replace("\\", "")) < 60 and r"\$" in text for text in drawn)
    assert any(" + " in text for text in drawn)
    matplotlib.pyplot.close("all")


def test_splits_on_codes():
    table = np.column_stack([X[:, 0], np.arange(len(X)) % 5])
    learner = TreeLearner(categorical=((1, 5),), min_samples_leaf=2)
    model = BoostingRegressor(learner=learner, n_estimators=5)
    model.fit(table, 9.0 * np.isin(table[:, 1], [1, 3]))
    assert tree_table(model)["levels"].dropna().isin([(1, 3), (0, 2, 4)]).any()

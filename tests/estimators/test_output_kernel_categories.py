"""Category columns in output kernel trees and in the models of networks."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidParameter
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.network import BipartiteNetwork, NetworkCompletion

seeds = st.integers(0, 10**6)
BOOSTING = {"n_estimators": 8, "learning_rate": 0.3, "max_splits": 6, "random_state": 0}
MODELS = {
    "ok3": OutputKernelBoostingRegressor(learner="ok3", **BOOSTING),
    "extra_trees": OutputKernelBoostingRegressor(learner="extra_trees", **BOOSTING),
    "huber": OutputKernelBoostingRegressor(learner="ok3", loss="huber", **BOOSTING),
    "tree": OutputKernelTreeRegressor(random_state=0),
    "extra-trees": OutputKernelForestRegressor(n_estimators=5, random_state=0),
    "one tree an output": OutputKernelBoostingRegressor(
        learner=TreeLearner(min_samples_leaf=2), n_estimators=8, random_state=0
    ),
}
models = pytest.mark.parametrize("name", MODELS)
# Best splits, which do not depend on the order of the levels.
SEARCHED = {name: MODELS[name] for name in ("ok3", "huber", "tree")}
searched = pytest.mark.parametrize("name", SEARCHED)


def draw(seed=0, n=80, n_levels=5, r=3, missing=True):
    """A column of levels, one of numbers, one of a boolean; points that depend on all levels."""
    rng = np.random.default_rng(seed)
    level = rng.integers(n_levels, size=n)
    level[:n_levels] = np.arange(n_levels)
    number = rng.normal(size=n)
    effects = np.random.default_rng(9).normal(size=(n_levels, r))
    Y = effects[level] + 0.3 * number[:, None] + 0.1 * rng.normal(size=(n, r))
    names = np.array([f"level {k:03d}" for k in range(n_levels)], dtype=object)[level]
    if missing:
        names[rng.uniform(size=n) < 0.05] = None
    X = pd.DataFrame({"kind": names, "size": number, "new": rng.uniform(size=n) < 0.5})
    return X, Y


def unknown():
    """Unknown, missing and known levels."""
    return pd.DataFrame(
        {
            "kind": ["never seen", None, "level 001", "level 000"],
            "size": [0.0, 1.0, np.nan, -1.0],
            "new": [True, False, True, False],
        }
    )


@models
def test_data_frames_of_any_library_files_pickles_and_reports(name):
    X, Y = draw()
    model = clone(MODELS[name]).fit(X, Y)
    expected = model.predict_raw(unknown())
    assert np.isfinite(expected).all()
    assert model.score(X, Y) > 0.7
    other = clone(model).fit(pl.from_pandas(X), Y)
    np.testing.assert_array_equal(other.predict_raw(pl.from_pandas(unknown())), expected)
    for copy in (reloaded(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_raw(unknown()), expected)
    *_, last = model.staged_predict_embedding(unknown())
    np.testing.assert_allclose(last, expected, rtol=1e-12, atol=1e-12)
    assert model.report_facts(X, Y)["importance"]["bars"][0]["name"] == "kind"


def test_columns_are_chosen_by_index_name_or_mask():
    X, Y = draw(missing=False)
    tree = MODELS["tree"]
    expected = clone(tree).fit(X, Y).predict_raw(X)
    codes = np.column_stack([X["kind"].str[-3:].astype(float), X["size"], X["new"]]).astype(float)
    frame = pd.DataFrame(codes, columns=["kind", "size", "new"])
    for table, chosen in ((codes, [0]), (frame, ["kind"]), (frame, [True, False, False])):
        model = clone(tree).set_params(categorical_features=chosen).fit(table, Y)
        np.testing.assert_array_equal(model.predict_raw(table), expected)
    numbers = clone(tree).set_params(categorical_features=None).fit(frame, Y)
    assert not numbers.fitted_.schema.categories
    both = clone(tree).set_params(categorical_features=["size"]).fit(X, Y)
    assert sorted(both.fitted_.schema.categories) == [0, 1]
    for name in ("ok3", "tree"):
        model = clone(MODELS[name]).set_params(categorical_features=[7])
        with pytest.raises(InvalidParameter, match="columns that X does not have: 7; use"):
            model.fit(codes, Y)


@searched
@given(seed=seeds)
def test_names_of_levels_do_not_matter(name, seed):
    n_levels = 4 + seed % 20
    X, Y = draw(seed, n_levels=n_levels)
    renamed = X.copy()
    order = np.random.default_rng(seed).permutation(n_levels)
    names = {f"level {k:03d}": f"name {order[k]:03d}" for k in range(n_levels)}
    renamed["kind"] = X["kind"].map(names).where(X["kind"].notna(), None)
    expected = clone(SEARCHED[name]).fit(X, Y).predict_raw(X)
    found = clone(SEARCHED[name]).fit(renamed, Y).predict_raw(renamed)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@searched
@given(seed=seeds)
def test_a_weight_is_a_number_of_repetitions(name, seed):
    X, Y = draw(seed, n=50, n_levels=4 + seed % 12)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    weighted = clone(SEARCHED[name]).fit(X, Y, sample_weight=weight)
    repeated = clone(SEARCHED[name]).fit(X.iloc[rows], Y[rows])
    np.testing.assert_allclose(
        weighted.predict_raw(unknown()), repeated.predict_raw(unknown()), rtol=1e-7, atol=1e-7
    )


@models
def test_the_number_of_threads_changes_nothing(name):
    X, Y = draw(n=300, n_levels=14)
    one, two = (clone(MODELS[name]).set_params(n_jobs=k).fit(X, Y) for k in (1, 2))
    np.testing.assert_array_equal(one.predict_raw(X), two.predict_raw(X))


def test_one_output_has_the_splits_of_scalar_trees():
    X, Y = draw(n=200, n_levels=20, r=1)
    scalar = TreeLearner(
        max_leaf_nodes=2, min_samples_leaf=1, level_smoothing=0.0, min_samples_level=0.0, level_l2=0
    )
    plain = {"n_estimators": 1, "learning_rate": 1.0, "random_state": 0}
    expected = BoostingRegressor(learner=scalar, **plain).fit(X, Y[:, 0])
    for learner in ("ok3", VectorTreeLearner(max_splits=1)):
        more = {"max_splits": 1} if learner == "ok3" else {}
        model = OutputKernelBoostingRegressor(learner=learner, **plain, **more).fit(X, Y)
        for rows in (X, unknown()):
            np.testing.assert_allclose(model.predict(rows)[:, 0], expected.predict(rows))


def test_unknown_levels_and_missing_ones_that_were_not_seen_go_to_the_heavier_side():
    X = pd.DataFrame({"kind": ["a"] * 3 + ["b"] * 2 + ["c"] * 4})
    Y = np.array([[0.0, 0.0]] * 3 + [[9.0, 9.0]] * 2 + [[0.5, 0.0]] * 4)
    tree = OutputKernelTreeRegressor(max_splits=1, random_state=0).fit(X, Y)
    new = pd.DataFrame({"kind": ["b", "a", "never", None]})
    heavier = [2 / 7, 0.0]
    np.testing.assert_allclose(tree.predict(new), [[9.0, 9.0], heavier, heavier, heavier])
    X.loc[3, "kind"] = None  # missing is a level like the others
    tree = OutputKernelTreeRegressor(max_splits=1, random_state=0).fit(X, Y)
    np.testing.assert_allclose(tree.predict(new), [[9.0, 9.0], heavier, heavier, [9.0, 9.0]])


def test_more_levels_than_trees_can_tell_apart(tmp_path):
    n = 640
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": [f"{k % 300:03d}" for k in range(n)], "size": rng.normal(size=n)})
    Y = rng.normal(size=(n, 2)) + 3 * (np.arange(n) % 2)[:, None]
    model = clone(MODELS["ok3"]).fit(X, Y)
    assert dict(model.fitted_.encoding.kept)[0].max() == 254
    model.save(tmp_path / "model", training_data=True)
    expected = model.predict_raw(X)
    np.testing.assert_array_equal(hilboost.load(tmp_path / "model").predict_raw(X), expected)
    with pytest.raises(InvalidParameter, match="column 0 has 300 levels, but trees support at"):
        VectorTreeLearner(categorical=((0, 300),))


def test_trees_with_vector_leaves_split_levels_of_tables_too():
    X, Y = draw(n=200)
    learner = VectorTreeLearner(max_splits=8, max_features="sqrt")
    model = BoostingRegressor(learner=learner, n_estimators=40, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.8


def test_a_kernel_machine_has_its_own_columns():
    X, Y = draw(missing=False)
    codes = np.column_stack([X["kind"].str[-3:].astype(float), X["size"]]).astype(float)
    machine = KernelBoostingRegressor(categorical_features=[0])
    model = OutputKernelBoostingRegressor(learner=machine, random_state=0).fit(codes, Y)
    named = OutputKernelBoostingRegressor(
        learner="kernel", categorical_features=[0], random_state=0
    ).fit(codes, Y)
    np.testing.assert_allclose(model.predict(codes), named.predict(codes))
    both = OutputKernelBoostingRegressor(learner=machine, categorical_features=[0])
    with pytest.raises(InvalidParameter, match="categorical_features has no effect with a Kernel"):
        both.fit(codes, Y)


def test_networks_of_vertices_with_categories():
    rng = np.random.default_rng(0)
    kind = rng.integers(4, size=60)
    table = {"kind": np.array(["a", "b", "c", "d"])[kind], "z": rng.normal(size=60)}
    X = pl.DataFrame(table)
    links = (kind[:, None] == kind) & (rng.uniform(size=(60, 60)) < 0.8)
    links = np.triu(links, 1)
    links = (links | links.T).astype(float)
    known, new = slice(0, 45), slice(45, 60)
    trees = OutputKernelBoostingRegressor(n_estimators=30, learning_rate=0.2, random_state=0)
    for model in (trees, OutputKernelForestRegressor(n_estimators=20, random_state=0)):
        network = NetworkCompletion(model).fit(X[known], links[known, known])
        assert network.score(X[new], links[new, known]) > 0.9
    chosen = NetworkCompletion(trees, validation_fraction=0.3, random_state=0)
    assert chosen.fit(X[known], links[known, known]).score(X[new], links[new, known]) > 0.9
    two = BipartiteNetwork(random_state=0).fit(X[known], links[known])
    assert two.score(X[new], links[new]) > 0.9

"""Columns with a direction, and columns that may not interact."""

from decimal import Decimal
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from tests.cases import LOSSES, PLAIN
from tests.reference.isotonic import nearest_in_order, pairs_in_order
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.settings import MonotonicOrder
from hilboost.learners.tree import TreeLearner
from hilboost.testing.models import predictions

seeds = st.integers(0, 10**6)
SINGLE = [
    case for case in LOSSES if case.n_outputs == 1 or case.estimator is not BoostingClassifier
]
QUICK = {"n_estimators": 12, "learning_rate": 0.5, "min_samples_leaf": 2}


def draw(case, seed, n=None):
    """A target that depends on the columns; missing values beside the first two."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 150)) if n is None else n
    target = case.target(rng, n).y
    X = rng.normal(size=(n, 4))
    X[:, 0] += rng.choice([-1, 1]) * target[:, 0]
    X[:, 1] = np.round(X[:, 1] + rng.choice([-1, 1]) * target[:, -1])
    X[:, 2:][rng.uniform(size=(n, 2)) < 0.2] = np.nan
    weight = rng.uniform(0.1, 3, size=n) if seed % 2 else None
    return rng, X, case.labels(target), weight


def assert_directed(model, X, column, direction, rng):
    """Exactly: the sums of a forest keep the order of their terms."""
    for row in X[rng.integers(len(X), size=8)]:
        line = np.repeat(row[None, :], 60, axis=0)
        line[:, column] = np.sort(rng.uniform(*np.nanquantile(X[:, column], [0, 1]), size=60))
        line[[0, -1], column] = -1e9, 1e9
        steps = direction * np.diff(model.model_.predict_raw(line), axis=0)
        assert (steps >= 0).all()
    is_classifier = isinstance(model, BoostingClassifier)
    predicted = predictions(model, line)[:, 1] if is_classifier else model.predict(line)
    assert (direction * np.diff(predicted, axis=0) >= -1e-12).all()


def test_nothing_of_a_tree_is_read_from_memory_that_the_next_one_may_use(monkeypatch):
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = BoostingRegressor(**PLAIN | QUICK, monotonic_cst=[1, -1, 0])
    expected = model.fit(X, X.sum(axis=1)).predict(X)
    release = TreeBuffers.release

    def overwritten(self):
        for array in (self.nodes.fields, self.nodes.gains, self.rows):
            array[:] = 0
        release(self)

    monkeypatch.setattr(TreeBuffers, "release", overwritten)
    np.testing.assert_array_equal(model.fit(X, X.sum(axis=1)).predict(X), expected)


# Without a penalty, steps by two rows a leaf, or line searches on some rows, can be too long.
@pytest.mark.filterwarnings("ignore:the training loss had grown")
@pytest.mark.parametrize("multi_output", ["separate", "shared"])
@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.id)
@settings(max_examples=3)
@given(seeds)
def test_predictions_follow_the_directions(case, multi_output, seed):
    rng, X, y, weight = draw(case, seed)
    cst = [int(rng.choice([-1, 1])), int(rng.choice([-1, 1])), 0, int(rng.choice([-1, 0, 1]))]
    model = case.build(
        **PLAIN
        | QUICK
        | {
            "monotonic_cst": cst,
            "multi_output": multi_output,
            "subsample": float(rng.choice([0.6, 1.0])),
            "max_features": float(rng.choice([0.5, 1.0])),
            "line_search": bool(rng.integers(2)),
            "l2_regularization": float(rng.choice([0.0, 1.0])),
            "random_state": seed,
        }
    ).fit(X, y, sample_weight=weight)
    for column in (0, 1):
        assert_directed(model, X, column, cst[column], rng)


def test_a_committee_follows_the_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = -X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=600)
    cst = [-1, 0, 1]
    model = BoostingRegressor(monotonic_cst=cst, early_stopping=True, n_estimators=30).fit(X, y)
    for column in (0, 2):
        steps = []
        for row in X[:20]:
            line = np.tile(row, (50, 1))
            line[:, column] = np.linspace(-4, 4, 50)
            steps.append(cst[column] * np.diff(model.predict(line)))
        assert np.min(steps) >= 0
    assert model.score(X, y) > 0.6


def trees_of(model):
    return [part.model for stage in model.model_.stages for part in stage.terms]


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_a_loss_sets_are_the_nearest_in_order(loss, weighted):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)), rng.standard_t(3, size=200)
    weight = rng.integers(1, 4, size=200).astype(float) if weighted else np.ones(200)
    parameters = {"n_estimators": 1, "max_leaf_nodes": 7, "min_samples_leaf": 5}
    monotonic = (1, -1, 1)
    model = BoostingRegressor(loss, monotonic_cst=monotonic, **PLAIN | parameters)
    model.fit(X, y, sample_weight=weight)
    (tree,), start = trees_of(model), model.model_.initial_raw[0]
    leaves, n_leaves = tree.leaves(X), len(tree.values)
    raw, target = np.full((200, 1), start), Target(y[:, None], weight)
    now = model.loss_.adapted(target, raw) if loss == "huber" else model.loss_
    nearest = now.leaf_values(target, raw, leaves, n_leaves, slice(0, 1))[:, 0]
    mass = np.bincount(leaves, weights=weight, minlength=n_leaves)
    directions = MonotonicOrder.of(tree, monotonic).directions
    nearest_in_order(tree.child, tree.leaf_number, directions, mass, nearest)
    np.testing.assert_allclose(tree.values[:, 0], nearest, rtol=1e-9, atol=1e-12)
    assert pairs_in_order(tree.child, tree.leaf_number, directions)


def test_newton_steps_end_at_the_middle_of_both_sides():
    """Sides of means 3 and 7: the 6 on the lower one is cut to 5."""
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 10, axis=0)
    y = np.repeat([6.0, 0.0, 5.0, 9.0], 10)
    parameters = {"n_estimators": 1, "learning_rate": 1.0, "l2_regularization": 0.0}
    model = BoostingRegressor(**PLAIN | parameters, monotonic_cst=[1, 0]).fit(X, y)
    np.testing.assert_allclose(model.predict(X[::10]), [5.0, 0.0, 5.0, 9.0], atol=1e-9)


def test_missing_values_have_no_place_in_the_order():
    """A level of their own below all others, in an increasing column."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 1))
    y = 1 + X[:, 0]
    missing = rng.uniform(size=400) < 0.3
    X[missing], y[missing] = np.nan, rng.choice([-5.0, -4.0], size=missing.sum())
    for sign in (1, -1):
        model = BoostingRegressor(**PLAIN | {"learning_rate": 0.5}, monotonic_cst=[sign])
        model.fit(X, sign * y)
        assert model.predict([[np.nan]])[0] == pytest.approx(sign * y[missing].mean(), abs=0.1)
        assert model.score(X[~missing], sign * y[~missing]) > 0.95


def test_a_direction_that_the_data_have_anyway_costs_little():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 3))
    y = X[:, 0] ** 3 + np.tanh(3 * X[:, 1]) + 0.3 * rng.normal(size=2000)
    model = BoostingRegressor(learner="tree", n_estimators=60, random_state=0)
    free = model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    model.set_params(monotonic_cst=[1, 1, 0])
    assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > free - 0.01
    model.set_params(monotonic_cst=[-1, -1, 0])
    assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) < 0.1


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_no_direction_is_no_constraint(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.gamma(2, size=300)
    model = BoostingRegressor(loss, **PLAIN)
    expected = model.fit(X, y).predict(X)
    for parameters in (
        {"monotonic_cst": [0, 0, 0, 0]},
        {"monotonic_cst": np.zeros(4)},
        {"interaction_cst": [{0, 1, 2, 3}]},
        {"interaction_cst": [[0, 1], range(4)]},
        {"interaction_cst": []},
    ):
        other = clone(model).set_params(**parameters).fit(X, y)
        np.testing.assert_array_equal(other.predict(X), expected)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_a_fit_in_two_halves(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    parameters = PLAIN | {"subsample": 0.7, "random_state": 0}
    parameters |= {"monotonic_cst": [1, -1, 0], "interaction_cst": "pairwise"}
    whole = BoostingRegressor(loss, **parameters | {"n_estimators": 10}).fit(X, y)
    halves = BoostingRegressor(loss, **parameters | {"n_estimators": 5}, warm_start=True).fit(X, y)
    halves.set_params(n_estimators=10).fit(X, y)
    np.testing.assert_array_equal(halves.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"monotonic_cst": np.array([1, 0, -1])}, {"monotonic_cst": [1, 0, -1]}),
        ({"monotonic_cst": {"a": 1}}, {"monotonic_cst": {"a": 1}}),
        ({"monotonic_cst": {0: 1, "c": -1}}, {"monotonic_cst": {"0": 1, "c": -1}}),
        ({"interaction_cst": [{2, 0}, (1,)]}, {"interaction_cst": [[0, 2], [1]]}),
        ({"interaction_cst": [["c", 1, 0], ("b",)]}, {"interaction_cst": [[0, 1, "c"], ["b"]]}),
        ({"interaction_cst": "pairwise"}, {"interaction_cst": "pairwise"}),
    ],
    ids=str,
)
def test_model_files(given, kept):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc")), rng.normal(size=100)
    model = BoostingRegressor(**PLAIN | given).fit(X, y)
    read = reloaded(model)
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert {name: read.get_params()[name] for name in kept} == kept
    np.testing.assert_array_equal(clone(read).fit(X, y).predict(X), model.predict(X))


def test_names_and_numbers_are_the_same_constraint():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"]), rng.normal(size=200)
    found = [
        BoostingRegressor(**PLAIN, monotonic_cst=cst).fit(X, y).predict(X)
        for cst in ([0, -1, 1], (0, -1, 1), np.array([0, -1, 1]), {"c": 1, "b": -1}, {"a": 0})
    ]
    for same in found[1:4]:
        np.testing.assert_array_equal(same, found[0])
    by_name, by_number = (
        BoostingRegressor(**PLAIN, interaction_cst=cst).fit(X, y).predict(X)
        for cst in ([{"a", "c"}], [{0, 2}])
    )
    np.testing.assert_array_equal(by_name, by_number)
    with pytest.raises(InvalidParameter, match="does not have: 'd'; the columns are 'a'"):
        BoostingRegressor(interaction_cst=[["d"]]).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"'a' at position 0; .*, such as \[{'a', 'b'}\]"):
        BoostingRegressor(interaction_cst=["a", "b"]).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"\[True, False, True\] at position 0; each entry"):
        BoostingRegressor(interaction_cst=[[True, False, True]]).fit(X, y)  # a mask of columns
    with pytest.raises(InvalidParameter, match="columns that X does not have: True"):
        BoostingRegressor(monotonic_cst={True: 1}).fit(X, y)
    Z = X.rename(columns={"a": "scaler__Clay %", "b": "Distance km"})
    for name, remedy in [
        ("Clay %", "write 'scaler__Clay %', or set verbose_feature_names_out=False in the Column"),
        ("distance km", "write 'Distance km': names must match exactly"),
        ("Distanc", "similar names are 'Distance km'"),
    ]:
        for cst in ({"monotonic_cst": {name: 1}}, {"categorical_features": [name]}):
            with pytest.raises(InvalidParameter, match=f"does not have: '{name}'; {remedy}"):
                BoostingRegressor(**cst).fit(Z, y)
    assert (found[4] != found[0]).any()


# Columns that may not interact


def paths(tree, node=0, above=frozenset()):
    """The columns of every path from the root to a leaf."""
    if tree.child[node] == node:
        return [above]
    above = above | {int(tree.column[node])}
    left = int(tree.child[node])
    return paths(tree, left, above) + paths(tree, left + 1, above)


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        ("no_interactions", [{k} for k in range(6)]),
        ("pairwise", [{i, j} for i in range(6) for j in range(6)]),
        ([{0, 1}, {2, 3}], [{0, 1}, {2, 3}, {4, 5}]),
        ([(0, 1, 2), [2, 3], np.array([3, 4, 5])], [{0, 1, 2}, {2, 3}, {3, 4, 5}]),
        (({0},), [{0}, {1, 2, 3, 4, 5}]),
    ],
    ids=str,
)
@given(seeds)
def test_paths_stay_in_one_group(given, groups, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 6))
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X).prod(axis=1) + np.nan_to_num(X).sum(axis=1) ** 2
    model = BoostingRegressor(
        str(rng.choice(["squared_error", "absolute_error"])),
        **PLAIN | QUICK | {"n_estimators": 4, "max_features": float(rng.choice([0.4, 1.0]))},
        max_features_per_tree=float(rng.choice([0.7, 1.0])),
        monotonic_cst=[1, 0, 0, 0, 0, -1] if rng.integers(2) else None,
        interaction_cst=given,
    ).fit(X, y)
    for tree in trees_of(model):
        for path in paths(tree):
            assert any(path <= group for group in groups)


# Refusals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=40)


TREES_ALONE = "is only supported by the built-in trees"
UP = {"monotonic_cst": [1, 0, 0]}
SKETCHED = {"multi_output": "shared", "sketch": 1}
A_SEQUENCE = "must be a sequence with one number per column"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotonic_cst": [1, 0]}, r"shape \(2,\), but X has 3 columns; pass one number"),
        ({"monotonic_cst": [[1, 0, 0]]}, r"shape \(1, 3\), but X has 3 columns"),
        ({"monotonic_cst": [0, "up", 0]}, "has 'up' for column 1; it must be 1"),
        ({"monotonic_cst": [1, [0], 0]}, A_SEQUENCE),
        ({"monotonic_cst": {0, 1}}, A_SEQUENCE),
        ({"monotonic_cst": [1, 2, 0]}, r"has 2 for column 1; it must be 1 \(increasing\), -1"),
        ({"monotonic_cst": [1, 0.5, 0]}, r"has 0\.5 for column 1"),
        ({"monotonic_cst": ["up", "", ""]}, "has 'up' for column 0"),
        ({"monotonic_cst": {"a": 1}}, "X has no column names; pass X as a data frame"),
        ({"monotonic_cst": {3: 1}}, "does not have: 3; use indices from 0 to 2"),
        ({"monotonic_cst": {PurePosixPath("1"): 1}}, "does not have: PurePosixPath"),
        ({"monotonic_cst": {Decimal(1): 1}}, "does not have: Decimal"),
        ({"monotonic_cst": {0: 1, "0": -1}}, "the same column by index and by name: 0, '0'; keep"),
        ({"interaction_cst": [0, 1]}, r"has 0 at position 0; each entry must.* as \[{0, 1}\]"),
        ({"interaction_cst": [{0}, {0.5}]}, "has {0.5} at position 1"),
        ({"interaction_cst": [{0}, {"a"}]}, "does not have: 'a'; X has no column names"),
        ({"interaction_cst": [{0, 3}]}, "does not have: 3; use indices from 0 to 2"),
        ({"interaction_cst": [{-1}]}, "does not have: -1"),
        (UP | SKETCHED, "monotonic_cst is not supported with sketch.*set sketch=None"),
        (UP | {"learner": Ridge()}, f"monotonic_cst {TREES_ALONE}; set learner='tree'"),
        (UP | {"learner": TreeLearner()}, f"monotonic_cst {TREES_ALONE}"),
        ({"interaction_cst": "pairwise", "learner": "kernel"}, f"interaction_cst {TREES_ALONE}"),
    ],
    ids=str,
)
def test_constraints_that_cannot_be_kept(parameters, message):
    with pytest.raises(InvalidParameter, match=message):
        BoostingRegressor(**PLAIN | parameters).fit(X, Y)


def test_directions_by_name_that_cannot_be_kept():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(InvalidParameter, match="contains columns that X does not have: 'd', 'e'"):
        BoostingRegressor(**PLAIN, monotonic_cst={"a": 1, "d": 1, "e": 1}).fit(table, Y)
    with pytest.raises(InvalidParameter, match="has 3 for column 'b'"):
        BoostingRegressor(**PLAIN, monotonic_cst={"b": 3}).fit(table, Y)


def test_directions_of_three_classes():
    model = BoostingClassifier(**PLAIN, monotonic_cst=[1, 0, 0])
    with pytest.raises(InvalidParameter, match="monotonic_cst supports two classes; y has 3"):
        model.fit(X, np.arange(40) % 3)
    model.set_params(monotonic_cst=[0, 0, 0]).fit(X, np.arange(40) % 3)

"""Columns of categories in the estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from tests.model.editing import assert_refused, changed, contents, edit, header_of
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelForestRegressor
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import InvalidData, InvalidParameter


def draw(seed=0, n=400, classes=0):
    """A few levels, many levels, a number; level names are any numbers."""
    rng = np.random.default_rng(seed)
    few, many = rng.integers(0, 6, n), rng.integers(0, 60, n)
    number = rng.normal(size=n)
    effects = np.random.default_rng(9).normal(size=60)
    y = effects[few] + effects[many] + 0.5 * number + 0.2 * rng.normal(size=n)
    X = np.column_stack([10.0 * few + 3, 1e5 - many, number])
    X[rng.uniform(size=n) < 0.05, 0] = np.nan
    if classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    return X, y


TREES = {"learner": "tree", "n_estimators": 12, "random_state": 0}
SETTINGS = TREES | {"categorical_features": [0, 1]}
AUTO = {"learner": "auto"}
CASES = [
    pytest.param(BoostingRegressor, 0, AUTO, id="regression"),
    pytest.param(BoostingClassifier, 2, {}, id="two classes"),
    pytest.param(BoostingClassifier, 3, AUTO, id="three classes"),
    pytest.param(BoostingRegressor, 0, {"target_encoding": False}, id="no statistics"),
    pytest.param(BoostingRegressor, 0, AUTO | {"target_encoding": True}, id="statistics of all"),
    pytest.param(BoostingRegressor, 0, {"early_stopping": False}, id="one model"),
    pytest.param(BoostingRegressor, 0, AUTO | {"cv_folds": 1}, id="held-out part"),
]


@pytest.mark.parametrize(("estimator", "classes", "further"), CASES)
def test_files_pickles_and_stages(estimator, classes, further):
    X, y = draw(classes=classes)
    model = estimator(**SETTINGS | further).fit(X, y)
    new = draw(1)[0]
    new[:3] = [[77, 1e5, 0], [np.nan, -5, 0], [3, np.nan, np.nan]]
    expected = model.predict_raw(new)
    assert np.isfinite(expected).all()
    for other in (reloaded(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_raw(new), expected)
        np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
    *_, last = model._staged_raw(new)
    np.testing.assert_allclose(last, expected, rtol=1e-12)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    trees = estimator(**SETTINGS | further | {"learner": "tree"}).fit(X, y)
    np.testing.assert_array_equal(reloaded(trees).apply(new), trees.apply(new))
    assert trees.feature_importances_[0] > 0.1
    # Seven rows a level: too few to tell levels apart without statistics.
    assert model.feature_importances_[1] > 0.1 or further == {"target_encoding": False}


@pytest.mark.parametrize("further", [{}, AUTO], ids=["tree", "auto"])
@pytest.mark.usefixtures("threads_at_once")
def test_threads_change_nothing(further):
    X, y = draw(n=260, classes=3)
    one, two = (
        BoostingClassifier(**SETTINGS | further, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_raw(X), two.predict_raw(X))


def test_categories_beat_their_codes():
    X, y = draw(n=800)
    new, truth = draw(1, n=800)
    scores = [
        BoostingRegressor(**SETTINGS | {"n_estimators": 80, "categorical_features": given})
        .fit(X, y)
        .score(new, truth)
        for given in ([0, 1], None)
    ]
    assert scores[0] > max(0.85, scores[1] + 0.05)


@pytest.mark.parametrize(("cv_folds", "n_tables"), [(1, 20), (4, 3)])
@pytest.mark.parametrize("target_encoding", ["auto", False])
def test_levels_that_mean_nothing_do_not_look_as_if_they_did(cv_folds, n_tables, target_encoding):
    losses = []  # on 60 held-out rows, stages of a single table may be better by chance
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 150, 600), rng.integers(0, 150, 600)]).astype(float)
        model = BoostingRegressor(
            categorical_features=[0, 1],
            cv_folds=cv_folds,
            target_encoding=target_encoding,
            learner="tree",
            n_estimators=15,
            early_stopping=True,
            n_iter_no_change=15,
            random_state=seed,
        ).fit(X, rng.normal(size=600))
        losses.append(model.history_.validation)
    mean = np.mean(losses, axis=0)
    assert mean.min() > 0.98 * mean[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_of_fewer_than_ten_rows(weighted):
    names = pd.DataFrame({"name": ["ash", "cedar"] * 9})
    target = np.tile([0.0, 1.0], 9)
    weight = np.linspace(0.5, 1.5, 18) if weighted else None
    model = BoostingRegressor(random_state=0).fit(names, target, sample_weight=weight)
    assert model.score(names, target) > 0.99


def test_forms_of_column_numbers():
    X, y = draw()
    expected = BoostingRegressor(**SETTINGS).fit(X, y).predict(X)
    for given in ([1, 0], {1, 0}, [True, True, False], np.array([0, 1])):
        model = BoostingRegressor(**SETTINGS | {"categorical_features": given}).fit(X, y)
        for same in (model, reloaded(model)):
            np.testing.assert_array_equal(same.predict(X), expected)


@pytest.mark.parametrize("further", [{}, {"early_stopping": False}])
def test_two_halves_are_one_go(further, tmp_path):
    X, y = draw()
    further = {"learning_rate": 0.1} | further
    whole = BoostingRegressor(**SETTINGS | further).fit(X, y)
    halves = BoostingRegressor(**SETTINGS | further | {"n_estimators": 6, "warm_start": True})
    halves.fit(X, y).set_params(n_estimators=12).fit(X, y)
    np.testing.assert_array_equal(halves.predict(X), whole.predict(X))
    checkpoint = Checkpoint(tmp_path / "fit")
    stop = [checkpoint, lambda event: event.stage == 5]
    BoostingRegressor(**SETTINGS | further).fit(X, y, callbacks=stop)
    resumed = BoostingRegressor(**SETTINGS | further).fit(X, y, callbacks=[checkpoint])
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))


def test_a_continued_fit_needs_the_same_rows_and_levels():
    X, y = draw()
    model = BoostingRegressor(**SETTINGS | {"warm_start": True}).fit(X, y)
    with pytest.raises(InvalidData, match="the same rows and the same"):
        model.set_params(n_estimators=14).fit(X[::-1], y)
    before = model.predict(X)
    with pytest.raises(InvalidData, match="target_encoding as the first"):
        model.set_params(target_encoding=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(target_encoding="auto")
    X[5, 0] = 99
    with pytest.raises(
        InvalidData, match="column 0 contains levels that did not occur in the first fit"
    ):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst is not supported for column 0"),
        ({"monotonic_cst": [0, 1, 0]}, "monotonic_cst is not supported for column 1"),
        ({"multi_output": "shared", "target_encoding": False}, "vector leaves"),
    ],
)
def test_refusals(settings, words):
    X, y = draw(n=60)
    with pytest.raises(InvalidParameter, match=words):
        BoostingRegressor(**SETTINGS | settings).fit(np.nan_to_num(X), y)


def test_directions_of_categories_are_refused_by_name():
    table = pd.DataFrame({"town": ["a", "b"] * 30, "km": np.arange(60.0)})
    with pytest.raises(InvalidParameter, match="monotonic_cst is not supported for column 'town'"):
        BoostingRegressor(monotonic_cst={"town": 1, "km": 1}).fit(table, -table["km"])


DAMAGE = {
    "category_shares": lambda a: a[1:],
    "statistic_keys": lambda a: a - 1,
    "statistic_weights": lambda a: -a,
    "statistic_sums": lambda a: a[1:],
    "statistic_prior": lambda a: a * np.nan,
    "by_level": lambda a: ~a,
    "left_sets": lambda a: a[1:],
}


@pytest.fixture(scope="module")
def fitted():
    return BoostingRegressor(**SETTINGS).fit(*draw())


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name, fitted, tmp_path):
    path = tmp_path / "model"
    hilboost.save(fitted, path)
    assert_refused(path, arrays={name: DAMAGE[name](contents(path)[0][name])})


@pytest.mark.parametrize(
    "change",
    [
        lambda e: {"sources": [e["sources"][0], *e["sources"][:-1]]},
        lambda e: {"sources": [[one[0], one[0]] if len(one) > 1 else one for one in e["sources"]]},
        lambda e: {"shares": [e["shares"][0]] * len(e["shares"])},
    ],
    ids=["a source twice", "a pair of one column", "shares twice"],
)
def test_columns_that_damaged_files_name_twice(change, tmp_path):
    """All of them have sizes that agree: nothing but the names is wrong."""
    path = tmp_path / "model"
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(np.arange(80) % 10) for _ in range(2)]).astype(float)
    model = BoostingRegressor(n_estimators=2, target_encoding=True, random_state=0)
    model.set_params(categorical_features=[0, 1]).fit(X, -X[:, 0]).save(path)
    encoding = header_of(path)["encoding"]
    assert encoding["sources"] == [[0], [0, 1], [1]]
    assert len(contents(path)[0]["statistic_keys"]) == sum(encoding["n_keys"])
    edited = encoding | change(encoding) | {"n_keys": encoding["n_keys"]}
    assert_refused(path, header={"encoding": edited}, match="is inconsistent")


@pytest.mark.parametrize("odd", [False, 0.0])
def test_columns_in_damaged_files_are_whole_numbers(odd, tmp_path):
    """``False`` equals 0, and would index as a mask."""
    path = tmp_path / "model"
    model = BoostingRegressor(**SETTINGS | {"target_encoding": True}).fit(*draw())
    hilboost.save(model, path, training_data=True)
    encoding = header_of(path)["encoding"]
    assert encoding["shares"][0] == encoding["sources"][0][0] == 0
    for name, first in (("shares", odd), ("sources", [odd, *encoding["sources"][0][1:]])):
        assert_refused(path, header={"encoding": encoding | {name: [first, *encoding[name][1:]]}})


def test_an_encoding_in_the_file_of_another_estimator(tmp_path):
    """It would let trees name columns that no table has."""
    X, _ = draw(n=60)
    X = np.nan_to_num(X)
    model = OutputKernelForestRegressor(n_estimators=2, random_state=0).fit(X, -X[:, :2])
    path = tmp_path / "model"
    model.save(path, training_data=True)
    edit(path, arrays={"column": changed(contents(path)[0]["column"], 0, 900)})
    assert_refused(path, header={"encoding": {"n_columns": 1000}}, match="encoding")


@pytest.mark.parametrize("target_encoding", ["auto", True, False])
def test_levels_of_rows_without_weight_are_not_there(target_encoding):
    """Thirty levels of the first column are in such rows only: with them it would have many."""
    X, y = draw()
    weight = np.where(np.arange(len(X)) % 3, 1.0, 0.0)
    left_out = np.flatnonzero(weight == 0)
    X[left_out, 0] = 500 + np.arange(len(left_out)) % 30
    X[left_out, 1] = -5
    settings = SETTINGS | {"target_encoding": target_encoding}
    settings |= AUTO if target_encoding == "auto" else {}
    weighted = BoostingRegressor(**settings).fit(X, y, sample_weight=weight)
    fewer = BoostingRegressor(**settings).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(weighted.predict(X), fewer.predict(X))
    weighted = BoostingRegressor(**settings | {"learner": "tree"}).fit(X, y, sample_weight=weight)
    weighted.set_params(warm_start=True, n_estimators=14).fit(X, y, sample_weight=weight)
    assert weighted.n_estimators_ == 14


CONSTRAINED = [
    pytest.param({}, id="one column by statistics"),
    pytest.param({"target_encoding": True}, id="pairs"),
    pytest.param({"target_encoding": True, "multi_output": "shared"}, id="shared trees"),
    pytest.param({"cv_folds": 3, "early_stopping": True}, id="committee"),
]


@pytest.mark.parametrize("further", CONSTRAINED)
@pytest.mark.parametrize("direction", [1, -1])
def test_directions_beside_statistics(further, direction):
    X, y = draw()
    further = {"monotonic_cst": [0, 0, direction]} | further
    model = BoostingRegressor(**SETTINGS | further).fit(X, y)
    for row in X[:20]:
        line = np.tile(row, (30, 1))
        line[:, 2] = np.linspace(-3, 3, 30)
        assert (direction * np.diff(model.predict(line)) >= 0).all()
    assert model.score(X, y) > 0.4


@pytest.mark.parametrize("further", CONSTRAINED)
@pytest.mark.parametrize("groups", ["no_interactions", [{0, 2}, {1}], [{0, 1}, {2}]], ids=str)
def test_groups_hold_for_statistics(further, groups):
    """Whatever is not in a group with column 1 adds to it, also where levels have means."""
    X, y = draw()
    model = BoostingRegressor(**SETTINGS | {"interaction_cst": groups} | further).fit(X, y)
    apart = [0, 1] if isinstance(groups, list) and {0, 1} in groups else [1]
    first, second = X[:150], X[150:300]
    swapped = first.copy(), second.copy()
    swapped[0][:, apart], swapped[1][:, apart] = second[:, apart], first[:, apart]
    np.testing.assert_allclose(
        model.predict(first) + model.predict(second),
        model.predict(swapped[0]) + model.predict(swapped[1]),
        rtol=1e-10,
    )
    assert model.feature_importances_[:2].min() > 0.05

"""Estimators on data frames: every one takes them, or says in a sentence why not."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from tests.model.editing import assert_refused, contents, header_of
from tests.refusals import refused

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
    load,
    save,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.estimators.mixture_of_experts import MixtureOfKernelExperts
from hilboost.estimators.subset_ensembles import AveragedKernelRidge, BayesianCommitteeMachine
from hilboost.kernels import Delta, Gaussian, OnColumns
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.tree import TreeLearner
from hilboost.tables.schema import Schema, category_columns

RNG = np.random.default_rng(0)
N = 90
COLUMNS = {
    "size": RNG.normal(size=N),
    "color": RNG.choice(["red", "green", "blue"], N).tolist(),
    "rank": RNG.integers(0, 4, N),
    "new": RNG.random(N) < 0.5,
}
PANDAS, POLARS, ARROW = pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)
FRAMES = [PANDAS, POLARS, ARROW, POLARS.lazy()]
EFFECT = {"red": 1.0, "green": -1.0, "blue": 0.0}
Y = COLUMNS["size"] + np.array([EFFECT[name] for name in COLUMNS["color"]])
LABELS = np.where(Y > 0, "high", "low")
COLOR = 1

KERNEL = KernelBoostingRegressor(random_state=0)
NUMBERS = [
    BoostingRegressor(n_estimators=10, random_state=0),
    BoostingRegressor(n_estimators=10, multi_output="shared", random_state=0),
    BoostingRegressor(n_estimators=10, learner=TreeLearner(min_samples_leaf=2), random_state=0),
    BoostingRegressor(learner="kernel", random_state=0),
    BoostingRegressor(
        learner=SparseLearner(KernelMachineConfig(categorical=(COLOR,))),
        n_estimators=2,
        learning_rate=1.0,
        random_state=0,
    ),
    KERNEL,
    AveragedKernelRidge(n_estimators=2, subset_size=60, random_state=0),
    OutputKernelBoostingRegressor(learner=KernelBoostingRegressor(), random_state=0),
    OutputKernelBoostingRegressor(random_state=0),
    OutputKernelBoostingRegressor(learner="ok3", random_state=0),
    OutputKernelForestRegressor(random_state=0),
    OutputKernelTreeRegressor(random_state=0),
]
CLASSES = [
    BoostingClassifier(n_estimators=10, random_state=0),
    SparseKernelClassifier(n_basis=40, random_state=0),
]
LEARN_NO_CATEGORIES = [
    BoostingRegressor(learner=Ridge()),
    BoostingRegressor(learner=SparseLearner()),
    OutputKernelBoostingRegressor(learner=Ridge()),
]


def name(model):
    learner = getattr(model, "learner", "")
    return (
        f"{type(model).__name__}-{learner if isinstance(learner, str) else type(learner).__name__}"
    )


def series_of(values):
    text = [str(value) for value in values] if values.dtype.kind == "U" else values.tolist()
    yield pd.Series(text)
    yield pl.Series(text)
    yield pa.chunked_array([text])
    yield pa.array(text)
    yield np.array(text)


@pytest.mark.parametrize("model", NUMBERS, ids=name)
def test_regressors(model):
    expected = model.fit(PANDAS, Y).predict(PANDAS)
    assert model.score(PANDAS, Y) > 0.7
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert category_columns(model.fitted_.schema) == ((COLOR, 3),)
    trees = getattr(model, "learner", None) == "tree"  # others take a second to fit
    for X, y in zip(FRAMES, series_of(Y), strict=False):
        model = model.fit(X, y) if trees else model
        np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("model", CLASSES, ids=name)
def test_classifiers(model):
    expected = model.fit(PANDAS, LABELS).predict_proba(PANDAS)
    for X, y in zip(FRAMES, series_of(LABELS), strict=False):
        model = model.fit(X, y) if isinstance(model, BoostingClassifier) else model
        assert model.classes_.tolist() == ["high", "low"]
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        assert model.score(X, y) > 0.8


@pytest.mark.parametrize("model", LEARN_NO_CATEGORIES, ids=name)
def test_learners_without_categories(model):
    with pytest.raises(
        IncompatibleParts, match="column 'color' contains categories, but .* numbers"
    ):
        model.fit(POLARS, Y)
    numbers = POLARS.drop("color")
    expected = (
        model.set_params(random_state=0).fit(numbers.to_numpy(), Y).predict(numbers.to_numpy())
    )
    np.testing.assert_array_equal(model.fit(numbers, Y).predict(numbers), expected)


def test_kernels_that_compare_numbers():
    said = "column 'color' contains categories, but kernel=.* compares numbers. Set kernel='auto'"
    for model in (
        KernelBoostingRegressor(kernel="gaussian"),
        OutputKernelBoostingRegressor(learner=KernelBoostingRegressor(kernel=Gaussian(1.0))),
        SparseKernelRidge(kernel=Gaussian(1.0)),
        AveragedKernelRidge(kernel="gaussian"),
    ):
        refused(IncompatibleParts, said, model.fit, POLARS, Y)
    kernel = OnColumns(Gaussian(1.0), [0]) * OnColumns(Delta(), [COLOR])
    named = KernelBoostingRegressor(kernel=kernel, categorical_features=["color"], random_state=0)
    codes = POLARS.with_columns(color=pl.col("color").rank("dense"))
    by_hand = KernelBoostingRegressor(kernel=kernel, categorical_features=[1], random_state=0)
    expected = by_hand.fit(codes.to_numpy(), Y).predict(codes.to_numpy())
    np.testing.assert_array_equal(named.fit(POLARS, Y).predict(POLARS), expected)
    outer = OutputKernelBoostingRegressor(learner=named, random_state=0).fit(POLARS, Y)
    np.testing.assert_allclose(outer.predict(POLARS), expected, atol=0.05)


@pytest.mark.parametrize("model", [NUMBERS[0], KERNEL], ids=name)
def test_levels_that_fit_did_not_see(model):
    model.fit(POLARS, Y)
    other = POLARS.with_columns(color=pl.lit("mauve"))
    assert np.isfinite(model.predict(other)).all()
    assert np.isfinite(model.predict(PANDAS.assign(color=None))).all()


def test_held_out_frames_weights_and_warm_start():
    parameters = {"n_estimators": 8, "warm_start": True, "early_stopping": True}
    head, tail = slice(0, 60), slice(60, 90)
    weight = np.arange(60.0) % 3
    models = []
    for X, wrap in [(PANDAS, pd.Series), (POLARS, pl.Series), (POLARS, pa.array)]:
        model = BoostingRegressor(**parameters, random_state=0)
        for n_estimators in (4, 8):
            model.set_params(n_estimators=n_estimators).fit(
                X[head],
                wrap(Y[head]),
                wrap(weight),
                X_val=X[tail],
                y_val=wrap(Y[tail]),
                sample_weight_val=wrap(np.ones(30)),
            )
        models.append(model)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(ARROW), models[0].predict(ARROW))
    assert models[0].fitted_.schema.columns[COLOR].levels == ("blue", "green", "red")
    models[0].set_params(n_estimators=9)
    with pytest.raises(InvalidData, match="column 'color' contains levels that did not"):
        models[0].fit(PANDAS.replace("red", "mauve"), Y, X_val=PANDAS, y_val=Y)


def test_scikit_learn_tools_take_them():
    model = BoostingRegressor(learner="tree", n_estimators=10, random_state=0)
    expected = cross_val_score(model, PANDAS, Y)
    np.testing.assert_array_equal(cross_val_score(model, POLARS, Y), expected)
    copy = pickle.loads(pickle.dumps(model.fit(POLARS, Y)))
    np.testing.assert_array_equal(copy.predict(ARROW), model.predict(PANDAS))


def test_checkpoints_of_frames(tmp_path):
    model = BoostingRegressor(n_estimators=9, early_stopping=False, random_state=0)
    expected = model.fit(PANDAS, Y).predict(PANDAS)
    model.fit(PANDAS, Y, callbacks=[Checkpoint(tmp_path / "c"), lambda event: event.stage == 4])
    model.fit(ARROW, pl.Series(Y), callbacks=[Checkpoint(tmp_path / "c")])
    np.testing.assert_array_equal(model.predict(POLARS), expected)
    with pytest.raises(InvalidData, match=r"different data \(X"):
        model.fit(PANDAS.replace("red", "green"), Y, callbacks=[Checkpoint(tmp_path / "c")])


def test_checkpoints_tell_levels_apart(tmp_path):
    """The codes may be the same where the levels are not."""
    model = BoostingRegressor(n_estimators=4, early_stopping=False, random_state=0)
    model.fit(PANDAS, Y, callbacks=[Checkpoint(tmp_path / "c")])
    with pytest.raises(InvalidData, match=r"different data \(levels"):
        model.fit(PANDAS.replace("red", "rouge"), Y, callbacks=[Checkpoint(tmp_path / "c")])


@pytest.mark.parametrize("levels", ["text", "numbers"])
@pytest.mark.parametrize("model", [NUMBERS[0], CLASSES[0], KERNEL], ids=name)
def test_files_keep_the_schema(model, levels, tmp_path):
    if model is KERNEL and levels == "numbers":
        return  # the other kind says the same, and fits take a second
    X, model = POLARS, clone(model)
    if levels == "numbers":
        model.set_params(categorical_features=["rank", "new"])
        X = POLARS.drop("color")
    y = LABELS if isinstance(model, BoostingClassifier) else Y
    model.fit(X, y)
    save(model, tmp_path / "m", training_data=True)
    again = load(tmp_path / "m")
    assert again.fitted_.schema == model.fitted_.schema
    assert again.categorical_features == model.categorical_features
    np.testing.assert_array_equal(again.predict(X.to_pandas()), model.predict(X))
    _, metadata = contents(tmp_path / "m")
    assert metadata["format"] == "2"


def test_files_without_categories_keep_their_format(tmp_path):
    X = POLARS.drop("color")
    save(BoostingRegressor(learner="tree", n_estimators=2).fit(X, Y), tmp_path / "m")
    _, metadata = contents(tmp_path / "m")
    assert metadata["format"] == "1"
    assert load(tmp_path / "m").fitted_.schema == Schema(3, ("size", "rank", "new"))


@pytest.mark.parametrize(
    "categories",
    [
        {},
        "ab",
        [[1]],
        [[1, ["a"], 2]],
        *([[column, ["a"]]] for column in (4, -1, True)),
        *([[column, ["a"]], [1, ["a"]]] for column in (1, 2)),
        *([[1, levels]] for levels in ("ab", ["b", "a"], ["a", "a"], ["a", 1])),
        *([[1, [level]]] for level in (None, [1], float("nan"), float("inf"), 10**400)),
    ],
    ids=str,
)
def test_damaged_schemas(categories, tmp_path):
    save(BoostingRegressor(learner="tree", n_estimators=2).fit(POLARS, Y), tmp_path / "m")
    assert_refused(tmp_path / "m", header={"categories": categories})


def test_damaged_choices(tmp_path):
    model = BoostingRegressor(learner="tree", n_estimators=2, categorical_features=["color"])
    save(model.fit(POLARS, Y), tmp_path / "m")
    for given in (["size"], [9], {}, 3):
        parameters = header_of(tmp_path / "m")["parameters"] | {"categorical_features": given}
        assert_refused(tmp_path / "m", header={"parameters": parameters})


def test_kernels_of_the_user_compare_listed_columns_only():
    kernel = Gaussian(1.0)
    with pytest.raises(IncompatibleParts, match="column 'color' contains categories, but kernel="):
        KernelBoostingRegressor(kernel=kernel, categorical_features=["rank"]).fit(POLARS, Y)


def test_files_of_models_with_text_beside_a_list(tmp_path):
    model = BoostingRegressor(learner="tree", n_estimators=2, categorical_features=["rank"])
    save(model.fit(POLARS, Y), tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(POLARS), model.predict(POLARS))


def test_labels_that_are_missing():
    for missing in ([None, "a"] * 45, [1.0, np.nan] * 45, pl.Series([None, 1] * 45)):
        row = 1 if missing[0] == 1.0 else 0
        with pytest.raises(InvalidData, match=f"Input y contains NaN: row {row} has no label"):
            BoostingClassifier().fit(POLARS, missing)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BoostingRegressor().fit(POLARS, pl.Series([None, 1] * 45))
    with pytest.raises(InvalidData, match="y contains text"):
        BoostingRegressor().fit(POLARS, pl.Series(COLUMNS["color"]))


def test_targets_of_several_columns():
    wide = {"a": Y.tolist(), "b": (2 * Y).tolist()}
    model = BoostingRegressor(learner="tree", n_estimators=3, random_state=0)
    expected = model.fit(POLARS, np.column_stack(list(wide.values()))).predict(POLARS)
    for y in (pd.DataFrame(wide), pl.DataFrame(wide), pa.table(wide), pl.LazyFrame(wide)):
        np.testing.assert_array_equal(model.fit(POLARS, y).predict(POLARS), expected)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (pd.Series([True, False] * 45, dtype="boolean"), bool),
        (pd.Series([1, 2] * 45, dtype="Int64"), np.int64),
        (pl.Series([True, False] * 45), bool),
        (pa.array([1, 2] * 45), np.int64),
        (pl.Series(["u", "v"] * 45, dtype=pl.Categorical), object),
        (pa.array(["u", "v"] * 45).dictionary_encode(), object),
        (pd.Series(["u", "v"] * 45, dtype="category"), object),
    ],
    ids=str,
)
def test_labels_keep_their_dtype(labels, dtype):
    model = BoostingClassifier(n_estimators=2).fit(POLARS, labels)
    assert model.predict(POLARS).dtype == model.classes_.dtype == dtype


def test_categories_of_the_wrong_estimator_are_named():
    with pytest.raises(InvalidParameter, match="columns that X does not have: 'age'"):
        KernelBoostingRegressor(categorical_features=["age"]).fit(POLARS, Y)


GIVEN = {"kernel": Gaussian(1.0), "regularization": 0.1}
CONFIG = KernelMachineConfig(**GIVEN)
KERNELS = {
    "regressor": KernelBoostingRegressor(n_estimators=2, **GIVEN),
    "classifier": KernelBoostingClassifier(n_estimators=2, **GIVEN),
    "sparse": SparseKernelRidge(n_basis=5, **GIVEN),
    "committee": BayesianCommitteeMachine(n_estimators=2, subset_size=20, **GIVEN),
    "experts": MixtureOfKernelExperts(n_estimators=2, subset_size=20, **GIVEN),
    "learner": BoostingRegressor(learner=FullLearner(CONFIG), n_estimators=2),
    "outputs": OutputKernelBoostingRegressor("linear", learner=FullLearner(CONFIG), n_estimators=2),
}


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.nan, "contains NaN in (row 7 of )?{},"),
        (1.5e308, r"contains 1.5e\+308 in {},"),
        (np.inf, "in {}"),
    ],
)
def test_kernel_estimators_name_the_column(kind, value, said):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "width"])
    y = (X["a"] > 0).astype(int) if kind == "classifier" else X["a"].rename("target")
    bad = X.copy()
    bad.loc[7, "width"] = value
    model = clone(KERNELS[kind])
    for table, place in ((bad, "column 'width'"), (bad.to_numpy(), "column 2")):
        with pytest.raises(InvalidData, match=said.format(place)) as found:
            model.fit(table, y)
        if value != value:
            assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
            good = X if table is bad else X.to_numpy()
            refused(InvalidData, said.format(place), model.fit(good, y).predict, table)

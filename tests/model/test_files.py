"""Model files: the same model bit for bit, or a refusal."""

import errno
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cases import LOSSES, PLAIN, TREES, assert_same_model, ids
from tests.model.editing import assert_refused, changed, contents, edit
from tests.refusals import refused
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import (
    DiskFull,
    IncompatibleParts,
    InvalidModelFile,
    InvalidType,
    MissingPath,
    UnusablePath,
)
from hilboost.learners.tree import TreeLearner
from hilboost.losses import Huber, Quantile, Tweedie

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4))
X[RNG.uniform(size=X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) + 0.1 * RNG.normal(size=100)


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@pytest.mark.parametrize("trees", TREES, ids=ids(TREES))
def test_round_trip(case, trees):
    y = case.labels(case.target(RNG, 100).y)
    model = case.build(**PLAIN | trees.parameters).fit(X, y)
    loaded = reloaded(model)
    assert type(loaded) is type(model)
    parameters = loaded.get_params() | {"quantile": model.get_params().get("quantile")}
    assert parameters == {"quantile": None} | model.get_params()
    if "quantile" in case.parameters:
        np.testing.assert_array_equal(loaded.quantile, model.quantile)
    assert_same_model(loaded, model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.apply(X), model.apply(X))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(loaded.predict(X[:0:-7]), model.predict(X[:0:-7]))
    assert loaded.n_estimators_ == model.n_estimators_
    assert loaded.n_features_in_ == 4


def test_every_class_loads_its_own_files(tmp_path):
    path = tmp_path / "model.hilboost"
    model = BoostingClassifier(**PLAIN).fit(X, Y > 0)
    model.save(path)
    loaded = BoostingClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(
        InvalidModelFile,
        match=r"a model of class BoostingClassifier, not BoostingRegressor; call BoostingClassif",
    ):
        BoostingRegressor.load(path)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "grün"]),
        np.array(["no", "yes", "grün"], dtype=object),
        np.array([-5, 0, 7]),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0]),
    ],
    ids=["text", "objects", "int", "uint8", "float"],
)
def test_labels_of_every_kind(labels):
    model = BoostingClassifier(**PLAIN).fit(X, labels[np.arange(100) % 3])
    loaded = reloaded(model)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_two_labels_that_are_true_or_false():
    model = BoostingClassifier(**PLAIN).fit(X, Y > 0)
    loaded = reloaded(model)
    assert loaded.predict(X).dtype == bool
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_names_of_columns():
    table = pd.DataFrame(X, columns=["a", "b", "ü", "with space"])
    loaded = reloaded(BoostingRegressor(**PLAIN).fit(table, Y))
    assert loaded.feature_names_in_.tolist() == list(table.columns)
    refused(ValueError, "same order", loaded.predict, table[table.columns[::-1]])


@pytest.mark.parametrize("cv_folds", [1, 4])
def test_early_stopping_and_committees(cv_folds):
    settings = PLAIN | {"early_stopping": True, "cv_folds": cv_folds}
    model = BoostingRegressor(**settings).fit(X, Y)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.history_.validation, model.history_.validation)


def test_a_model_without_stages():
    settings = PLAIN | {"early_stopping": True, "cv_folds": 1, "random_state": 0}
    model = BoostingRegressor(**settings).fit(
        X, RNG.normal(size=100), X_val=X + 1e-9, y_val=np.full(100, 0.0)
    )
    constant = type(model.model_)(model.model_.initial_raw, ())
    model.fitted_ = replace(model.fitted_, model=constant)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_parameters_as_numpy_numbers():
    settings = PLAIN | {
        "learning_rate": np.float32(0.5),
        "n_estimators": np.int64(5),
        "random_state": np.random.RandomState(0),
    }
    model = BoostingRegressor("quantile", quantile=np.array([0.2, 0.8]), **settings).fit(X, Y)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.fit(X, Y).n_estimators_ == 5


def test_equal_models_have_equal_files(tmp_path):
    paths = [tmp_path / str(k) for k in range(8)]  # safetensors orders its header at random
    for path in paths:
        BoostingRegressor(**PLAIN).fit(X, Y).save(path)
    (content,) = {path.read_bytes() for path in paths}
    assert int.from_bytes(content[:8], "little") % 8 == 0  # the arrays are aligned
    one = hilboost.load(paths[0])
    np.testing.assert_array_equal(one.predict(X), BoostingRegressor(**PLAIN).fit(X, Y).predict(X))


def test_a_loaded_model_is_fitted_anew():
    loaded = reloaded(BoostingRegressor(**PLAIN).fit(X, Y))
    expected = loaded.predict(X)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), expected)


# Models that files do not hold


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        hilboost.save(BoostingRegressor(), tmp_path / "m")
    with pytest.raises(InvalidType, match="requires a hilboost estimator; got Ridge"):
        hilboost.save(Ridge(), tmp_path / "m")
    with pytest.raises(InvalidType, match="got Pipeline: save pipelines with joblib or with skops"):
        hilboost.save(make_pipeline(StandardScaler(), BoostingRegressor()), tmp_path / "m")
    with pytest.raises(InvalidType, match="got GridSearchCV: pass its best_estimator_"):
        hilboost.save(GridSearchCV(BoostingRegressor(), {}), tmp_path / "m")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": Tweedie(1.3)},
        {"loss": Huber(0.5)},
        {"loss": Quantile([0.2, 0.8])},
        {"learner": TreeLearner(max_leaf_nodes=4, min_samples_leaf=3.0)},
    ],
    ids=["tweedie", "huber", "quantile", "tree"],
)
def test_parts_of_hilboost_given_as_objects(parameters):
    plain = {"n_estimators": 5, "early_stopping": False} if "learner" in parameters else PLAIN
    model = BoostingRegressor(**plain | parameters).fit(X, np.exp(Y))
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.apply(X), model.apply(X))
    np.testing.assert_array_equal(loaded.fit(X, np.exp(Y)).predict(X), model.predict(X))


def test_regressors_of_others_are_refused(tmp_path):
    model = BoostingRegressor(n_estimators=3, learner=KNeighborsRegressor())
    model.fit(np.nan_to_num(X), Y)
    refused(IncompatibleParts, "KNeighborsRegressor.*pickle or joblib", model.save, tmp_path / "m")
    assert os.listdir(tmp_path) == []


# Files that are not models


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    hilboost.save(BoostingRegressor(**PLAIN).fit(X, Y), path)
    return path.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    return path


def inner_nodes(arrays):
    return np.flatnonzero(arrays["leaf_number"] < 0)


def at_a_leaf(arrays, name, value):
    return {name: changed(arrays[name], arrays["n_nodes"][0] - 1, value)}


def test_an_unedited_file_is_read(path):
    before = hilboost.load(path).predict(X)
    edit(path)
    np.testing.assert_array_equal(hilboost.load(path).predict(X), before)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        hilboost.load(tmp_path / "nothing")
    assert isinstance(caught.value, MissingPath)
    assert caught.value.filename == str(tmp_path / "nothing")
    assert str(caught.value) == f"There is no file '{tmp_path / 'nothing'}'; check the path."


UNUSABLE = {
    "": "it is a folder; use the path of a file",
    "folder": "it is a folder; use the path of a file",
    "file/model": "a part of the path is a file, not a folder; check the path",
    "m" * 300: "the name is too long; choose a shorter one",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_paths_that_are_no_files(path, name, monkeypatch):
    model = hilboost.load(path)
    monkeypatch.chdir(path.parent)
    Path("folder").mkdir()
    Path("file").touch()
    before = sorted(os.listdir())
    for verb, use in (("read", hilboost.load), ("write", model.save)):
        with pytest.raises(OSError, match=UNUSABLE[name]) as caught:
            use(name)
        assert isinstance(caught.value, UnusablePath)
        assert str(caught.value).startswith(f"Cannot {verb} '{name or caught.value.filename}': ")
    assert sorted(os.listdir()) == before


@contextmanager
def unprivileged():
    """A superuser may read and write every file."""
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_files_without_permission(path):
    model = hilboost.load(path)
    path.chmod(0)
    path.parent.chmod(0o500)
    try:
        with unprivileged():
            for verb, use in (("read", hilboost.load), ("write", model.save)):
                with pytest.raises(UnusablePath) as caught:
                    use(path)
                assert str(caught.value) == (
                    f"Cannot {verb} '{path}': permission denied; choose another path, or ask for "
                    "the permission."
                )
    finally:
        path.parent.chmod(0o700)


def test_truncated_files_and_those_of_another_kind(path):
    content = path.read_bytes()
    truncated = (content[: int(share * len(content))] for share in (0.0, 0.01, 0.3, 0.9, 0.999))
    for other in (*truncated, b"text", b"\0" * 100, b"\x80\x04K\x01.", b"{}" * 50):
        path.write_bytes(other)
        refused(InvalidModelFile, "not a hilboost model file", hilboost.load, path)


def test_arrays_that_are_no_model(path):
    save_file({"weights": np.zeros(3)}, path)
    refused(InvalidModelFile, "format None", hilboost.load, path)


@pytest.mark.parametrize("number", ["0", "3", "x"])
def test_another_format(path, number):
    assert_refused(path, metadata={"format": number}, match=r"format .*Update hilboost")


@pytest.mark.parametrize("header", ["", "[]", "3", "{", "{}", "null"])
def test_a_header_of_another_kind(path, header):
    assert_refused(path, metadata={"header": header})


@pytest.mark.parametrize(
    "header",
    [
        *({"class": name} for name in ("Ridge", "__import__")),
        *({"parameters": one} for one in ({"n_estimators": -1}, {"unheard_of": 1}, 3)),
        {"parameters": {"loss": "quantile", "quantile": [0.1, 0.9]}},
        {"parameters": {"loss": "unknown"}},
        *({"n_features_in": number} for number in (1, -4, "four")),
        {"feature_names_in": ["a"]},
        *({"n_targets": number} for number in (3, None)),
        *({"train": losses} for losses in ("none", [[1, 2], [3]])),
        {"seed": "none"},
    ],
    ids=str,
)
def test_an_edited_header(path, header):
    assert_refused(path, header=header)


@pytest.mark.parametrize(
    "header",
    [
        *({"classes": classes} for classes in ([0, 1, 2], [0], None)),
        *({"classes_dtype": dtype} for dtype in ("V8", "x")),
    ],
    ids=str,
)
def test_an_edited_header_of_a_classifier(tmp_path, header):
    path = tmp_path / "model"
    hilboost.save(BoostingClassifier(**PLAIN).fit(X, (Y > 0).astype(int)), path)
    assert_refused(path, header=header)


EDITS = {
    "column too large": lambda a: {"column": changed(a["column"], 0, 4)},
    "column negative": lambda a: {"column": changed(a["column"], 0, -1)},
    "child too large": lambda a: {"child": changed(a["child"], 0, 10**6)},
    "child negative": lambda a: {"child": changed(a["child"], 0, -5)},
    "child before its parent": lambda a: {"child": changed(a["child"], inner_nodes(a)[1], 0)},
    "leaf with children": lambda a: at_a_leaf(a, "child", 1),
    "node without a parent": lambda a: {"child": changed(a["child"], 0, a["child"][0] + 1)},
    "inner node as a leaf": lambda a: {"child": changed(a["child"], 0, 0)},
    "threshold missing": lambda a: {"threshold": changed(a["threshold"], 0, np.nan)},
    "threshold at a leaf": lambda a: at_a_leaf(a, "threshold", 1.0),
    "missing at a leaf": lambda a: at_a_leaf(a, "missing_right", True),
    "leaf number twice": lambda a: at_a_leaf(a, "leaf_number", 0),
    "leaf number too large": lambda a: at_a_leaf(a, "leaf_number", 99),
    "leaf number of an inner node": lambda a: {"leaf_number": changed(a["leaf_number"], 0, 10**6)},
    "value missing": lambda a: {"values": changed(a["values"], 0, np.nan)},
    "value infinite": lambda a: {"values": changed(a["values"], 0, np.inf)},
    "too few values": lambda a: {"values": a["values"][:-1]},
    "too many values": lambda a: {"values": np.append(a["values"], 0.0)},
    "start missing": lambda a: {"start": changed(a["start"], 0, np.nan)},
    "start empty": lambda a: {"start": a["start"][:0]},
    "two starts": lambda a: {"start": np.zeros(2)},
    "depth too small": lambda a: {"depth": changed(a["depth"], 0, 0)},
    "depth too large": lambda a: {"depth": changed(a["depth"], 0, 99)},
    "too many nodes": lambda a: {"n_nodes": changed(a["n_nodes"], 0, 10**6)},
    "negative nodes": lambda a: {"n_nodes": changed(a["n_nodes"], 0, -1)},
    "too many leaves": lambda a: {"n_leaves": changed(a["n_leaves"], 0, 10**6)},
    "no leaves": lambda a: {"n_leaves": changed(a["n_leaves"], 0, 0)},
    "column of the output": lambda a: {"first_column": changed(a["first_column"], 0, 1)},
    "columns of the output": lambda a: {"n_columns": changed(a["n_columns"], 0, 2)},
    "stage too large": lambda a: {"stage": changed(a["stage"], 0, 10**6)},
    "stage negative": lambda a: {"stage": changed(a["stage"], 0, -1)},
    "wrong kind": lambda a: {"column": a["column"].astype(np.int64)},
    "wrong shape": lambda a: {"column": a["column"][None]},
    "wrong values": lambda a: {"values": a["values"].astype(np.float32)},
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS.keys())
def test_edited_arrays(path, change):
    assert_refused(path, arrays=change(contents(path)[0]))


def test_two_parents_of_the_same_children(path):
    """Such a tree has nodes that nothing leads to, and others that are reached twice."""
    arrays, _ = contents(path)
    inner = inner_nodes(arrays)
    inner = inner[inner < arrays["n_nodes"][0]]
    one, other = inner[1], inner[2]
    assert_refused(path, arrays={"child": changed(arrays["child"], one, arrays["child"][other])})


@pytest.mark.parametrize("name", ["start", "column", "child", "values", "stage"])
def test_a_missing_array(path, name):
    arrays, metadata = contents(path)
    del arrays[name]
    save_file(arrays, path, metadata=metadata)
    refused(InvalidModelFile, "damaged", hilboost.load, path)


# Writing


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_the_old_file_survives_a_failure(path, monkeypatch, step):
    before = path.read_bytes()
    model = BoostingRegressor(**PLAIN).fit(X, -Y)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, step, fail)
    refused(OSError, "disk full", hilboost.save, model, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_the_old_file_survives_a_full_disk(path):
    """The system itself refuses to write on, in the middle of the file."""
    resource = pytest.importorskip("resource")  # of Unix
    before, model = path.read_bytes(), hilboost.load(path)
    assert len(before) > 1000
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DiskFull) as caught:
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]

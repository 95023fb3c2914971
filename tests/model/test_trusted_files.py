"""Parts of the user's own in model files: imported where they are trusted, and else not."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from tests.model.editing import assert_refused, header_of

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.core.errors import IncompatibleParts, InvalidModelFile, InvalidParameter, InvalidType
from hilboost.persistence import container as files

MODULE = (Path(__file__).parent / "own_parts.py").read_text()
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] ** 2
SETTINGS = {"n_estimators": 4, "early_stopping": False, "random_state": 0}


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A module of the user's."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "my_parts.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("my_parts")
    sys.modules.pop("my_parts", None)


def forgotten():
    """As in a process that has not imported the module."""
    sys.modules.pop("my_parts", None)


def names(*classes):
    return [f"my_parts:{name}" for name in classes]


def models(parts):
    two = np.column_stack([Y, -Y])
    loss, kernel = parts.Weighted([1.0, 2.0], 3), parts.Cauchy(2.0)
    machine = {"kernel": kernel, "regularization": 0.1, "random_state": 0}
    return {
        "loss": (BoostingRegressor(loss, **SETTINGS), two, names("Weighted")),
        "class": (BoostingRegressor(parts.Weighted, **SETTINGS), Y, names("Weighted")),
        "learner": (
            BoostingRegressor(learner=parts.Slopes(), **SETTINGS),
            two,
            names("Slopes", "Outer.Slope"),
        ),
        "penalized": (
            BoostingRegressor(learner=parts.PenalizedSlopes(), **SETTINGS),
            two,
            names("PenalizedSlopes", "Outer.Slope"),
        ),
        "penalized points": (
            OutputKernelBoostingRegressor("linear", learner=parts.PenalizedSlopes(), **SETTINGS),
            two,
            names("PenalizedSlopes", "Outer.Slope"),
        ),
        "both": (
            BoostingRegressor(loss, learner=parts.Slopes(), **SETTINGS),
            two,
            names("Slopes", "Weighted", "Outer.Slope"),
        ),
        "trees": (
            BoostingClassifier(learner=parts.MyTrees(max_leaf_nodes=4), **SETTINGS),
            np.arange(60) % 3,
            names("MyTrees"),
        ),
        "kernel": (KernelBoostingRegressor(**machine), two, names("Cauchy")),
        "output kernel": (
            OutputKernelForestRegressor(kernel, n_estimators=2, random_state=0),
            two,
            names("Cauchy"),
        ),
        "output": (
            OutputKernelForestRegressor(parts.Doubles(), n_estimators=2, random_state=0),
            two,
            names("Doubles", "DoubleEmbedding"),
        ),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("loss", "class", "learner", "penalized", "penalized points", "both", "trees", "kernel"),
        *("output", "output kernel"),
    ],
)
def test_round_trip(name, parts, tmp_path):
    model, y, needed = models(parts)[name]
    expected = model.fit(X, y).predict(X)
    path = tmp_path / "model"
    model.save(path, training_data=True)
    loaded = hilboost.load(path, trusted=needed)
    np.testing.assert_array_equal(loaded.predict(X), expected)
    loaded.save(path, training_data=True)
    np.testing.assert_array_equal(hilboost.load(path, needed).predict(X), expected)
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), expected)
    forgotten()
    for trusted in ([], needed[:-1], ["my_parts:Stranger"], ["my_parts:Other"]):
        with pytest.raises(InvalidModelFile) as refused:
            hilboost.load(path, trusted=trusted)
        listed = ", ".join(f'"{n}"' for n in needed)
        assert f"If you trust the file and this code, load it with trusted=[{listed}]." in str(
            refused.value
        )
        assert "my_parts" not in sys.modules
    np.testing.assert_array_equal(hilboost.load(path, needed).predict(X), expected)


def test_attributes_come_back(parts, tmp_path):
    model = BoostingRegressor(parts.Weighted([1.0, 2.0], 5), **SETTINGS)
    model.fit(X, np.column_stack([Y, Y])).save(tmp_path / "m")
    loss = hilboost.load(tmp_path / "m", names("Weighted")).loss
    assert type(loss) is parts.Weighted
    np.testing.assert_array_equal(loss.factors, [1.0, 2.0])
    for name, value in model.loss.more.items():
        assert type(loss.more[name]) is type(value)
        assert repr(loss.more[name]) == repr(value)


@pytest.fixture
def path(parts, tmp_path):
    path = tmp_path / "model"
    BoostingRegressor(parts.Weighted(), learner=parts.Slopes(), **SETTINGS).fit(X, Y).save(path)
    return path


ALL = names("Weighted", "Slopes", "Outer.Slope")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_parts:Stranger", "cannot be part of a model"),
        ("my_parts:function", "cannot be part of a model"),
        ("my_parts:Nothing", "cannot be imported"),
        ("my_nothing:Loss", "cannot be imported"),
        ("os:system", "cannot be part of a model"),
    ],
)
def test_names_of_other_things(path, name, message):
    header = header_of(path)
    loss = header["parameters"]["loss"] | {"import": name}
    edited = {"parameters": header["parameters"] | {"loss": loss}}
    # the list of names in the file leaves it out
    assert_refused(path, header=edited, match=f'trusted=\\["{name}"\\]', trusted=ALL)
    with pytest.raises(InvalidModelFile, match=message):
        hilboost.load(path, [*ALL, name])


def test_parts_of_another_kind(path):
    header = header_of(path)
    parameters = header["parameters"]
    for edited in (
        {"loss": parameters["learner"]},
        {"learner": parameters["loss"]},
        {"loss": parameters["loss"] | {"attributes": 3}},
        {"loss": parameters["loss"] | {"attributes": {"factors": {"array": "start"}}}},
        {"loss": {"import": "my_parts:Weighted"}},
        {"loss": parameters["loss"] | {"import": 3}},
    ):
        assert_refused(path, header={"parameters": parameters | edited}, trusted=ALL)
    for entry in (parameters["loss"], None):
        others = [header["others"][0] | {"model": entry}]
        assert_refused(path, header={"parameters": parameters, "others": others}, trusted=ALL)


@pytest.mark.parametrize("imports", [3, [3], None, {"a": 1}])
def test_a_damaged_list_of_names(path, imports):
    assert_refused(path, header={"imports": imports}, trusted=ALL)


@pytest.mark.parametrize("trusted", ["my_parts:Weighted", 3, None])
def test_trust_is_a_list(path, trusted):
    with pytest.raises(InvalidType, match="must be a list of names"):
        hilboost.load(path, trusted=trusted)


@pytest.mark.parametrize("name", ["my_parts", "my_parts.Weighted", ":Weighted", "my_parts:*", 3])
def test_trust_names_modules_and_classes(path, name):
    with pytest.raises(InvalidParameter, match='names such as "my_module:MyLoss"; got'):
        hilboost.load(path, trusted=[*ALL, name])


# What files do not hold


def test_classes_that_cannot_be_imported(parts, tmp_path):
    class Local(parts.Weighted):
        pass

    class Main(parts.Weighted):
        pass

    Main.__module__, Main.__qualname__ = "__main__", "Main"
    sys.modules["__main__"].Main = Main
    try:
        for loss in (Local(), Local, Main()):
            model = BoostingRegressor(loss, **SETTINGS).fit(X, Y)
            with pytest.raises(
                IncompatibleParts, match="define it at the top level of an importable"
            ):
                model.save(tmp_path / "m")
    finally:
        del sys.modules["__main__"].Main
    assert os.listdir(tmp_path) == ["code"]


def test_slots_are_refused(parts, tmp_path):
    model = BoostingRegressor(parts.Slotted(), **SETTINGS).fit(X, Y)
    with pytest.raises(IncompatibleParts, match=r"Slotted \(loss\) has __slots__"):
        model.save(tmp_path / "m")


def test_headers_that_would_not_be_read(parts, tmp_path, monkeypatch):
    model = BoostingRegressor(learner=parts.Slopes(), **SETTINGS).fit(X, Y)
    monkeypatch.setattr(files, "_HEADER_BYTES", 1000)
    with pytest.raises(IncompatibleParts, match="header of this model exceeds the limit of 0 MB"):
        model.save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["code"]


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: 1, "more of Weighted is of type function"),
        (np.array(["a"]), "more of Weighted is of type ndarray"),
        (1j, "more of Weighted is of type complex"),
        (KNeighborsRegressor(), "more of Weighted is of type KNeighborsRegressor"),
        (deep(40), "at most 32 nested levels"),
    ],
    ids=["function", "texts", "complex", "regressor", "deep"],
)
def test_attributes_that_files_do_not_hold(value, message, parts, tmp_path):
    loss = parts.Weighted()
    model = BoostingRegressor(loss, **SETTINGS).fit(X, Y)
    loss.more = value
    with pytest.raises(IncompatibleParts, match=f"{message}.*pickle or joblib"):
        model.save(tmp_path / "m")

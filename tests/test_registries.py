"""Every part is found in its own module, under one name, and a new part needs one file."""

import json
import pkgutil
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingRegressor, OutputKernelTreeRegressor
from hilboost.core import discovery
from hilboost.core.base_model import BaseModel, Term
from hilboost.core.errors import InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.learner import Learner
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.export.registry import export_formats, export_function
from hilboost.kernels.registry import kernel_classes, kernel_names
from hilboost.losses import BinomialLogLoss
from hilboost.losses.registry import (
    classification_losses,
    loss_classes,
    make_classification_loss,
    regression_losses,
)
from hilboost.outputs import OUTPUT_NAMES
from hilboost.outputs.registry import output_names
from hilboost.persistence.values import own_classes

CACHES = (
    discovery.modules_in,
    loss_classes,
    regression_losses,
    classification_losses,
    kernel_classes,
    kernel_names,
    output_names,
    own_classes,
    export_formats,
)
# Names in model files of earlier versions.
IN_FILES = (
    "AbsoluteError BinomialLogLoss Exponential Gamma Huber MultinomialLogLoss OneHotSquaredError "
    "Poisson Quantile SquaredError Tweedie LinearModel TreeLearner VectorTreeLearner Compositions "
    "Distributions Hierarchy KernelOutput LabelSets PositiveMatrices PrecomputedOutput Rankings "
    "Strings Vectors"
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + X[:, 1] ** 2


def classes_with(package, name):
    root = import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        for value in vars(import_module(module.name)).values():
            here = isinstance(value, type) and value.__module__ == module.name
            if here and vars(value).get(name):
                yield value


def test_files_hold_what_earlier_versions_wrote():
    assert set(IN_FILES.split()) <= set(own_classes())


def test_every_class_that_declares_it_is_in_files():
    declared = {
        part
        for package in ("hilboost.learners", "hilboost.losses", "hilboost.outputs")
        for part in classes_with(package, "in_files")
    }
    assert declared == set(own_classes().values()) - set(loss_classes().values())


def test_names_of_output_spaces_are_unique():
    spaces = [
        space
        for space in classes_with("hilboost.outputs", "short_names")
        if issubclass(space, OutputSpace)
    ]
    names = [name for space in spaces for name in space.short_names]
    assert sorted(names) == sorted(set(names)) == sorted(OUTPUT_NAMES)
    assert {type(OUTPUT_NAMES[name]()) for name in names} == set(spaces)


def test_formats():
    assert export_formats()["onnx"] is hilboost.to_onnx
    assert export_formats()["xgboost-json"] is hilboost.to_xgboost_json
    assert export_function("to_onnx") is hilboost.to_onnx
    with pytest.raises(AttributeError, match="no attribute 'to_onyx'"):
        _ = hilboost.to_onyx


# One more module each, as a contributor would add it


@dataclass(frozen=True)
class Slope(BaseModel):
    in_files = True

    weights: np.ndarray

    def predict_raw(self, X):
        return X @ self.weights

    def has_shape(self, n_features, n_outputs):
        return self.weights.shape == (n_features, n_outputs)

    def operators(self, graph, X):
        return graph.add("MatMul", X, graph.constant(self.weights))


@dataclass(frozen=True)
class Slopes(Learner):
    in_files = True

    ridge: float = 1.0

    def prepare(self, X, weight, seed, n_threads):
        return X

    def fit(self, data, gradients, sample, rng):
        gram = data.T @ data + self.ridge * np.eye(data.shape[1])
        model = Slope(np.linalg.solve(gram, data.T @ gradients.negative_gradient))
        term = Term.of(model, slice(0, gradients.negative_gradient.shape[1]))
        return [FittedTerm(term, outputs=model.predict_raw(data))]


@dataclass(frozen=True)
class Doubles(OutputSpace):
    in_files = True
    short_names = {"double": {}}

    factor: float = 2.0

    def fit(self, labels):
        return DoubleEmbedding(self.factor)


@dataclass(frozen=True)
class DoubleEmbedding(Embedding):
    in_files = True
    ways = ("exact",)

    factor: float

    def encode(self, labels):
        return self.factor * np.asarray(labels, dtype=float).reshape(len(labels), -1)

    def decode(self, raw, way, candidates=None):
        return raw / self.factor


def to_sums(model, path=None):
    text = json.dumps(model.model_.initial_raw.tolist())
    if path is not None:
        path.write_text(text)
    return text


@pytest.fixture
def contributed(monkeypatch):
    """Adds a module to a package, as if it had been there."""
    found = discovery.modules_in.__wrapped__
    added = {}

    def modules_in(package):
        return (*found(package), *(module for home, module in added.items() if home == package))

    def add(package, **members):
        name = f"{package}.contributed"
        module = ModuleType(name)
        for key, member in members.items():
            if isinstance(member, type):
                monkeypatch.setattr(member, "__module__", name)
            setattr(module, key, member)
        added[package] = module

    def clear():
        for cache in CACHES[1:]:
            cache.cache_clear()

    monkeypatch.setattr(discovery, "modules_in", modules_in)
    monkeypatch.setattr("hilboost.export.registry.modules_in", modules_in)
    clear()
    yield add
    monkeypatch.undo()
    clear()


def test_a_learner_of_one_file(contributed):
    contributed("hilboost.learners", Slopes=Slopes, Slope=Slope)
    model = BoostingRegressor(learner=Slopes(0.5), n_estimators=5, random_state=0).fit(X, Y)
    again = reloaded(model)
    assert again.learner == Slopes(0.5)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.report(X, Y).facts["scores"]
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], model.predict(X), atol=1e-12)


def test_a_base_model_of_another_shape_is_refused(contributed):
    contributed("hilboost.learners", Slopes=Slopes, Slope=Slope)
    model = BoostingRegressor(learner=Slopes(), n_estimators=2, random_state=0).fit(X, Y)
    object.__setattr__(model.model_.stages[0].terms[0].model, "weights", np.zeros((9, 1)))
    with pytest.raises(hilboost.core.errors.InvalidModelFile, match="a base model"):
        reloaded(model)


def test_an_output_space_of_one_file(contributed):
    contributed("hilboost.outputs", Doubles=Doubles, DoubleEmbedding=DoubleEmbedding)
    labels = np.column_stack([Y, -Y])
    for output in ("double", Doubles(4.0)):
        model = OutputKernelTreeRegressor(output=output, random_state=0).fit(X, labels)
        again = reloaded(model)
        assert again.output == output
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert model.report(X, labels).facts["scores"]


def test_an_export_of_one_file(contributed, tmp_path):
    contributed("hilboost.export", to_sums=to_sums, FORMATS={"sums": to_sums})
    model = BoostingRegressor(n_estimators=2, random_state=0).fit(X, Y)
    assert hilboost.to_sums is hilboost.export.to_sums is export_formats()["sums"]
    hilboost.to_sums(model, tmp_path / "sums")
    assert json.loads((tmp_path / "sums").read_text()) == [pytest.approx(Y.mean())]


def test_a_loss_for_two_classes_refuses_three(contributed):
    class OnlyTwo(BinomialLogLoss):
        classifier_name = "only_two"

    contributed("hilboost.losses", OnlyTwo=OnlyTwo)
    assert type(make_classification_loss("only_two", 2)) is OnlyTwo
    with pytest.raises(InvalidParameter, match="supports two classes; y has 3. Use 'log_loss'"):
        make_classification_loss("only_two", 3)


def test_a_name_twice_is_refused(contributed):
    contributed(
        "hilboost.outputs", Doubles=type("Doubles", (Doubles,), {"short_names": {"linear": {}}})
    )
    with pytest.raises(RuntimeError, match="two output spaces have the name 'linear'"):
        output_names()

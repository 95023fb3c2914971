"""A class given as ``loss`` is created as by its name, and stored in model files."""

import numpy as np
import pytest
from tests.model.editing import assert_refused, header_of
from tests.reloaded import reloaded

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    Loss,
    OutputKernelBoostingRegressor,
)
from hilboost.core.errors import InvalidType
from hilboost.losses import Hinge, Huber, Quantile, SquaredError
from hilboost.losses.registry import classification_losses, gives_probabilities, regression_losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.exp(X[:, 0] + 0.1 * RNG.normal(size=80))
TREES = {"n_estimators": 4, "early_stopping": False, "random_state": 0}
MACHINE = {"n_estimators": 4, "regularization": 0.1, "kernel": "gaussian", "random_state": 0}
CLASSES = [
    (name, loss) for name, losses in sorted(classification_losses().items()) for loss in losses
]


def by_turns(turn, trees, machine):
    """Trees for one half of the losses, and kernel machines for the other."""
    return (machine, MACHINE) if turn % 2 else (trees, TREES)


def assert_like(model, named, y):
    """The class gives the model of the name, before and after a round trip through a file."""
    model, named = model.fit(X, y), named.fit(X, y)
    np.testing.assert_array_equal(model.predict_raw(X), named.predict_raw(X))
    loaded = reloaded(model)
    assert loaded.loss is model.loss
    np.testing.assert_array_equal(loaded.predict(X), named.predict(X))
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), named.predict(X))
    assert model.report_facts(X, y)["model"]["loss"] == model.loss.__name__


@pytest.mark.parametrize(("turn", "name"), [*enumerate(sorted(regression_losses()))])
def test_regression(turn, name):
    estimator, setting = by_turns(turn, BoostingRegressor, KernelBoostingRegressor)
    setting = setting | ({"quantile": 0.8} if name == "quantile" else {})
    model = estimator(regression_losses()[name], **setting)
    support = getattr(regression_losses()[name], "support", "numbers")
    y = {"counts": np.rint(Y), "fractions": Y / (1 + Y)}.get(support, Y)
    assert_like(model, estimator(name, **setting), y)


@pytest.mark.parametrize("turn", range(len(CLASSES)))
def test_classification(turn):
    name, loss = CLASSES[turn]
    estimator, setting = by_turns(turn, BoostingClassifier, KernelBoostingClassifier)
    y = np.digitize(Y, [0.6, 1.5] if loss.n_classes_range[0] == 3 else [1.0])
    model = estimator(loss, **setting)
    assert hasattr(model, "predict_proba") == gives_probabilities(name)
    assert_like(model, estimator(name, **setting), y)


def test_distances():
    model = OutputKernelBoostingRegressor("linear", loss=Huber, **TREES)
    named = OutputKernelBoostingRegressor("linear", loss="huber", **TREES)
    assert_like(model, named, np.column_stack([Y, -Y]))


class Scaled(SquaredError):
    def __init__(self, factor):
        self.factor = factor


@pytest.mark.parametrize(
    ("loss", "reason"),
    [(Scaled, "missing 1 required positional argument: 'factor'"), (Loss, "abstract")],
)
def test_classes_that_cannot_be_created(loss, reason):
    message = (
        rf"^loss={loss.__name__} cannot be created \(.*{reason}.*\); pass an object, or a class "
        r"that needs no arguments\.$"
    )
    for model in (
        BoostingRegressor(loss, **TREES),
        KernelBoostingRegressor(loss, **MACHINE),
        OutputKernelBoostingRegressor("linear", loss=loss, **TREES),
    ):
        with pytest.raises(InvalidType, match=message):
            model.fit(X, Y)
    with pytest.raises(InvalidType, match=message):
        BoostingClassifier(loss, **TREES).fit(X, Y > 1)


@pytest.mark.parametrize("name", ["TreeLearner", "NoSuchLoss", None, ["Huber"], 3])
def test_files_with_other_classes_are_refused(name, tmp_path):
    path = tmp_path / "m"
    BoostingRegressor(Quantile, **TREES).fit(X, Y).save(path)
    parameters = header_of(path)["parameters"]
    assert parameters["loss"] == {"own": "Quantile", "values": None}
    parameters["loss"]["own"] = name
    assert_refused(path, header={"parameters": parameters})


def test_a_learner_is_no_class(tmp_path):
    path = tmp_path / "m"
    BoostingClassifier(Hinge, **TREES).fit(X, Y > 1).save(path)
    parameters = header_of(path)["parameters"]
    assert_refused(path, header={"parameters": parameters | {"learner": parameters["loss"]}})

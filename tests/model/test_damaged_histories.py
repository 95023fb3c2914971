"""Histories, seeds and records of kernel machines in files are checked when they are read."""

import json
from functools import cache

import numpy as np
import pytest
from tests.model.editing import assert_refused, edit, header_of

import hilboost
from hilboost import BoostingRegressor, KernelBoostingRegressor, SparseKernelClassifier
from hilboost.kernels import Gaussian

X = np.sin(np.outer(np.arange(60), [1.0, 2.3, 0.7]))
Y = X[:, 0] + X[:, 1] ** 2
SHORT = {"n_estimators": 3, "random_state": 0}
MACHINE = {"kernel": Gaussian(1.0), "regularization": 0.1, "random_state": 0}
MODELS = {
    "trees": lambda: BoostingRegressor(**SHORT, early_stopping=True, eval_metric="mae").fit(X, Y),
    "full": lambda: KernelBoostingRegressor(**MACHINE, n_estimators=3).fit(X, Y),
    "nested": lambda: SparseKernelClassifier(**MACHINE, n_basis=9).fit(X, Y > 0.5),
}


@cache
def model(name):
    return MODELS[name]()


@pytest.fixture
def path(request, tmp_path):
    path = tmp_path / "model"
    hilboost.save(model(request.param), path, training_data=True)
    return path


@pytest.mark.parametrize("path", ["trees"], indirect=True)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("train", one) for one in ([], [1.0], [1.0] * 3, ["1"] * 4, [float("inf")] * 4, None)),
        *(("validation", one) for one in ([1.0] * 3, [[1.0]] * 4, [True] * 4, 2)),
        *(("metrics", one) for one in ({"mae": [1.0]}, {"mae": 3}, {"mae": ["x"] * 4}, [])),
        *(("seed", one) for one in (-1, 1.5, "0", None, True)),
    ],
    ids=str,
)
def test_histories_and_seeds(path, name, wrong):
    assert len(header_of(path)["train"]) == 4
    match = r"(train|validation|metrics|seed) is inconsistent"
    assert_refused(path, header={name: wrong}, match=match)


@pytest.mark.parametrize("path", ["full", "nested"], indirect=True)
@pytest.mark.parametrize("name", ["train", "validation"])
def test_histories_of_kernel_machines(path, name):
    assert_refused(path, header={name: [1.0]}, match=f"{name} is inconsistent")


@pytest.mark.parametrize("path", ["full", "nested"], indirect=True)
def test_a_kernel_machine_has_its_record(path):
    header = header_of(path)
    machine = header.pop("machine")
    whole = {"header": json.dumps(header)}
    assert_refused(path, metadata=whole, match="machine is inconsistent")
    edited = {"machine": machine | {"kernel": None}}
    assert_refused(path, header=edited, match="kernel is inconsistent")
    edit(path, header={"machine": machine})
    assert hilboost.load(path).kernel_.length_scale == 1


@pytest.mark.parametrize("path", ["trees"], indirect=True)
def test_trees_have_none(path):
    machine = {"kernel": None, "regularization": None, "amplitude": 1.0, "stages": "full"}
    assert_refused(path, header={"machine": machine}, match="inconsistent")

"""Files of kernel machines: the same machine bit for bit, or a refusal."""

import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.gaussian_process.kernels import RBF
from tests.cases import KERNELS, ids
from tests.model.editing import assert_refused, changed, contents, edit, header_of
from tests.refusals import refused
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.core.base_model import Stage, Term
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidModelFile
from hilboost.kernels import (
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Mapped,
    Matern,
    OnColumns,
    Precomputed,
    SklearnKernel,
    to_description,
)
from hilboost.learners.kernel_machine import summary
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.inputs import completing, encoded_features
from hilboost.learners.wrapped import LinearModel
from hilboost.model import AdditiveModel
from hilboost.model.codecs import ClassCodec
from hilboost.network import NetworkCompletion
from hilboost.persistence import container as files

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + RNG.normal(0, 0.1, 160)
TWO = np.column_stack([Y, X[:, 2] * Y])
NEW = np.concatenate([RNG.normal(size=(40, 3)), X[:20]])
FRESH = NEW + 1e-9
THREE = np.array(["low", "middle", "grün"])[np.digitize(Y, [-0.6, 0.6])]
KERNEL = Matern([1.0, 2.0, 0.5], 2.5) * 2.0 + OnColumns(Linear(0.5), [2, 0])
NATIVE = [case for case in KERNELS if case.native]
PLAIN = {"kernel": KERNEL, "regularization": 0.1, "n_basis": 30, "random_state": 0}
FULL = PLAIN | {"n_estimators": 4, "stages": "full"}


def regressor(loss="squared_error", **parameters):
    return KernelBoostingRegressor(loss, **FULL | parameters)


def classifier(loss="squared_error", **parameters):
    return KernelBoostingClassifier(loss, **FULL | parameters)


def sparse(loss, **parameters):
    return SparseKernelClassifier(loss, **PLAIN | {"n_basis": 80} | parameters)


MACHINES = {
    "full": (regressor(), Y),
    "full-float32": (regressor(precision="float32"), Y),
    "full-two": (regressor("absolute_error"), TWO),
    "full-shrunk": (regressor(learning_rate=0.5, n_estimators=10), TWO),
    "full-quantiles": (regressor("quantile", quantile=np.array([0.2, 0.8])), Y),
    "sparse": (regressor(stages="sparse"), Y),
    "sparse-float32": (regressor(stages="sparse", precision="float32"), TWO),
    "reweighted": (regressor(stages="sparse", reweight=True), TWO),
    "refitted": (regressor(stages="sparse", refit_every=2), Y),
    "several scales": (regressor(stages="sparse", length_scale_factors=(1.3, 1, 0.5)), Y),
    "block": (regressor("huber", stages="block"), Y),
    "automatic": (KernelBoostingRegressor(random_state=0), Y),
    "categorical": (
        KernelBoostingRegressor(categorical_features=np.array([True, False, False])),
        Y,
    ),
    "mapped": (regressor(kernel=Mapped(Gaussian(2.0), RNG.normal(size=(3, 2)))), Y),
    "two classes": (classifier(), Y > 0),
    "three classes": (classifier(kernel="auto", regularization="auto"), THREE),
    "log loss": (classifier("log_loss", class_weight={"low": 2.0}), THREE),
    "exponential": (classifier("exponential", stages="sparse"), Y > 0),
    "ridge": (SparseKernelRidge(**PLAIN | {"n_basis": 120}), TWO),
    "ridge-automatic": (SparseKernelRidge(n_basis=60, random_state=0), Y),
    "sparse-log loss": (sparse("log_loss"), THREE),
    "sparse-hinge": (sparse("squared_hinge"), THREE),
    "sparse-two": (sparse("log_loss", kernel="matern32"), Y > 0),
    "sparse-squares": (sparse("squared_error"), THREE),
    "boosting": (BoostingRegressor(learner="kernel", n_estimators=4, random_state=0), Y),
    "boosting-classes": (
        BoostingClassifier(learner="kernel", n_estimators=3, random_state=0),
        THREE,
    ),
}
all_machines = pytest.mark.parametrize(
    ("model", "y"), MACHINES.values(), ids=[name.replace(" ", "-") for name in MACHINES]
)


def fitted(model=None, y=Y, **fit):
    return (regressor() if model is None else model).fit(X, y, **fit)


def plain(parameters):
    """Parameters that can be compared."""
    return {
        name: to_description(value) if isinstance(value, Kernel) else np.asarray(value).tolist()
        for name, value in parameters.items()
        if name != "class_weight"  # used while fitting only
    }


@all_machines
def test_round_trip(model, y):
    model.fit(X, y)
    loaded = reloaded(model)
    assert type(loaded) is type(model)
    assert plain(loaded.get_params()) == plain(model.get_params())
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    for name in ("decision_function", "predict_proba", "staged_predict", "staged_predict_proba"):
        assert hasattr(loaded, name) == hasattr(model, name)
        if hasattr(model, name):
            ours, theirs = getattr(model, name)(NEW), getattr(loaded, name)(NEW)
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(other, one)
    np.testing.assert_array_equal(loaded.history_.train, model.history_.train)
    assert loaded.n_estimators_ == model.n_estimators_ > 0
    assert type(loaded.learner_) is type(model.learner_)
    for name in ("regularization_", "amplitude_", "path_", "n_basis_", "n_iter_"):
        assert hasattr(loaded, name) == hasattr(model, name)
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    if hasattr(model, "kernel_"):
        assert to_description(loaded.kernel_) == to_description(model.kernel_)
    again = reloaded(loaded)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("loss", ["log_loss", "squared_error"])
def test_one_machine_with_held_out_rows(loss):
    model = sparse(loss).fit(X, THREE, X_val=NEW + 1e-9, y_val=THREE[:60])
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    np.testing.assert_array_equal(loaded.path_, model.path_)
    np.testing.assert_array_equal(loaded.history_.validation, model.history_.validation)


def test_a_machine_that_kept_no_stage():
    noise = RNG.normal(size=160) * 1e3
    model = regressor(n_estimators=2).fit(
        X, noise, X_val=X + 1e-9, y_val=np.full(160, noise.mean())
    )
    assert model.n_estimators_ == 0
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    refused(InvalidData, "the model is a constant", loaded.predict, NEW, return_std=True)


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weight", [None, RNG.uniform(0.5, 2.0, 160)], ids=["even", "weighted"])
def test_standard_deviations_and_intervals(y, weight):
    model = regressor(regularization="auto").fit(X, y, weight)
    bare = reloaded(model)
    model.calibrate(FRESH, y[:60])
    loaded = reloaded(model)
    for ours, theirs in zip(
        model.predict(NEW, return_std=True), loaded.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(theirs, ours)
    for coverage in (0.5, 0.9):
        np.testing.assert_array_equal(
            loaded.predict_interval(NEW, coverage), model.predict_interval(NEW, coverage)
        )
    refused(InvalidData, "call calibrate", bare.predict_interval, NEW)
    np.testing.assert_array_equal(
        bare.calibrate(FRESH, y[:60]).predict_interval(NEW), model.predict_interval(NEW)
    )


def test_standard_deviations_with_landmarks(monkeypatch):
    monkeypatch.setattr(summary, "_EXACT_UP_TO", 100)
    monkeypatch.setattr(summary, "_LANDMARKS", 50)
    model = fitted()
    loaded = reloaded(model)
    expected = model.predict(NEW, return_std=True)[1]
    np.testing.assert_array_equal(loaded.predict(NEW, return_std=True)[1], expected)


def test_machines_without_a_standard_deviation_say_so_as_before():
    loaded = reloaded(fitted(regressor(stages="sparse")))
    with pytest.raises(InvalidData, match="loss='squared_error' and sparse stages"):
        loaded.predict(NEW, return_std=True)


def test_a_loaded_machine_is_fitted_anew():
    model = fitted()
    loaded = reloaded(model)
    expected = loaded.predict(NEW)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(NEW), expected)


def test_kernels_by_name_and_numpy_numbers():
    parameters = {
        "kernel": "matern52",
        "regularization": np.float32(0.5),
        "length_scale_factors": np.array([1.0, 0.5]),
        "stages": "sparse",
    }
    loaded = reloaded(fitted(regressor(**parameters)))
    assert loaded.kernel == "matern52"
    assert loaded.length_scale_factors == [1.0, 0.5]
    assert loaded.regularization == 0.5


# What is written once


def test_rows_are_written_once(tmp_path):
    path = tmp_path / "model"
    rows = {}
    for name, model in (
        ("full", regressor("absolute_error", n_estimators=6)),
        ("nested", SparseKernelRidge(**PLAIN | {"n_basis": 120})),
        ("reweighted", regressor(stages="sparse", reweight=True)),
    ):
        hilboost.save(fitted(model), path, training_data=True)
        rows[name] = [a.shape for k, a in contents(path)[0].items() if k.startswith("rows.")]
    assert rows == {"full": [(160, 3)], "nested": [(120, 3)], "reweighted": [(30, 3)] * 4}


def expansion(basis, kernel=None, inputs=None, r=1):
    return KernelExpansion(
        Gaussian(1.0) if kernel is None else kernel,
        FeatureMap.unscaled(3) if inputs is None else inputs,
        basis,
        np.arange(1.0, 1 + r * len(basis)).reshape(-1, r),
    )


def additive(stages, r=1):
    return AdditiveModel(
        np.zeros(r),
        tuple(Stage(tuple(Term.of(model, slice(0, r)) for model in stage)) for stage in stages),
    )


def test_trees_and_expansions_in_one_sum(tmp_path):
    trees = BoostingRegressor(early_stopping=False, n_estimators=6).fit(X, Y).model_
    tree = [stage.terms[0].model for stage in trees.stages]
    kernel = Gaussian(1.0)
    machines = [expansion(X[:4], kernel), expansion(X[:5] + 0.0), expansion(X[3:5] + 0.0, kernel)]
    stages = [
        [tree[0], machines[0], tree[1], machines[1]],
        [machines[2]],
        [tree[2], tree[3]],
        [machines[0], tree[4]],
    ]
    model = additive(stages)
    files.write(tmp_path / "m", model, {"n_features_in": 3}, {"more": np.ones(2)})
    loaded, _, arrays = files.read(tmp_path / "m")
    kinds = [[type(part.model) for part in stage.terms] for stage in loaded.stages]
    assert kinds == [[type(part) for part in stage] for stage in stages]
    np.testing.assert_array_equal(loaded.predict_raw(NEW), model.predict_raw(NEW))
    np.testing.assert_array_equal(arrays["more"], np.ones(2))


def test_expansions_after_linear_stages(tmp_path):
    """The numbers of their stages exceed the number of expansions."""
    line = LinearModel(((np.ones((1, 3)), np.zeros(1)),))
    model = additive([[line], [line], [line], [expansion(X[:4])]])
    files.write(tmp_path / "m", model, {"n_features_in": 3})
    loaded, _, _ = files.read(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_raw(NEW), model.predict_raw(NEW))


def test_many_bases_of_one_array(tmp_path):
    """No array stands for more of them than the bound that readers keep."""
    basis = RNG.normal(size=(150, 3))
    inputs, kernel = expansion(basis).inputs, Gaussian(1.0)
    machines = [expansion(basis[:t], kernel, inputs) for t in range(1, 151)]
    model = additive([[machine] for machine in machines])
    files.write(tmp_path / "m", model, {"n_features_in": 3})
    loaded, _, arrays = files.read(tmp_path / "m")
    assert [len(arrays[f"rows.{k}"]) for k in range(3)] == [64, 128, 150]
    np.testing.assert_array_equal(loaded.predict_raw(NEW), model.predict_raw(NEW))


# Machines that files do not hold


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (lambda A, B: A @ B.T, "kernel is of type function"),
        (RBF(1.0), "kernel is of type RBF"),
        (Gaussian(1.0) + SklearnKernel(RBF(1.0)), "SklearnKernel"),
    ],
    ids=["function", "scikit-learn", "in a sum"],
)
def test_kernels_of_others_are_refused(kernel, name, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    model = fitted(regressor(kernel=kernel, standardize=False))
    refused(IncompatibleParts, f"{name}.*with pickle or joblib", hilboost.save, model, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_gram_matrices_are_refused(tmp_path):
    K = X @ X.T
    model = regressor(kernel=Precomputed(K)).fit(np.arange(160.0)[:, None], Y)
    refused(IncompatibleParts, "not Precomputed", hilboost.save, model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_kernels_nested_too_deeply_are_refused(tmp_path):
    kernel = Gaussian(1.0)
    for _ in range(70):
        kernel = 1.0 * kernel
    with pytest.raises(IncompatibleParts, match="at most 64 nested levels in a kernel"):
        hilboost.save(fitted(regressor(kernel=kernel)), tmp_path / "m")


def test_other_estimators_are_refused(tmp_path):
    class Mine(SparseKernelRidge):
        pass

    with pytest.raises(IncompatibleParts, match="do not support Mine, only .*SparseKernelRidge"):
        hilboost.save(Mine(), tmp_path / "m")
    with pytest.raises(
        IncompatibleParts, match="do not support NetworkCompletion.*pickle or joblib"
    ):
        hilboost.save(NetworkCompletion(), tmp_path / "m")


# Damaged files


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "model"
    model = fitted(regressor("squared_error", learning_rate=0.5)).calibrate(FRESH, Y[:60])
    hilboost.save(model, path, training_data=True)
    return path.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    return path


def test_an_unedited_file_is_read(path):
    before = hilboost.load(path).predict_interval(NEW)
    edit(path)
    np.testing.assert_array_equal(hilboost.load(path).predict_interval(NEW), before)


EDITS = {
    "stage too large": lambda a: {"part.stage": changed(a["part.stage"], 0, 10**12)},
    "stage negative": lambda a: {"part.stage": changed(a["part.stage"], 0, -1)},
    "place too large": lambda a: {"part.place": changed(a["part.place"], 0, 1)},
    "place negative": lambda a: {"part.place": changed(a["part.place"], 0, -1)},
    "two at one place": lambda a: {"part.stage": np.zeros_like(a["part.stage"])},
    "no such expansion": lambda a: {"part.expansion": changed(a["part.expansion"], 0, 99)},
    "too few parts": lambda a: {"part.stage": a["part.stage"][:-1]},
    "coefficient missing": lambda a: {
        "part.coefficient": changed(a["part.coefficient"], (0, 0), np.nan)
    },
    "coefficients of two outputs": lambda a: {
        "part.coefficient": np.repeat(a["part.coefficient"], 2, axis=1)
    },
    "no such basis": lambda a: {"expansion.basis": changed(a["expansion.basis"], 0, 1)},
    "weight infinite": lambda a: {"expansion.weights": changed(a["expansion.weights"], 3, np.inf)},
    "too few weights": lambda a: {"expansion.weights": a["expansion.weights"][:-1]},
    "too many weights": lambda a: {"expansion.weights": np.append(a["expansion.weights"], 0.0)},
    "weights of another kind": lambda a: {
        "expansion.weights": a["expansion.weights"].astype(np.float32)
    },
    "no such rows": lambda a: {"basis.rows": changed(a["basis.rows"], 0, 1)},
    "basis too long": lambda a: {"basis.length": changed(a["basis.length"], 0, 10**15)},
    "basis empty": lambda a: {"basis.length": changed(a["basis.length"], 0, 0)},
    "no such kernel": lambda a: {"basis.kernel": changed(a["basis.kernel"], 0, 1)},
    "no such inputs": lambda a: {"basis.inputs": changed(a["basis.inputs"], 0, -1)},
    "row missing": lambda a: {"rows.0": changed(a["rows.0"], (5, 1), np.nan)},
    "rows of more columns": lambda a: {"rows.0": np.repeat(a["rows.0"], 2, axis=1)},
    "rows of another kind": lambda a: {"rows.0": a["rows.0"].astype(np.float16)},
    "rows of another shape": lambda a: {"rows.0": a["rows.0"].ravel()},
    "no rows": lambda a: {"rows.0": a["rows.0"][:0]},
    "scale zero": lambda a: {"inputs.scale": changed(a["inputs.scale"], (0, 0), 0.0)},
    "scale negative": lambda a: {"inputs.scale": -a["inputs.scale"]},
    "center infinite": lambda a: {"inputs.centre": changed(a["inputs.centre"], (0, 1), np.inf)},
    "two centers": lambda a: {"inputs.centre": np.repeat(a["inputs.centre"], 2, axis=0)},
    "no such column": lambda a: {"inputs.columns": changed(a["inputs.columns"], (0, 2), 3)},
    "fewer columns": lambda a: {"inputs.columns": changed(a["inputs.columns"], (0, 2), -1)},
    "fewer scales": lambda a: {"inputs.scale": a["inputs.scale"][:, :2]},
    "noise negative": lambda a: {"noise": changed(a["noise"], 0, -1.0)},
    "noise missing": lambda a: {"noise": changed(a["noise"], 0, np.nan)},
    "less noise": lambda a: {"noise": a["noise"][:-1]},
    "noise of another kind": lambda a: {"noise": a["noise"].astype(np.float32)},
    "some trees": lambda a: {"stage": np.zeros(1, dtype=np.int64)},
    "two starts": lambda a: {"start": np.zeros(2)},
}


@pytest.mark.parametrize("change", EDITS.values(), ids=[name.replace(" ", "-") for name in EDITS])
def test_edited_arrays(path, change):
    assert_refused(path, arrays=change(contents(path)[0]))


def test_a_missing_array(path, content):
    optional = {"noise", "calibration.levels", "inputs.columns"}  # older files have none of them
    needed = set(contents(path)[0]) - optional
    for name in needed:
        path.write_bytes(content)
        arrays, metadata = contents(path)
        del arrays[name]
        save_file(arrays, path, metadata=metadata)
        refused(InvalidModelFile, "damaged", hilboost.load, path)


def deep(levels):
    kernel = to_description(Gaussian(1.0))
    for _ in range(levels):
        kernel = {"type": "scaled", "kernel": kernel, "factor": 1.0}
    return kernel


KERNELS_OF_NO_USE = {
    "none": None,
    "text": "gaussian",
    "unknown": {"type": "neural"},
    "too many scales": to_description(Gaussian([1.0, 2.0, 3.0, 4.0])),
    "scale zero": {"type": "gaussian", "length_scale": [0.0]},
    "scale infinite": {"type": "gaussian", "length_scale": [float("inf")]},
    "columns that are not there": to_description(OnColumns(Laplace(1.0), [3])),
    "a matrix of more columns": to_description(Mapped(Gaussian(1.0), np.ones((4, 2)))),
    "a ragged matrix": {
        "type": "mapped",
        "kernel": to_description(Gaussian(1.0)),
        "matrix": [[1.0], [1.0, 2.0], [1.0]],
    },
    "an enormous power": {"type": "polynomial", "degree": 10**300, "offset": 1.0, "scale": 1.0},
    "deep": deep(65),
    "very deep": deep(300),
}


@pytest.mark.parametrize(
    "kernel", KERNELS_OF_NO_USE.values(), ids=[name.replace(" ", "-") for name in KERNELS_OF_NO_USE]
)
def test_edited_kernels(path, content, kernel):
    header = header_of(path)
    assert_refused(path, header={"kernels": [kernel]})
    if kernel is None or "degree" in kernel:  # in these places a kernel is not evaluated
        return
    for change in (
        {"machine": {**header["machine"], "kernel": kernel}},
        {"parameters": {**header["parameters"], "kernel": kernel}},
    ):
        path.write_bytes(content)
        if kernel != "gaussian" or "machine" in change:  # a name is a parameter
            assert_refused(path, header=change)


def test_files_hold_expansions_for_some_of_the_outputs(tmp_path):
    one, two = expansion(X[:4]), expansion(X[:5] + 0.0, r=2)
    terms = Term.of(one, slice(2, 3)), Term.of(two, slice(0, 2)), Term.of(one, slice(0, 1))
    model, path = AdditiveModel(np.zeros(3), (Stage(terms),)), tmp_path / "m"
    files.write(path, model, {"n_features_in": 3})
    loaded, _, arrays = files.read(path)
    np.testing.assert_array_equal(loaded.predict_raw(X), model.predict_raw(X))
    assert [term.columns for term in loaded.stages[0].terms] == [term.columns for term in terms]
    for name, value in (
        ("part.columns", np.array([[2, 4], [0, 2], [0, 1]])),
        ("part.columns", np.array([[1, 3], [0, 2], [0, 1]])),
        ("part.columns", np.array([[0, 2]])),
        ("expansion.outputs", arrays["expansion.outputs"] - 1),
    ):
        files.write(path, model, {"n_features_in": 3})
        edit(path, arrays={name: value})
        refused(InvalidModelFile, "damaged", files.read, path)


def test_files_hold_every_feature_map(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X[:, 1] = np.arange(40) % 3
    X[::5, 2], X[::7, 1] = np.nan, -1
    learned = encoded_features(X, X[:, :1], None, [(1, 3)])
    rotated = replace(learned, rotation=rng.normal(size=(learned.width, 2)))
    few = learned.scaled(np.array([0.0, 1, 2, 0, 3]))
    q, p = len(learned.columns), len(learned.missing)
    apart = learned.scaled(np.append(learned.columns != learned.missing[0], np.ones(p)))
    alone = learned.scaled(np.append(np.zeros(q), np.ones(p)))
    points = np.array([[-0.5, 0.0], [0.1, 2.0], [0.2, 2.5]])
    bent = replace(learned, warps=((0, points), (learned.width - 1, 2 * points)))
    maps = learned, rotated, few, completing(X, None), FeatureMap.unscaled(2), apart, alone, bent
    stages = []
    for inputs in maps:
        basis = inputs(np.nan_to_num(X[:9]), np.float32)
        one = replace(expansion(basis, inputs=inputs), in_float64=inputs is not few)
        stages.append([one, replace(one, weights=2 * one.weights)])
    model, path = additive(stages), tmp_path / "m"
    files.write(path, model, {"n_features_in": 4})
    loaded, _, arrays = files.read(path)
    assert sum(name.startswith("rows.") for name in arrays) == len(stages)
    for before, after in zip(model.stages, loaded.stages, strict=True):
        for one, other in zip(before.terms, after.terms, strict=True):
            Z = X[1:2] if one.model.inputs.numbers is None else X
            np.testing.assert_array_equal(other.model.predict_raw(Z), one.model.predict_raw(Z))
    for name in ("levels.0.1", "rotation.1", "warps.7.0"):
        files.write(path, model, {"n_features_in": 4})
        edit(path, arrays={name: np.full_like(arrays[name], np.nan)})
        refused(InvalidModelFile, "damaged", files.read, path)


@pytest.mark.parametrize("case", NATIVE, ids=ids(NATIVE))
def test_files_hold_every_kernel(case, tmp_path):
    basis = np.nan_to_num(case.draw(np.random.default_rng(0), 12))
    inputs = FeatureMap.unscaled(basis.shape[1])
    model = additive([[expansion(basis, case.make(), inputs)]])
    files.write(tmp_path / "m", model, {"n_features_in": basis.shape[1]})
    loaded, _, _ = files.read(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_raw(basis), model.predict_raw(basis))


@pytest.mark.parametrize(
    "header",
    [
        {"class": "SparseKernelRidge"},
        {"class": "BoostingRegressor"},
        {"class": ["KernelBoostingRegressor"]},
        {"kernels": []},
        {"kernels": {}},
        {"kernels": None},
        {"machine": None},
        {"machine": {}},
        {"n_features_in": 2},
        {"n_features_in": 0},
        {"n_targets": 2},
        {"parameters": {"kernel": 3}},
        {"parameters": {"loss": ["squared_error"]}},
        {"parameters": {"categorical_features": [[[]]]}},
        {"parameters": {"length_scale_factors": [1.0, -1.0], "stages": "sparse"}},
        {"parameters": {"n_estimators": 0}},
        {"seed": []},
        {"train": 3},
    ],
    ids=str,
)
def test_an_edited_header(path, header):
    assert_refused(path, header=header)


@pytest.mark.parametrize(
    "change",
    [
        {"regularization": -1.0},
        {"regularization": None},
        {"regularization": float("nan")},
        {"amplitude": 0.0},
        {"amplitude": float("inf")},
        {"amplitude": []},
        {"stages": "half"},
        {"stages": "sparse", "kernel": {}},
        {"stages": None},
    ],
    ids=str,
)
def test_an_edited_machine(path, change):
    assert_refused(path, header={"machine": {**header_of(path)["machine"], **change}})


@pytest.mark.parametrize("change", [{"path": []}, {"path": [True]}, {"path": 3}, {"n_iter": None}])
def test_an_edited_path(tmp_path, change):
    path = tmp_path / "model"
    hilboost.save(fitted(SparseKernelRidge(**PLAIN)), path, training_data=True)
    assert_refused(path, header={"machine": {**header_of(path)["machine"], **change}})


@pytest.mark.parametrize(
    "header",
    [
        {"classes_dtype": "<U100000000"},
        {"classes_dtype": "<U0"},
        {"classes_dtype": ["<U3"]},
        {"classes": [["low"], ["middle"], ["grün"]]},
        {"classes": ["low", "low", "grün"]},
        {"sharpness": 0.0},
        {"sharpness": None},
    ],
    ids=str,
)
def test_edited_classes(tmp_path, header):
    path = tmp_path / "model"
    hilboost.save(fitted(classifier(), THREE), path, training_data=True)
    assert_refused(path, header=header)


def test_short_labels_in_wide_arrays(tmp_path):
    model = fitted(classifier(), THREE)
    wide = ClassCodec(model.classes_.astype("<U1500000"))
    model.fitted_ = replace(model.fitted_, codec=wide)
    loaded = reloaded(model)
    assert loaded.classes_.dtype == "<U6"
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    wide.classes[0] = "long" * 400_000
    refused(IncompatibleParts, "shorter class names", hilboost.save, model, tmp_path / "m")

"""onnxruntime predicts what hilboost predicts."""

import json
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cases import KERNELS, LOSSES, ids
from tests.refusals import refused

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    Loss,
    OutputKernelBoostingRegressor,
    OutputKernelTreeRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
    save,
    to_onnx,
)
from hilboost.core.errors import (
    HilboostError,
    IncompatibleParts,
    InvalidParameter,
    InvalidType,
    MissingPackage,
)
from hilboost.core.gradients import Gradients
from hilboost.core.link import LogLink
from hilboost.losses import Poisson, SquaredError
from hilboost.model.codecs import ClassCodec

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
GAPS = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
NEW = np.vstack(
    [
        GAPS,
        RNG.normal(size=(50, 4)),
        np.full((1, 4), np.nan),
        [[1e300, -1e300, 1e-320, 0.0], [-1e300, 1e300, -1e-320, -0.0]],
    ]
)
Y = X[:, 0] + X[:, 1] ** 2
LABELS = np.digitize(Y, [0, 1])
SHORT = {"n_estimators": 5, "random_state": 0}


def session(model, **settings):
    proto = to_onnx(model, **settings)
    onnx.checker.check_model(proto, full_check=True)
    return onnxruntime.InferenceSession(proto.SerializeToString())


def assert_agrees(model, rows, tolerance=1e-12, dtype="float64"):
    """All outputs, for all rows at once and for single ones."""
    running = session(model, dtype=dtype)
    rows = np.ascontiguousarray(rows, dtype=dtype)
    if not hasattr(model, "classes_"):
        expected = {"prediction": model.predict(rows)}
    elif hasattr(model, "predict_proba"):
        expected = {"label": model.predict(rows), "probabilities": model.predict_proba(rows)}
    else:
        scores = model.loss_.inverse_link(model.model_.predict_raw(rows))
        expected = {"label": model.predict(rows), "scores": scores}
    assert [output.name for output in running.get_outputs()] == list(expected)
    for part in (slice(None), slice(0, 1), slice(-1, None)):
        for found, wanted in zip(
            running.run(None, {"X": rows[part]}), expected.values(), strict=True
        ):
            assert found.shape == wanted[part].shape
            if wanted.dtype.kind == "f":
                largest = max(1.0, np.abs(wanted).max())
                np.testing.assert_allclose(found, wanted[part], rtol=0, atol=tolerance * largest)
            else:
                np.testing.assert_array_equal(found, wanted[part])


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_trees_under_every_loss(case, multi_output):
    y = case.labels(case.draw(np.random.default_rng(1), len(GAPS)))
    model = case.build(multi_output=multi_output, **SHORT).fit(GAPS, y)
    assert_agrees(model, NEW)


def test_rows_of_float32_go_through_the_same_leaves():
    rows = GAPS.astype(np.float32)
    model = BoostingRegressor(n_estimators=30, min_samples_leaf=1, random_state=0).fit(rows, Y)
    assert_agrees(model, rows, dtype="float32")
    assert_agrees(BoostingRegressor(**SHORT).fit(GAPS, Y), NEW[:-2], dtype="float32")


def test_committees_and_constants():
    folds = {"early_stopping": True, "cv_folds": 3}
    assert_agrees(BoostingRegressor(**SHORT | folds).fit(GAPS, Y), NEW)
    assert_agrees(BoostingRegressor(**SHORT | folds).fit(GAPS, np.ones(len(Y))), NEW)
    assert_agrees(BoostingRegressor(**SHORT).fit(GAPS, np.ones(len(Y))), NEW)
    assert_agrees(BoostingRegressor(**SHORT).fit(GAPS, np.ones((len(Y), 2))), NEW)
    one_leaf_among_others = np.column_stack([Y, np.ones(len(Y))])
    assert_agrees(BoostingRegressor(**SHORT).fit(GAPS, one_leaf_among_others), NEW)


@pytest.mark.parametrize("case", KERNELS, ids=ids(KERNELS))
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_kernel_of_hilboost(case, precision):
    rng = np.random.default_rng(0)
    rows = np.nan_to_num(case.draw(rng, 40))
    y = rng.normal(size=(40, 2))
    model = KernelBoostingRegressor(
        kernel=case.make(), regularization=1.0, precision=precision, stages="full", n_estimators=2
    ).fit(rows, y)
    if not case.native:
        refused(IncompatibleParts, "supports only built-in kernels", to_onnx, model)
        return
    # The rounding of float32 is hilboost's; the exported model has none.
    assert_agrees(model, rows, 1e-6 if precision == "float64" else 20 * case.single)


GIVEN = {"kernel": "gaussian", "regularization": 0.1}


@pytest.mark.parametrize(
    "model",
    [
        KernelBoostingRegressor(random_state=0),
        KernelBoostingRegressor("huber", kernel="matern32", regularization=0.1, n_estimators=3),
        KernelBoostingRegressor(
            "quantile", quantile=[0.8, 0.2], kernel="gaussian", regularization=0.1
        ),
        KernelBoostingRegressor(**GIVEN, stages="sparse", n_basis=20, n_estimators=3),
        KernelBoostingRegressor(**GIVEN, stages="block", n_basis=50, n_estimators=3),
        SparseKernelRidge(kernel="matern52", regularization=0.1, n_basis=50, random_state=0),
        BoostingRegressor(learner="kernel", n_estimators=2, random_state=0),
        KernelBoostingClassifier(**GIVEN),
        KernelBoostingClassifier("log_loss", **GIVEN),
        SparseKernelClassifier(**GIVEN, n_basis=30, random_state=0),
        SparseKernelClassifier("squared_hinge", **GIVEN, n_basis=30, random_state=0),
        BoostingClassifier(learner=KernelBoostingRegressor(**GIVEN), n_estimators=2),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.loss}",
)
@pytest.mark.parametrize("two", [True, False])
def test_kernel_machines(model, two):
    if is_classifier(model):
        model.fit(X, LABELS > 0 if two else LABELS)
    else:
        model.fit(X, np.column_stack([Y, -Y]) if two and model.loss != "quantile" else Y)
    far = np.array([[1e30, -1e30, 1.0, 0.0], [40.0, 0.0, 0.0, 0.0]])
    assert_agrees(model, np.vstack([X, NEW[150:200], far]), 1e-6)


def test_missing_values_make_the_row_of_a_kernel_machine_missing():
    model = KernelBoostingRegressor(kernel="gaussian", regularization=0.1).fit(X, Y)
    (found,) = session(model).run(None, {"X": np.vstack([X[:2], [[0.0, np.nan, 0.0, 0.0]]])})
    np.testing.assert_allclose(found[:2], model.predict(X[:2]))
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 5, 2**40]),
        np.array([-1.0, 0.0, 7.0]),
        np.array(["a", "b c", "ü☃"]),
        np.array(["a", "b", "c"], dtype=object),
    ],
    ids=["int", "float", "text", "object"],
)
def test_labels_come_back(labels):
    y = labels[LABELS]
    assert_agrees(BoostingClassifier(**SHORT).fit(GAPS, y), NEW)
    assert_agrees(BoostingClassifier(**SHORT).fit(GAPS, y == y[0]), NEW)


def test_labels_of_other_types_are_refused():
    model = BoostingClassifier(**SHORT).fit(X, LABELS)
    odd = ClassCodec(np.array([1, "b", None], dtype=object))
    model.fitted_ = replace(model.fitted_, codec=odd)
    refused(InvalidType, "labels that are numbers or text", to_onnx, model)


def test_files_names_and_dtypes(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ['a "quoted" name', "ü☃", "c{:}[<", " "]
    model = BoostingRegressor(**SHORT).fit(pandas.DataFrame(X, columns=names), Y)
    proto = to_onnx(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == proto.SerializeToString()
    properties = {p.key: p.value for p in proto.metadata_props}
    assert json.loads(properties["feature_names"]) == names
    refused(InvalidParameter, r"'float32' or 'float64'; got 'int8'", to_onnx, model, dtype="int8")
    refused(OSError, "nowhere", to_onnx, model, tmp_path / "nowhere" / "model.onnx")


class Mine(SquaredError):
    """Identity link, though not a built-in."""


class Rooted(Loss):
    def initial_raw(self, target):
        return np.zeros(1)

    def value(self, target, raw):
        return ((target.y - raw) ** 2).sum(axis=1)

    def gradients(self, target, raw):
        return Gradients(target.y - raw)

    def inverse_link(self, raw):
        return np.cbrt(raw)


class Declared(SquaredError):
    @property
    def link(self):
        return LogLink(30.0)

    def inverse_link(self, raw):
        return np.exp(np.clip(raw, -30, 30))


class MyPoisson(Poisson):
    """The link of the base class, with its inverse link."""


def test_rankings_and_survival_models():
    ranker = BoostingRanker(**SHORT).fit(GAPS, LABELS, groups=np.arange(150) // 10)
    (scores,) = session(ranker).run(["prediction"], {"X": NEW})
    np.testing.assert_allclose(scores, ranker.predict(NEW), rtol=1e-12, atol=1e-15)
    times = np.column_stack([np.exp(Y), np.where(X[:, 2] < 1, np.exp(Y), np.inf)])
    for loss in ("cox", "aft"):
        model = BoostingSurvival(loss, **SHORT).fit(GAPS, times)
        (risk,) = session(model).run(["risk"], {"X": NEW})
        np.testing.assert_allclose(risk, model.predict_raw(NEW)[:, 0], rtol=1e-12, atol=1e-15)


def test_declared_and_inherited_links_are_exported():
    for loss in (Declared(), MyPoisson()):
        assert_agrees(BoostingRegressor(loss, **SHORT).fit(GAPS, np.abs(Y)), NEW)


def test_losses_of_ones_own():
    assert_agrees(BoostingRegressor(Mine(), **SHORT).fit(GAPS, Y), NEW)
    with pytest.raises(IncompatibleParts, match=r"Rooted.inverse_link, which is Python code"):
        to_onnx(BoostingRegressor(Rooted(), **SHORT).fit(X, Y))


def test_what_cannot_be_exported_is_refused_in_a_sentence():
    with pytest.raises(IncompatibleParts, match="base models of type WrappedModel"):
        to_onnx(BoostingRegressor(learner=Ridge(), n_estimators=2).fit(X, Y))
    refused(InvalidType, "got OutputKernelTreeRegressor", to_onnx, OutputKernelTreeRegressor())
    refused(InvalidType, "got Ridge", to_onnx, Ridge())
    refused(ValueError, "not fitted", to_onnx, BoostingRegressor())


@pytest.mark.parametrize("export", [to_onnx, hilboost.to_xgboost_json])
def test_pipelines_are_refused_with_a_remedy(export, tmp_path):
    with pytest.raises(InvalidType, match=r"got Pipeline: pass its last step, pipeline\[-1\]"):
        export(make_pipeline(StandardScaler(), BoostingRegressor()), tmp_path / "m")
    for other in ("m.onnx", tmp_path, X):
        with pytest.raises(InvalidType, match="(Path|str|array): pass the fitted model first"):
            export(other, BoostingRegressor())


@pytest.mark.parametrize("write", [to_onnx, hilboost.to_xgboost_json, hilboost.to_treelite, save])
def test_data_instead_of_a_path(write):
    model = BoostingRegressor(learner="tree", **SHORT).fit(X, Y)
    what = rf"{write.__name__}\(model, path\) takes a path and no data; got ndarray of shape \(1, "
    refused(InvalidType, what, write, model, X[:1])
    with pytest.raises(InvalidType, match=r"BoostingRegressor is a class; write BoostingRegressor"):
        write(BoostingRegressor, "m")


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
def test_output_kernels_are_refused_in_a_sentence(loss):
    model = OutputKernelBoostingRegressor(loss=loss, learner="ok3", **SHORT)
    model.fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(InvalidType) as refused:
        to_onnx(model)
    message = str(refused.value)
    assert message.startswith("to_onnx supports only BoostingRegressor, BoostingClassifier, ")
    assert message.endswith("; got OutputKernelBoostingRegressor.")
    assert "\n" not in message


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(
        MissingPackage,
        match=r"to_onnx requires the package onnx; .* `pip install 'hilboost\[export\]'`",
    ):
        to_onnx(BoostingRegressor(**SHORT).fit(X, Y))
    assert issubclass(MissingPackage, HilboostError)

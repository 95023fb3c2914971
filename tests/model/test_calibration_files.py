"""Calibrations in model files: the same intervals and sets bit for bit, or a refusal."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.cases import PLAIN
from tests.estimators.test_prediction_intervals import FIT, FOLDS, HELD, KERNEL, NEW, X, Y
from tests.model.editing import assert_refused, changed, contents, edit

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelForestRegressor,
    SparseKernelRidge,
)
from hilboost.core.errors import InvalidData

GOLDEN = Path(__file__).parent / "golden"
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.7])]
WEIGHT = np.arange(120) % 3
GROUPS = np.where(X[:, 0] > 0, "a", "longer")
LEVELS = np.column_stack([X, np.arange(len(X)) % 40])


def trees(**parameters):
    return BoostingRegressor(**FOLDS | parameters).fit(X[FIT], Y[FIT])


def held():
    return trees().calibrate(X[HELD], Y[HELD], WEIGHT)


def grouped():
    return trees().calibrate(X[HELD], Y[HELD], groups=GROUPS[HELD])


def numbered():
    return trees().calibrate(X[HELD], Y[HELD], groups=(X[HELD, 0] > 0).astype(int))


def quantiles():
    return trees(loss="quantile", quantile=[0.05, 0.3, 0.6, 0.95])


def targets():
    y = np.column_stack([Y, Y**2])
    y[::3, 1] = np.nan
    return BoostingRegressor(**FOLDS).fit(X[FIT], y[FIT])


def statistics():
    model = BoostingRegressor(**FOLDS, categorical_features=[3], target_encoding=True)
    return model.fit(LEVELS[FIT], Y[FIT])


def classes():
    return BoostingClassifier(**FOLDS).fit(X[FIT], LABELS[FIT])


def by_class():
    model = BoostingClassifier(**PLAIN).fit(X[FIT], LABELS[FIT])
    return model.calibrate(X[HELD], LABELS[HELD], groups="class")


def full():
    return KernelBoostingRegressor(**KERNEL).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])


def distributions():
    return BoostingRegressor("normal", **PLAIN).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])


def nested():
    model = SparseKernelRidge(n_basis=20, **KERNEL).fit(X[FIT], Y[FIT])
    return model.calibrate(X[HELD], Y[HELD])


def forest():
    y = np.column_stack([Y, X[:, 0]])
    model = OutputKernelForestRegressor("gaussian", n_estimators=3, random_state=0)
    return model.fit(X[FIT], y[FIT]).calibrate(X[HELD], y[HELD])


@cache
def content(make):
    """The file of a model."""
    with TemporaryDirectory() as folder:
        hilboost.save(make(), Path(folder) / "model", training_data=True)
        return (Path(folder) / "model").read_bytes()


MODELS = (
    *(trees, held, grouped, numbered, quantiles, targets, statistics, classes, by_class),
    *(full, nested, forest, distributions),
)


def predicted(model):
    rows = LEVELS[NEW] if model.n_features_in_ == 4 else X[NEW]
    calibration, groups = model.fitted_.calibration, {}
    if calibration.group_names is not None and not calibration.by_class:
        text = calibration.group_names.dtype.kind == "U"
        groups["groups"] = GROUPS[NEW] if text else (X[NEW, 0] > 0).astype(int)
    if hasattr(model, "predict_interval"):
        return model.predict_interval(rows, 0.8, **groups)
    return model.predict_set(rows, 0.8, **groups)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_round_trip(make, tmp_path):
    model, path = make(), tmp_path / "model"
    hilboost.save(model, path, training_data=True)
    loaded = hilboost.load(path)
    for one, other in zip(predicted(loaded), predicted(model), strict=True):
        np.testing.assert_array_equal(one, other)
    again = tmp_path / "again"
    hilboost.save(loaded, again, training_data=True)
    arrays, metadata = contents(path)
    assert contents(again)[1] == metadata
    for name, array in contents(again)[0].items():
        np.testing.assert_array_equal(array, arrays[name])


def test_intervals_of_earlier_versions():
    loaded = hilboost.load(GOLDEN / "calibrated_format_1.hilboost")
    expected = json.loads((GOLDEN / "calibrated_format_1.json").read_text())
    rows = np.sin(np.outer(np.arange(1, 21), [1.0, 2.3, 0.7]))
    found = loaded.predict_interval(rows, expected["coverage"])
    np.testing.assert_allclose(found, expected["ends"], rtol=1e-9)


def test_a_file_of_an_earlier_version_has_no_calibration(tmp_path):
    path = tmp_path / "model"
    hilboost.save(trees(), path)
    arrays, metadata = contents(path)
    header = json.loads(metadata["header"])
    del header["calibration"]
    edit(path, metadata={"header": json.dumps(header)})
    loaded = hilboost.load(path)
    np.testing.assert_array_equal(loaded.predict(X), trees().predict(X))
    with pytest.raises(InvalidData, match="call calibrate"):
        loaded.predict_interval(X)
    assert loaded.calibrate(X[HELD], Y[HELD]).predict_interval(X).shape == (len(X), 2)


def test_exports_do_not_change():
    model = trees()
    before = [hilboost.to_xgboost_json(model), hilboost.tree_table(model)]
    model.calibrate(X[HELD], Y[HELD])
    assert hilboost.to_xgboost_json(model) == before[0]
    assert hilboost.tree_table(model).equals(before[1])


# Damage

S, W, F, G = (f"calibration.{name}" for name in ("scores", "weight", "folds", "groups"))
P, Q, M = (f"calibration.{name}" for name in ("points", "squares", "masses"))
L = "calibration.levels"
EDITS = {
    "scores of two targets": (held, lambda a: {S: np.repeat(a[S], 2, axis=1)}),
    "scores missing": (held, lambda a: {S: changed(a[S], (0, 0), np.nan)}),
    "no scores": (held, lambda a: {S: a[S][:0]}),
    "scores of another kind": (held, lambda a: {S: a[S].astype(np.float32)}),
    "scores of another shape": (held, lambda a: {S: a[S][:, 0]}),
    "fewer weights": (held, lambda a: {W: a[W][1:]}),
    "no weight": (held, lambda a: {W: changed(a[W], 0, 0.0)}),
    "weight missing": (held, lambda a: {W: changed(a[W], 0, np.nan)}),
    "folds of groups": (held, lambda a: {F: np.arange(len(a[S])) % 3}),
    "another number of folds": (trees, lambda a: {F: a[F] % 3}),
    "negative fold": (trees, lambda a: {F: changed(a[F], 0, -1)}),
    "large fold": (trees, lambda a: {F: changed(a[F], 0, 2**62)}),
    "a fold without rows": (trees, lambda a: {F: np.where(a[F] == 1, 7, a[F])}),
    "fewer folds": (trees, lambda a: {F: a[F][1:]}),
    "folds of another kind": (trees, lambda a: {F: a[F].astype(np.int32)}),
    "unknown group": (grouped, lambda a: {G: changed(a[G], 0, 2)}),
    "fewer groups": (grouped, lambda a: {G: a[G][1:]}),
    "points of another space": (forest, lambda a: {P: a[P][:, 1:]}),
    "points missing": (forest, lambda a: {P: changed(a[P], (0, 0), np.nan)}),
    "points of numbers": (held, lambda a: {P: a[S], Q: a[S][:, 0], M: np.ones(len(a[S]))}),
    "fewer squares": (forest, lambda a: {Q: a[Q][1:]}),
    "negative square": (forest, lambda a: {Q: changed(a[Q], 0, -1.0)}),
    "no mass": (forest, lambda a: {M: changed(a[M], 0, 0.0)}),
    "fewer masses": (forest, lambda a: {M: a[M][1:]}),
    "level above one": (distributions, lambda a: {L: changed(a[L], 0, 1.1)}),
    "level missing": (distributions, lambda a: {L: changed(a[L], 0, np.nan)}),
    "fewer levels": (distributions, lambda a: {L: a[L][1:]}),
    "levels of folds": (trees, lambda a: {L: np.full(len(a[S]), 0.5)}),
    "too few pairs": (quantiles, lambda a: {S: a[S][:, :1]}),
}


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("name", EDITS)
def test_edited_arrays(name, tmp_path):
    make, change = EDITS[name]
    path = tmp_path / "model"
    path.write_bytes(content(make))
    assert_refused(path, arrays=change(contents(path)[0]))


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_a_file_of_an_earlier_version_has_no_scale(tmp_path):
    path, model = tmp_path / "model", forest()
    hilboost.save(model, path, training_data=True)
    arrays, metadata = contents(path)
    save_file({name: a for name, a in arrays.items() if name not in (P, Q, M)}, path, metadata)
    loaded = hilboost.load(path)
    for one, other in zip(loaded.predict_set(X, 0.8), model.predict_set(X, 0.8), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InvalidData, match="an earlier version wrote it; call calibrate"):
        loaded.predict(X, return_std=True)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_edited_fields(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content(grouped))
    for fields in (
        *(None, [], {}, {"by_class": 1}, {"by_class": True}),
        {"by_class": False, "groups": ["a"], "groups_dtype": "<U1"},
        {"by_class": False, "groups": ["a", "a"], "groups_dtype": "<U1"},
        {"by_class": False, "groups": ["a", "b"], "groups_dtype": "V8"},
        {"by_class": False, "groups": ["a", "b"]},
        {"by_class": True, "groups": ["a", "longer"], "groups_dtype": "<U6"},
    ):
        assert_refused(path, header={"calibration": fields})
    path.write_bytes(content(forest))
    for width in (0.0, -1.0, float("inf"), "wide", None):
        assert_refused(path, header={"calibration": {"by_class": False, "width": width}})


def test_edited_scores_of_earlier_versions(tmp_path):
    path = tmp_path / "model"
    path.write_bytes((GOLDEN / "calibrated_format_1.hilboost").read_bytes())
    scores = contents(path)[0]["scores"]
    for edited in (np.repeat(scores, 2, axis=1), changed(scores, (0, 0), np.nan), scores[:0]):
        assert_refused(path, arrays={"scores": edited})

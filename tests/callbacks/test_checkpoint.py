"""Fits that are killed, interrupted or refused, and go on from their file to the same bits."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.neighbors import KNeighborsRegressor
from tests.callbacks.killed import CASES, LABELS, X, Y
from tests.cases import PLAIN, assert_same_model
from tests.model.editing import contents, edit
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import FitWarning, HilboostError, InvalidModelFile, InvalidParameter
from hilboost.learners.tree import TreeLearner
from hilboost.losses import Huber, SquaredError

SRC = Path(hilboost.__file__).parent.parent
OLD = {"n_estimators": 3, "early_stopping": True, "cv_folds": 2, "random_state": 0}
"""Parameters of the fit in ``row_draws_1.checkpoint``, which was written before version 2."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def until(stage):
    return lambda event: event.stage == stage


def stages_in(path):
    """Number of stages; those of the members of an ensemble follow one another."""
    with safe_open(path, framework="np") as file:
        n_members = json.loads(file.metadata()["header"])["n_members"]
        n_stages, rest = divmod(int(file.get_tensor("stage").max()) + 1, n_members)
    assert rest == 0
    return n_stages


def assert_same_fit(one, other):
    if one.learner_.capabilities.resumable and one.is_tabular:
        assert_same_model(one, other)
    elif len(one.learner_.parts) > 1:
        assert one.learners_ == other.learners_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one.history_.train, other.history_.train)
    if other.history_.validation is None:
        assert one.history_.validation is None
    else:
        np.testing.assert_array_equal(one.history_.validation, other.history_.validation)
    assert one.n_estimators_ == other.n_estimators_


# Kills


@pytest.mark.slow
def test_killed_fits_end_in_the_same_model(tmp_path):
    script = Path(__file__).with_name("killed.py")
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, script, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in CASES:
        whole, resumed = (hilboost.load(tmp_path / name / f) for f in ("whole", "resumed"))
        assert_same_fit(resumed, whole)
        assert sorted(os.listdir(tmp_path / name)) == ["checkpoint", "resumed", "whole"]


# Resuming


def name_of(value):
    """The name of a case, without the addresses of objects."""
    return re.sub(r" object at 0x\w+", "", str(value))


@pytest.mark.parametrize(
    "parameters",
    [
        {"learner": "auto"},
        {"loss": "quantile", "quantile": [0.1, 0.9]},
        {"loss": "absolute_error", "max_features": 0.5},
        {"loss": SquaredError()},
        {"learning_rate": np.float32(0.2), "n_estimators": np.int64(40)},
        {"early_stopping": True, "n_estimators": 40, "cv_folds": 3},
        {
            "loss": "quantile",
            "quantile": [0.1, 0.5, 0.9],
            "multi_output": "shared",
            "sketch": 2,
            "early_stopping": True,
            "cv_folds": 2,
        },
        {"learner": TreeLearner(max_leaf_nodes=5, min_samples_leaf=3)},
        {"early_stopping": True, "n_estimators": 400, "cv_folds": 1, "learning_rate": 0.3},
    ],
    ids=name_of,
)
def test_a_resumed_fit_is_the_whole_one(parameters, path):
    dtype = np.float32 if "learner" in parameters else np.float64
    settings = {"learner": "tree", "n_estimators": 30, "random_state": 0} | parameters

    def fit(*callbacks):
        model = BoostingRegressor(**settings)
        return model.fit(X.astype(dtype), Y, sample_weight=1 + X[:, 3] ** 2, callbacks=callbacks)

    whole = fit()
    for stage in (1, 9):
        part = fit(Checkpoint(path), until(stage))
        assert len(part.history_.train) == stage + 1
        assert stages_in(path) == stage
    seen = []
    assert_same_fit(fit(Checkpoint(path), lambda event: seen.append(event.stage)), whole)
    assert seen[0] == 10
    # Once over, it stays over.
    seen.clear()
    assert_same_fit(fit(Checkpoint(path), lambda event: seen.append(event.stage)), whole)
    assert seen == []


def test_several_outputs_and_held_out_data(path):
    y, data = np.column_stack([Y, X[:, 2] ** 2]), {"X_val": X[::3], "y_val": np.ones((80, 2))}

    def fit(*callbacks):
        model = BoostingRegressor(n_estimators=20, random_state=0, early_stopping=False)
        return model.fit(X, y, **data, callbacks=callbacks)

    fit(Checkpoint(path), until(7))
    assert_same_fit(fit(Checkpoint(path)), fit())


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(path):
    settings = {"n_estimators": 20, "subsample": 0.5, "early_stopping": False}
    model = BoostingClassifier(**settings).fit(X, LABELS, callbacks=[Checkpoint(path), until(5)])
    other = BoostingClassifier(**settings).fit(X, LABELS, callbacks=[Checkpoint(path)])
    again = BoostingClassifier(**settings, random_state=0)
    again._seed = lambda: model.fitted_.seed
    assert_same_fit(other, again.fit(X, LABELS))


def test_a_resumed_model_is_a_model_like_others(path):
    settings = PLAIN | {"warm_start": True}
    BoostingRegressor(**settings).fit(X, Y, callbacks=[Checkpoint(path), until(3)])
    model = BoostingRegressor(**settings).fit(X, Y, callbacks=[Checkpoint(path)])
    whole = BoostingRegressor(**PLAIN).set_params(n_estimators=15).fit(X, Y)
    assert_same_fit(model.set_params(n_estimators=15).fit(X, Y), whole)
    np.testing.assert_array_equal(reloaded(model).predict(X), whole.predict(X))


def test_to_begin_anew(path):
    model = BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[Checkpoint(path)])
    seen = []
    callbacks = [Checkpoint(path, resume=False), lambda event: seen.append(event.stage)]
    other = BoostingRegressor(**PLAIN).fit(X, -Y, callbacks=callbacks)
    assert seen == list(range(1, 11))
    assert_same_fit(BoostingRegressor(**PLAIN).fit(X, -Y, callbacks=[Checkpoint(path)]), other)
    assert not np.array_equal(model.predict(X), other.predict(X))


# When it writes


@pytest.mark.parametrize(
    ("checkpoint", "due"),
    [
        ({}, [(1, 59, 0, False), (1, 60, 0, True), (1, 60, 4, False), (1, 80, 4, True)]),
        ({"every_seconds": 5}, [(99, 4, 0, False), (1, 5, 0, True)]),
        ({"every_stages": 3}, [(2, 999, 0, False), (3, 0, 9, True)]),
        ({"every_stages": 3, "every_seconds": 5}, [(2, 4, 0, False), (2, 5, 0, True)]),
    ],
    ids=name_of,
)
def test_when_it_is_due(checkpoint, due, path):
    for stages, seconds, cost, answer in due:
        assert Checkpoint(path, **checkpoint).is_due(stages, seconds, cost) is answer


def test_the_file_follows_the_fit(path):
    found = []

    def look(event):
        found.append(stages_in(path) if path.exists() else 0)

    BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[Checkpoint(path, every_stages=4), look])
    assert found == [0, 0, 0, 4, 4, 4, 4, 8, 8, 8]
    assert stages_in(path) == 10


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_full_disk_costs_a_warning(path, monkeypatch, step):
    settings = PLAIN | {"n_estimators": 12}
    BoostingRegressor(**settings).fit(X, Y, callbacks=[Checkpoint(path), until(3)])
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = BoostingRegressor(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.warns(FitWarning, match="No space left") as record:
            model.fit(X, Y, callbacks=[Checkpoint(path, every_stages=2)])
    assert len(record) == 1
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    whole = BoostingRegressor(**settings).fit(X, Y)
    assert_same_fit(model, whole)
    assert_same_fit(BoostingRegressor(**settings).fit(X, Y, callbacks=[Checkpoint(path)]), whole)


def test_what_a_kill_while_writing_left_is_removed(path):
    (path.parent / f".0123456789ab-{path.name}").write_bytes(b"half a model")
    (path.parent / f"0123456789ab-{path.name}").write_bytes(b"of the user")
    BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[Checkpoint(path)])
    assert sorted(os.listdir(path.parent)) == [f"0123456789ab-{path.name}", path.name]


# Interrupts


def interrupt_at(stage):
    def interrupt(event):
        if event.stage == stage:
            signal.raise_signal(signal.SIGINT)

    return interrupt


@pytest.mark.slow
def test_an_interrupted_fit_is_written_and_goes_on(path, caplog):
    caplog.set_level("INFO", logger="hilboost")
    settings = {"n_estimators": 20, "random_state": 0}
    model = BoostingClassifier(**settings)
    with pytest.warns(FitWarning, match="fitted with 6 stages"), pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS, callbacks=[Checkpoint(path), interrupt_at(6)])
    assert stages_in(path) == 6
    assert "Resumed" not in caplog.text
    model.fit(X, LABELS, callbacks=[Checkpoint(path)])
    assert f"Resumed at stage 6 from the checkpoint {path}." in caplog.messages
    assert_same_fit(model, BoostingClassifier(**settings).fit(X, LABELS))


def test_an_error_leaves_the_last_file(path):
    def fail(event):
        if event.stage == 5:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[Checkpoint(path, every_stages=2), fail])
    assert stages_in(path) == 4


# Refusals


@pytest.fixture
def written(path):
    BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[Checkpoint(path), until(3)])
    return path


def refused(path, match, X=X, Y=Y, model=None, **data):
    before = path.read_bytes()
    model = model or BoostingRegressor(**PLAIN)
    with pytest.raises(HilboostError, match=match):
        model.fit(X, Y, callbacks=[Checkpoint(path)], **data)
    assert path.read_bytes() == before


def test_other_data(written):
    changed = X.copy()
    changed[-1, -1] += 1e-9
    refused(written, r"different data \(X\). To resume", X=changed)
    refused(written, r"different data \(X\)", X=X.astype(np.float32))
    refused(written, r"different data \(X, y\)", X=X[:-1], Y=Y[:-1])
    refused(written, r"different data \(y\)", Y=Y + 1e-9)
    refused(written, r"different data \(sample_weight\)", sample_weight=1 + (Y > 0))
    refused(written, r"different data \(X_val, y_val\)", X_val=X, y_val=Y)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"learning_rate": 0.2}, "with learning_rate=0.3, but this fit has learning_rate=0.2"),
        ({"n_estimators": 11}, "n_estimators=10, but this fit has n_estimators=11"),
        ({"loss": "huber"}, "loss='squared_error', but this fit has loss='huber'"),
        ({"loss": SquaredError()}, "but this fit has .*'hilboost.losses"),
        ({"random_state": 77}, "different random_state"),
    ],
    ids=name_of,
)
def test_other_parameters(written, changed, match):
    settings = PLAIN | {"learning_rate": 0.3} | changed
    path = written
    path.unlink()
    BoostingRegressor(**PLAIN | {"learning_rate": 0.3}).fit(X, Y, callbacks=[Checkpoint(path)])
    refused(path, match, model=BoostingRegressor(**settings))


def test_other_attributes_of_an_object(path):
    one, other = (BoostingRegressor(**PLAIN | {"loss": Huber(alpha)}) for alpha in (0.7, 0.9))
    one.fit(X, Y, callbacks=[Checkpoint(path), until(1)])
    refused(path, r"a fit with other attributes of loss=hilboost\.\S+\.Huber\. To", model=other)


def test_parameters_that_do_not_change_the_model(written):
    model = BoostingRegressor(**PLAIN | {"n_jobs": 2, "warm_start": True, "verbose": 0})
    model.fit(X, Y, callbacks=[Checkpoint(written)])
    assert_same_fit(model, BoostingRegressor(**PLAIN).fit(X, Y))


def test_another_estimator_and_another_version(written, monkeypatch):
    refused(written, "class_weight|loss", model=BoostingClassifier(**PLAIN), Y=LABELS)
    monkeypatch.setattr("hilboost.training.fingerprints.__version__", "9.9")
    refused(written, "version 9.9 may round differently")


def test_a_checkpoint_of_a_fit_that_drew_other_rows(path):
    shutil.copy(Path(__file__).with_name("row_draws_1.checkpoint"), path)
    refused(path, "was written by hilboost 0.1.0", model=BoostingRegressor(**OLD), Y=Y)


def test_files_that_are_no_checkpoints(path):
    hilboost.save(BoostingRegressor(**PLAIN).fit(X, Y), path)
    refused(path, "is a model, not a checkpoint")
    path.write_bytes(b"something else")
    refused(path, "is not a hilboost model file")


def test_a_checkpoint_is_not_loaded_as_a_model(written):
    with pytest.raises(InvalidModelFile, match="is the checkpoint of a fit, not a model"):
        hilboost.load(written)


def test_a_damaged_header(written):
    content = written.read_bytes()
    written.write_bytes(content.replace(b'\\"n_members\\": 1', b'\\"n_members\\": 7'))
    assert written.read_bytes() != content
    refused(written, "is damaged")


def test_columns_that_the_data_do_not_have(written):
    column = contents(written)[0]["column"].copy()
    column[0] = 90_000
    edit(written, arrays={"column": column}, header={"n_features_in": 100_000})
    refused(written, "is damaged: it uses columns that the data do not have")


def test_where_no_file_can_be(tmp_path):
    with pytest.raises(InvalidParameter, match="does not exist; create it first"):
        Checkpoint(tmp_path / "nowhere" / "file")
    with pytest.raises(InvalidParameter, match="is not a file"):
        Checkpoint(tmp_path)
    for name in ("every_seconds", "every_stages"):
        with pytest.raises(InvalidParameter, match=f"{name} must be positive"):
            Checkpoint(tmp_path / "file", **{name: 0})


def test_who_cannot_go_on(path):
    checkpoint = Checkpoint(path)
    with pytest.raises(InvalidParameter, match="SparseKernelRidge does not support Checkpoint"):
        SparseKernelRidge().fit(X, Y, callbacks=[checkpoint])
    with pytest.raises(InvalidParameter, match="Checkpoint is not supported by the learner, b"):
        KernelBoostingRegressor(kernel=laplacian_kernel).fit(X, Y, callbacks=[checkpoint])
    called = KernelBoostingRegressor(kernel=laplacian_kernel, stages="sparse")
    for learner in (KNeighborsRegressor(), called):
        with pytest.raises(InvalidParameter, match="Checkpoint is not supported by the learner, b"):
            BoostingRegressor(learner=learner).fit(X, Y, callbacks=[checkpoint])
    with pytest.raises(InvalidParameter, match="is not supported by the learner 'KNeighborsReg"):
        BoostingRegressor(learner=["tree", KNeighborsRegressor()]).fit(X, Y, callbacks=[checkpoint])
    with pytest.raises(InvalidParameter, match="Pass at most one Checkpoint; got 2"):
        BoostingRegressor().fit(X, Y, callbacks=[checkpoint, checkpoint])
    model = BoostingRegressor(**PLAIN, warm_start=True).fit(X, Y)
    with pytest.raises(InvalidParameter, match="set warm_start=False"):
        model.fit(X, Y, callbacks=[checkpoint])
    assert not path.exists()


def test_a_loss_that_cannot_be_hashed(path):
    class Local(SquaredError):
        def __reduce__(self):
            raise TypeError("not me")

    with pytest.raises(InvalidParameter, match=r"loss=.* cannot be hashed \(not me\)"):
        BoostingRegressor(Local(), n_estimators=3).fit(X, Y, callbacks=[Checkpoint(path)])

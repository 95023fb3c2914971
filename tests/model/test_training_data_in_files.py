"""Model files that contain training data say so when they are saved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import PLAIN
from typer.testing import CliRunner

import hilboost
from hilboost import BoostingRegressor, KernelBoostingRegressor, OutputKernelTreeRegressor
from hilboost.cli.app import app
from hilboost.core.errors import IncompatibleParts, TrainingDataWarning

X = np.random.default_rng(0).uniform(size=(250, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
MACHINE = KernelBoostingRegressor("squared_error", kernel="gaussian", regularization=0.1)


def test_a_default_model_with_a_kernel_machine_says_how_many_rows_its_file_contains(tmp_path):
    model = BoostingRegressor(n_estimators=20, random_state=0).fit(X, Y)
    centers = f"training rows .{model.parts_['kernel'].n_centers} centers of kernel machines"
    with pytest.warns(TrainingDataWarning, match=centers) as found:
        model.save(tmp_path / "model")
    (warning,) = found
    assert "which learner='tree' avoids" in str(warning.message)
    assert "\n" not in str(warning.message)
    assert warning.filename == __file__
    with pytest.raises(IncompatibleParts, match=f"cannot contain {centers}"):
        model.save(tmp_path / "other", training_data=False)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("model", "contains"),
    [
        (BoostingRegressor(**PLAIN, learner="tree"), False),
        (BoostingRegressor(n_estimators=3, early_stopping=False, learner="linear"), False),
        (BoostingRegressor(**PLAIN, learner=["tree", "kernel"]), True),
        (MACHINE, True),
        (OutputKernelTreeRegressor(random_state=0), True),
    ],
    ids=["trees", "linear", "several learners", "kernel machine", "outputs"],
)
@pytest.mark.parametrize("training_data", [None, True, False])
def test_the_switch(model, contains, training_data, tmp_path):
    model.fit(X[:60], Y[:60, None] if "Output" in type(model).__name__ else Y[:60])
    path = tmp_path / "model"
    if contains and training_data is None:
        with pytest.raises(TrainingDataWarning):
            hilboost.save(model, path)
    elif contains and not training_data:
        with pytest.raises(IncompatibleParts, match="training_data=False"):
            hilboost.save(model, path, training_data=False)
    else:
        hilboost.save(model, path, training_data=training_data)
        assert path.exists()


@given(st.integers(5, 40), st.integers(1, 3))
@settings(deadline=None)
def test_rows_are_counted(n, d):
    model = MACHINE.fit(X[:n, :d], Y[:n])
    with pytest.warns(TrainingDataWarning, match=f"contains training rows .{n} centers"):
        model.save("/dev/null")


def test_the_command_line_has_a_note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("t.csv", np.column_stack([X, Y]), "%.4f", ",", header="a,b,c,y", comments="")
    command = ["fit", "t.csv", "--target", "y", "--out", "model", "--n-estimators", "20"]
    notes = CliRunner().invoke(app, command).stderr
    assert "note: the model file contains training rows" in notes
    assert "which --set learner='tree' avoids." in notes
    notes = CliRunner().invoke(app, [*command, "--set", "learner=tree"]).stderr
    assert "training rows" not in notes

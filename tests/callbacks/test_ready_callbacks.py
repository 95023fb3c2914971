"""Progress bar and loggers, and callbacks that are context managers."""

import io
import re
import subprocess
import sys
from contextlib import nullcontext
from types import ModuleType

import numpy as np
import pytest
from rich.console import Console
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import BoostingRegressor, KernelBoostingRegressor
from hilboost.callbacks import MLflowLogger, ProgressBar, TensorBoardLogger
from hilboost.core.callback import Event
from hilboost.core.errors import MissingPackage
from hilboost.model.summary import summary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
Y = -X[:, 0]
DATA = {"X_val": X[:50], "y_val": Y[:50]}


def screen(**settings):
    file = io.StringIO()
    return file, Console(file=file, width=120, **settings)


# Progress bar


def test_the_bar_shows_stages_and_losses_on_a_terminal():
    file, console = screen(force_terminal=True)
    bar = ProgressBar("my fit", console=console)
    for n_estimators in (10, 12):  # one bar may serve several fits
        model = BoostingRegressor(**PLAIN | {"n_estimators": n_estimators})
        model.fit(X, Y, **DATA, callbacks=[bar])
        losses = model.history_
        shown = f"train {losses.train[-1]:.4g}, held-out {losses.validation[-1]:.4g}"
        assert f"{n_estimators}/{n_estimators}" in file.getvalue()
        assert shown in file.getvalue()
    assert "my fit" in file.getvalue()


def test_the_bar_is_silent_elsewhere():
    file, console = screen()
    BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[ProgressBar(console=console)])
    assert file.getvalue() == ""


@pytest.mark.parametrize("fails", [False, True])
def test_the_last_state_remains_in_a_notebook(fails):
    _, console = screen(force_jupyter=True, record=True)
    fail = [lambda event: 1 / 0] if fails else []
    model = BoostingRegressor(**PLAIN)
    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        model.fit(X, Y, callbacks=[ProgressBar("my fit", console=console), *fail])
    html = console.export_html()
    n = PLAIN["n_estimators"]
    assert html.count("my fit") == 1
    assert f"{1 if fails else n}/{n}" in html
    assert "train" in html
    assert (f"\ntrees, {n} stages\n" in html) != fails


def phases_of(console_file):
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console_file.getvalue())
    return [text.strip() for text in re.findall(r"my fit: ([^━\n]+)", plain)]


def smooth(n=300):
    points = np.random.default_rng(1).uniform(size=(n, 3))
    return points, np.sin(5 * points[:, 0]) + points[:, 1] * points[:, 2]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (
            BoostingRegressor(n_estimators=40, random_state=0),
            ["trying a kernel machine", "fitting kernel machines"],
        ),
        (KernelBoostingRegressor(n_estimators=3, random_state=0), ["tuning the first stage"]),
    ],
    ids=["automatic", "kernel"],
)
def test_the_bar_names_what_takes_time_between_stages(model, names):
    file, console = screen(force_terminal=True)
    model.fit(*smooth(), callbacks=[ProgressBar("my fit", console=console)])
    shown = phases_of(file)
    for name in names:
        (found,) = {text for text in shown if text.startswith(name)}
        assert name.startswith("tuning") or re.search(r"\(about \d+ s\)$", found)
    last = file.getvalue().rsplit("my fit", 1)[1]
    assert not last.startswith(":")
    assert f"train {model.history_.train[-1]:.4g}" in last or len(names) > 1
    assert "train" in last
    assert last.endswith(f"{summary(model.fitted_)}\n")


@pytest.mark.slow
def test_displays_of_phases_change_no_model():
    points, y = smooth()
    alone = BoostingRegressor(n_estimators=40, random_state=0)
    alone.fit(points, y, callbacks=[lambda event: None])
    _, console = screen(force_terminal=True)
    with_bar = BoostingRegressor(n_estimators=40, random_state=0)
    with_bar.fit(points, y, callbacks=[ProgressBar(console=console)])
    np.testing.assert_array_equal(with_bar.predict(points), alone.predict(points))


def test_the_bar_is_silent_by_default(capfd):
    BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[ProgressBar()])
    assert capfd.readouterr() == ("", "")


def test_the_bar_ends_with_a_fit_that_fails():
    file, console = screen(force_terminal=True)
    bar = ProgressBar(console=console)

    def fail(event):
        raise RuntimeError("broken")

    refused(RuntimeError, "broken", BoostingRegressor(**PLAIN).fit, X, Y, callbacks=[bar, fail])
    assert bar._bar is None
    length = len(file.getvalue())
    bar(Event(1, 2, 0.5, None))
    assert len(file.getvalue()) == length


def test_ready_callbacks_load_nothing_before_they_are_used():
    code = "import sys, hilboost.callbacks; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"rich", "numba", "sklearn", "mlflow", "torch"} & set(done.stdout.split())


# Loggers


@pytest.mark.parametrize(
    ("every", "stages"), [(1, [*range(1, 11)]), (4, [4, 8, 10])], ids=["all", "some"]
)
def test_losses_go_to_mlflow(every, stages, monkeypatch):
    logged = []
    module = ModuleType("mlflow")
    module.log_metrics = lambda metrics, step: logged.append((step, metrics))
    monkeypatch.setitem(sys.modules, "mlflow", module)
    model = BoostingRegressor(**PLAIN).fit(X, Y, **DATA, callbacks=[MLflowLogger(every)])
    train, validation = model.history_.train, model.history_.validation
    assert logged == [
        (k, {"train_loss": train[k], "validation_loss": validation[k]}) for k in stages
    ]


@pytest.mark.parametrize("home", ["tensorboardX", "torch.utils.tensorboard"])
def test_losses_go_to_tensorboard(home, monkeypatch, tmp_path):
    logged = []

    class SummaryWriter:
        def __init__(self, folder):
            logged.append(folder)

        def add_scalar(self, name, value, step):
            logged.append((name, value, step))

        def close(self):
            logged.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    while home:
        module = ModuleType(home)
        module.SummaryWriter = SummaryWriter
        monkeypatch.setitem(sys.modules, home, module)
        home = home.rpartition(".")[0]
    logger = TensorBoardLogger(tmp_path)
    model = BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[logger])
    train = model.history_.train
    scalars = [("train_loss", train[k], k) for k in range(1, 11)]
    assert logged == [str(tmp_path), *scalars, "closed"]


def test_a_missing_package_is_a_sentence(monkeypatch):
    for name in ("mlflow", "tensorboardX", "torch", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    refused(MissingPackage, "MLflowLogger requires the package mlflow.*pip install", MLflowLogger)
    with pytest.raises(ImportError, match="TensorBoardLogger requires the package tensorboardX"):
        TensorBoardLogger("runs")


# Callbacks that are context managers


class Watcher:
    def __init__(self):
        self.seen = []

    def __enter__(self):
        self.seen.append("enter")

    def __exit__(self, kind, error, traceback):
        self.seen.append(kind)

    def __call__(self, event):
        self.seen.append(event.stage)


def test_callbacks_are_entered_and_left():
    watcher = Watcher()
    BoostingRegressor(early_stopping=True, random_state=0, n_estimators=2).fit(
        X, Y, callbacks=[watcher]
    )
    assert watcher.seen == ["enter", 1, 2, None]
    watcher = Watcher()
    with pytest.raises(ZeroDivisionError):
        BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[watcher, lambda event: 1 / 0])
    assert watcher.seen == ["enter", 1, ZeroDivisionError]

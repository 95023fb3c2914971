"""`hilboost` itself, `warmup` and `demo`."""

import importlib.metadata
import io
import sys
import warnings

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hilboost.cli.app import app
from hilboost.cli.errors import one_line_errors
from hilboost.cli.progress import StageProgress
from hilboost.core.callback import Event
from hilboost.core.errors import CacheWarning
from hilboost.losses import _centers

PICTURES = {
    "digits_learning_curve.png",
    "digits_probabilities.png",
    "images_completed.png",
    "outliers.png",
    "regression_learning_curves.png",
}


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("command", [[], ["demo"], ["fit"], ["predict"], ["warmup"]])
def test_help(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage: hilboost" in result.output
    if command != ["warmup"]:
        assert "Examples" in result.output


def test_version(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"1.2.3 of {name}")
    assert run("--version").output == "hilboost 1.2.3 of hilboost\n"


def test_warmup_says_how_long_it_took():
    result = run("warmup")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Ready: compilation took ")


def test_warmup_compiles_geometric_medians(monkeypatch):
    calls, compiled = [], _centers.geometric_medians

    def counted(*arguments):
        calls.append(len(arguments))
        return compiled(*arguments)

    monkeypatch.setattr(_centers, "geometric_medians", counted)
    assert run("warmup").exit_code == 0
    assert calls


def test_demo_writes_its_pictures(tmp_path):
    folder = tmp_path / "pictures"
    result = run("demo", "--quick", "--out", str(folder))
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == PICTURES
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    for words in ("accuracy", "Diabetes", "Friedman 1", "scikit-learn", "covers"):
        assert words in result.stdout
    # No terminal, no bar.
    assert result.stderr == ""


def test_demo_refuses_a_file_as_folder(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "is a file; choose a folder" in result.stderr


def test_progress_shows_rounds_and_losses_on_a_terminal():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with StageProgress("start", console=console) as progress:
        callback = progress.callback("fitting")
        callback(Event(1, 4, 0.75, 0.8))
        callback(Event(2, 4, 0.5, 0.625))
    assert "fitting" in screen.getvalue()
    assert "2/4" in screen.getvalue()
    assert "train 0.5, held-out 0.625" in screen.getvalue()


def test_progress_is_silent_elsewhere():
    screen = io.StringIO()
    with StageProgress("start", console=Console(file=screen)) as progress:
        progress.callback("fitting")(Event(1, 4, 0.75, None))
    assert screen.getvalue() == ""


def test_the_command_module_imports_nothing_heavy():
    # By source, not in a new process: the test session itself has imported everything.
    source = sys.modules["hilboost.cli.app"].__file__
    with open(source, encoding="utf-8") as file:
        top = [line for line in file if line.startswith(("import ", "from "))]
    assert not any(name in line for line in top for name in ("pandas", "matplotlib", "sklearn"))


def test_a_cache_that_cannot_be_written_is_a_note(capsys):
    with one_line_errors(debug=False):
        warnings.warn("Compiled code cannot be cached.", CacheWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: Compiled code cannot be cached.\n"

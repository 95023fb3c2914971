"""What importing costs, and which room may import which."""

import subprocess
import sys
from pathlib import Path

import pytest

import hilboost

HEAVY = ("numba", "sklearn", "pandas", "matplotlib", "rich", "typer", "scipy", "jinja2")
PROJECT = Path(__file__).parent.parent


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_alone_loads_nothing_heavy():
    loaded = run("import sys, hilboost; print(*sys.modules)")
    assert "hilboost" in loaded
    assert not set(HEAVY) & set(loaded)


def test_estimators_load_neither_plots_nor_commands():
    code = "import sys, hilboost; hilboost.BoostingRegressor; hilboost.to_onnx; print(*sys.modules)"
    loaded = run(code)
    assert "hilboost.estimators" in loaded
    assert not {"matplotlib", "typer", "hilboost.cli", "onnx", "jinja2", "hilboost.report"} & set(
        loaded
    )


def test_the_command_line_loads_nothing_heavy_to_say_what_it_can():
    loaded = run("import sys, hilboost.cli.app; print(*sys.modules)")
    assert not (set(HEAVY) - {"rich", "typer"}) & set(loaded)
    assert "numpy" not in loaded


@pytest.mark.parametrize("name", hilboost.__all__)
def test_public_names_are_there(name):
    assert getattr(hilboost, name) is not None
    assert name in dir(hilboost)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'BoostingRegresor'"):
        _ = hilboost.BoostingRegresor


def test_rooms_import_downwards_only(monkeypatch):
    from importlinter.cli import lint_imports

    monkeypatch.chdir(PROJECT)
    assert lint_imports(config_filename=str(PROJECT / "pyproject.toml")) == 0

"""What importing costs, and which room may import which."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hilboost
from hilboost import estimators

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
    code = (
        "import sys, hilboost; hilboost.BoostingRegressor; print(*sys.modules); print('|')\n"
        "hilboost.to_onnx; print(*sys.modules)"
    )
    loaded = run(code)
    first = loaded[: loaded.index("|")]
    assert "hilboost.estimators.regressor" in first
    of_others = ("kernel_machine.full", "kernel_machine.tuning", "tree.vector")
    assert not {f"hilboost.learners.{name}" for name in of_others} & set(first)
    assert not {"sklearn.metrics", "sklearn.pipeline", "hilboost.outputs.registry"} & set(first)
    assert not {"matplotlib", "typer", "hilboost.cli", "onnx", "jinja2", "hilboost.report"} & set(
        loaded
    )


def test_the_command_line_loads_nothing_heavy_to_say_what_it_can():
    loaded = run("import sys, hilboost.cli.app; print(*sys.modules)")
    assert not (set(HEAVY) - {"rich", "typer"}) & set(loaded)
    assert "numpy" not in loaded


def declared():
    """What type checkers see of the package: modules by name."""
    source = Path(hilboost.__file__).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    return {alias.name: line.module for line in block.body for alias in line.names}


def test_all_lists_of_public_names_agree():
    """Those of type checkers, of ``import *``, of tab completion, and of the estimators."""
    names = {*declared(), "__version__"}
    code = (
        "import hilboost; listed = dir(hilboost); scope = {}\n"
        "exec('from hilboost import *', scope); del scope['__builtins__']\n"
        "print(*listed, '|', *scope)"
    )
    listed, imported = (part.split() for part in " ".join(run(code)).split("|"))
    assert sorted(listed) == sorted(imported) == sorted(names)
    assert set(estimators.__all__) <= names


@pytest.mark.parametrize("name", declared())
def test_public_names_are_what_they_say(name):
    found = getattr(hilboost, name)
    assert found.__name__ == name
    assert found is getattr(import_module(declared()[name]), name)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'BoostingRegresor'"):
        _ = hilboost.BoostingRegresor


def test_rooms_import_downwards_only(monkeypatch):
    from importlinter.cli import lint_imports

    monkeypatch.chdir(PROJECT)
    assert lint_imports(config_filename=str(PROJECT / "pyproject.toml")) == 0

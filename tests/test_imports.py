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


STEPS = """
import sys, hilboost
print(*sys.modules)
hilboost.BoostingRegressor
print(*sys.modules)
hilboost.to_onnx
print(*sys.modules)
import hilboost.testing
print(*sys.modules)
print(*dir(hilboost))
scope = {}
exec("from hilboost import *", scope)
del scope["__builtins__"]
print(*scope)
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def steps():
    """What a process has loaded, and the public names, after each step."""
    return run(STEPS)


@pytest.mark.slow
def test_the_package_alone_loads_nothing_heavy(steps):
    assert "hilboost" in steps[0]
    assert not set(HEAVY) & steps[0]


def test_estimators_load_neither_plots_nor_commands(steps):
    assert "hilboost.estimators.regressor" in steps[1]
    of_others = (
        *("learners.kernel_machine.expansion", "engine.vector", "losses.normal"),
        *("model.survival", "outputs.distances", "metrics.numbers"),
        *("persistence.container", "training.mixture"),
    )
    assert not {f"hilboost.{name}" for name in of_others} & steps[1]
    assert not {"sklearn.metrics", "sklearn.pipeline", "hilboost.outputs.registry"} & steps[1]
    plots = {"matplotlib", "typer", "hilboost.cli", "onnx", "jinja2", "hilboost.report"}
    assert not plots & steps[2]


def test_contract_tests_do_not_need_pytest(steps):
    assert "pytest" not in steps[3]


def test_the_command_line_loads_nothing_heavy_to_say_what_it_can():
    (loaded,) = run("import sys, hilboost.cli.app; print(*sys.modules)")
    assert not (set(HEAVY) - {"rich", "typer"}) & loaded
    assert "numpy" not in loaded


def declared():
    """What type checkers see of the package: modules by name."""
    source = Path(hilboost.__file__).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    return {alias.name: line.module for line in block.body for alias in line.names}


def test_all_lists_of_public_names_agree(steps):
    """Those of type checkers, of ``import *``, of tab completion, and of the estimators."""
    names = {*declared(), "__version__"}
    listed, imported = steps[4:]
    assert listed == imported == names
    assert set(estimators.__all__) <= names


@pytest.mark.parametrize("name", declared())
def test_public_names_are_what_they_say(name):
    found = getattr(hilboost, name)
    assert found.__name__ == name
    assert found is getattr(import_module(declared()[name]), name)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'BoostingRegresor'"):
        _ = hilboost.BoostingRegresor


def test_rooms_import_downwards_only():
    """In a process of its own: the linter disables the loggers of others."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout

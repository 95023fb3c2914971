"""What the required packages alone can do, and what features without their extra say."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hilboost
from hilboost.core.packages import DISTRIBUTIONS, EXTRAS

SOURCE = Path(hilboost.__file__).parent
ROOT = Path(__file__).parent.parent
with open(ROOT / "pyproject.toml", "rb") as file:
    PROJECT = tomllib.load(file)["project"]

BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{*{sorted(EXTRAS)}, "markupsafe", "click"}}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocked())
"""
FEATURES = """
import numpy as np
from hilboost import *
from hilboost.callbacks import ProgressBar

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = -X[:, 0]
plain = dict(n_estimators=2, early_stopping=False, min_samples_leaf=1, random_state=0)
model = BoostingRegressor(**plain).fit(X, y)
model.save("model")
assert (load("model").predict(X) == model.predict(X)).all()
labels = BoostingClassifier(**plain).fit(X.astype(str), y > 0).predict_proba(X.astype(str))
assert labels.shape == (40, 2)
KernelBoostingRegressor(random_state=0, **{"n_estimators": 2}).fit(X, y).predict(X)
assert not {"pandas", "matplotlib", "rich", "typer", "jinja2"} & set(__import__("sys").modules)
for call in (
    lambda: model.report(X, y),
    lambda: plot_tree(model),
    lambda: tree_table(model),
    lambda: to_onnx(model),
    lambda: ProgressBar(),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def run(code, folder, *arguments):
    env = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, "-c", BLOCK + code, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_required_packages_alone(tmp_path):
    done = run(FEATURES, tmp_path)
    assert done.returncode == 0, done.stderr
    asks = re.findall(
        r"(.+) requires the package (\w+); install it with `pip install '(.+)'`\.", done.stdout
    )
    assert asks == [
        ("a report", "matplotlib", "hilboost[report]"),
        ("plot_tree", "matplotlib", "hilboost[report]"),
        ("tree_table", "pandas", "hilboost[pandas]"),
        ("to_onnx", "onnx", "hilboost[export]"),
        ("ProgressBar", "rich", "hilboost[cli]"),
    ]
    assert len(done.stdout.splitlines()) == len(asks)


def test_the_command_without_its_packages(tmp_path):
    code = "import runpy; runpy.run_module('hilboost', run_name='__main__')"
    done = run(code, tmp_path, "--help")
    assert done.returncode == 1
    assert done.stderr == (
        "error: the command hilboost requires the package typer; install it with "
        "`pip install 'hilboost[cli]'`.\n"
    )


def test_the_package_is_a_command(tmp_path):
    env = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, "-m", "hilboost", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("hilboost ")


@pytest.mark.parametrize("package", EXTRAS)
def test_extras_install_what_messages_promise(package):
    parts, name = PROJECT["optional-dependencies"], DISTRIBUTIONS.get(package, package)
    assert any(line.startswith(name) for line in parts[EXTRAS[package]])
    assert parts["all"] == ["hilboost[cli,report,pandas,export,stream,dask]"]
    assert not any(line.startswith(name) for line in PROJECT["dependencies"])


def test_the_conda_recipe_has_the_same_requirements():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    listed = re.findall(r"^    - (.+)$", recipe.partition("\n  run:\n")[2], re.MULTILINE)
    wanted = [re.sub(r"(>=.*)", r" \1", line) for line in PROJECT["dependencies"]]
    assert listed[: len(wanted) + 1] == [f"python {PROJECT['requires-python']}", *wanted]
    assert f'version: "{PROJECT["version"]}"' in recipe

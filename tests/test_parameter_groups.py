"""Every parameter of an estimator with a long list of them has a group in the reference."""

import inspect
import runpy
from pathlib import Path

import pytest

import hilboost.estimators

GRIFFE = pytest.importorskip("griffe", reason="the extra docs is not installed")
FILE = Path(__file__).parent.parent / "docs" / "tools" / "parameter_groups.py"


def test_every_parameter_has_one_group():
    found = runpy.run_path(str(FILE))
    listed = [name for names in found["GROUPS"].values() for name in names.split()]
    assert len(listed) == len(set(listed))
    long = 0
    for name in hilboost.estimators.__all__:
        parameters = list(inspect.signature(getattr(hilboost.estimators, name)).parameters)
        if len(parameters) >= found["FEWEST"]:
            long += 1
            assert set(parameters) <= set(listed), name
    assert long > 6

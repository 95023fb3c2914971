"""A module of one loop, and a folder for compiled code."""

import numba
import pytest
from tests.loops import LOOPS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "loops.py").write_text(LOOPS)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path

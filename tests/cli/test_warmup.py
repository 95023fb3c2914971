"""`hilboost warmup`: what is said about what is compiled in advance.

``.ci/run`` compiles all of it, and counts compilations of first fits afterwards.
"""

import pytest
from tests.cli.commands import run

from hilboost.cli.demo import COMPILED
from hilboost.cli.warmup_uses import USES


@pytest.fixture
def one_process(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_check_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    result = run("warmup", "--check")
    assert result.output.splitlines() == [f"{name}: would be compiled" for name in USES]
    assert result.exit_code == 1
    assert not list(tmp_path.rglob("*.code"))


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    result = run("warmup")
    assert result.exit_code == 1
    assert "Compiled code cannot be cached" in result.output


def test_the_demo_compiles_what_it_needs_by_name():
    assert set(COMPILED) <= USES.keys()

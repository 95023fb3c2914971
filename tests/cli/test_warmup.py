"""`hilboost warmup`: what is said about what is compiled in advance.

``.ci/run`` compiles all of it, and counts compilations of first fits afterwards.
"""

import os
import platform
import subprocess
import sys

import pytest
from examples.demo import COMPILED
from tests.cli.commands import passed, run
from tests.loops import finish, start

from hilboost.backends.code_files import LEVELS
from hilboost.cli.warmup import UseOfCode
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


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    command = [sys.executable, "-m", "hilboost", "warmup"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Compiled code cannot be cached" in result.stderr


@pytest.mark.parametrize("options", [[], ["--check"]])
def test_faster_code_is_offered_where_the_processor_can_do_more(options, monkeypatch):
    def run_uses(check, for_host):
        return ((name, UseOfCode(0, frozenset({"x86-64-v3"}))) for name in USES)

    monkeypatch.setattr("hilboost.cli.warmup.run_uses", run_uses)
    result = passed("warmup", *options)
    last = result.output.splitlines()[-1]
    assert last.startswith("Code for x86-64-v3 is used")
    assert last.endswith("'hilboost warmup --host' compiles for it.")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of x86")
def test_the_host_is_compiled_for_in_spite_of_code_for_a_lower_level(tmp_path):
    def started(options, **processor):
        code = f"from hilboost.cli.warmup import run_use\nprint(*run_use('small images'{options}))"
        return start(code, NUMBA_CACHE_DIR=str(tmp_path), **processor)

    finish(started("", NUMBA_CPU_NAME="x86-64-v2", NUMBA_CPU_FEATURES=""))
    features = ",".join(f"+{name}" for name in LEVELS["x86-64-v3"])
    host = {"NUMBA_CPU_NAME": "skylake", "NUMBA_CPU_FEATURES": features}
    checks = [started(f", check=True, for_host={for_host}", **host) for for_host in (False, True)]
    found = [finish(check)[0] for check in checks]
    assert found == ["0 frozenset({'x86-64-v2'})\n", "1 frozenset()\n"]


def test_the_demo_compiles_what_it_needs_by_name():
    assert set(COMPILED) <= USES.keys()

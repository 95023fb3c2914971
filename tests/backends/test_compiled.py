"""Where compiled code is kept: nowhere to write, files of others, processes at the same time."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import numba
import numpy as np
import pytest

import hilboost
from hilboost.backends import compile_notice
from hilboost.backends import compiled as room
from hilboost.backends.compile_notice import CompileNotice
from hilboost.backends.work_clock import WorkClock, working_seconds
from hilboost.core.errors import CacheWarning

SOURCE = Path(hilboost.__file__).parent
ROOT = Path(__file__).parents[2]
LOOPS = """
from hilboost.backends.compiled import compiled

@compiled
def total(values):
    found = values[0]
    for i in range(1, len(values)):
        found += values[i]
    return found
"""
DTYPES = (np.float64, np.float32)
numbers = count()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A module of one loop, and a cache of its own."""
    (tmp_path / "loops.py").write_text(LOOPS)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(room, "_warned", set())
    return tmp_path


@pytest.fixture
def without_places(monkeypatch):
    """Numba finds no place for a cache."""
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])


@pytest.fixture
def listen(monkeypatch):
    """Registers the only listener to compilations."""
    monkeypatch.setattr(compile_notice.event, "_registered", defaultdict(list))
    return partial(compile_notice.event.register, "numba:compile")


def fresh(folder):
    """The module as a new process has it."""
    spec = importlib.util.spec_from_file_location(f"loops_{next(numbers)}", folder / "loops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(total):
    """Call it with both dtypes; how many were in the cache."""
    for dtype in DTYPES:
        values = np.array([1.0, 2.5, 3.25], dtype=dtype)
        assert total(values) == total.py_func(values)
    return sum(total.stats.cache_hits.values())


def files(folder, pattern):
    return sorted((folder / "cache").rglob(pattern))


def test_a_second_process_compiles_nothing(folder):
    assert hits(fresh(folder).total) == 0
    assert hits(fresh(folder).total) == 2


def test_a_change_of_a_function_in_another_file_is_compiled(folder, monkeypatch):
    assert hits(fresh(folder).total) == 0
    monkeypatch.setattr(room, "_stamp_of_all", lambda: (0.0, 1))
    assert hits(fresh(folder).total) == 0
    assert hits(fresh(folder).total) == 2


def test_the_stamp_is_that_of_all_compiled_functions():
    changed, size = room._stamp_of_all()
    folders = SOURCE / "backends", SOURCE / "engine" / "ops"
    files = [path.stat() for folder in folders for path in folder.glob("**/*.py")]
    assert changed == max(one.st_mtime for one in files)
    assert size == sum(one.st_size for one in files)


@pytest.mark.parametrize("make", [room.compiled, room.allocating])
@pytest.mark.usefixtures("folder", "without_places")
def test_all_that_is_compiled_takes_this_way(make):
    def double(x):
        return x + x

    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR"):
        assert make(double)(3.0) == 6.0


def test_nobody_else_asks_numba_for_a_cache():
    asking = [path for path in SOURCE.rglob("*.py") if "cache=True" in path.read_text("utf-8")]
    assert asking == []


@pytest.mark.usefixtures("without_places")
def test_one_warning_in_all_and_none_before_something_is_compiled(folder):
    first, second = fresh(folder).total, fresh(folder).total
    with pytest.warns(CacheWarning, match="Set the environment variable NUMBA_CACHE_DIR") as found:
        assert hits(first) == hits(second) == 0
    assert len(found) == 1


def test_signatures_that_two_processes_mixed_up(folder):
    """Both write a first file, each of its own signature, and one index wins."""
    hits(fresh(folder).total)
    first, second = files(folder, "*.nbc")
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    assert hits(fresh(folder).total) == 0
    assert hits(fresh(folder).total) == 2  # mended


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("length", [0, 100])
def test_damaged_files_are_replaced(kind, length, folder):
    hits(fresh(folder).total)
    for path in files(folder, kind):
        path.write_bytes(path.read_bytes()[:length])
    hits(fresh(folder).total)
    assert hits(fresh(folder).total) == 2


def test_files_of_another_user(folder):
    """In a folder that all may write to: files that cannot be read.  Folders stop root too."""
    hits(fresh(folder).total)
    for path in files(folder, "*.nbi"):
        path.unlink()
        path.mkdir()
    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR") as found:
        assert hits(fresh(folder).total) == 0
    assert len(found) == 1


def test_a_folder_that_is_gone_or_full(folder, monkeypatch):
    total = fresh(folder).total

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    with pytest.warns(CacheWarning, match="No space left on device"):
        assert hits(total) == 0


def start(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def test_two_processes_that_compile_at_once(folder):
    code = (
        "import sys, numpy; sys.path.insert(0, {!r}); from loops import total\n"
        "print(*[total(numpy.array([1, 2.5], dtype)) for dtype in {}])"
    )
    environment = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    orders = ("f8", "f4"), ("f4", "f8")
    both = [start(code.format(str(folder), order), **environment) for order in orders]
    assert [finish(process) for process in both] == [("3.5 3.5\n", "")] * 2
    hits(fresh(folder).total)
    assert hits(fresh(folder).total) == 2


CHAIN = """
from hilboost.backends.compiled import compiled, inner

@inner
def third(x):
    return x * x / 3.0

@compiled
def half(x):
    return x / 2.0

@inner
def both(x):
    return third(x) + half(x)

@compiled
def first(x):
    return both(x) + 1.0

@compiled
def second(x):
    return both(x) + 2.0
"""


def test_functions_that_compiled_functions_call_are_not_made_executable(folder):
    """They are parts of their callers, also those that Python can call, and are cached as parts."""
    (folder / "loops.py").write_text(CHAIN)
    module = vars(fresh(folder))
    assert module["first"](6.0) == 16.0
    parts = module["third"], module["both"], module["half"]._part
    for part in parts:
        (compiled,) = part.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    assert not module["half"].overloads  # its way in from Python is compiled when it is needed
    assert module["half"](3.0) == 1.5
    names = {path.name.split("-")[0] for path in files(folder, "*.nbc")}
    assert names == {"part", "loops.first", "loops.half"}

    again = vars(fresh(folder))
    assert again["second"](6.0) == 17.0
    assert sum(again["both"].stats.cache_hits.values()) == 1
    assert not again["third"].overloads  # contained in the cached part


NOWHERE = """
import numpy as np
from hilboost import SparseKernelRidge
from hilboost.backends.random_bits import mix
x = np.arange(20.0)[:, None]
SparseKernelRidge(random_state=0).fit(x, x[:, 0]).predict(x)
with np.errstate(over="ignore"):
    print(mix(np.uint64(1)) == mix.py_func(np.uint64(1)))
"""


def test_the_package_where_nothing_can_be_written(tmp_path):
    """Files in the places of folders stop root too."""
    package = tmp_path / "site" / "hilboost"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    home = tmp_path / "home"
    home.write_text("no folder")
    names = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "NUMBA_CACHE_DIR")
    environment = dict.fromkeys(names, str(home / "x"))
    out, err = finish(start(NOWHERE, PYTHONPATH=str(package.parent), **environment))
    assert out == "True\n"
    assert err.count("Warning") == 1
    assert "CacheWarning: Compiled code cannot be cached (cannot cache function" in err


# A line when compiling takes long


@pytest.mark.parametrize("name", ["hilboost.loops", "of_another_package"])
def test_a_long_compilation_is_said_once(folder, listen, caplog, name):
    listen(CompileNotice(patience=0.0))
    for _ in range(2):
        total = fresh(folder).total
        total.py_func.__module__ = name
        hits(total)
        for cached in files(folder, "*.nb*"):
            cached.unlink()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (name == "hilboost.loops")
    assert all("this kind of fit" in line and "hilboost warmup" in line for line in said)


def test_the_clock_of_fits_stands_still_while_functions_are_compiled(folder):
    total, values = fresh(folder).total, np.ones(3)
    began, on_wall = working_seconds(), time.perf_counter()
    with ThreadPoolExecutor(2) as pool:  # one compiles, and the other one waits
        assert list(pool.map(total, [values, values])) == [3.0, 3.0]
    elapsed, on_wall = working_seconds() - began, time.perf_counter() - on_wall
    assert 0 <= elapsed < on_wall / 2
    began = working_seconds()
    time.sleep(0.01)
    assert working_seconds() - began >= 0.01


def test_pauses_may_overlap():
    clock = WorkClock()
    with clock.paused():
        stopped = clock.seconds()
        with clock.paused():
            time.sleep(0.01)
        assert clock.seconds() == stopped
        now = time.perf_counter()
    assert 0 <= clock.seconds() - stopped <= time.perf_counter() - now


def test_short_compilations_are_silent(folder, listen, caplog):
    notice = CompileNotice(patience=100.0)
    listen(notice)
    total = fresh(folder).total
    total.py_func.__module__ = "hilboost.loops"
    hits(total)
    assert not caplog.records
    assert 0 < notice.left < 100
    hits(fresh(folder).total)  # from the cache: nothing is compiled
    assert not caplog.records


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of x86")
def test_code_compiled_for_a_family_of_processors(folder):
    """As in the container image of the documentation."""
    code = "import loops, numpy; loops.total(numpy.ones(3)); print(loops.total.stats.cache_hits)"
    folders = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(SOURCE.parent)}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    family = dict(
        re.findall(r'(NUMBA_CPU_\w+)=(?:"")?([\w-]*)', page.partition("\nENV ")[2].splitlines()[0])
    )
    assert sorted(family) == ["NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"]
    found = []
    for changed in ({}, family, family):
        env = os.environ | folders | changed
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(": 1" in done.stdout)
    assert found == [False, False, True]

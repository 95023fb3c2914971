"""Where compiled code is kept, when it is valid, and for which processors."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import numba
import pytest
from tests.loops import LOOPS, files, finish, fresh, hits, start

import hilboost
from hilboost.backends import code_files
from hilboost.core.errors import CacheWarning

SOURCE = Path(hilboost.__file__).parent
ROOT = Path(__file__).parents[2]
HITS = """
import os, sys
os.chdir({folder!r})
sys.path[:0] = [{folder!r}, {root!r}]
import numba
numba.__version__ = {version!r}
from loops import total
from tests.loops import hits
print(hits(total))
"""
PAIRS = """
import sys
sys.path.insert(0, {!r})
from loops import difference
from {} import Pair
print(difference(Pair(a=5.0, b=3.0)))
"""
DIFFERENCE = """
from hilboost.backends.compiled import compiled

@compiled
def difference(pair):
    return pair.a - pair.b
"""
ARRAYS = """
from hilboost.backends.compiled import allocating, compiled

@compiled
def first(values):
    return values[0]

@allocating
def doubled(values):
    return 2.0 * values
"""
FIRST_CALLS = """
import sys
import numpy as np
sys.path.insert(0, {!r})
from arrays import doubled, first
print(first(np.ones(3)), "numba.np.linalg" in sys.modules, *doubled(np.ones(3)))
"""
READ_ONLY = "unshare", "-rm", "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh"
ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of x86")


@pytest.fixture(autouse=True)
def not_warned(monkeypatch):
    monkeypatch.setattr(code_files, "_warned", set())


@pytest.fixture
def site(tmp_path):
    """A function that installs the package into a folder of the given name."""

    def install(name):
        ignored = shutil.ignore_patterns("__pycache__", "estimators", "training", "cli", "report")
        return shutil.copytree(SOURCE, tmp_path / name / "hilboost", ignore=ignored).parent

    (tmp_path / "loops.py").write_text(LOOPS)
    return install


@pytest.fixture
def installed(folder):
    """A function that copies the sources with compiled functions into a folder of a given name."""

    def install(name):
        for part in ("backends", "engine/ops"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(SOURCE / part, folder / name / part, ignore=ignored)
        return folder / name

    yield install
    forget_digests()


def forget_digests():
    code_files.digest_of_sources.cache_clear()
    code_files._digest_of_file.cache_clear()


def found_by(package, folder):
    """Hits of this process, which takes the copy for the package."""
    forget_digests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_files, "_PACKAGE", package)
        return hits(fresh(folder).total)


def hits_of(site, folder, *launcher, version=numba.__version__, **environment):
    """Hits of a new process with the package in ``site``, and what it wrote to stderr."""
    code = HITS.format(folder=str(folder), root=str(ROOT), version=version)
    environment.setdefault("NUMBA_CACHE_DIR", str(folder / "cache"))
    out, err = finish(start(code, *launcher, PYTHONPATH=str(site), **environment))
    return int(out), err


@pytest.mark.slow
@pytest.mark.parametrize("compiles", [True, False])
def test_code_is_loaded_without_all_that_a_compiler_needs(compiles, folder):
    (folder / "arrays.py").write_text(ARRAYS)
    code, cache = FIRST_CALLS.format(str(folder)), str(folder / "cache")
    if not compiles:
        finish(start(code, NUMBA_CACHE_DIR=cache))
    out, _ = finish(start(code, NUMBA_CACHE_DIR=cache))
    assert out == f"1.0 {compiles} 2.0 2.0 2.0\n"


def test_a_change_of_any_compiled_source_or_of_numba_is_compiled(installed, folder):
    assert found_by(installed("first"), folder) == 0
    for path in (folder / "first" / "engine/ops/cpu/nodes.py", folder / "loops.py"):
        content = path.read_text()
        path.write_text(f"{content}\n# changed\n")
        assert found_by(folder / "first", folder) == 0
        path.write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "__version__", "0.99.1")
        assert found_by(folder / "first", folder) == 0
    assert found_by(folder / "first", folder) == 2


def test_nobody_else_asks_numba_for_a_cache():
    asking = [path for path in SOURCE.rglob("*.py") if "cache=True" in path.read_text("utf-8")]
    assert asking == []


# Places


def places_of(tmp_path, of_user):
    """Environment of a user without ``NUMBA_CACHE_DIR``."""
    names = "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"
    return {**dict.fromkeys(names, str(of_user)), "NUMBA_CACHE_DIR": ""}


@pytest.fixture
def user(folder, monkeypatch):
    """A path in which a user has the folder for caches."""
    for name, value in places_of(folder, folder / "user" / "x").items():
        monkeypatch.setenv(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", "")
        yield folder / "user"


def test_code_is_kept_in_the_folder_of_the_user(installed, folder, user):
    """It stays valid where the same sources are installed again."""
    assert found_by(installed("first"), folder) == 0
    assert len(list(user.rglob("*.code"))) == 2
    assert not list((folder / "first").rglob("*.code"))
    shutil.rmtree(folder / "first")
    second = installed("second")
    for path in second.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    assert found_by(second, folder) == 2


def test_code_is_kept_with_the_package_where_the_user_has_no_folder(installed, folder, user):
    """A file in the place of a folder stops root, too."""
    user.write_text("no folder")
    first = installed("first")
    assert found_by(first, folder) == 0
    assert len(list((first / "__pycache__").rglob("*.code"))) == 2
    assert found_by(first, folder) == 2


def test_one_warning_in_all_where_nothing_can_be_written(installed, folder, user):
    user.write_text("no folder")
    first = installed("first")
    (first / "__pycache__").write_text("no folder")
    said = r"cannot be cached \(.*Set the environment variable NUMBA_CACHE_DIR"
    with pytest.warns(CacheWarning, match=said) as found:
        assert found_by(first, folder) == 0
    assert len(found) == 1


def test_a_full_disk(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left on device"):
        assert hits(fresh(folder).total) == 0
    assert not files(folder, "*.*")


def test_code_of_many_other_sources_is_deleted(folder):
    for number in range(30):
        path = folder / "cache" / "hilboost" / str(number)
        path.mkdir(parents=True)
        os.utime(path, (number, number))
    hits(fresh(folder).total)
    left = {path.name for path in (folder / "cache" / "hilboost").iterdir()}
    assert {str(number) for number in range(22, 30)} < left
    assert len(left) == 9


# Files


@pytest.mark.parametrize(
    "damage", [lambda old: b"", lambda old: old[:100], lambda old: old[:-1] + b"?"]
)
def test_damaged_files_are_replaced(damage, folder):
    hits(fresh(folder).total)
    for path in files(folder):
        path.write_bytes(damage(path.read_bytes()))
    assert hits(fresh(folder).total) == 0
    assert hits(fresh(folder).total) == 2


def test_files_that_cannot_be_read(folder):
    """As those of another user. Folders stop root, too."""
    hits(fresh(folder).total)
    for path in files(folder):
        path.unlink()
        path.mkdir()
    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR") as found:
        assert hits(fresh(folder).total) == 0
    assert len(found) == 1


@pytest.mark.slow
def test_two_processes_that_compile_at_once(folder):
    code = (
        "import sys, numpy; sys.path.insert(0, {!r}); from loops import total\n"
        "print(*[total(numpy.array([1, 2.5], dtype)) for dtype in {}])\n"
        "print(sum(total.stats.cache_hits.values()), file=sys.stderr)"
    )
    environment = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    orders = ("f8", "f4"), ("f4", "f8")
    both = [start(code.format(str(folder), order), **environment) for order in orders]
    ended = [finish(process) for process in both]
    assert [out for out, _ in ended] == ["3.5 3.5\n"] * 2
    assert sum(int(hits) for _, hits in ended) == 2  # each function was compiled once
    assert not list(folder.rglob("*.lock"))
    third = start(code.format(str(folder), orders[0]), **environment)
    assert finish(third) == ("3.5 3.5\n", "2\n")


def test_nobody_waits_where_there_are_no_locks_or_their_holder_hangs(folder, monkeypatch):
    monkeypatch.setattr(code_files, "_PATIENCE", 0.1)
    for error in (OSError, BlockingIOError):
        monkeypatch.setattr(code_files.fcntl, "flock", Mock(side_effect=error))
        assert hits(fresh(folder).total) == 0
        shutil.rmtree(folder / "cache")
    assert code_files.fcntl.flock.call_count > 2  # it was asked again


@pytest.mark.slow
def test_types_of_equal_names(folder):
    (folder / "loops.py").write_text(DIFFERENCE)
    for name, fields in {"forward": "ab", "backward": "ba"}.items():
        lines = "".join(f"    {field}: float\n" for field in fields)
        text = f"from typing import NamedTuple\nclass Pair(NamedTuple):\n{lines}"
        (folder / f"{name}.py").write_text(text)
    environment = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    for name in ("forward", "backward", "forward"):
        code = PAIRS.format(str(folder), name)
        assert finish(start(code, **environment)) == ("2.0\n", "")


# Processors


@pytest.mark.slow
@ON_X86
def test_code_for_a_level_of_processors_serves_all_that_have_its_features(site, tmp_path):
    """The level that the documentation names for container images."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    level = dict(
        re.findall(r'(NUMBA_CPU_\w+)=(?:"")?([\w-]*)', page.partition("\nENV ")[2].splitlines()[0])
    )
    assert sorted(level) == ["NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"]
    first = site("first")
    assert hits_of(first, tmp_path, **level) == (0, "")
    native = first / "hilboost" / "native"
    shutil.move(tmp_path / "cache" / "hilboost", native)
    assert hits_of(first, tmp_path, **level) == (2, "")
    features = ",".join(f"+{name}" for name in code_files.LEVELS[level["NUMBA_CPU_NAME"]])
    others = {"NUMBA_CPU_NAME": "skylake", "NUMBA_CPU_FEATURES": features}
    assert hits_of(first, tmp_path, **others) == (2, "")
    assert not files(tmp_path)
    others["NUMBA_CPU_FEATURES"] = features.replace("+avx2", "-avx2")
    assert hits_of(first, tmp_path, **others) == (0, "")
    assert hits_of(first, tmp_path, version="0.99.1", **level) == (0, "")


@pytest.mark.slow
def test_a_container_with_a_read_only_root_and_no_home_loads_native_code(site, tmp_path):
    if not shutil.which("unshare") or subprocess.run([*READ_ONLY, "true"], check=False).returncode:
        pytest.skip("no read-only file system without privileges")
    first = site("first")
    assert hits_of(first, tmp_path) == (0, "")
    shutil.move(tmp_path / "cache" / "hilboost", first / "hilboost" / "native")
    nowhere = places_of(tmp_path, "/nonexistent")
    assert hits_of(first, tmp_path, *READ_ONLY, **nowhere) == (2, "")


@ON_X86
def test_the_levels_have_the_features_that_the_compiler_knows():
    """None that a level requires may be missing here: code for it would not run."""
    known = set(numba.core.codegen.ll.get_host_cpu_features())
    assert known.issuperset(code_files.LEVELS["x86-64-v4"])
    levels = [code_files.LEVELS[f"x86-64-v{number}"] for number in (4, 3, 2)]
    assert levels[0] > levels[1] > levels[2]

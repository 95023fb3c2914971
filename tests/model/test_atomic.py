"""Files that are whole or absent: permissions, stale files, long names, pipes and open files."""

import os
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import hilboost
from hilboost import BoostingRegressor
from hilboost.core.errors import MissingPath
from hilboost.persistence.atomic import atomic_path

HALF = """
import sys, time
from pathlib import Path
from hilboost.persistence.atomic import atomic_path
with atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("written", flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def model():
    x = np.arange(40.0)[:, None]
    return BoostingRegressor(learner="tree", n_estimators=2).fit(x, -x[:, 0])


def replace(path, text="new"):
    with atomic_path(path) as temporary:
        temporary.write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def half_written(path):
    with subprocess.Popen([sys.executable, "-c", HALF, path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o666, 0o755])
def test_a_file_keeps_its_permissions(permissions, tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(permissions)
    replace(path)
    assert path.read_text() == "new"
    assert mode(path) == permissions


def test_nobody_else_can_read_what_replaces_a_private_file(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert mode(temporary) == 0o600


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "any").write_text("")
    replace(tmp_path / "new")
    assert mode(tmp_path / "new") == mode(tmp_path / "any")


def test_owner_and_group_stay(tmp_path):
    path = tmp_path / "model"
    path.write_text("old")
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
        replace(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)
    else:
        groups = set(os.getgroups()) | {os.getegid()}
        os.chown(path, -1, max(groups))
        replace(path)
        assert path.stat().st_gid == max(groups)


def test_a_group_that_cannot_be_kept_gets_no_more_than_others(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_text("old")
    path.chmod(0o671)
    real = os.stat_result

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    def of_another_group(self, **options):
        found = real_stat(self, **options)
        return real([*found[:5], found.st_gid + (self == path), *found[6:]])

    real_stat = type(path).stat
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(type(path), "stat", of_another_group)
    replace(path)
    assert mode(path) == 0o611


def test_a_kill_leaves_nothing_after_the_next_save(tmp_path):
    with half_written(tmp_path / "model") as process:
        process.kill()
    assert len(os.listdir(tmp_path)) == 1
    replace(tmp_path / "other")
    assert os.listdir(tmp_path) == ["other"]


def test_the_file_of_a_living_process_stays(tmp_path):
    with half_written(tmp_path / "model"):
        replace(tmp_path / "model")
        assert len(os.listdir(tmp_path)) == 2


def test_hidden_files_of_others_stay(tmp_path):
    for name in ".hilboost", ".model", ".0123456789ab-model", "hilboost-x":
        (tmp_path / name).write_text("mine")
    replace(tmp_path / "model")
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.parametrize("name", ["m" * 255, "m" * 244 + ".csv.gz", "é" * 127, "m." + "x" * 253])
def test_the_longest_names(name, tmp_path):
    replace(tmp_path / name)
    replace(tmp_path / name, "again")
    assert (tmp_path / name).read_text() == "again"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["a.png", "b.csv.gz", "c", "d.v1.hilboost"])
def test_a_temporary_file_has_the_suffixes_by_which_writers_choose(name, tmp_path):
    with atomic_path(tmp_path / name) as temporary:
        assert temporary.suffixes == (tmp_path / name).suffixes
        temporary.write_text("x")


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        replace(tmp_path / "missing" / "model")
    assert caught.value.filename == str(tmp_path / "missing" / "model")
    assert isinstance(caught.value, MissingPath)
    assert str(caught.value).endswith(
        f"there is no folder '{tmp_path / 'missing'}'; create it first."
    )


def test_a_model_through_a_pipe_with_a_name(model, tmp_path):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: copy.write_bytes(pipe.read_bytes()), daemon=True)
    reader.start()
    model.save(pipe)
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    x = np.arange(5.0)[:, None]
    assert (hilboost.load(copy).predict(x) == model.predict(x)).all()


WRITE = """
import sys
from pathlib import Path
from hilboost.persistence.atomic import atomic_path
print("before")
with atomic_path(Path("/dev/stdout")) as temporary:
    temporary.write_text("model\\n")
print("after")
"""


def test_standard_output_that_is_a_pipe():
    done = subprocess.run([sys.executable, "-c", WRITE], capture_output=True, check=True)
    assert done.stdout == b"before\nmodel\nafter\n"


def test_standard_output_that_is_a_file_is_added_to(tmp_path):
    path = tmp_path / "log"
    path.write_text("old\n")
    with path.open("ab") as file:
        subprocess.run([sys.executable, "-c", WRITE], stdout=file, check=True)
    assert path.read_text() == "old\nbefore\nmodel\nafter\n"
    assert os.listdir(tmp_path) == ["log"]

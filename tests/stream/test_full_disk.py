"""Disks and limits that leave too little space: one sentence, and nothing is left behind."""

import errno
import json
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.cases import PLAIN

from hilboost import BoostingRegressor

SETUP = """
import json, os, signal, sys, warnings
import numpy as np, pyarrow as pa
import hilboost, hilboost.stream
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import HilboostError
place, large = sys.argv[1:3]
rng = np.random.default_rng(0)
table = pa.table({name: rng.normal(size=9000) for name in [*"abcdefghi", "y"]})
model = hilboost.BoostingRegressor(n_estimators=2, learner="tree", random_state=0)

def streamed(source, **given):
    hilboost.stream.fit(model, source, target="y", folder=place, **given)
"""
LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
"""
WRITE = """
longer = hilboost.BoostingRegressor(n_estimators=40, learner="tree", early_stopping=False)
ways = {
    "bins": lambda: streamed(table),
    "batches": lambda: streamed(iter(table.to_batches(max_chunksize=900))),
    "model": lambda: hilboost.load(large).save(place + "/model"),
    "summary": lambda: hilboost.to_xgboost_json(hilboost.load(large), place + "/model.json"),
    "checkpoint": lambda: longer.fit(
        table.drop(["y"]), table["y"], callbacks=[Checkpoint(place + "/model", every_stages=40)]
    ),
}
found = {}
for way, write in ways.items():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            write()
            found[way] = [None, None, str(told[0].message), os.listdir(place)]
        except HilboostError as error:
            found[way] = [isinstance(error, OSError), error.errno, str(error), os.listdir(place)]
print(json.dumps(found))
"""
KILLED = """
streamed(table, callbacks=[lambda event: os.kill(os.getpid(), signal.SIGKILL)])
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model that needs more than 64 KiB."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = BoostingRegressor(**PLAIN | {"n_estimators": 60, "learner": "tree"}).fit(X, -X[:, 0])
    model.save(path := tmp_path_factory.mktemp("large") / "model")
    assert path.stat().st_size > 2**16
    return path


def run(code, *arguments, prefix=()):
    command = [*prefix, sys.executable, "-c", SETUP + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def disk_of(place):
    """Command that gives a folder a disk of 64 KiB, which ends with the process, if it may."""
    own = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"']
    usable = (
        shutil.which("unshare")
        and not subprocess.run(
            [*own, str(place), "true"], capture_output=True, check=False
        ).returncode
    )
    return [*own, str(place)] if usable else None


NEEDED = {
    "bins": "144,000 bytes",
    "batches": r"7\d,\d+ bytes",
    "model": r"\d+,\d+ bytes",
    "summary": "more space",
    "checkpoint": r"\d+,\d+ bytes",
}


@pytest.mark.slow
@pytest.mark.parametrize("limited", [False, True])
def test_a_full_disk_is_told_in_one_sentence(limited, large, tmp_path):
    prefix = None if limited else disk_of(tmp_path)
    done = run((LIMIT if prefix is None else "") + WRITE, tmp_path, large, prefix=prefix or [])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    there = "which exceeds a limit" if prefix is None else r"but \d[\d,]* bytes are free"
    for way, needed in NEEDED.items():
        is_error, number, text, left = found[way]
        pattern = rf"writing to '{tmp_path}.*' needs {needed}, {there}.*choose another folder"
        assert re.search(pattern, text), text
        assert left == []
        if way == "checkpoint":
            assert text.startswith(f"the checkpoint {tmp_path / 'model'} could not be written (")
        else:
            assert is_error
            assert number == (errno.EFBIG if prefix is None else errno.ENOSPC)


@pytest.mark.slow
def test_a_killed_process_leaves_no_bins(tmp_path):
    done = run(KILLED, tmp_path, "")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []

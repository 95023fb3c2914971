"""With ``NUMBA_DISABLE_JIT=1`` nothing is compiled, and models are the same to the bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.small_fits import digests

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_loops_run_as_python_make_the_same_models():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.small_fits"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == digests()

"""Settings and fixtures of all tests."""

import gc
import os
from collections import defaultdict
from zlib import crc32

# As in a fit: threads of several processes would wait for each other in endless loops.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run; compiled code is slow the first time it is called.
settings.register_profile(
    "hilboost",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=int(os.environ.get("HILBOOST_EXAMPLES", "5")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hilboost")

FEW_CASES = 3  # of a test that a fast run takes, if a quarter of them are fewer


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among the tests and their modules, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config):
    """Note whether this process, or that of its worker, runs all tests in the fast way."""
    chosen = config.option.keyword or config.option.markexpr
    whole_suite = config.args == config.getini("testpaths") and not chosen
    config.is_fast = whole_suite and os.environ.get("HILBOOST_TESTS") != "all"


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, and most cases of tests with many, in a fast run."""
    if not config.is_fast:
        return
    cases = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for same_test in cases.values():
        same_test.sort(key=lambda item: crc32(item.nodeid.encode()))
        kept.update(same_test[: max(FEW_CASES, len(same_test) // 4)])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture(autouse=True)
def same_draws(request):
    """A test draws the same numbers in any order of the tests, and in any process."""
    if hasattr(request.module, "RNG"):
        request.module.RNG = np.random.default_rng(1)


@pytest.fixture
def threads_at_once(monkeypatch):
    """Threads share the work of small data, too, and on machines of one core."""
    monkeypatch.setattr("hilboost.backends.threads.ENTRIES_WORTH_A_THREAD", 1)
    monkeypatch.setattr("hilboost.training.recipes.tables._ENTRIES_WORTH_SHARING", 1)
    monkeypatch.setenv("HILBOOST_CORES", "16")


@pytest.fixture
def one_by_one(monkeypatch):
    """Trees are fitted stage by stage, not several stages in one call."""
    monkeypatch.setattr("hilboost.learners.tree.TreeLearner.fit_stages", lambda *_: None)


@pytest.fixture
def iterative(monkeypatch):
    """Full kernel machines of few rows are fitted by conjugate gradients, too."""
    monkeypatch.setattr("hilboost.learners.kernel_machine.full.DIRECT_UP_TO", 0)


@pytest.fixture
def sixteen_cores(monkeypatch, tmp_path):
    """A machine with 16 cores and no limits; returns the folder of the container's limits."""
    monkeypatch.setattr("hilboost.backends.threads._CGROUP", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(16), raising=False)
    for limit in "OMP_NUM_THREADS", "NUMBA_NUM_THREADS":
        monkeypatch.delenv(limit, raising=False)
    return tmp_path

"""What is compiled: parts of other functions, a line when it takes long, and the clock of fits."""

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from tests.loops import files, fresh, hits

from hilboost.backends import compiled
from hilboost.backends.compiled import CompileNotice
from hilboost.backends.work_clock import WorkClock, working_seconds


@pytest.fixture
def listen(monkeypatch):
    """Registers the only listener to compilations."""
    monkeypatch.setattr(compiled.event, "_registered", defaultdict(list))
    return partial(compiled.event.register, "numba:compile")


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
    names = {path.name.split("-")[0] for path in files(folder)}
    assert names == {"part", "loops.first", "loops.half"}

    again = vars(fresh(folder))
    assert again["second"](6.0) == 17.0
    assert sum(again["both"].stats.cache_hits.values()) == 1
    assert not again["third"].overloads  # contained in the cached part


# A line when compiling takes long


@pytest.mark.parametrize("name", ["hilboost.loops", "of_another_package"])
def test_a_long_compilation_is_said_once(folder, listen, caplog, name):
    listen(CompileNotice(patience=0.0))
    for _ in range(2):
        total = fresh(folder).total
        total.py_func.__module__ = name
        hits(total)
        for cached in files(folder):
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

"""Boosted kernel machines against other kernel methods, Gaussian processes and boosted trees.

The score is NMSE, the mean squared error over the variance of the test targets, or the error rate
and, where there are probabilities, the log-loss (clipped at 1e-7).  Data sets and splits are in
``kernel_data.py``, methods and their settings in ``kernel_peers.py``.

Every run has a process of its own with the same number of threads.  The process first makes an
untimed fit of the same setting on a few hundred made-up rows (3,000 for hilboost), which takes
imports and compilation out of the times.  The fit includes scaling, tuning and whatever else the
method does with the training rows; the prediction is one call for all test rows.  A run over 300 s
(fit and prediction together) is ended and recorded as such.  Peak memory is the largest resident
memory of the process during fit and prediction.

Run ``python benchmarks/kernels.py``, or with ``--only kin40k,lightgbm``; ``--quick`` takes 600
rows.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _common import (
    Record,
    circumstances,
    describe_error,
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    study,
    timed,
    version_of,
)
from kernel_data import REGRESSION, SETS, Rows
from kernel_peers import METHODS, OURS_ON_ALL_SPLITS, Setting
from kernel_report import page
from kernel_tuning import Fitted

THREADS, LIMIT_S, SET_UP_LIMIT_S = 2, 300.0, 600.0
CURVE_POINTS = 40
PROBABILITY_FLOOR = 1e-7
QUICK_ROWS = 600
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def find_setting(method: str, name: str) -> Setting:
    return next(setting for setting in METHODS[method].settings if setting.name == name)


def made_up(task: str, rows: int, columns: int) -> Rows:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    smooth = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    if task == REGRESSION:
        return Rows(X, smooth, task)
    return Rows(X, np.digitize(smooth, [-0.7, 0.7]).astype(np.int64), task, 3)


def warm_up(method: str, setting: Setting, like: Rows, threads: int) -> None:
    """Fit and predict once; a failure on made-up rows says nothing and is passed over."""
    rows = made_up(like.task, METHODS[method].warm_up_rows, like.X.shape[1])
    options = dict(setting.options)
    if METHODS[method].ours:
        options["warm_up"] = True
    try:
        fitted = setting.fit(rows, 0, threads, **options)
        fitted.predict(rows.X)
        if fitted.proba:
            fitted.proba(rows.X)
    except Exception as error:
        print(f"warm-up: {describe_error(error)}", file=sys.stderr)


def loss_of(test: Rows, predicted: np.ndarray) -> float:
    predicted = np.ravel(predicted)
    if test.regression:
        return float(np.mean((test.y - predicted) ** 2) / np.var(test.y))
    return float(np.mean(test.y != predicted))


def log_loss_of(test: Rows, proba: np.ndarray) -> float:
    chance = np.clip(np.asarray(proba, np.float64), PROBABILITY_FLOOR, 1)
    chance /= chance.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(chance[np.arange(len(test)), test.y])))


def curve_of(fitted: Fitted, test: Rows) -> list[list[float]]:
    """Seconds (of the fit so far and of the prediction) and loss of the stages."""
    if fitted.staged is None:
        return []
    points, predicting = [], 0.0
    stages = fitted.staged(test.X)
    while True:
        spent, stage = timed(lambda: next(stages, None))
        if stage is None:
            break
        seconds, predicted = stage
        predicting = predicting + spent if fitted.cumulative else spent
        points.append([round(float(seconds) + predicting, 3), loss_of(test, predicted)])
    if len(points) > CURVE_POINTS:
        steps = np.unique(np.geomspace(1, len(points), CURVE_POINTS).round().astype(int)) - 1
        points = [points[step] for step in steps]
    return points


def run_here(spec: Record) -> Record:
    """Measure one setting in this process, which ends by SIGALRM at the time limit."""
    signal.setitimer(signal.ITIMER_REAL, SET_UP_LIMIT_S)
    method, threads, seed = METHODS[spec["method"]], spec["threads"], spec["seed"]
    setting = find_setting(spec["method"], spec["setting"])
    for module in method.modules:
        importlib.import_module(module)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    train, test = SETS[spec["set"]].load(spec["split"])
    if spec["rows"]:
        train = train.sample(spec["rows"], 0)
    record: Record = {"n_train": len(train), "n_test": len(test)}
    record["versions"] = {module: version_of(module) for module in method.modules}
    with threadpool_limits(threads):
        record["warm_up_s"] = timed(lambda: warm_up(spec["method"], setting, train, threads))[0]
        gc.collect()
        reset_peak_memory()
        record["base_mib"] = resident_mb()
        signal.setitimer(signal.ITIMER_REAL, spec["limit_s"])
        record["fit_s"], fitted = timed(
            lambda: setting.fit(train, seed, threads, **setting.options)
        )
        record["predict_s"], predicted = timed(lambda: fitted.predict(test.X))
        signal.setitimer(signal.ITIMER_REAL, SET_UP_LIMIT_S)
        record["peak_mib"] = peak_memory_mb()
        record["nmse" if test.regression else "error_rate"] = loss_of(test, predicted)
        if fitted.proba is not None:
            record["log_loss"] = log_loss_of(test, fitted.proba(test.X))
        record["curve"] = curve_of(fitted, test)
    return {**record, "n_train_used": fitted.rows, "note": fitted.note}


def child(spec: Record) -> None:
    try:
        record = run_here(spec)
    except Exception as error:
        record = {"failure": describe_error(error)}
    print(json.dumps(record), flush=True)


def run_apart(spec: Record) -> Record:
    """Run ``spec`` in a fresh interpreter; a process ended by a signal is a failure."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", json.dumps(spec)]
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(spec["threads"]))}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=variables)
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        lines = out.read().decode(errors="replace").strip().splitlines()
        complaints = errors.read().decode(errors="replace").strip().splitlines()
    if code == 0 and lines:
        return json.loads(lines[-1])
    if code == -signal.SIGALRM:
        failure = f"over {spec['limit_s']:g} s"
    elif code < 0:
        failure = f"ended by {signal.Signals(-code).name}"
    else:
        failure = (complaints or [f"exit status {code}"])[-1][:200]
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {"failure": failure, "peak_mib": usage.ru_maxrss / unit}


def measure(rows: int | None = None, **case: Any) -> Record:
    settings = {"seed": 0, "threads": THREADS, "limit_s": LIMIT_S, "rows": rows}
    return {
        **settings,
        "split_note": SETS[case["set"]].split_note,
        **circumstances(THREADS),
        **run_apart({**case, **settings}),
    }


def installed(method: str) -> bool:
    return all(importlib.util.find_spec(module) for module in METHODS[method].modules)


def cases() -> list[Record]:
    """Every setting on the first split of every set, and some of ours on all splits of kin40k."""
    found = []
    for name, data in SETS.items():
        rows = len(data.load(0)[0])
        for method in filter(installed, METHODS):
            for setting in METHODS[method].settings:
                if data.task in setting.tasks and rows > setting.more_rows_than:
                    ours = name == "kin40k" and (method, setting.name) in OURS_ON_ALL_SPLITS
                    for split in range(data.splits if ours else 1):
                        case = {"set": name, "split": split, "method": method}
                        found.append({**case, "setting": setting.name, "repeat": 0})
    return found


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
        return
    quick = partial(measure, rows=QUICK_ROWS)
    study("kernels", cases(), measure, page, about=__doc__, threads=THREADS, quick=quick)


if __name__ == "__main__":
    main()

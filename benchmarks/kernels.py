"""Boosted kernel machines against other kernel methods, Gaussian processes and boosted trees.

The score is NMSE, the mean squared error over the variance of the test targets, or the error rate
and, where there are probabilities, the log-loss (clipped at 1e-7).  Data sets and splits are in
``kernel_data.py``, methods and their settings in ``kernel_peers.py``.

Every run has a process of its own with the same number of threads.  The process first makes an
untimed fit of the same setting on a few hundred made-up rows (3,000 for hilboost), which takes
imports and compilation out of the times.  The fit includes scaling, tuning and whatever else the
method does with the training rows; the prediction is one call for all test rows.  A run over
``--limit-s`` (fit and prediction together) is ended and recorded as such.  Peak memory is the
largest resident memory of the process during fit and prediction.  Methods take turns, and repeats
go round all of them; a setting that took over a minute or failed is run once.  Repeats belong to
the first of the splits, the others are run once.

Run::

    python benchmarks/kernels.py                                    # everything, split 0
    python benchmarks/kernels.py --list                             # sets, methods, settings
    python benchmarks/kernels.py --sets kin40k --methods hilboost,lightgbm:2000x63
    python benchmarks/kernels.py --sets kin40k --masks 0-9 --methods hilboost:default --reuse
    python benchmarks/kernels.py --methods hilboost --reuse         # ours anew, keep the peers
    python benchmarks/kernels.py --resume                           # go on after a break
    python benchmarks/kernels.py --render                           # Markdown and figures anew
    python benchmarks/kernels.py --quick                            # smoke test

The JSON is written after every run.  A file that is there already is touched with ``--reuse`` or
``--resume`` only.  ``--quick`` and ``--rows`` write to a temporary folder, or to ``--out``.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _common import (
    RESULTS,
    comma_list,
    describe_error,
    environment,
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    timed,
    version_of,
    write_json,
)
from kernel_data import REGRESSION, SETS, Rows
from kernel_peers import METHODS, Setting
from kernel_report import Record, loss, save, total_s
from kernel_tuning import Fitted

REPEAT_UP_TO_S = 60.0
SET_UP_LIMIT_S = 600.0
CURVE_POINTS = 40
PROBABILITY_FLOOR = 1e-7
QUICK_ROWS = 600
QUICK_SETS = ("kin8nm", "letter")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

# One run, in a process of its own


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


# All runs


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


def key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("set", "split", "method", "setting", "repeat"))


def plan(options: argparse.Namespace) -> Iterator[Record]:
    """What is asked for, in the order of the runs."""
    for name in options.sets:
        rows = min(options.rows or sys.maxsize, len(SETS[name].load(0)[0]))
        splits = [split for split in options.masks if split < SETS[name].splits]
        for split in splits:
            for repeat in range(options.repeats if split == splits[0] else 1):
                for method, setting in options.methods:
                    found = find_setting(method, setting)
                    if SETS[name].task in found.tasks and rows > found.more_rows_than:
                        yield {
                            "set": name,
                            "split": split,
                            "method": method,
                            "setting": setting,
                            "repeat": repeat,
                            "seed": repeat,
                            "threads": options.threads,
                            "limit_s": options.limit_s,
                            "rows": options.rows,
                        }


def worth_repeating(spec: Record, done: dict[tuple[Any, ...], Record]) -> bool:
    if spec["repeat"] == 0:
        return True
    first = done.get(key({**spec, "repeat": 0}))
    return bool(first) and "failure" not in first and total_s(first) <= REPEAT_UP_TO_S


def report_progress(record: Record) -> None:
    if failure := record.get("failure"):
        result = failure
    else:
        result = (
            f"{loss(record):.5f}  fit {record['fit_s']:.2f} s  predict {record['predict_s']:.2f} s"
            f"  {record['peak_mib']:.0f} MiB"
        )
    name = f"{record['method']}: {record['setting']}"
    print(f"{record['set']} {record['split']}/{record['repeat']}  {name:44} {result}", flush=True)


def run(options: argparse.Namespace, results: Record) -> None:
    records: list[Record] = results["records"]
    done = {key(record): record for record in records}
    facts = results["environment"]
    for spec in plan(options):
        old = done.get(key(spec))
        if old is not None:
            if "failure" not in old or old["limit_s"] >= spec["limit_s"]:
                continue
            records.remove(old)
        if not worth_repeating(spec, done):
            continue
        record = {
            **spec,
            "split_note": SETS[spec["set"]].split_note,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(facts),
            "commit": facts["commit"],
            "load_average": round(os.getloadavg()[0], 2),
            **run_apart(spec),
        }
        records.append(record)
        done[key(record)] = record
        report_progress(record)
        write_json(options.out / "kernels.json", results)


def machine(facts: Record) -> str:
    return f"{facts['cpu']}, {facts['logical_cpus']} logical CPUs, {facts['memory_gb']} GB"


# Command line


def masks(text: str) -> list[int]:
    if text == "all":
        return list(range(10))
    found: list[int] = []
    for part in comma_list(text):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def settings_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """``method`` or ``method:setting`` as pairs; raises on unknown names."""
    pairs = []
    for name in names:
        method, _, wanted = name.partition(":")
        if method not in METHODS:
            raise ValueError(f"unknown method: {method}")
        found = [s.name for s in METHODS[method].settings if wanted in ("", s.name)]
        if not found:
            raise ValueError(f"unknown setting of {method}: {wanted}")
        pairs.extend((method, setting) for setting in found)
    return pairs


def show_list() -> None:
    for name, found in SETS.items():
        print(f"{name:20} {found.task}, {found.splits} x {found.split_note}")
    for name, method in METHODS.items():
        print(f"\n{name}: {method.title} ({', '.join(method.modules)})")
        for setting in method.settings:
            only = "" if len(setting.tasks) == 2 else f"  [{setting.tasks[0]}]"
            print(f"    {setting.name}{only}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=comma_list, default=list(SETS), help=",".join(SETS))
    parser.add_argument(
        "--methods",
        type=comma_list,
        default=list(METHODS),
        help="method or method:setting, " + ",".join(METHODS),
    )
    parser.add_argument("--masks", type=masks, default=[0], help="splits: 0, 0-9, 0,3 or all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, help="at most so many training rows")
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--reuse", action="store_true", help="keep records of what is not asked for"
    )
    parser.add_argument(
        "--resume", action="store_true", help="keep all records, run what is missing"
    )
    parser.add_argument("--quick", action="store_true", help="smoke test on few rows")
    parser.add_argument("--render", action="store_true", help="only Markdown and figures again")
    parser.add_argument("--list", action="store_true", help="list sets, methods and settings")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    try:
        options.methods = settings_of(options.methods)
    except ValueError as error:
        parser.error(str(error))
    if options.quick:
        options.repeats, options.limit_s = 1, min(options.limit_s, 20.0)
        options.rows = options.rows or QUICK_ROWS
        if set(options.sets) == set(SETS):
            options.sets = list(QUICK_SETS)
    if options.out is None:
        named = Path(tempfile.gettempdir()) / "hilboost-kernels" if options.rows else RESULTS
        options.out = named
    return options


def kept(options: argparse.Namespace, path: Path) -> list[Record]:
    """Records of an earlier file that stay."""
    if not path.exists():
        return []
    if not (options.reuse or options.resume):
        if options.quick:
            return []
        raise SystemExit(f"{path} exists: --reuse, --resume, another --out, or remove it first")
    records = json.loads(path.read_text())["records"]
    for name in ("threads", "rows"):
        if any(record[name] != getattr(options, name) for record in records):
            raise SystemExit(f"{path} is of runs with other --{name}; name another folder by --out")
    if options.resume:
        return records
    asked = {key(spec)[:-1] for spec in plan(options)}
    return [record for record in records if key(record)[:-1] not in asked]


def main() -> None:
    options = arguments()
    path = options.out / "kernels.json"
    if options.child:
        child(json.loads(options.child))
        return
    if options.list:
        show_list()
        return
    if options.render:
        save(options.out, json.loads(path.read_text()))
        return
    needed = {module for method, _ in options.methods for module in METHODS[method].modules}
    missing = {module for module in needed if importlib.util.find_spec(module) is None}
    if missing:
        print(f"not installed, methods left out: {', '.join(sorted(missing))}", flush=True)
    options.methods = [
        pair for pair in options.methods if not missing & set(METHODS[pair[0]].modules)
    ]
    started = time.perf_counter()
    results = {"environment": environment(options.threads), "records": kept(options, path)}
    try:
        run(options, results)
    finally:
        save(options.out, results)
    print(f"{time.perf_counter() - started:.0f} s; written: {path}, kernels.md, kernels_*.png")


if __name__ == "__main__":
    main()

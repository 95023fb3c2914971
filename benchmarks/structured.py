"""Boosting with a kernel on the outputs: published tables, structured outputs, speed.

============  ====================================================================================
group         content
============  ====================================================================================
friedman      G2007, Table 1: Friedman1, 10 samples of 300 rows, one test sample of 1,000
usps          G2007, Table 1: 1,000 digits, upper half to lower half, 5 folds of 200 to learn
figure1       G2007, Figure 1: errors against the number of stages
usps_full     all digits, 7,291 to learn and 2,007 to test
faces         Olivetti faces, upper to lower half, 8 groups of five people not learned from
labels        label sets, published splits: samples-F1 by way of decoding
rankings      label ranking, 10-fold cross-validation with three seeds: Kendall's tau
links         targets of new drugs, drugs of new targets, new proteins: areas under the curves
multi_target  Mulan's regression sets: relative root mean squared error
speed         seconds of a fit, CPU seconds of a stage, growth with rows and outputs
============  ====================================================================================

``g2007`` stands for the first three.  G2007 is Geurts, Wehenkel and d'Alché-Buc, *Gradient boosting
for kernelized output spaces*, ICML 2007; its 1,000 images are not named, so there are two choices
here, of the training file and of the test file of USPS.  Its enzyme network is not to be had.

Run::

    python benchmarks/structured.py                                 # everything
    python benchmarks/structured.py --list                          # sets, methods, expected time
    python benchmarks/structured.py --groups friedman,usps --resume
    python benchmarks/structured.py --groups labels --sets bibtex --methods kernel
    python benchmarks/structured.py --groups rankings,faces --splits 0
    python benchmarks/structured.py --groups speed --reuse          # these runs anew
    python benchmarks/structured.py --resume --budget-s 600         # start no run after 10 minutes
    python benchmarks/structured.py --render                        # Markdown and figure anew
    python benchmarks/structured.py --quick                         # smoke test

Runs are in one process, after untimed small fits that compile; all have the same number of threads.
The JSON is written after every run; a file that is there already is touched with ``--reuse`` or
``--resume`` only.  ``--sets`` and ``--methods`` take parts of names.  ``--quick`` writes to a
temporary folder, or to ``--out``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

# Waiting OpenMP threads sleep: their spinning would count as work, above all on a shared machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
from threadpoolctl import threadpool_limits

import structured_images as images
import structured_links as links
import structured_tables as tables
from _common import (
    RESULTS,
    comma_list,
    describe_error,
    environment,
    median,
    timed,
    write_json,
)
from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput
from structured_images import Plan, Scores
from structured_report import save

Record = dict[str, Any]

# Speed

REPEATS = 3
FIT_METHODS: dict[str, dict[str, Any]] = {
    "OK3-et": {"learner": "extra_trees"},
    "OK3, sketch 16": {"learner": "ok3", "sketch": 16},
}
STAGE_METHODS: dict[str, tuple[dict[str, Any], int, int]] = {
    "OK3-et": ({"learner": "extra_trees"}, 5, 55),
    "OK3, sketch 16": ({"learner": "ok3", "sketch": 16}, 5, 25),
    "OK3": ({"learner": "ok3"}, 2, 8),
    "XGBoost, depth 6": ({"max_depth": 6}, 2, 6),
    "XGBoost, 21 leaves": ({"max_depth": 0, "max_leaves": 21, "grow_policy": "lossguide"}, 2, 6),
}
"""Parameters, and two numbers of stages whose difference is timed."""
ROWS, OUTPUTS = (6_250, 12_500, 25_000, 50_000, 100_000), (8, 16, 32, 64)
ROWS_AT_OUTPUTS, OUTPUTS_AT_ROWS = 25_000, 64
COLUMNS = 32
MAX_SPLITS = 20


def speed_plan(quick: bool) -> Plan:
    repeats = 1 if quick else REPEATS
    for repeat in range(repeats):
        for method in FIT_METHODS:
            yield "1,000 images", method, repeat, 12.0
    for repeat in range(repeats):
        for method in STAGE_METHODS:
            yield "7,291 x 128 to 128", method, repeat, 25.0
    for repeat in range(repeats):
        for rows in ROWS[:2] if quick else ROWS:
            for method in FIT_METHODS:
                yield f"{rows} rows x {OUTPUTS_AT_ROWS}", method, repeat, 2 + rows / 6_000
        for outputs in OUTPUTS[:2] if quick else OUTPUTS[:-1]:
            for method in FIT_METHODS:
                yield f"{ROWS_AT_OUTPUTS} rows x {outputs}", method, repeat, 3.0


def speed_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    digits = images.arrays("usps")["X_train"]
    if name == "1,000 images":
        return images_speed(digits, FIT_METHODS[method], quick, threads)
    if name == "7,291 x 128 to 128":
        params, short, long = STAGE_METHODS[method]
        X, Y = images.halves(digits[:300] if quick else digits)
    else:
        params, short, long = FIT_METHODS[method], 3, 13
        rows, outputs = (int(part) for part in name.split(" rows x "))
        X, Y = smooth_rows(rows, outputs)

    def fit(stages: int) -> Any:
        if method.startswith("XGBoost"):
            return xgboost_fit(X, Y, stages, params, threads)
        model = OutputKernelBoostingRegressor(
            n_estimators=stages, max_splits=MAX_SPLITS, random_state=0, n_jobs=threads, **params
        )
        return model.fit(X, Y)

    return seconds_a_stage(fit, short, long)


def images_speed(digits: np.ndarray, params: Record, quick: bool, threads: int) -> Scores:
    """A fit to 1,000 images of a half, and the pre-images of 1,000 others."""
    X, Y = images.halves(digits[:100] if quick else digits[:1_000])
    X_test, _ = images.halves(digits[1_000:1_100] if quick else digits[1_000:2_000])
    output = KernelOutput(Gaussian(images.SIGMA))
    model = OutputKernelBoostingRegressor(
        output,
        n_estimators=images.QUICK_STAGES if quick else images.STAGES,
        max_splits=MAX_SPLITS,
        random_state=0,
        n_jobs=threads,
        **params,
    )
    factor_s, _ = timed(lambda: output.fit(Y))
    fit_s, _ = timed(lambda: model.fit(X, Y))
    seconds = {
        f"{way}_s": timed(lambda way=way: model.set_params(decode=way).predict(X_test))[0]
        for way in ("nearest", "continuous")
    }
    rank = model.predict_embedding(X_test[:1]).shape[1]
    return {"fit_s": fit_s, "factor_s": factor_s, **seconds, "rank": rank}


def smooth_rows(rows: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS))
    hidden = np.tanh(X @ rng.standard_normal((COLUMNS, 16)) / np.sqrt(COLUMNS))
    return X, hidden @ rng.standard_normal((16, outputs)) + 0.1 * rng.standard_normal(
        (rows, outputs)
    )


def xgboost_fit(X: np.ndarray, Y: np.ndarray, rounds: int, params: Record, threads: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=rounds,
        learning_rate=0.02,
        multi_strategy="multi_output_tree",
        tree_method="hist",
        n_jobs=threads,
        **params,
    ).fit(X, Y)


def seconds_a_stage(fit: Callable[[int], Any], short: int, long: int) -> Scores:
    """What one more stage costs; binning and other preparations are not in it."""
    spent = []
    for stages in (short, long):
        cpu = time.process_time()
        wall, _ = timed(lambda stages=stages: fit(stages))
        spent.append((wall, time.process_time() - cpu))
    wall_s, cpu_s = (np.subtract(*spent[::-1]) / (long - short)).tolist()
    return {"stage_s": wall_s, "stage_cpu_s": cpu_s, "fit_s": spent[0][0] + spent[1][0]}


# Groups


class Group(NamedTuple):
    """``plan`` lists runs and their seconds, ``run`` makes one."""

    plan: Callable[[bool], Plan]
    run: Callable[[str, str, int, bool, int], Scores]


GROUPS = {
    "friedman": Group(images.friedman_plan, images.friedman_run),
    "usps": Group(images.usps_plan, images.usps_run),
    "figure1": Group(images.figure_plan, images.figure_run),
    "usps_full": Group(images.usps_full_plan, images.usps_full_run),
    "faces": Group(images.faces_plan, images.faces_run),
    "labels": Group(tables.labels_plan, tables.labels_run),
    "rankings": Group(tables.rankings_plan, tables.rankings_run),
    "links": Group(links.links_plan, links.links_run),
    "multi_target": Group(tables.targets_plan, tables.targets_run),
    "speed": Group(speed_plan, speed_run),
}
ALIASES = {"g2007": ("friedman", "usps", "figure1")}
KEY = ("group", "set", "method", "split")


def key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in KEY)


def plan(options: argparse.Namespace) -> list[Record]:
    """What is asked for, in the order of the runs."""
    found = []
    for group in options.groups:
        for name, method, split, seconds in GROUPS[group].plan(options.quick):
            wanted = not options.methods or any(part in method for part in options.methods)
            wanted &= options.splits is None or split in options.splits
            wanted &= not options.sets or any(part in name for part in options.sets)
            if wanted:
                spec = dict(zip(KEY, (group, name, method, split), strict=True))
                found.append({**spec, "expected_s": seconds})
    return found


def expected(specs: Iterable[Record], records: Iterable[Record], quick: bool) -> dict[str, float]:
    """Seconds of every group: as earlier runs of the same kind took, or else a guess."""
    known: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        if "seconds" in record and not quick:
            known.setdefault(key(record)[:3], []).append(record["seconds"])
    total: dict[str, float] = {}
    for spec in specs:
        seconds = median(known.get(key(spec)[:3], [])) or spec["expected_s"]
        total[spec["group"]] = total.get(spec["group"], 0.0) + seconds
    return total


def warm_up(threads: int) -> None:
    """Compile and load what the timed runs need."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 70)), rng.standard_normal((300, 70))
    for learner in ("ok3", "extra_trees", "kernel"):
        model = OutputKernelBoostingRegressor(learner=learner, n_estimators=3, n_jobs=threads)
        model.fit(X, Y).predict(X)
    OutputKernelForestRegressor(n_estimators=3, n_jobs=threads).fit(X, Y).predict(X)


def run(options: argparse.Namespace, results: Record) -> None:
    records: list[Record] = results["records"]
    done = {key(record) for record in records if "failure" not in record}
    specs = [spec for spec in plan(options) if key(spec) not in done]
    asked = {key(spec) for spec in specs}
    records[:] = [record for record in records if key(record) not in asked]
    for group, seconds in expected(specs, records, options.quick).items():
        print(f"{group}: expected {seconds:,.0f} s", flush=True)
    began = time.perf_counter()
    with threadpool_limits(options.threads):
        warm_up(options.threads)
        for spec in specs:
            if options.budget_s and time.perf_counter() - began > options.budget_s:
                print("time is up; go on with --resume", flush=True)
                break
            records.append(one_run(spec, options, results["environment"]))
            write_json(options.out / "structured.json", results)


def one_run(spec: Record, options: argparse.Namespace, facts: Record) -> Record:
    record = {
        **{name: spec[name] for name in KEY},
        "threads": options.threads,
        "quick": options.quick,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{facts['cpu']}, {facts['logical_cpus']} logical CPUs, {facts['memory_gb']} GB",
        "versions": facts["versions"],
        "commit": facts["commit"],
        "load_average": round(os.getloadavg()[0], 2),
    }
    gc.collect()
    arguments = (spec["set"], spec["method"], spec["split"], options.quick, options.threads)
    try:
        seconds, scores = timed(lambda: GROUPS[spec["group"]].run(*arguments))
        record |= {"seconds": seconds, **scores}
    except Exception as error:
        record["failure"] = describe_error(error)
    name = f"{spec['group']}  {spec['set']} {spec['split']}  {spec['method']:40}"
    shown = ("err_phi", "err_y", "rmse", "f1_f1", "tau", "auroc", "arrmse", "stage_cpu_s")
    result = "  ".join(f"{score} {record[score]:.4f}" for score in shown if score in record)
    print(name, record.get("failure") or f"{result}  {record['seconds']:.1f} s", flush=True)
    return record


# Command line


def show_list(options: argparse.Namespace, records: list[Record]) -> None:
    specs = plan(options)
    for group, seconds in expected(specs, records, options.quick).items():
        own = [spec for spec in specs if spec["group"] == group]
        print(f"\n{group}: {len(own)} runs, expected {seconds:,.0f} s")
        print("    sets: " + "; ".join(dict.fromkeys(spec["set"] for spec in own)))
        print("    methods: " + "; ".join(dict.fromkeys(spec["method"] for spec in own)))


def whole_numbers(text: str) -> list[int]:
    return [int(part) for part in comma_list(text)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--groups", type=comma_list, default=list(GROUPS), help=",".join([*ALIASES, *GROUPS])
    )
    parser.add_argument("--sets", type=comma_list, help="only with one of these in the name")
    parser.add_argument("--methods", type=comma_list, help="only with one of these in the name")
    parser.add_argument("--splits", type=whole_numbers, help="only these: 0,1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget-s", type=float, help="start no run after so many seconds")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reuse", action="store_true", help="keep what is not asked for")
    parser.add_argument("--resume", action="store_true", help="keep all, run what is missing")
    parser.add_argument("--quick", action="store_true", help="smoke test on few rows and stages")
    parser.add_argument("--render", action="store_true", help="only Markdown and figure again")
    parser.add_argument("--list", action="store_true", help="list runs and the time they need")
    options = parser.parse_args()
    groups = [name for given in options.groups for name in ALIASES.get(given, (given,))]
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    options.groups = list(dict.fromkeys(groups))
    if options.out is None:
        temporary = Path(tempfile.gettempdir()) / "hilboost-structured"
        options.out = temporary if options.quick else RESULTS
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
    if any(record["quick"] != options.quick for record in records):
        raise SystemExit(f"{path} is of runs with other --quick; name another folder by --out")
    if options.resume:
        return records
    asked = {key(spec) for spec in plan(options)}
    return [record for record in records if key(record) not in asked]


def main() -> None:
    options = arguments()
    path = options.out / "structured.json"
    if options.list:
        show_list(options, json.loads(path.read_text())["records"] if path.exists() else [])
        return
    if options.render:
        save(options.out, json.loads(path.read_text()))
        return
    started = time.perf_counter()
    facts = environment(options.threads)
    results = {"environment": facts, "records": kept(options, path)}
    try:
        run(options, results)
    finally:
        save(options.out, results)
    print(f"{time.perf_counter() - started:.0f} s; written: {path}, structured.md")


if __name__ == "__main__":
    main()

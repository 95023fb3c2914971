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

G2007 is Geurts, Wehenkel and d'Alché-Buc, *Gradient boosting
for kernelized output spaces*, ICML 2007; its 1,000 images are not named, so there are two choices
here, of the training file and of the test file of USPS.  Its enzyme network is not to be had.

Run ``python benchmarks/structured.py``, or with ``--only rankings,iris``; ``--quick`` takes few
rows and stages.  Runs are in one process, after untimed small fits that compile; all have the same
number of threads.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

# Waiting OpenMP threads sleep: their spinning would count as work, above all on a shared machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
from threadpoolctl import threadpool_limits

import structured_images as images
import structured_links as links
import structured_tables as tables
from _common import Record, arrays, circumstances, describe_error, study, timed
from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput
from structured_images import Plan, Scores
from structured_report import page

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
MAX_SPLITS, THREADS = 20, 2


def speed_plan() -> Plan:
    sizes = [f"{rows} rows x {OUTPUTS_AT_ROWS}" for rows in ROWS]
    sizes += [f"{ROWS_AT_OUTPUTS} rows x {outputs}" for outputs in OUTPUTS[:-1]]
    for repeat in range(REPEATS):
        for method in STAGE_METHODS:
            yield "7,291 x 128 to 128", method, repeat
        for name in ("1,000 images", *sizes):
            for method in FIT_METHODS:
                yield name, method, repeat


def speed_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    digits = arrays("usps")["X_train"]
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
            size = {"n_estimators": stages, "learning_rate": 0.02, **params}
            return tables.xgboost_regressor(0, threads, False, **size).fit(X, Y)
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


def seconds_a_stage(fit: Callable[[int], Any], short: int, long: int) -> Scores:
    """What one more stage costs; binning and other preparations are not in it."""
    spent = []
    for stages in (short, long):
        cpu = time.process_time()
        wall, _ = timed(lambda stages=stages: fit(stages))
        spent.append((wall, time.process_time() - cpu))
    wall_s, cpu_s = (np.subtract(*spent[::-1]) / (long - short)).tolist()
    return {"stage_s": wall_s, "stage_cpu_s": cpu_s, "fit_s": spent[0][0] + spent[1][0]}


class Group(NamedTuple):
    """``plan`` lists sets, methods and splits; ``run`` measures one of them."""

    plan: Callable[[], Plan]
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


@cache
def warm_up(threads: int) -> None:
    """Compile and load what the timed runs need."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 70)), rng.standard_normal((300, 70))
    for learner in ("ok3", "extra_trees", "kernel"):
        model = OutputKernelBoostingRegressor(learner=learner, n_estimators=3, n_jobs=threads)
        model.fit(X, Y).predict(X)
    OutputKernelForestRegressor(n_estimators=3, n_jobs=threads).fit(X, Y).predict(X)


def measure(quick: bool = False, **case: Any) -> Record:
    record = {"threads": THREADS, "quick": quick, **circumstances(THREADS)}
    arguments = (case["set"], case["method"], case["split"], quick, THREADS)
    with threadpool_limits(THREADS):
        warm_up(THREADS)
        gc.collect()
        try:
            seconds, scores = timed(lambda: GROUPS[case["group"]].run(*arguments))
            return record | {"seconds": seconds, **scores}
        except Exception as error:
            return record | {"failure": describe_error(error)}


def main() -> None:
    cases = [
        {"group": name, "set": of_set, "method": method, "split": split}
        for name, group in GROUPS.items()
        for of_set, method, split in group.plan()
    ]
    quick = partial(measure, quick=True)
    study("structured", cases, measure, page, about=__doc__, threads=THREADS, quick=quick)


if __name__ == "__main__":
    main()

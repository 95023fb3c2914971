r"""Time until tree boosting reaches a given loss on large tables, with samples of the rows.

The cases ``reg-31`` and ``binary-31`` of ``trees.py``: 1,000,000 x 28, 31 leaves, rate 0.1. The
target is LightGBM's held-out loss after 100 rounds on all rows. Every setting gets up to 115
rounds; a callback notes the time of each round, from the start of the fit, and the first round with
the target loss counts. Settings:

===================  ==============================================================================
setting              content
===================  ==============================================================================
hilboost-auto        ``n_shards="auto"``
hilboost-shards      ``n_shards=16`` in all stages
hilboost             all rows
lightgbm             all rows
lightgbm-bagging     a new tenth of the rows in every round
xgboost              all rows
===================  ==============================================================================

Run ``python benchmarks/large_tables.py``, or with ``--only reg-31``: 10,000,000 rows take 16 GB.
The settings of a repeat take turns, and each first makes one untimed small fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import trees
from _common import Record, by, markdown_table, median, study

ROUNDS = 115
ROUNDS_OF_TARGET = 100
WARM_UP_ROWS = 20_000
"""Enough for two threads, which grow trees by other compiled code than one thread."""


MODELS: dict[str, Record] = {
    "hilboost-auto": {"n_shards": "auto"},
    "hilboost-shards": {"n_shards": 16},
    "hilboost": {},
    "lightgbm": {},
    "lightgbm-bagging": {"subsample": 0.1, "subsample_freq": 1},
    "xgboost": {},
}
"""Settings besides those of ``trees.py``."""
AT_TEN_MILLION = ("lightgbm", "lightgbm-bagging", "hilboost-auto")
WARM_UPS = {"hilboost-auto": "hilboost-shards"}
"""Settings that make the untimed fit of others: a small table has no automatic shards."""


def timed_fit(setting: str, case: trees.Case, data: trees.Data) -> tuple[Any, list[float]]:
    """Fit, and note the seconds from the start to the end of each round."""
    package = trees.package_of(setting)
    model, stamps = trees.model_of(package, case, **MODELS[setting]), []

    def note(*_: Any) -> None:
        stamps.append(time.perf_counter())

    start = time.perf_counter()
    if package == "xgboost":
        import xgboost

        class Note(xgboost.callback.TrainingCallback):
            def after_iteration(self, *_: Any) -> bool:
                note()
                return False

        model.set_params(callbacks=[Note()]).fit(data.X, data.y)
    else:
        model.fit(data.X, data.y, callbacks=[note])
    return model, [stamp - start for stamp in stamps]


def loss_after(setting: str, model: Any, case: trees.Case, data: trees.Data, n: int) -> float:
    """Held-out loss of the first ``n`` rounds."""
    X, y, package = data.X_test, data.y_test, trees.package_of(setting)
    if package == "hilboost":
        part = type(model.model_)(model.model_.initial_raw, model.model_.stages[:n])
        predicted = model.loss_.inverse_link(part.predict_raw(X))
    else:
        last = {"num_iteration": n} if package == "lightgbm" else {"iteration_range": (0, n)}
        predict = model.predict if case.task == "regression" else model.predict_proba
        predicted = predict(X, **last)
    if case.task == "regression":
        return float(np.mean((y - np.ravel(predicted)) ** 2))
    predicted = np.asarray(predicted, dtype=np.float64)
    return float(log_loss(y, predicted[:, -1]))


def first_round(loss: Callable[[int], float], target: float) -> int | None:
    """First round with the target loss, by bisection: losses decrease in this range."""
    low, high = 1, ROUNDS
    if loss(high) > target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if loss(middle) <= target else (middle + 1, high)
    return high


def measure(case: str, rows: int, repeat: int, quick: bool = False) -> Record:
    """One fit of every setting, LightGBM first."""
    whole = replace(trees.CASES[case], rows=10_000 if quick else rows, rounds=ROUNDS)
    data = trees.data_of(whole)
    small = trees.Data(*(part[:WARM_UP_ROWS] for part in data))
    short = replace(whole, rounds=trees.WARM_UP_ROUNDS)
    fits, target = [], float("nan")
    settings = MODELS if rows == trees.CASES[case].rows else AT_TEN_MILLION
    with threadpool_limits(trees.THREADS):
        for setting in sorted(settings, key=lambda name: name != "lightgbm"):
            timed_fit(WARM_UPS.get(setting, setting), short, small)
            model, seconds = timed_fit(setting, whole, data)
            loss = partial(loss_after, setting, model, whole, data)
            equal = loss(ROUNDS_OF_TARGET)
            target = equal if setting == "lightgbm" else target
            needed = first_round(loss, target)
            fit = {
                "setting": setting,
                "loss": equal,
                "seconds": seconds[ROUNDS_OF_TARGET - 1],
                "rounds_to_target": needed,
                "seconds_to_target": None if needed is None else seconds[needed - 1],
            }
            if setting == "hilboost-auto":
                fit["shards_at_end"] = model.fitted_.resolved.n_shards
            fits.append(fit)
    return {"fits": fits}


def _row(runs: list[Record], base_seconds: float) -> list[Any]:
    """Cells of one setting, from its fits in all repeats."""
    times = [r["seconds_to_target"] for r in runs if r["seconds_to_target"] is not None]
    return [
        runs[0]["setting"],
        median(r["seconds"] for r in runs),
        runs[0]["loss"],
        runs[0]["rounds_to_target"],
        median(times),
        trees.spread(times) if times else None,
        median(times) / base_seconds if len(times) == len(runs) else None,
    ]


def _section(title: str, repeats: list[Record]) -> str:
    settings = by((fit for repeat in repeats for fit in repeat["fits"]), "setting")
    base_seconds = median(r["seconds"] for r in settings["lightgbm"])
    rows = [_row(runs, base_seconds) for runs in settings.values()]
    rows.sort(key=lambda row: row[4] or 1e9)
    header = ["setting", "100 rounds s", "loss", "rounds to target", "s to target", "range"]
    times = "1 repeat" if len(repeats) == 1 else f"{len(repeats)} repeats"
    table = markdown_table([*header, "ratio to LightGBM"], rows)
    return f"## {title}: {repeats[0]['rows']:,} x 28, 31 leaves, {times}\n\n{table}"


def page(records: list[Record], facts: str) -> str:
    parts = [
        f"# Time to a given loss on large tables\n\n{facts}",
        "The target is LightGBM's held-out loss after 100 rounds on all rows (mean squared error, "
        "or log loss). Each setting gets up to 115 rounds; a dash means that it does not reach the "
        "target. Times are medians, from the start of the fit, which includes binning. The last "
        "column divides by LightGBM's time for 100 rounds on all rows.",
    ]
    groups: dict[str, list[Record]] = {}
    for record in records:
        large = record["rows"] > trees.CASES[record["case"]].rows
        title = record["case"] + (f", {record['rows']:,} rows" if large else "")
        groups.setdefault(title, []).append(record)
    return "\n\n".join([*parts, *(_section(*group) for group in groups.items())])


def all_cases() -> Iterable[Record]:
    for rows, repeats in ((10_000_000, 1), (1_000_000, 3)):
        for case in ("reg-31", "binary-31"):
            for repeat in range(repeats):
                yield {"case": case, "rows": rows, "repeat": repeat}


if __name__ == "__main__":
    few = partial(measure, quick=True)
    study("large_tables", all_cases(), measure, page, about=__doc__, threads=2, quick=few)

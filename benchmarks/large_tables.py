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

Run::

    python benchmarks/large_tables.py --case reg-31       # one more repeat of this case
    python benchmarks/large_tables.py --case reg-31 --rows 10000000 --settings \
        lightgbm,lightgbm-bagging,hilboost-auto           # ten times the rows
    python benchmarks/large_tables.py --render            # Markdown from the JSON

Each run adds one repeat to the results, in which the settings take turns, and each setting first
makes one untimed small fit.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import trees
from _common import (
    RESULTS,
    comma_list,
    environment,
    environment_markdown,
    markdown_table,
    median,
    publish,
)

NAME = "large_tables"
ROUNDS = 115
ROUNDS_OF_TARGET = 100
WARM_UP_ROWS = 20_000
"""Enough for two threads, which grow trees by other compiled code than one thread."""


def lightgbm_model(case: trees.Case, **sampling: Any) -> Any:
    return trees.lightgbm_model(case, 2).set_params(**sampling)


MODELS: dict[str, Callable[[trees.Case], Any]] = {
    "hilboost-auto": lambda case: trees.hilboost_model(case, 2).set_params(n_shards="auto"),
    "hilboost-shards": lambda case: trees.hilboost_model(case, 2).set_params(n_shards=16),
    "hilboost": lambda case: trees.hilboost_model(case, 2),
    "lightgbm": lightgbm_model,
    "lightgbm-bagging": lambda case: lightgbm_model(case, subsample=0.1, subsample_freq=1),
    "xgboost": lambda case: trees.xgboost_model(case, 2),
}
WARM_UPS = {"hilboost-auto": "hilboost-shards"}
"""Settings that make the untimed fit of others: a small table has no automatic shards."""


def timed_fit(setting: str, case: trees.Case, data: trees.Data) -> tuple[Any, list[float]]:
    """Fit, and note the seconds from the start to the end of each round."""
    model, stamps = MODELS[setting](case), []
    package = trees.package_of(setting)

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


def repeat_of(case: trees.Case, settings: Sequence[str]) -> list[dict[str, Any]]:
    """One fit of every setting, LightGBM first."""
    data = trees.data_of(case)
    small = trees.Data(*(part[:WARM_UP_ROWS] for part in data))
    short = replace(case, rounds=trees.WARM_UP_ROUNDS)
    records, target = [], float("nan")
    with threadpool_limits(2):
        for setting in sorted(settings, key=lambda name: name != "lightgbm"):
            timed_fit(WARM_UPS.get(setting, setting), short, small)
            model, seconds = timed_fit(setting, case, data)

            def loss(n: int, setting: str = setting, model: Any = model) -> float:
                return loss_after(setting, model, case, data, n)

            equal = loss(ROUNDS_OF_TARGET)
            target = equal if setting == "lightgbm" else target
            needed = first_round(loss, target)
            records.append(
                {
                    "setting": setting,
                    "rows": case.rows,
                    "loss": equal,
                    "seconds": seconds[ROUNDS_OF_TARGET - 1],
                    "rounds_to_target": needed,
                    "seconds_to_target": None if needed is None else seconds[needed - 1],
                }
            )
            if setting == "hilboost-auto":
                records[-1]["shards_at_end"] = model.fitted_.resolved.n_shards
            print(case.name, records[-1], flush=True)
    return records


def _row(setting: str, repeats: list[list[dict[str, Any]]]) -> list[Any]:
    own = [record for repeat in repeats for record in repeat if record["setting"] == setting]
    base = [r for repeat in repeats for r in repeat if r["setting"] == "lightgbm"]
    times = [r["seconds_to_target"] for r in own if r["seconds_to_target"] is not None]
    ratio = None
    if len(times) == len(own):
        ratio = median(times) / median([r["seconds"] for r in base])
    return [
        setting,
        median([r["seconds"] for r in own]),
        own[0]["loss"],
        own[0]["rounds_to_target"],
        median(times) if times else None,
        f"{min(times):.3g}-{max(times):.3g}" if times else None,
        ratio,
    ]


def settings_of(repeats: list[list[dict[str, Any]]]) -> list[str]:
    """Settings that every repeat has."""
    return [s for s in MODELS if all(any(r["setting"] == s for r in each) for each in repeats)]


def render(results: dict[str, Any]) -> str:
    parts = [
        "# Time to a given loss on large tables",
        environment_markdown(results["environment"]),
        "The target is LightGBM's held-out loss after 100 rounds on all rows (mean squared error, "
        "or log loss). Each setting gets up to 115 rounds; a dash means that it does not reach the "
        "target. Times are medians, from the start of the fit, which includes binning. The last "
        "column divides by LightGBM's time for 100 rounds on all rows.",
    ]
    header = ["setting", "100 rounds s", "loss", "rounds to target", "s to target", "range"]
    header.append("ratio to LightGBM")
    for name, repeats in results["cases"].items():
        rows = [_row(setting, repeats) for setting in settings_of(repeats)]
        rows.sort(key=lambda row: row[4] or 1e9)
        times = "1 repeat" if len(repeats) == 1 else f"{len(repeats)} repeats"
        title = f"## {name}: {repeats[0][0]['rows']:,} x 28, 31 leaves, {times}"
        parts.append(f"{title}\n\n{markdown_table(header, rows)}")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=["reg-31", "binary-31"])
    parser.add_argument("--rows", type=int, help="training rows; kept as a case of its own")
    parser.add_argument("--settings", type=comma_list, default=list(MODELS))
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if "lightgbm" not in options.settings:
        parser.error("--settings requires lightgbm, whose loss is the target")
    path = RESULTS / f"{NAME}.json"
    results = {"environment": environment(2), "cases": {}}
    if path.exists():
        results = json.loads(path.read_text())
    if options.case:
        case = trees.CASES[options.case]
        name = case.name if options.rows is None else f"{case.name}, {options.rows:,} rows"
        known = results["cases"].get(name)
        if known and settings_of(known) != [s for s in MODELS if s in options.settings]:
            parser.error(f"the repeats of {name} have the settings {settings_of(known)}")
        case = replace(case, rows=options.rows or case.rows, rounds=ROUNDS)
        results["cases"].setdefault(name, []).append(repeat_of(case, options.settings))
    publish(path, results, render(results))


if __name__ == "__main__":
    main()

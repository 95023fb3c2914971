"""Calibration of ``predict(X, return_std=True)`` of output kernel models on held-out rows.

Run ``python benchmarks/output_scales.py``.  In each of three random splits, models are fitted to
1,000 rows and calibrated with 1,000 others.  On up to 4,000 other rows, the squared distance of a
label from its predicted point, divided by the squared scale, should have the mean 1: over all rows,
and over the fifths of the rows with the smallest and with the largest scales.  Beside it, the same
with one scale for all rows, the root mean squared distance of the calibration rows.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

from _common import RESULTS, environment, environment_markdown, markdown_table, write_json
from coverage_of_intervals import SETS, Split
from hilboost.outputs.distances import to_points

SPLITS = 3
SPACES = {"rankings": "ranking", "tags": "label_set", "images": "gaussian"}


def models(output: str, seed: int) -> dict[str, Any]:
    from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor

    return {
        "forest": OutputKernelForestRegressor(output, random_state=seed),
        "boosted trees": OutputKernelBoostingRegressor(
            output, learner="extra_trees", n_estimators=100, random_state=seed
        ),
        "kernel machine": OutputKernelBoostingRegressor(
            output, learner="kernel", random_state=seed
        ),
    }


def measured(model: Any, split: Split) -> dict[str, float]:
    model.fit(*split.fit).calibrate(*split.calibrate)
    X, y = split.test
    _, std = model.predict(X, return_std=True)
    square = to_points(model.output_, y, model.predict_embedding(X))
    known = model.fitted_.calibration.scores[:, 0] ** 2
    order = np.argsort(std, kind="stable")
    fifth = len(order) // 5

    def ratios(scale: np.ndarray) -> list[float]:
        found = square / scale
        return [float(found[rows].mean()) for rows in (order, order[:fifth], order[-fifth:])]

    names = ("all", "least", "most")
    own = dict(zip(names, ratios(std**2), strict=True))
    constant = ratios(np.full(len(square), known.mean()))
    return own | {f"{name}, one scale": r for name, r in zip(names, constant, strict=True)}


def main() -> None:
    """Measure the named data sets (default: all), write JSON and Markdown."""
    warnings.simplefilter("ignore")
    path = RESULTS / "output_scales.json"
    facts, records = environment(1), []
    if path.is_file():  # an interrupted run goes on
        content = json.loads(path.read_text())
        facts, records = content["environment"], content["records"]
    done = {(record["set"], record["model"], record["split"]) for record in records}
    for name in sys.argv[1:] or SPACES:
        title, read, *_ = SETS[name]
        X, y = read()
        for seed in range(SPLITS):
            split = Split.draw(X, y, seed)
            for kind, model in models(SPACES[name], seed).items():
                if (name, kind, seed) in done:
                    continue
                began = time.perf_counter()
                found = measured(model, split)
                record = {"set": name, "title": title, "model": kind, "split": seed} | found
                records.append(record | {"seconds": time.perf_counter() - began})
                print(records[-1], flush=True)
                write_json(path, {"environment": facts, "records": records})
    text = page(facts, records)
    path.with_suffix(".md").write_text(text)
    print(text)


def page(facts: dict[str, Any], records: list[dict[str, Any]]) -> str:
    columns = ("all", "least", "most", "least, one scale", "most, one scale")
    rows = []
    for title, kind in dict.fromkeys((r["title"], r["model"]) for r in records):
        found = [r for r in records if (r["title"], r["model"]) == (title, kind)]
        cells = [mean_and_sd([record[column] for record in found]) for column in columns]
        rows.append([title, kind, *cells, len(found)])
    header = [
        *("data", "model", "all rows", "least scales", "largest scales"),
        *("least, one scale", "largest, one scale", "splits"),
    ]
    return (
        f"# Scales of structured predictions\n\n{environment_markdown(facts)}\n\n"
        "Mean of the squared distance between label and predicted point, divided by the squared "
        "scale of `predict(X, return_std=True)`; 1 is calibrated. Mean ± standard deviation over "
        "random splits: 1,000 rows to fit, 1,000 to calibrate, up to 4,000 to test. “Least” and "
        "“largest” are the fifths of the test rows with the smallest and with the largest scales; "
        "“one scale” divides by the mean squared distance of the calibration rows.\n\n"
        f"{markdown_table(header, rows)}\n"
    )


def mean_and_sd(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread}"


if __name__ == "__main__":
    main()

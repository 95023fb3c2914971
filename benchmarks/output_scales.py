"""Calibration of ``predict(X, return_std=True)`` of output kernel models on held-out rows.

Run ``python benchmarks/output_scales.py``.  In each of three random splits, models are fitted to
1,000 rows and calibrated with 1,000 others.  On up to 4,000 other rows, the squared distance of a
label from its predicted point, divided by the squared scale, should have the mean 1: over all rows,
and over the fifths of the rows with the smallest and with the largest scales.  Beside it, the same
with one scale for all rows, the root mean squared distance of the calibration rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from _common import markdown_table, study, timed
from coverage_of_intervals import SETS, Split
from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.outputs.distances import to_points

SPLITS = 3
SPACES = {"rankings": "ranking", "tags": "label_set", "images": "gaussian"}
MODELS = {
    "forest": OutputKernelForestRegressor(),
    "boosted trees": OutputKernelBoostingRegressor(learner="extra_trees", n_estimators=100),
    "kernel machine": OutputKernelBoostingRegressor(learner="kernel"),
}


def measure(data: str, split: int, model: str) -> dict[str, Any]:
    rows = Split.draw(*SETS[data].read(), split)
    fitted = MODELS[model].set_params(output=SPACES[data], random_state=split)
    with warnings.catch_warnings(action="ignore"):
        seconds, _ = timed(lambda: fitted.fit(*rows.fit).calibrate(*rows.calibrate))
        return {"title": SETS[data].title, "seconds": seconds, **ratios_of(fitted, *rows.test)}


def ratios_of(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
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


def page(records: list[dict[str, Any]], facts: str) -> str:
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
        f"# Scales of structured predictions\n\n{facts}\n\n"
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


def main() -> None:
    cases = [
        {"data": data, "split": split, "model": model}
        for data in SPACES
        for split in range(SPLITS)
        for model in MODELS
    ]
    study("output_scales", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

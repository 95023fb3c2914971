"""Kernel machines on a GPU and on the processor: seconds, error, and how far predictions differ.

Run ``python benchmarks/devices.py`` on a machine with PyTorch and a GPU that PyTorch can use.  Each
case is fitted on both devices in turn, after one fit on the GPU that is not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from _common import markdown_table, median, study, timed
from kernel_data import SETS

REPEATS = 3
CASES = [
    {"data": data, "stages": stages, "rows": rows}
    for data, stages, rows in [
        ("kin40k", "full", 9_000),
        ("kin40k", "full", 36_000),
        ("kin40k", "sparse", 36_000),
        ("letter", "full", 16_000),
    ]
]


def measure(data: str, stages: str, rows: int) -> dict[str, Any]:
    """Fit and predict on both devices; the length scales are chosen once, on the processor."""
    import torch

    from hilboost import KernelBoostingClassifier, KernelBoostingRegressor

    train, test = SETS[data].load(0)
    train = train.sample(rows, 0)
    make = KernelBoostingRegressor if train.regression else KernelBoostingClassifier
    chosen = make(random_state=0).fit(train.X[:2000], train.y[:2000])
    settings = {"kernel": chosen.kernel_, "stages": stages, "random_state": 0}
    found: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    seconds: dict[str, list[float]] = {}
    outputs = {}
    for device in ["cuda", *["cpu", "cuda"] * REPEATS]:
        model = make(**settings, device=None if device == "cpu" else device)
        fit, _ = timed(lambda model=model: model.fit(train.X, train.y))
        predict, outputs[device] = timed(lambda model=model: model.predict(test.X))
        seconds.setdefault(device, []).append(fit)
        seconds.setdefault(device + " predict", []).append(predict)
        print(data, stages, device, round(fit, 2), round(predict, 3), flush=True)
        if len(seconds.get("cpu", [])) == 1 and device == "cuda" and seconds["cpu"][0] > 60:
            break
    for device in ("cpu", "cuda"):
        part = slice(1 if device == "cuda" else 0, None)  # the first fit starts the libraries
        found[f"{device}_fit_s"] = median(seconds[device][part])
        found[f"{device}_predict_s"] = median(seconds[device + " predict"][part])
        if train.regression:
            found[f"{device}_error"] = float(
                np.mean((outputs[device] - test.y) ** 2) / test.y.var()
            )
        else:
            found[f"{device}_error"] = float(np.mean(outputs[device] != test.y))
    return found


def page(records: list[dict[str, Any]], facts: str) -> str:
    header = ["data", "stages", "rows"]
    header += [f"{device}, {what}" for what in ("fit s", "predict s", "error") for device in "CG"]
    names = [f"{d}_{what}" for what in ("fit_s", "predict_s", "error") for d in ("cpu", "cuda")]
    rows = [[r["data"], r["stages"], r["rows"], *(r[name] for name in names)] for r in records]
    return (
        "# Kernel machines on a GPU\n\n"
        f"C: processor, all threads; G: {records[0]['device']}. Medians of {REPEATS} fits in turn "
        "(one where the processor takes more than a minute). Errors are the mean squared error "
        "over the variance of the target, or the error rate, on the test rows of split 0. The "
        "kernel is the automatic choice for 2,000 rows; λ is chosen in the fit.\n\n"
        f"{markdown_table(header, rows)}\n\n{facts}"
    )


if __name__ == "__main__":
    study("devices", CASES, measure, page, about=__doc__, threads=16)

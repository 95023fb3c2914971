"""The automatic learner against trees alone, on tables that it was developed on and on others.

``learner="auto"`` adds a kernel machine to the trees where held-out rows show a gain.  Its settings
were chosen on the tables of ``quality.py``, cut down to 2,500 training rows (1,000 for ``letter``
and ``scene``).  The other tables were listed before any of them was looked at, and are run once.

Each table is split once at random into training rows and at most 4,000 test rows, at least a
quarter of the table.  The error is the root mean squared error over the standard deviation of the
target, or the log-loss.  Seconds are those of the processor.

Run::

    python benchmarks/automatic.py               # everything
    python benchmarks/automatic.py --kept-back   # the other tables only
    python benchmarks/automatic.py --render      # Markdown anew
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.stats import gmean
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import tables
from _common import RESULTS, environment, environment_markdown, write_json
from hilboost import BoostingClassifier, BoostingRegressor
from tables import KEPT_BACK, Table

ROWS, FEW_ROWS = 2500, 1000
TEST_ROWS = 4000
SEED = 1
OUT = RESULTS / "automatic.json"


USED = {
    **dict.fromkeys(
        (
            *("abalone", "amazon_employee_access", "bank_marketing", "california_housing"),
            *("cpu_act", "credit_g", "diamonds", "emotions", "flights", "higgs", "house_16h"),
            *("kin8nm", "power_plant", "pumadyn32nm", "sarcos", "scpf", "sf2", "wq", "yeast"),
        ),
        ROWS,
    ),
    **dict.fromkeys(("letter", "scene"), FEW_ROWS),
}


def measure(table: Table, rows: int) -> dict[str, Any]:
    n = len(table.X)
    regression = table.task == "regression"
    learn, test = train_test_split(
        np.arange(n),
        test_size=max(0.25, 1 - rows / n),
        random_state=SEED,
        stratify=None if regression else table.y,
    )
    test = test[:TEST_ROWS]
    make = BoostingRegressor if regression else BoostingClassifier
    record: dict[str, Any] = {"rows": len(learn), "columns": table.X.shape[1], "task": table.task}
    for learner in ("tree", "auto"):
        began = time.process_time()
        model = make(learner=learner, random_state=0).fit(table.X[learn], table.y[learn])
        record[f"{learner}_seconds"] = time.process_time() - began
        if regression:
            residual = table.y[test] - model.predict(table.X[test])
            error = np.sqrt(np.mean(residual**2)) / np.std(table.y)
        else:
            chances = model.predict_proba(table.X[test])
            error = log_loss(table.y[test], chances, labels=model.classes_)
        record[learner] = float(error)
    part = model.parts_["kernel"]
    record |= {"gain": part.gain, "standard_error": part.standard_error, "weight": part.weight}
    return record


def warm_up() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    for y, task in ((X[:, 0], "regression"), (X[:, 0] > 0, "binary"), (X[:, 0] // 1 % 3, "multi")):
        measure(Table(X, y, task), 300)


def row(name: str, record: dict[str, Any]) -> str:
    kept = record["weight"] > 0
    return (
        f"| {name} | {record['rows']:,} x {record['columns']} | {record['tree']:.4f} "
        f"({record['tree_seconds']:.1f} s) | {record['auto']:.4f} ({record['auto_seconds']:.1f} s) "
        f"| {record['auto'] / record['tree']:.3f} | {100 * record['gain']:.1f} ± "
        f"{100 * record['standard_error']:.1f} % | {'yes' if kept else 'no'} |"
    )


def section(title: str, records: dict[str, Any]) -> list[str]:
    ratios = [record["auto"] / record["tree"] for record in records.values()]
    kept = sum(record["weight"] > 0 for record in records.values())
    seconds = [sum(r[f"{k}_seconds"] for r in records.values()) for k in ("auto", "tree")]
    return [
        f"## {title}",
        "",
        "| table | rows x columns | trees | automatic | ratio | held-out gain | kernel machine |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
        *(row(name, record) for name, record in records.items()),
        "",
        f"Geometric mean of the ratios: {gmean(ratios):.3f}; largest: {max(ratios):.3f}. A kernel "
        f"machine was added on {kept} of {len(records)} tables. Processor seconds: "
        f"{seconds[0]:.0f} instead of {seconds[1]:.0f}.",
        "",
    ]


def render(results: dict[str, Any]) -> None:
    lines = ["# The automatic learner", "", environment_markdown(results["environment"]), ""]
    lines += [
        "One split; at most 2,500 training rows. Error: RMSE over the standard deviation of the "
        "target, or log-loss; smaller is better. Ratio: automatic over trees.",
        "",
    ]
    for title, key in (("Tables that were not used", "kept_back"), ("Tables of choice", "used")):
        if results[key]:
            lines += section(title, results[key])
    OUT.with_suffix(".md").write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept-back", action="store_true")
    parser.add_argument("--used", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    empty: dict[str, Any] = {"used": {}, "kept_back": {}}
    results = json.loads(OUT.read_text()) if OUT.exists() else empty
    if not options.render:
        results["environment"] = environment(1)
        warm_up()
        both = options.kept_back == options.used
        jobs = [("kept_back", name, make, ROWS) for name, make in KEPT_BACK.items()]
        if both or options.used:
            used = [("used", name, tables.TABLES[name], rows) for name, rows in USED.items()]
            jobs = [*jobs, *used] if both else used
        for kind, name, make, rows in jobs:
            results[kind][name] = measure(make(), rows)
            print(row(name, results[kind][name]), flush=True)
            write_json(OUT, results)
    render(results)


if __name__ == "__main__":
    main()

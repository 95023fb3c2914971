"""Quality against time: hilboost at several time budgets, and every library at its defaults.

The tables are twelve of those of ``quality.py``, slow ones among them, with its first split and one
thread.  The rows of the other libraries are those of ``results/quality.json``; hilboost runs with
budgets of 1, 3, 10 and 30 s, and without one.  The picture and the report show the mean time of a
fit, and the geometric mean of the score relative to the best score of the table in the picture.
Of each fit with a budget, the report also tells the time by the clock: a busy machine fits less in
it.

Run ``python benchmarks/frontier.py``.
"""

from __future__ import annotations

import json
import time

import numpy as np
from scipy.stats import gmean

from _common import RESULTS, Record, markdown_table, study
from _fits import MODELS, chosen, score, split, table_of, warm_up
from quality import TINY

TABLES = (
    "kin40k",
    "house_16h",
    "california_housing",
    "cpu_act",
    "kin8nm",
    "power_plant",
    "enb",
    "bank_marketing",
    "higgs",
    "yeast",
    "digits",
    "scene_urban",
)
BUDGETS = (1.0, 3.0, 10.0, 30.0, None)
SPLIT = 0


def library_of(budget: float | None) -> str:
    return "hilboost" if budget is None else f"hilboost, {budget:g} s"


def measure(table: str, budget: float | None) -> Record:
    """Fit one table in a budget."""
    found = table_of(table)
    warm_up("hilboost", found.task)
    X, X_test, y, y_test = split(found, SPLIT)
    model = MODELS["hilboost"](found.task == "regression", SPLIT)
    model.set_params(time_budget=budget)
    began, processor = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, seconds = time.perf_counter() - began, time.process_time() - processor
    return {
        "library": library_of(budget),
        "seconds": seconds,
        "clock_seconds": wall,
        "score": score(model, found, X_test, y_test),
        "chosen": chosen(model),
    }


def peers() -> list[Record]:
    """The records of the other libraries on these tables and this split."""
    found = json.loads((RESULTS / "quality.json").read_text())
    return [
        {name: record[name] for name in ("table", "library", "seconds", "score")}
        for record in found["records"]
        if record["table"] in TABLES
        and record["seed"] == SPLIT
        and record["library"] in MODELS
        and not record["library"].startswith("hilboost")
        and "score" in record
    ]


def summarize(records: list[Record]) -> Record:
    """Mean seconds and geometric mean of score over best, over the tables that all have."""
    names = [library_of(budget) for budget in BUDGETS]
    libraries = list(dict.fromkeys([*names, *(record["library"] for record in records)]))
    by_table: dict[str, dict[str, Record]] = {}
    for record in records:
        by_table.setdefault(record["table"], {})[record["library"]] = record
    tables = [name for name in TABLES if len(by_table.get(name, {})) == len(libraries)]
    if not tables:
        return {"tables": [], "libraries": {}}
    best = {name: min(r["score"] for r in by_table[name].values()) for name in tables}
    summary = {}
    for library in libraries:
        own = [by_table[name][library] for name in tables]
        relative = [max(TINY, r["score"]) / max(TINY, best[r["table"]]) for r in own]
        seconds = float(np.mean([r["seconds"] for r in own]))
        summary[library] = {
            "seconds": seconds,
            "relative": float(gmean(relative)),
            "budget": own[0].get("budget") if own else None,
        }
    return {"tables": tables, "libraries": summary}


def on_frontier(library: str, summary: dict[str, Record]) -> bool:
    """Whether no other library is both faster and more accurate."""
    own = summary[library]
    return not any(
        other["seconds"] <= own["seconds"] and other["relative"] <= own["relative"]
        for name, other in summary.items()
        if name != library
    )


def page(records: list[Record], facts: str) -> str:
    found = summarize([*records, *peers()])
    summary, tables = found["libraries"], found["tables"]
    if tables:
        draw(summary)
    rows = [
        [
            library,
            f"{found['seconds']:.2f}",
            f"{found['relative']:.3f}",
            "yes" if on_frontier(library, summary) else "",
        ]
        for library, found in sorted(summary.items(), key=lambda item: item[1]["seconds"])
    ]
    header = ["library", "seconds per table (mean)", "score / best (geometric mean)"]
    header += ["none is faster and better"]
    own = {(r["table"], r["budget"]): r for r in records}
    cells = [
        [name, *(f"{own[name, b]['score']:.4f} ({_seconds(own[name, b])})" for b in BUDGETS)]
        for name in tables
    ]
    columns = ["table", *("no budget" if b is None else f"{b:g} s" for b in BUDGETS)]
    used = [r["seconds"] / r["budget"] for r in own.values() if r["budget"]]
    return (
        "# Quality against time\n\n"
        f"{facts}\n\n"
        f"{len(tables)} tables, first split, one thread. `hilboost, 3 s` has `time_budget=3`; "
        "everything else is at its defaults. Seconds are those of the processor. The other "
        'libraries were measured earlier, for "Libraries at their defaults".\n\n'
        f"{markdown_table(header, rows)}\n\n"
        "![Score over best and time](frontier.png)\n\n"
        "Scores of hilboost in its budgets, and seconds by the clock, beside other processes. The "
        f"longest fit took {max(used, default=0.0):.2f} of its budget by the processor.\n\n"
        f"{markdown_table(columns, cells)}\n"
    )


def _seconds(record: Record) -> str:
    return f"{record['clock_seconds']:.1f} s"


LABELS = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "sklearn": "scikit-learn",
    "chimeraboost": "ChimeraBoost",
    "xrfm": "xRFM",
}


def draw(summary: dict[str, Record]) -> None:
    """Picture of score / best against seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    own = [found for name, found in summary.items() if name.startswith("hilboost")]
    own.sort(key=lambda found: found["budget"] or np.inf)
    axes.plot([f["seconds"] for f in own], [f["relative"] for f in own], "-", color="tab:red")
    for library, found in summary.items():
        point = found["seconds"], found["relative"]
        color = "tab:red" if library.startswith("hilboost") else "tab:blue"
        axes.plot(*point, "o", color=color)
        # The points without a budget and with the largest ones are close to each other.
        budget = found.get("budget")
        place: Record = {"xytext": (5, 4)}
        if library == "lightgbm" or budget is not None:
            place = {"xytext": (-4, -5), "ha": "right", "va": "top"}
        if budget == BUDGETS[-2]:
            place = {"xytext": (5, -6), "va": "top"}
        axes.annotate(
            LABELS.get(library, library), point, textcoords="offset points", fontsize=8, **place
        )
    ticks = [0.3, 1, 3, 10, 30]
    axes.set(xscale="log", xlabel="mean seconds per table", ylabel="score / best (geometric mean)")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(0.22, 45)
    axes.margins(y=0.1)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.savefig(RESULTS / "frontier.png", dpi=120)


def main() -> None:
    cases = [{"table": table, "budget": budget} for table in TABLES for budget in BUDGETS]
    study("frontier", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

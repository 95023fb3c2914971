"""Tables of ``kernels.py`` from its records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from _common import Record, cell, failures_section, markdown_table, median, sources
from kernel_data import CLASSIFICATION, REGRESSION, SETS
from kernel_peers import METHODS

BUDGETS = (10, 25, 60, 90, 300)
BUDGET_SLACK = 1.04


def total_s(record: Record) -> float:
    return record["fit_s"] + record["predict_s"]


def loss(record: Record) -> float:
    return record["nmse"] if "nmse" in record else record["error_rate"]


class Outcome(NamedTuple):
    """Medians over the repeats of one setting on one split."""

    method: str
    setting: str
    loss: float
    log_loss: float | None
    fit_s: float
    predict_s: float
    peak_mib: float
    rows: int
    all_rows: int
    runs: int
    curve: list[list[float]]

    @property
    def total_s(self) -> float:
        return self.fit_s + self.predict_s

    @property
    def points(self) -> list[tuple[float, float]]:
        """Seconds and loss of the final model and of its stages."""
        return [(self.total_s, self.loss), *((seconds, found) for seconds, found in self.curve)]


def grouped(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return groups


def outcome(runs: list[Record]) -> Outcome:
    typical = sorted(runs, key=total_s)[(len(runs) - 1) // 2]
    log_losses = [record["log_loss"] for record in runs if "log_loss" in record]
    return Outcome(
        runs[0]["method"],
        runs[0]["setting"],
        median(map(loss, runs)),
        median(log_losses),
        median(record["fit_s"] for record in runs),
        median(record["predict_s"] for record in runs),
        median(record["peak_mib"] for record in runs),
        typical["n_train_used"],
        typical["n_train"],
        len(runs),
        typical["curve"],
    )


def outcomes(records: list[Record], name: str) -> list[Outcome]:
    """Settings that came through on the first split of a set, the best first."""
    found = [record for record in records if record["set"] == name and "failure" not in record]
    if not found:
        return []
    first = min(record["split"] for record in found)
    groups = grouped((r for r in found if r["split"] == first), "method", "setting")
    return sorted(map(outcome, groups.values()), key=lambda one: one.loss)


def by_method(found: list[Outcome]) -> dict[str, list[Outcome]]:
    """Settings of each method, the methods in the order of their best loss."""
    methods: dict[str, list[Outcome]] = {}
    for one in found:
        methods.setdefault(one.method, []).append(one)
    return methods


def best_within(found: list[Outcome], seconds: float) -> float | None:
    losses = [
        reached
        for one in found
        for spent, reached in one.points
        if spent <= seconds * BUDGET_SLACK and math.isfinite(reached)
    ]
    return min(losses, default=None)


def title(method: str) -> str:
    shown = METHODS[method].title if method in METHODS else method
    return f"**{shown}**" if method in METHODS and METHODS[method].ours else shown


def measure_name(name: str) -> str:
    return "NMSE" if SETS[name].task == REGRESSION else "error rate"


def seconds_cell(seconds: float | None) -> str:
    if seconds is None:
        return cell(None)
    return (
        f"{seconds:.0f}"
        if seconds >= 100
        else f"{seconds:.2g}"
        if seconds < 1
        else f"{seconds:.1f}"
    )


def heading(name: str, found: list[Outcome]) -> str:
    rows = max(one.all_rows for one in found)
    return f"### {SETS[name].title}: {rows:,} training rows, {SETS[name].split_note}"


def outcome_table(name: str, found: list[Outcome]) -> str:
    classes = SETS[name].task == CLASSIFICATION
    header = ["method", "setting", measure_name(name), *(["log-loss"] if classes else [])]
    header += ["fit s", "predict s", "peak MiB", "rows used", "runs"]
    rows = [
        [
            title(one.method),
            one.setting,
            f"{one.loss:.4f}",
            *([cell(one.log_loss)] if classes else []),
            seconds_cell(one.fit_s),
            seconds_cell(one.predict_s),
            round(one.peak_mib),
            f"{one.rows:,}" + ("" if one.rows == one.all_rows else " (part)"),
            one.runs,
        ]
        for one in found
    ]
    return markdown_table(header, rows)


def settings_section(every: dict[str, list[Outcome]]) -> str:
    parts = [
        "## Errors and times\n\n"
        "*Part* means that the final model was fitted to a random subset of the training rows. The "
        "best of several settings of a method is the best on the test rows, which slightly favors "
        "methods with more settings."
    ]
    for name, found in every.items():
        parts.append(f"{heading(name, found)}\n\n{outcome_table(name, found)}")
    return "\n\n".join(parts)


def equal_time_section(every: dict[str, list[Outcome]]) -> str:
    parts = [
        "## Loss at equal time\n\n"
        "The smallest test loss of all runs, or stages of runs, whose fit and prediction took no "
        f"longer than the given time (plus {BUDGET_SLACK - 1:.0%}, for every method)."
    ]
    for name, found in every.items():
        reached = {
            method: [best_within(settings, budget) for budget in BUDGETS]
            for method, settings in by_method(found).items()
        }
        smallest = [
            min((row[column] for row in reached.values() if row[column] is not None), default=None)
            for column in range(len(BUDGETS))
        ]
        rows = [
            [title(method), *(_marked(*pair) for pair in zip(row, smallest, strict=True))]
            for method, row in reached.items()
        ]
        header = [f"{measure_name(name)} within", *(f"{budget} s" for budget in BUDGETS)]
        parts.append(f"### {SETS[name].title}\n\n{markdown_table(header, rows)}")
    return "\n\n".join(parts)


def _marked(value: float | None, smallest: float | None) -> str:
    if value is None:
        return cell(None)
    return f"**{value:.4f}**" if value == smallest else f"{value:.4f}"


def splits_section(records: list[Record]) -> str:
    rows = []
    found = [record for record in records if "failure" not in record and record["repeat"] == 0]
    groups = grouped(found, "set", "method", "setting")
    for (name, method, setting), runs in sorted(groups.items()):
        if len(runs) > 1 and name in SETS:
            losses = np.array([loss(record) for record in runs])
            error = losses.std(ddof=1)
            rows.append(
                [
                    SETS[name].title,
                    title(method),
                    setting,
                    len(runs),
                    f"{losses.mean():.4f} ± {error:.4f}",
                    f"{losses.min():.4f} to {losses.max():.4f}",
                    seconds_cell(float(np.mean([total_s(record) for record in runs]))),
                ]
            )
    if not rows:
        return ""
    header = ["set", "method", "setting", "splits", "mean loss ± SD", "range", "mean s"]
    return f"## Mean over the splits\n\n{markdown_table(header, rows)}"


def page(records: list[Record], _: str) -> str:
    records = [r for r in records if r["set"] in SETS and r["method"] in METHODS]
    every = {name: found for name in SETS if (found := outcomes(records, name))}
    limit = max(record["limit_s"] for record in records)
    parts = [
        "# Kernel machines",
        sources(records),
        "NMSE is the mean squared error divided by the variance of the test targets. Each run "
        "uses a fresh process and makes an untimed fit on synthetic rows first. Fit times include "
        "scaling, tuning and validation, and are medians over the runs. Peak memory is the "
        "resident memory of the whole process, including libraries. The time limit per run is "
        f"{limit:g} s. All results are for the first split of a data set, except for the means "
        "over the splits.",
        settings_section(every),
        equal_time_section(every),
        splits_section(records),
        failures_section(records, ("set", "split", "method", "setting")),
    ]
    return "\n\n".join(part for part in parts if part)

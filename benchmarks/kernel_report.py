"""Tables and figures of ``kernels.py`` from its records."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _common import cell, markdown_table, median
from kernel_data import CLASSIFICATION, REGRESSION, SETS
from kernel_peers import METHODS

BUDGETS = (10, 25, 60, 90, 300)
BUDGET_SLACK = 1.04
KIN40K_LEVELS = (0.1, 0.05, 0.028, 0.0176, 0.01, 0.0075, 0.006)
PUBLISHED_2006 = {"kin40k": {"single": 0.0280, "boosted": 0.0176}}

Record = dict[str, Any]


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


def seconds_to(found: list[Outcome], level: float) -> float | None:
    return min(
        (spent for one in found for spent, reached in one.points if reached <= level), default=None
    )


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


def outcome_table(name: str, found: list[Outcome], runs: bool = False) -> str:
    classes = SETS[name].task == CLASSIFICATION
    header = ["method", "setting", measure_name(name), *(["log-loss"] if classes else [])]
    header += ["fit s", "predict s", "peak MiB", "rows used", *(["runs"] if runs else [])]
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
            *([one.runs] if runs else []),
        ]
        for one in found
    ]
    return markdown_table(header, rows)


def best_section(every: dict[str, list[Outcome]]) -> str:
    parts = [
        "## Best setting of each method\n\n"
        "The table shows the setting with the smallest loss on the test rows, which slightly "
        "favors methods with more settings. *Part* means that the final model was fitted to a "
        "random subset of the training rows."
    ]
    for name, found in every.items():
        best = [settings[0] for settings in by_method(found).values()]
        parts.append(f"{heading(name, found)}\n\n{outcome_table(name, best)}")
        parts.append(f"![{SETS[name].title}](kernels_{name}.png)")
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


def levels_section(every: dict[str, list[Outcome]]) -> str:
    found = every.get("kin40k")
    if not found:
        return ""
    rows = [
        [title(method), *(seconds_cell(seconds_to(settings, level)) for level in KIN40K_LEVELS)]
        for method, settings in by_method(found).items()
    ]
    header = ["NMSE of at most", *(f"{level:g}" for level in KIN40K_LEVELS)]
    return (
        "## kin40k: seconds to reach an NMSE\n\n"
        "Fit and prediction time of the fastest run, or stage of a run, that reaches the NMSE. "
        "Sun and Yao (2006) report .0280 for a single sparse kernel ridge regression (983 s on "
        "their hardware) and .0176 for the boosted model, which reached .0280 after 264 s.\n\n"
        f"{markdown_table(header, rows)}"
    )


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


def all_section(every: dict[str, list[Outcome]]) -> str:
    parts = ["## All settings\n\nMedians over the runs."]
    for name, found in every.items():
        table = outcome_table(name, found, runs=True)
        parts.append(f"### {SETS[name].title}, all settings\n\n{table}")
    return "\n\n".join(parts)


def failures_section(records: list[Record]) -> str:
    rows = [
        [
            SETS[r["set"]].title if r["set"] in SETS else r["set"],
            r["split"],
            title(r["method"]),
            r["setting"],
            f"`{r['failure'].replace('|', '/')}`",
        ]
        for r in records
        if "failure" in r
    ]
    if not rows:
        return ""
    header = ["set", "split", "method", "setting", "reason"]
    return f"## Not finished\n\n{markdown_table(header, rows)}"


def sources(records: list[Record]) -> str:
    """Date, machines, threads and versions behind the records."""
    dates = sorted(record["date"][:10] for record in records)
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    machines = " / ".join(sorted({record["machine"] for record in records}))
    threads = ", ".join(sorted({str(record["threads"]) for record in records}))
    versions: dict[str, set[str]] = {}
    for record in records:
        for module, version in record.get("versions", {}).items():
            versions.setdefault(module, set()).add(str(version))
    named = ", ".join(f"{module} {'/'.join(sorted(v))}" for module, v in sorted(versions.items()))
    load = max(record["load_average"] for record in records)
    return (
        f"{days}; {machines}; {threads} threads for every method; load average before a run at "
        f"most {load}; {named}."
    )


def render(results: Record) -> str:
    """Markdown of a result file."""
    records: list[Record] = results["records"]
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
        best_section(every),
        equal_time_section(every),
        levels_section(every),
        splits_section(records),
        all_section(every),
        failures_section(records),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


# Figures

OUR_COLORS = {
    "hilboost": "#c8102e",
    "hilboost-sy2006": "#e0677b",
    "hilboost-sparse": "#eea5b1",
    "hilboost-trees": "#b06a00",
    "hilboost-stacked": "#7a0c1c",
}
PEER_COLORS = (
    "#1f5a92",
    "#5b9bd5",
    "#0b7a75",
    "#61b3a8",
    "#7a4fa3",
    "#8c6d31",
    "#b8963e",
    "#4d4d4d",
    "#6b8e23",
    "#d9822b",
    "#8a8f98",
)
LABEL_GAP = 0.037


def frontier(found: list[Outcome]) -> list[tuple[float, float]]:
    """Points of a method that no quicker point of it equals."""
    front: list[tuple[float, float]] = []
    for spent, reached in sorted(point for one in found for point in one.points):
        if reached > 0 and (not front or reached < front[-1][1]):
            front.append((spent, reached))
    return front


def spread(heights: list[float], gap: float) -> list[float]:
    """Move sorted label heights (within 0 to 1) apart, to at least ``gap``, as little as may be."""
    placed: list[tuple[float, int]] = []
    for height in heights:
        center, count = height, 1
        while placed and center - gap * (count - 1) / 2 < (
            placed[-1][0] + gap * (placed[-1][1] - 1) / 2 + gap
        ):
            other, members = placed.pop()
            center = (center * count + other * members) / (count + members)
            count += members
        half = gap * (count - 1) / 2
        placed.append((min(max(center, half), max(1 - half, half)), count))
    return [
        center + gap * (member - (count - 1) / 2)
        for center, count in placed
        for member in range(count)
    ]


def draw(name: str, found: list[Outcome], path: Path) -> None:
    """Loss against seconds, both logarithmic, the methods named at the right of their curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator

    methods = by_method(found)
    peers = [method for method in METHODS if not METHODS[method].ours]
    colors = {**dict(zip(peers, PEER_COLORS, strict=False)), **OUR_COLORS}
    fronts = {method: frontier(settings) for method, settings in methods.items()}
    fronts = {method: front for method, front in fronts.items() if front}
    figure, axes = plt.subplots(figsize=(9.6, 5.8), dpi=150)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for method, front in fronts.items():
        ours = METHODS[method].ours
        lead = method == "hilboost"
        color = colors.get(method, "#888888")
        order = 5 if lead else 4 if ours else 2
        axes.plot(
            *zip(*front, strict=True),
            color=color,
            lw=3.0 if lead else 1.8 if ours else 1.4,
            alpha=1.0 if ours else 0.85,
            zorder=order,
            solid_capstyle="round",
        )
        finals = [(one.total_s, one.loss) for one in methods[method] if one.loss > 0]
        if finals:
            axes.scatter(
                *zip(*finals, strict=True),
                s=34 if lead else 16,
                color=color,
                edgecolor="white",
                linewidth=0.6,
                zorder=order + 1,
            )
    for label, level in PUBLISHED_2006.get(name, {}).items():
        axes.axhline(level, color="#999999", lw=0.9, ls=(0, (2, 3)), zorder=1)
        axes.annotate(
            f"Sun & Yao 2006, {label} {level:.4f}".replace("0.", "."),
            (0.008, level),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=7.5,
            color="#777777",
        )
    axes.set_xlabel("seconds, fit and prediction of the test rows")
    axes.set_ylabel(f"test {measure_name(name)}")
    axes.set_title(SETS[name].title, loc="left", fontsize=13, fontweight="bold", pad=12)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    low, high = axes.get_ylim()
    if high / low < 300:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.grid(which="major", color="#e6e6e6", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.subplots_adjust(left=0.085, right=0.73, top=0.92, bottom=0.1)
    figure.canvas.draw()
    to_axes = (axes.transData + axes.transAxes.inverted()).transform
    ends = sorted((to_axes(front[-1])[1], method) for method, front in fronts.items())
    heights = spread([height for height, _ in ends], LABEL_GAP)
    for (height, method), placed in zip(ends, heights, strict=True):
        color = colors.get(method, "#888888")
        start = to_axes(fronts[method][-1])[0]
        axes.plot(
            [start, 1.0, 1.02],
            [height, height, placed],
            transform=axes.transAxes,
            color=color,
            lw=0.6,
            alpha=0.45,
            zorder=1,
            clip_on=False,
        )
        lead = method == "hilboost"
        axes.text(
            1.025,
            placed,
            f"{METHODS[method].title}  {fronts[method][-1][1]:.4f}".replace(" 0.", " ."),
            transform=axes.transAxes,
            va="center",
            fontsize=10 if lead else 8.5,
            fontweight="bold" if lead else "normal",
            color=color,
        )
    figure.savefig(path)
    plt.close(figure)


def save(out: Path, results: Record) -> None:
    records = results["records"]
    known = [r for r in records if r["set"] in SETS and r["method"] in METHODS]
    if not known:
        return
    (out / "kernels.md").write_text(render({**results, "records": known}))
    if importlib.util.find_spec("matplotlib") is None:
        print("no matplotlib, no figures", flush=True)
        return
    for name in SETS:
        if found := outcomes(known, name):
            draw(name, found, out / f"kernels_{name}.png")

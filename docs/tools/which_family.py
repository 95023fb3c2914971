"""Draw ``docs/images/which_family.svg``: kernel machines versus boosted trees, by data set.

Run ``python docs/tools/which_family.py [results]``.  The values come from ``kernels.json``,
by default in ``benchmarks/results``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "which_family.svg"
OURS = ("hilboost", "default")
TREES = (("lightgbm", "early stopping"), ("catboost", "defaults"))
TITLES = {
    "kin40k": "robot arm, 36,000 × 8 (kin40k)",
    "pumadyn32nm": "robot arm, 7,373 × 32 (pumadyn32nm)",
    "kin8nm": "robot arm, 7,373 × 8 (kin8nm)",
    "usps": "digits, 7,291 × 256 (USPS)",
    "letter": "letters, 16,000 × 16 (Letter)",
    "sarcos": "robot torque, 3,559 × 21 (SARCOS)",
    "california_housing": "house prices, 18,576 × 8 (California)",
    "cpu_act": "computer activity, 7,373 × 21 (cpu_act)",
    "power_plant": "power plant, 8,611 × 4",
    "house_16h": "house prices, 20,506 × 16 (house_16H)",
}
KERNEL, TREE = "#00796b", "#e07b00"


def comparisons(records: list[dict[str, Any]]) -> list[tuple[str, float, float, float]]:
    """Return data set, error of the kernel machine relative to trees, and both fit times."""
    found = {}
    for record in records:
        if "failure" not in record and record["split"] == 0 and record["repeat"] == 0:
            error = record.get("nmse", record.get("error_rate"))
            found[record["set"], record["method"], record["setting"]] = error, record["fit_s"]
    rows = []
    for name in TITLES:
        ours = found.get((name, *OURS))
        trees = [found[name, *key] for key in TREES if (name, *key) in found]
        if ours and trees:
            best = min(trees)
            rows.append((name, ours[0] / best[0], ours[1], best[1]))
    return sorted(rows, key=lambda row: -row[1])


def draw(rows: list[tuple[str, float, float, float]], out: Path) -> None:
    """Draw errors on the left and times on the right."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "hilboost"})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8, 0.36 * len(rows) + 1.3), sharey=True, width_ratios=(3, 2)
    )
    heights = range(len(rows))
    for y, (_, ratio, ours, trees) in zip(heights, rows, strict=True):
        color = KERNEL if ratio < 1 else TREE
        left.plot([1, ratio], [y, y], color=color, lw=6, solid_capstyle="butt")
        side, offset = ("right", -5) if ratio < 1 else ("left", 5)
        left.annotate(f"{ratio:.2g}", (ratio, y), (offset, -3), textcoords="offset points", ha=side)
        right.plot([ours, trees], [y, y], color="0.75", zorder=1)
        right.scatter(ours, y, color=KERNEL, zorder=2, label="kernel machine" if y == 0 else None)
        right.scatter(trees, y, color=TREE, zorder=2, label="boosted trees" if y == 0 else None)
    left.axvline(1, color="0.3", lw=1)
    left.set(xscale="log", xlim=(0.008, 4), xlabel="error of the kernel machine / of trees")
    left.set_xticks([0.02, 0.1, 0.5, 1, 2], ["1/50", "1/10", "1/2", "1", "2"])
    left.minorticks_off()
    left.set_yticks(heights, [TITLES[row[0]] for row in rows])
    left.text(0.9, len(rows) - 0.35, "kernel machine better", color=KERNEL, ha="right")
    left.text(1.1, len(rows) - 0.35, "trees", color=TREE)
    right.set(xscale="log", xlabel="seconds of the fit, two cores")
    right.set_xticks([1, 10, 100], ["1", "10", "100"])
    right.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 1.22), handletextpad=0)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Read the results and draw the figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmarks" / "results"
    rows = comparisons(json.loads((folder / "kernels.json").read_text())["records"])
    draw(rows, OUT)
    for name, ratio, ours, trees in rows:
        print(f"{name:20} {ratio:.3f}  {ours:.1f} s  {trees:.1f} s")


if __name__ == "__main__":
    main()

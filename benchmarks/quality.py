"""Quality of every library at its own defaults, over many small and middle-sized tables.

Nothing but verbosity, seed and thread count is set. Each table is split at random into 75 % for
training and 25 % for the test (stratified for classes), for each of the seeds 0, 1 and 2. The score
is the RMSE divided by the standard deviation of the target, or the log-loss (probabilities clipped
at 1e-7). The seconds are those of the fit on the processor, with one thread. xRFM has standardized
columns, a fifth of the training rows for validation, and 300 s. Libraries that compile at run time
first make two untimed fits per kind of task. ``hilboost-tree``, with ``learner="tree"``, competes
in place of hilboost: the others are ranked without it.

The report gives the mean score and the rank per table, the mean rank, the total seconds, and the
geometric mean of the score relative to the best score of the table. These figures use the tables on
which every library in the report has a score. Tables by which no default was chosen are a section
of their own.

Run ``python benchmarks/quality.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.stats import gmean, rankdata

from _common import Record, cell, markdown_table, study
from _fits import COMPILING, EVERY, MODELS, installed, measure_fit, table_of, warm_up
from tables import KEPT_BACK, TABLES

SPLITS = 3
TINY = 1e-12


def measure(table: str, seed: int, library: str) -> Record:
    warm_up(library, table_of(table).task)
    return measure_fit(library, table_of(table), seed)


def table_means(records: Iterable[Record], value: str) -> dict[str, dict[str, float]]:
    """Mean over the splits as ``{table: {library: mean}}``; a failed split counts as no score."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        values = found.setdefault(record["table"], {}).setdefault(record["library"], [])
        values.append(record.get(value, np.nan))
    means = {
        table: {library: float(np.mean(values)) for library, values in by_library.items()}
        for table, by_library in found.items()
    }
    return {
        table: {library: mean for library, mean in row.items() if np.isfinite(mean)}
        for table, row in means.items()
    }


def _ranks(grid: np.ndarray, libraries: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Ranks and scores relative to the best one, (tables, libraries).

    ``hilboost-tree`` competes in place of hilboost, and does not count for the others.
    """
    grid = np.maximum(grid, TINY)
    own = [k for k, library in enumerate(libraries) if library.startswith("hilboost")]
    ranks, relative = np.empty_like(grid), np.empty_like(grid)
    for column, library in enumerate(libraries):
        given = library if library.startswith("hilboost") else "hilboost"
        rivals = [k for k in range(len(libraries)) if k not in own or libraries[k] == given]
        some = grid[:, rivals]
        ranks[:, column] = rankdata(some, axis=1)[:, rivals.index(column)]
        relative[:, column] = grid[:, column] / some.min(axis=1)
    return ranks, relative


def summarize(records: list[Record]) -> dict[str, Any]:
    """Ranks, mean rank, total seconds and geometric mean of score / best."""
    names = {record["library"] for record in records}
    libraries = [library for library in MODELS if library in names]
    scores, seconds = table_means(records, "score"), table_means(records, "seconds")
    tables = [table for table in EVERY if table in scores]
    complete = [table for table in tables if len(scores[table]) == len(libraries)]
    summary: dict[str, Any] = {"scores": scores, "complete": complete, "ranks": {}, "overall": {}}
    for kind, of_kind in (("used", TABLES), ("kept back", KEPT_BACK)):
        some = [table for table in complete if table in of_kind]
        if not some:
            continue
        grid = np.array([[scores[t][name] for name in libraries] for t in some])
        ranks, relative = _ranks(grid, libraries)
        for row, table in enumerate(some):
            summary["ranks"][table] = dict(zip(libraries, ranks[row].tolist(), strict=True))
        summary["overall"][kind] = {
            library: {
                "mean_rank": float(ranks[:, column].mean()),
                "geometric_mean_relative_score": float(gmean(relative[:, column])),
                "largest_relative_score": float(relative[:, column].max()),
                "best_on": int((ranks[:, column] == 1).sum()),
                "total_seconds": sum(seconds[table][library] for table in some),
            }
            for column, library in enumerate(libraries)
        }
    return summary


TITLES = {
    "used": "{} tables with all libraries, some of which defaults of hilboost were chosen by",
    "kept back": "{} tables by which no default was chosen",
}


def _overall_section(summary: dict[str, Any], kind: str) -> str:
    header = ["library", "mean rank", "score / best (geometric mean)", "largest", "first on"]
    header += ["seconds, one split of each table"]
    rows = [
        [
            library,
            f"{found['mean_rank']:.2f}",
            f"{found['geometric_mean_relative_score']:.4f}",
            f"{found['largest_relative_score']:.2f}",
            found["best_on"],
            round(found["total_seconds"], 1),
        ]
        for library, found in sorted(
            summary["overall"][kind].items(), key=lambda item: item[1]["mean_rank"]
        )
    ]
    count = sum(table in (TABLES if kind == "used" else KEPT_BACK) for table in summary["complete"])
    return f"## {TITLES[kind].format(count)}\n\n{markdown_table(header, rows)}"


def _scores_section(summary: dict[str, Any], records: list[Record]) -> str:
    libraries = [name for name in MODELS if any(r["library"] == name for r in records)]
    shapes = {r["table"]: f"{r['rows']:,} x {r['columns']}" for r in records}
    tasks = {r["table"]: r["task"] for r in records}
    rows = []
    for table in (name for name in EVERY if name in summary["scores"]):
        found, ranks = summary["scores"][table], summary["ranks"].get(table, {})
        marks = {name: f" ({ranks[name]:g})" if name in ranks else "" for name in libraries}
        entries = [
            f"{found[name]:.4f}{marks[name]}" if name in found else cell(None) for name in libraries
        ]
        rows.append([table, shapes[table], tasks[table], *entries])
    header = ["table", "size", "task", *libraries]
    return f"## Mean score of each table (rank)\n\n{markdown_table(header, rows)}"


def _chosen_section(summary: dict[str, Any], records: list[Record]) -> str:
    """What hilboost chose on each table, in the first split."""
    first = {
        (r["library"], r["table"]): r
        for r in records
        if r["seed"] == 0 and "score" in r and "chosen" in r
    }
    rows = []
    for table in (name for name in EVERY if ("hilboost", name) in first):
        own, trees = first["hilboost", table], first.get(("hilboost-tree", table))
        found = own["chosen"]
        settings = (
            f"{found['max_features']:g}, {found['l2_regularization']:g}, {found['max_leaf_nodes']}"
        )
        rows.append(
            [
                table + (" *" if table in KEPT_BACK else ""),
                settings,
                *_about_kernel(found),
                cell(None) if trees is None else f"{own['score'] / max(trees['score'], TINY):.3f}",
                f"{own['seconds']:.1f}",
                cell(None) if trees is None else f"{trees['seconds']:.1f}",
            ]
        )
    if not rows:
        return ""
    header = ["table", "columns per node, L2, leaves", "held-out gain", "kernel machine"]
    header += ["score / score of trees", "seconds", "seconds of trees"]
    return (
        "## What hilboost chose\n\nFirst split; `*` marks tables by which no default was chosen. "
        "The gain is that of the kernel machine over the trees, on held-out rows.\n\n"
        f"{markdown_table(header, rows)}\n\n"
    )


def _about_kernel(found: dict[str, Any]) -> tuple[str, str]:
    kernel = found.get("kernel")
    if kernel is None:
        return "–", "not tried"
    gain = f"{100 * kernel['gain']:.1f} ± {100 * kernel['standard_error']:.1f} %"
    if kernel["weight"] == 0:
        return gain, "left out"
    return gain, "alone" if found["stages"] == 1 else "added"


def _errors_section(records: list[Record]) -> str:
    lines = [
        f"- {r['table']}, split {r['seed']}, {r['library']}: `{r['error']}`"
        for r in records
        if "error" in r
    ]
    return "\n\n## Failed fits\n\n" + "\n".join(lines) if lines else ""


def page(records: list[Record], facts: str) -> str:
    summary = summarize(records)
    splits = len({record["seed"] for record in records})
    return (
        "# Libraries at their defaults\n\n"
        f"{facts}\n\n"
        f"Mean over {splits} random 75/25 splits; RMSE divided by the standard deviation of the "
        "target, or log-loss; smaller is better. Only verbosity, seed and thread count are set. "
        "Seconds are those of the processor. "
        f"All libraries receive text columns as integer codes. {' and '.join(COMPILING)} make two "
        "untimed fits per type of task first, and were measured together on another machine, an "
        "AMD EPYC, beside other work; so were all libraries on the last twelve tables.\n\n"
        + "".join(f"{_overall_section(summary, kind)}\n\n" for kind in summary["overall"])
        + _chosen_section(summary, records)
        + f"{_scores_section(summary, records)}{_errors_section(records)}\n"
    )


def main() -> None:
    libraries = installed(list(MODELS))
    cases = [
        {"table": table, "seed": seed, "library": library}
        for table in EVERY
        for seed in range(SPLITS)
        for library in libraries
    ]
    study("quality", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

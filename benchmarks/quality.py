"""Quality of every library at its own defaults, over many small and middle-sized tables.

Nothing but verbosity, seed and thread count is set. Each table is split at random into 75 % for
training and 25 % for the test (stratified for classes), for each of the seeds 0, 1 and 2. The score
is the RMSE divided by the standard deviation of the target, or the log-loss (probabilities clipped
at 1e-7). The seconds are those of the fit: of the processor with one thread, which depend little on
what else runs, and otherwise of the clock, which mean something only on an idle machine. xRFM has
standardized columns, a fifth of the training rows for validation, and 300 s. Libraries that compile
at run time first make two untimed fits per kind of task.
``hilboost-tree``, with ``learner="tree"``, competes in place of hilboost: the others are ranked
without it.

The report gives the mean score and the rank per table, the mean rank, the total seconds, and the
geometric mean of the score relative to the best score of the table. These figures use the tables on
which every library in the report has a score. Tables by which no default was chosen are a section
of their own.

Run::

    python benchmarks/quality.py                                  # everything
    python benchmarks/quality.py --tables abalone,credit_g        # some tables
    python benchmarks/quality.py --libraries hilboost,lightgbm
    python benchmarks/quality.py --reuse                          # peers from the last run
    python benchmarks/quality.py --resume                         # what the last run did not finish
    python benchmarks/quality.py --render                         # Markdown anew from the JSON

The JSON is saved after every fit. With ``--reuse`` the peers' records of an earlier file are kept
where library version, processor and thread count are the same, so that only hilboost and whatever
is missing is run; their seconds are then those of the earlier run and marked so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean, rankdata

from _common import (
    RESULTS,
    cell,
    comma_list,
    environment,
    environment_markdown,
    importable,
    markdown_table,
    version_of,
    write_json,
)
from _fits import COMPILING, EVERY, MODELS, Fit, Record, measure, measure_missing
from tables import KEPT_BACK, TABLES

TINY = 1e-12


def report_progress(record: Record) -> None:
    result = record.get("error") or f"{record['score']:.4f} in {record['seconds']:.2f} s"
    source = " (earlier run)" if record["reused"] else ""
    print(f"  split {record['seed']} {record['library']:13} {result}{source}", flush=True)


def reusable(path: Path, facts: dict[str, Any], own: bool) -> list[Record]:
    """Records of an earlier file that would come out the same today; ``own``: also of hilboost."""
    if not path.exists():
        print(f"nothing to reuse: no {path.name}", flush=True)
        return []
    earlier = json.loads(path.read_text())
    if any(earlier["environment"][fact] != facts[fact] for fact in ("cpu", "threads")):
        print("nothing to reuse: other processor or thread count", flush=True)
        return []
    date = earlier["environment"]["date"]
    return [
        record | {"reused": not own, "date": record.get("date", date)}
        for record in earlier["records"]
        if (own or not record["library"].startswith("hilboost"))
        and record["version"] == version_of(record["library"].partition("-")[0])
        and "error" not in record
        and record.get("clock", "wall") == ("processor" if facts["threads"] == 1 else "wall")
    ]


def fits(options: argparse.Namespace, libraries: list[str]) -> Iterator[Fit]:
    for name in options.tables:
        table = EVERY[name]()
        rows, columns = table.X.shape
        print(f"{name}: {rows:,} x {columns} {table.task}", flush=True)
        for seed in range(options.splits):
            for library in libraries:
                key = {"table": name, "library": library, "seed": seed}
                fit = partial(measure, library, name, table, seed, options.threads)
                yield Fit(key, library, table.task, fit)


def _table_means(records: Iterable[Record], value: str) -> dict[str, dict[str, float]]:
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
    records = [record for record in records if record["library"] in MODELS]
    libraries = [library for library in MODELS if library in names]
    scores, seconds = _table_means(records, "score"), _table_means(records, "seconds")
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


def _overall_section(summary: dict[str, Any], records: list[Record], kind: str) -> str:
    header = ["library", "mean rank", "score / best (geometric mean)", "largest", "first on"]
    header += ["seconds, one split of each table"]
    reused = {record["library"] for record in records if record["reused"]}
    rows = [
        [
            library + (" *" if library in reused else ""),
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
    note = "\n\n\\* Some or all seconds and scores are from an earlier run." if reused else ""
    count = sum(table in (TABLES if kind == "used" else KEPT_BACK) for table in summary["complete"])
    return f"## {TITLES[kind].format(count)}\n\n{markdown_table(header, rows)}{note}"


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


def _clocks(records: list[Record]) -> str:
    n_wall = sum(record.get("clock", "wall") == "wall" for record in records)
    if n_wall == len(records):
        return "Seconds are those of the clock."
    more = f", but for {n_wall} fits those of the clock" if n_wall else ""
    return f"Seconds are those of the processor{more}."


def render(results: dict[str, Any]) -> str:
    """Markdown of a result file."""
    records, summary = results["records"], results["summary"]
    splits = len({record["seed"] for record in records})
    return (
        "# Libraries at their defaults\n\n"
        f"{environment_markdown(results['environment'])}\n\n"
        f"Mean over {splits} random 75/25 splits; RMSE divided by the standard deviation of the "
        "target, or log-loss; smaller is better. Only verbosity, seed and thread count are set. "
        f"{_clocks(records)} "
        f"All libraries receive text columns as integer codes. {' and '.join(COMPILING)} make two "
        "untimed fits per type of task first.\n\n"
        + "".join(f"{_overall_section(summary, records, kind)}\n\n" for kind in summary["overall"])
        + _chosen_section(summary, records)
        + f"{_scores_section(summary, records)}{_errors_section(records)}\n"
    )


def save(out: Path, results: dict[str, Any]) -> None:
    if results["records"]:
        results["summary"] = summarize(results["records"])
        write_json(out / "quality.json", results)
        (out / "quality.md").write_text(render(results))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=comma_list, default=list(EVERY), help=",".join(EVERY))
    parser.add_argument("--libraries", type=comma_list, default=list(MODELS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--reuse",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="JSON",
        help="keep the peers' records of this file (default: quality.json of the output folder)",
    )
    parser.add_argument("--resume", action="store_true", help="keep all records of the last run")
    parser.add_argument("--render", action="store_true", help="only write the Markdown again")
    options = parser.parse_args()
    if unknown := set(options.tables) - set(EVERY) | set(options.libraries) - set(MODELS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def main() -> None:
    options = arguments()
    if options.render:
        save(options.out, json.loads((options.out / "quality.json").read_text()))
        return
    libraries = [library for library in options.libraries if importable(library.partition("-")[0])]
    if missing := set(options.libraries) - set(libraries):
        print(f"not installed, left out: {', '.join(sorted(missing))}", flush=True)
    old: list[Record] = []
    if options.reuse is not None or options.resume:
        given = options.reuse is not None and options.reuse.name
        path = options.reuse if given else options.out / "quality.json"
        old = reusable(path, environment(options.threads), options.resume)
    results = {"environment": environment(options.threads), "records": old}
    keep = partial(save, options.out)
    measure_missing(fits(options, libraries), results, options.threads, keep, report_progress)
    keep(results)
    print(f"written: {options.out / 'quality.json'} and quality.md", flush=True)


if __name__ == "__main__":
    main()

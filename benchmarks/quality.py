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

The JSON is saved after every table. With ``--reuse`` the peers' records of an earlier file are kept
where library version, processor and thread count are the same, so that only hilboost and whatever
is missing is run; their seconds are then those of the earlier run and marked so.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean, rankdata
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from _common import (
    RESULTS,
    cell,
    comma_list,
    describe_error,
    environment,
    environment_markdown,
    importable,
    markdown_table,
    version_of,
    write_json,
)
from tables import KEPT_BACK, TABLES, Table

TEST_SHARE = 0.25
COMPILING = ("hilboost", "hilboost-tree", "chimeraboost")
EVERY = TABLES | KEPT_BACK
WARM_UP_ROWS = (600, 3_000)
TINY = 1e-12

Record = dict[str, Any]


def hilboost_model(regression: bool, seed: int, threads: int) -> Any:
    import hilboost

    make = hilboost.BoostingRegressor if regression else hilboost.BoostingClassifier
    return make(random_state=seed, n_jobs=threads)


def tree_model(regression: bool, seed: int, threads: int) -> Any:
    return hilboost_model(regression, seed, threads).set_params(learner="tree")


def lightgbm_model(regression: bool, seed: int, threads: int) -> Any:
    import lightgbm

    make = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
    return make(random_state=seed, n_jobs=threads, verbose=-1)


def xgboost_model(regression: bool, seed: int, threads: int) -> Any:
    import xgboost

    make = xgboost.XGBRegressor if regression else xgboost.XGBClassifier
    return make(random_state=seed, n_jobs=threads)


def catboost_model(regression: bool, seed: int, threads: int) -> Any:
    import catboost

    make = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
    return make(random_seed=seed, thread_count=threads, verbose=0, allow_writing_files=False)


def sklearn_model(regression: bool, seed: int, threads: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return make(random_state=seed)


def chimeraboost_model(regression: bool, seed: int, threads: int) -> Any:
    import chimeraboost

    regressor, classifier = chimeraboost.ChimeraBoostRegressor, chimeraboost.ChimeraBoostClassifier
    return (regressor if regression else classifier)(random_state=seed, thread_count=threads)


def xrfm_model(regression: bool, seed: int, threads: int) -> Any:
    from _xrfm import XRFM

    return XRFM(regression=regression, random_state=seed, threads=threads)


MODELS: dict[str, Callable[[bool, int, int], Any]] = {
    "hilboost": hilboost_model,
    "hilboost-tree": tree_model,
    "lightgbm": lightgbm_model,
    "xgboost": xgboost_model,
    "catboost": catboost_model,
    "sklearn": sklearn_model,
    "chimeraboost": chimeraboost_model,
    "xrfm": xrfm_model,
}


def split(table: Table, seed: int) -> list[np.ndarray]:
    strata = None if table.task == "regression" else table.y
    return train_test_split(
        table.X, table.y, test_size=TEST_SHARE, random_state=seed, stratify=strata
    )


def score(model: Any, table: Table, X: np.ndarray, y: np.ndarray) -> float:
    if table.task == "regression":
        residual = y - np.ravel(model.predict(X))
        return float(np.sqrt(np.mean(residual**2)) / np.std(table.y))
    chance = np.clip(np.asarray(model.predict_proba(X), np.float64), 1e-7, 1)
    chance /= chance.sum(axis=1, keepdims=True)
    return float(log_loss(y, chance, labels=np.unique(table.y)))


def chosen(model: Any) -> dict[str, Any]:
    """What the fit chose: settings of the trees, and the kernel machine."""
    resolved, parts = model.fitted_.resolved, model.fitted_.parts
    names = ("max_features", "l2_regularization", "max_leaf_nodes", "learning_rate", "cv_folds")
    found = {name: getattr(resolved, name) for name in names} | {"stages": model.n_estimators_}
    if parts is not None:
        kernel = parts["kernel"]
        found["kernel"] = {
            name: getattr(kernel, name)
            for name in ("weight", "gain", "standard_error", "share", "seconds", "n_centers")
        }
    return found


def measure(library: str, name: str, table: Table, seed: int, threads: int) -> Record:
    X, X_test, y, y_test = split(table, seed)
    record: Record = {
        "table": name,
        "library": library,
        "version": version_of(library.partition("-")[0]),
        "seed": seed,
        "task": table.task,
        "rows": len(table.X),
        "columns": table.X.shape[1],
        "reused": False,
        "clock": "processor" if threads == 1 else "wall",
    }
    try:
        model = MODELS[library](table.task == "regression", seed, threads)
        clock = time.process_time if threads == 1 else time.perf_counter
        start = clock()
        model.fit(X, y)
        record["seconds"] = clock() - start
        record["score"] = score(model, table, X_test, y_test)
        if library.startswith("hilboost"):
            record["chosen"] = chosen(model)
    except Exception as error:
        record["error"] = describe_error(error)
    return record


def warm_up(libraries: list[str], task: str, threads: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(WARM_UP_ROWS), 5))
    smooth = X[:, 0] + X[:, 1] * X[:, 2]
    targets = {
        "regression": smooth,
        "binary": (smooth > 0).astype(np.int64),
        "multiclass": np.digitize(smooth, [-1.0, 1.0]),
    }
    for library in libraries:
        if library in COMPILING:
            start = time.perf_counter()
            for rows in WARM_UP_ROWS:
                table = Table(X[:rows], targets[task][:rows], task)
                measure(library, "warm-up", table, 0, threads)
            print(f"{library} warm-up, {task}: {time.perf_counter() - start:.1f} s", flush=True)


def report_progress(record: Record) -> None:
    result = record.get("error") or f"{record['score']:.4f} in {record['seconds']:.2f} s"
    source = " (earlier run)" if record["reused"] else ""
    print(f"  split {record['seed']} {record['library']:13} {result}{source}", flush=True)


def key(record: Record) -> tuple[str, str, int]:
    return record["table"], record["library"], record["seed"]


def reusable(path: Path, facts: dict[str, Any], own: bool) -> dict[tuple[str, str, int], Record]:
    """Records of an earlier file that would come out the same today; ``own``: also of hilboost."""
    if not path.exists():
        print(f"nothing to reuse: no {path.name}", flush=True)
        return {}
    earlier = json.loads(path.read_text())
    if any(earlier["environment"][fact] != facts[fact] for fact in ("cpu", "threads")):
        print("nothing to reuse: other processor or thread count", flush=True)
        return {}
    date = earlier["environment"]["date"]
    return {
        key(record): record | {"reused": not own, "date": record.get("date", date)}
        for record in earlier["records"]
        if (own or not record["library"].startswith("hilboost"))
        and record["version"] == version_of(record["library"].partition("-")[0])
        and "error" not in record
        and record.get("clock", "wall") == ("processor" if facts["threads"] == 1 else "wall")
    }


def run(
    options: argparse.Namespace, libraries: list[str], old: dict[tuple[str, str, int], Record]
) -> None:
    results = {"environment": environment(options.threads), "records": list(old.values())}
    warm: set[str] = set()
    for name in options.tables:
        table = EVERY[name]()
        rows, columns = table.X.shape
        print(f"{name}: {rows:,} x {columns} {table.task}", flush=True)
        wanted = [
            (seed, library)
            for seed in range(options.splits)
            for library in libraries
            if (name, library, seed) not in old
        ]
        if wanted and table.task not in warm:
            warm_up(libraries, table.task, options.threads)
            warm.add(table.task)
        for seed, library in wanted:
            record = measure(library, name, table, seed, options.threads)
            results["records"].append(record)
            report_progress(record)
        save(options.out, results)


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
    old: dict[tuple[str, str, int], Record] = {}
    if options.reuse is not None or options.resume:
        given = options.reuse is not None and options.reuse.name
        path = options.reuse if given else options.out / "quality.json"
        old = reusable(path, environment(options.threads), options.resume)
    with threadpool_limits(options.threads):
        run(options, libraries, old)
    print(f"written: {options.out / 'quality.json'} and quality.md", flush=True)


if __name__ == "__main__":
    main()

"""Speed, memory and quality of tree boosting at equal settings.

Every library gets the same rounds, leaves, learning rate, bins and thread count, no early stopping
and no L2 penalty. What is measured:

=============  ====================================================================================
case           content
=============  ====================================================================================
reg-31         1,000,000 x 28 synthetic regression, 31 leaves: fit seconds, R2, peak memory
reg-255        the same with 255 leaves
binary-31      the same inputs with a binary target, 31 leaves: log-loss, AUC
letter-100     Letter Recognition, 26 classes, 100 rounds of 31 leaves: log-loss, accuracy
letter-300     the same with 300 rounds
letter-1000    its first 1,000 rows, 1,000 rounds
small          2,000 x 20 regression, 31 leaves, nine repeats
predict        100,000 rows and one row, predicted with the models of ``reg-31``
=============  ====================================================================================

Fits are timed in one process, the libraries taking turns; ``--repeats`` medians. Each library first
makes one untimed tiny fit of the same kind, which takes compilation and start-up out of the timed
runs; its seconds are reported as ``warm-up``. Peak memory comes from a fresh process per library,
counted from just before the fit.

Run::

    python benchmarks/trees.py                                # everything
    python benchmarks/trees.py --cases reg-31,small           # some cases
    python benchmarks/trees.py --rows 20000 --rounds 5        # smoke test
    python benchmarks/trees.py --render                       # Markdown anew from the JSON

Settings that have no equal: XGBoost bounds the sum of the second derivatives in a leaf, not the
number of rows (20 for regression, where both are the same; its default of 1 for classification).
CatBoost and ``multi_output="shared"`` grow one tree for all classes in a round, the others one tree
per class. XGBoost's second derivative of the multi-class loss is twice that of the others, so that
its steps are shorter. ``catboost-symmetric`` grows CatBoost's default kind of tree, with
2**depth >= leaves.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

from _common import (
    RESULTS,
    comma_list,
    data_folder,
    describe_error,
    environment,
    environment_markdown,
    estimator,
    importable,
    interleaved,
    markdown_table,
    median,
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    write_json,
)

LEARNING_RATE = 0.1
BINS = 255
MIN_SAMPLES_LEAF = 20
WARM_UP_ROWS = 5_000
WARM_UP_ROUNDS = 2


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    task: str
    rows: int
    test_rows: int
    columns: int
    leaves: int = 31
    rounds: int = 100
    repeats: int = 3


CASES = {
    case.name: case
    for case in (
        Case("reg-31", "synthetic", "regression", 1_000_000, 100_000, 28),
        Case("reg-255", "synthetic", "regression", 1_000_000, 100_000, 28, leaves=255),
        Case("binary-31", "synthetic", "binary", 1_000_000, 100_000, 28),
        Case("letter-100", "letter", "multiclass", 16_000, 4_000, 16),
        Case("letter-300", "letter", "multiclass", 16_000, 4_000, 16, rounds=300),
        Case("letter-1000", "letter", "multiclass", 1_000, 4_000, 16, rounds=1000),
        Case("small", "synthetic", "regression", 2_000, 10_000, 20, repeats=9),
    )
}
PREDICT = "predict"
PREDICT_REPEATS = 10
ONE_ROW_CALLS = 20


def signal(X: np.ndarray) -> np.ndarray:
    """Nonlinear function of the first eight columns, with interactions; mean about zero.

    Every column acts by itself too.  A pure product of centered columns is left out on purpose: no
    split on one of its columns gains anything, greedy trees find it by luck only, and R2 then
    differs more between two seeds of one library (.76 to .835) than between libraries.
    """
    return (
        3 * np.sin(2 * X[:, 0])
        + 2 * (X[:, 1] + 1) * (X[:, 2] + 1)
        + 1.5 * np.abs(X[:, 3]) * (X[:, 4] > 0)
        + X[:, 5] ** 2
        + 4 * X[:, 7] * np.exp(-(X[:, 6] ** 2))
        + 0.5 * X[:, 0] * X[:, 5]
        - 3.6
    )


def _synthetic(task: str, rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    if task == "regression":
        return X, signal(X) + rng.standard_normal(rows)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-signal(X)))).astype(np.int64)


def _letters(rows: int, test_rows: int) -> Data:
    with np.load(data_folder() / "letter_recognition.npz", allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    test = slice(16_000, 16_000 + test_rows)
    return Data(X[:rows], y[:rows], X[test], y[test])


@lru_cache(maxsize=1)
def load(source: str, task: str, rows: int, test_rows: int, columns: int) -> Data:
    if source == "letter":
        return _letters(rows, test_rows)
    return Data(
        *_synthetic(task, rows, columns, seed=1), *_synthetic(task, test_rows, columns, seed=2)
    )


def data_of(case: Case) -> Data:
    return load(case.source, case.task, case.rows, case.test_rows, case.columns)


def model_of(library: str, case: Case, threads: int, **settings: Any) -> Any:
    return estimator(
        library, case.task == "regression", 0, threads, learning_rate=LEARNING_RATE, **settings
    )


def lightgbm_model(case: Case, threads: int) -> Any:
    return model_of(
        "lightgbm",
        case,
        threads,
        n_estimators=case.rounds,
        num_leaves=case.leaves,
        max_bin=BINS,
        min_child_samples=MIN_SAMPLES_LEAF,
        reg_lambda=0.0,
    )


def xgboost_model(case: Case, threads: int) -> Any:
    return model_of(
        "xgboost",
        case,
        threads,
        n_estimators=case.rounds,
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=case.leaves,
        max_depth=0,
        max_bin=BINS,
        min_child_weight=MIN_SAMPLES_LEAF if case.task == "regression" else 1,
        reg_lambda=0.0,
    )


def catboost_symmetric_model(case: Case, threads: int) -> Any:
    return model_of(
        "catboost",
        case,
        threads,
        iterations=case.rounds,
        depth=math.ceil(math.log2(case.leaves)),
        border_count=BINS - 1,
        l2_leaf_reg=0.0,
        bootstrap_type="No",
        boosting_type="Plain",
        random_strength=0.0,
        leaf_estimation_iterations=1,
    )


def sklearn_model(case: Case, threads: int) -> Any:
    return model_of(
        "sklearn",
        case,
        threads,
        max_iter=case.rounds,
        max_leaf_nodes=case.leaves,
        max_bins=BINS,
        min_samples_leaf=MIN_SAMPLES_LEAF,
        l2_regularization=0.0,
        early_stopping=False,
    )


def hilboost_model(case: Case, threads: int, **output: str) -> Any:
    return model_of(
        "hilboost",
        case,
        threads,
        n_estimators=case.rounds,
        max_leaf_nodes=case.leaves,
        max_depth=None,
        max_bins=BINS,
        min_samples_leaf=MIN_SAMPLES_LEAF,
        l2_regularization=0.0,
        max_features=1.0,
        subsample=1.0,
        line_search=False,
        early_stopping=False,
        **output,
    )


MODELS: dict[str, Callable[[Case, int], Any]] = {
    "hilboost": hilboost_model,
    "hilboost-shared": partial(hilboost_model, multi_output="shared"),
    "hilboost-separate": partial(hilboost_model, multi_output="separate"),
    "lightgbm": lightgbm_model,
    "xgboost": xgboost_model,
    "sklearn": sklearn_model,
    "catboost-symmetric": catboost_symmetric_model,
}


def package_of(library: str) -> str:
    return library.split("-")[0]


def libraries_for(case: Case, chosen: list[str]) -> list[str]:
    """Hilboost's two ways to many outputs take part only where there are several classes."""
    multiclass = case.task == "multiclass"
    skipped = {"hilboost"} if multiclass else {"hilboost-shared", "hilboost-separate"}
    return [library for library in chosen if library not in skipped]


def fitted(library: str, case: Case, threads: int, data: Data) -> Any:
    return MODELS[library](case, threads).fit(data.X, data.y)


def warm_up(library: str, case: Case, threads: int, data: Data) -> float:
    start = time.perf_counter()
    rows = min(WARM_UP_ROWS, len(data.X))
    small = Data(data.X[:rows], data.y[:rows], data.X_test[:rows], data.y_test[:rows])
    model = fitted(library, replace(case, rounds=WARM_UP_ROUNDS), threads, small)
    predict = model.predict if case.task == "regression" else model.predict_proba
    predict(small.X)
    predict(small.X[:1])
    return time.perf_counter() - start


def quality(model: Any, case: Case, data: Data) -> dict[str, float]:
    if case.task == "regression":
        return {"R2": float(r2_score(data.y_test, np.ravel(model.predict(data.X_test))))}
    chance = np.clip(np.asarray(model.predict_proba(data.X_test), np.float64), 1e-7, 1)
    chance /= chance.sum(axis=1, keepdims=True)
    labels = np.arange(chance.shape[1])
    scores = {"log-loss": float(log_loss(data.y_test, chance, labels=labels))}
    if case.task == "binary":
        return scores | {"AUC": float(roc_auc_score(data.y_test, chance[:, 1]))}
    return scores | {"accuracy": float(accuracy_score(data.y_test, chance.argmax(axis=1)))}


def memory_of(library: str, case: Case, threads: int) -> dict[str, Any]:
    """Worker of a fresh process: peak memory and seconds of one fit after a warm-up."""
    data = data_of(case)
    warm_up(library, case, threads, data)
    before = resident_mb()
    reset_peak_memory()
    start = time.perf_counter()
    with threadpool_limits(threads):
        fitted(library, case, threads, data)
    seconds = time.perf_counter() - start
    peak = peak_memory_mb()
    return {
        "peak_mb": peak,
        "added_mb": None if before is None else peak - before,
        "fresh_seconds": seconds,
    }


def fresh_memory(library: str, case: Case, threads: int) -> dict[str, Any]:
    arguments = ["--worker", case.name, "--libraries", library, "--threads", str(threads)]
    arguments += ["--rows", str(case.rows), "--rounds", str(case.rounds)]
    return run_fresh(__file__, [*arguments, "--test-rows", str(case.test_rows)])


def warmed(case: Case, libraries: list[str], threads: int, data: Data) -> dict[str, Any]:
    """Warm-up seconds of each library, or its error as text."""
    found: dict[str, Any] = {}
    for library in libraries:
        try:
            found[library] = warm_up(library, case, threads, data)
        except Exception as error:
            found[library] = describe_error(error)
            print(f"  {library}: {found[library]}", flush=True)
    return found


def add_ratios(records: list[dict[str, Any]], reference: str) -> None:
    base = next((r["median"] for r in records if r["library"] == reference), None)
    for record in records:
        known = base is not None and record["median"] is not None
        record["ratio"] = record["median"] / base if known else None
        record["ratio_to"] = reference


def fit_case(
    case: Case, chosen: list[str], threads: int, memory: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    print(f"{case.name}: {case.rows:,} x {case.columns}, {case.rounds} rounds", flush=True)
    data = data_of(case)
    libraries = libraries_for(case, chosen)
    warm = warmed(case, libraries, threads, data)
    ready = [library for library in libraries if not isinstance(warm[library], str)]
    with threadpool_limits(threads):
        seconds, models, errors = interleaved(
            {name: lambda name=name: fitted(name, case, threads, data) for name in ready},
            case.repeats,
            lambda name, repeat, spent: print(
                f"  {name} repeat {repeat + 1}: {spent:.3f} s", flush=True
            ),
        )
    errors |= {name: text for name, text in warm.items() if isinstance(text, str)}
    records = []
    for library in libraries:
        times = seconds.get(library, [])
        record = {
            "what": "fit",
            "case": case.name,
            "library": library,
            "task": case.task,
            "rows": case.rows,
            "columns": case.columns,
            "leaves": case.leaves,
            "rounds": case.rounds,
            "seconds": times,
            "median": median(times),
        }
        if library in errors:
            record["error"] = errors[library]
        else:
            record["warm_up_seconds"] = warm[library]
            record["quality"] = quality(models[library], case, data)
            record |= fresh_memory(library, case, threads) if memory else {}
        records.append(record)
    add_ratios(records, "lightgbm")
    return records, models


def predict_action(library: str, model: Any, X: np.ndarray, threads: int) -> Callable[[], Any]:
    if package_of(library) == "catboost":
        return lambda: model.predict(X, thread_count=threads)
    return lambda: model.predict(X)


def predict_case(
    case: Case, models: dict[str, Any], threads: int, repeats: int
) -> list[dict[str, Any]]:
    X = data_of(case).X_test
    batches = {f"{len(X):,} rows": (X, 1), "one row": (X[:1], ONE_ROW_CALLS)}
    found: list[dict[str, Any]] = []
    for label, (batch, calls) in batches.items():
        print(f"predict {label}", flush=True)
        actions = {
            name: predict_action(name, model, batch, threads) for name, model in models.items()
        }
        with threadpool_limits(threads):
            interleaved(actions, 1)
            seconds, _, errors = interleaved(actions, repeats, calls=calls)
        records = [
            {
                "what": "predict",
                "case": label,
                "library": name,
                "seconds": seconds[name],
                "median": median(seconds[name]),
                **({"error": errors[name]} if name in errors else {}),
            }
            for name in models
        ]
        add_ratios(records, "xgboost")
        found += records
    return found


def _fit_rows(records: list[dict[str, Any]], metrics: list[str]) -> list[list[Any]]:
    rows = []
    for r in sorted(records, key=lambda r: r["median"] or math.inf):
        spread = f"{min(r['seconds']):.3g}-{max(r['seconds']):.3g}" if r["seconds"] else None
        scores = [round(r["quality"][m], 5) if "quality" in r else None for m in metrics]
        tail = [r.get("peak_mb"), r.get("added_mb"), r.get("warm_up_seconds")]
        rows.append([r["library"], r["median"], spread, r["ratio"], *scores, *tail])
    return rows


def _fit_section(records: list[dict[str, Any]]) -> str:
    first = records[0]
    metrics = next((list(r["quality"]) for r in records if "quality" in r), [])
    header = ["library", "fit s (median)", "range", "ratio to LightGBM", *metrics]
    header += ["peak MiB", "added by fit MiB", "warm-up s"]
    title = (
        f"## {first['case']}: {first['rows']:,} x {first['columns']} {first['task']}, "
        f"{first['rounds']} rounds, {first['leaves']} leaves, "
        f"{max(len(r['seconds']) for r in records)} repeats"
    )
    return f"{title}\n\n{markdown_table(header, _fit_rows(records, metrics))}{_errors(records)}"


def _predict_section(records: list[dict[str, Any]]) -> str:
    header = ["library", "median ms", "ratio to XGBoost"]
    rows = [
        [r["library"], r["median"] and 1000 * r["median"], r["ratio"]]
        for r in sorted(records, key=lambda r: r["median"] or math.inf)
    ]
    calls = max(len(r["seconds"]) for r in records)
    title = f"## Prediction, {records[0]['case']}, {calls} timed calls, models of reg-31"
    return f"{title}\n\n{markdown_table(header, rows)}{_errors(records)}"


def _errors(records: list[dict[str, Any]]) -> str:
    lines = [f"- {r['library']}: `{r['error']}`" for r in records if "error" in r]
    return "\n\n" + "\n".join(lines) if lines else ""


def render(results: dict[str, Any]) -> str:
    """Markdown of a result file."""
    intro = (
        "# Tree boosting at equal settings\n\n"
        + environment_markdown(results["environment"])
        + "\n\n"
        f"Learning rate {LEARNING_RATE}, {BINS} bins, at least {MIN_SAMPLES_LEAF} rows per leaf, "
        "no L2 penalty, no early stopping. Each library makes one small untimed fit first "
        f"({WARM_UP_ROUNDS} rounds on at most {WARM_UP_ROWS:,} rows), so that fit times exclude "
        "compilation. The column *warm-up s* shows the time of this fit. Libraries take turns; "
        "times are medians. Peak memory is measured in a fresh process with the same data, "
        "starting just before the fit."
    )
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in results["records"]:
        groups.setdefault((record["what"], record["case"]), []).append(record)
    sections = [
        (_fit_section if what == "fit" else _predict_section)(records)
        for (what, _), records in groups.items()
    ]
    return "\n\n".join([intro, *sections]) + "\n"


def save(out: Path, results: dict[str, Any]) -> None:
    write_json(out / "trees.json", results)
    (out / "trees.md").write_text(render(results))


def sized(case: Case, options: argparse.Namespace) -> Case:
    """Apply the size options; cases of fixed or small size only ever shrink."""
    rows = options.rows or case.rows
    free = case.rows >= 1_000_000
    return replace(
        case,
        rows=rows if free else min(rows, case.rows),
        test_rows=min(options.test_rows or case.test_rows, case.test_rows),
        rounds=options.rounds or case.rounds,
        repeats=options.repeats or case.repeats,
    )


def arguments() -> argparse.Namespace:
    names = [*CASES, PREDICT]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=comma_list, default=names, help=",".join(names))
    parser.add_argument("--libraries", type=comma_list, default=list(MODELS))
    parser.add_argument("--rows", type=int, help="training rows of the synthetic cases")
    parser.add_argument("--test-rows", type=int, help="at most so many held-out rows")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--repeats", type=int, help="timed fits (default 3; small: 9)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-memory", action="store_true", help="skip the fresh processes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the Markdown again")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.cases) - set(names) | set(options.libraries) - set(MODELS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def available(libraries: list[str]) -> list[str]:
    found = {package: importable(package) for package in map(package_of, libraries)}
    for package, there in found.items():
        if not there:
            print(f"{package} is not installed: left out", flush=True)
    return [library for library in libraries if found[package_of(library)]]


def main() -> None:
    options = arguments()
    if options.worker:
        case = sized(CASES[options.worker], options)
        print(json.dumps(memory_of(options.libraries[0], case, options.threads)))
        return
    if options.render:
        results = json.loads((options.out / "trees.json").read_text())
        (options.out / "trees.md").write_text(render(results))
        return
    chosen = available(options.libraries)
    results = {"environment": environment(options.threads), "records": []}
    wanted = [name for name in CASES if name in options.cases]
    models: dict[str, Any] = {}
    for name in wanted:
        case = sized(CASES[name], options)
        records, last = fit_case(case, chosen, options.threads, not options.no_memory)
        models = last if name == "reg-31" else models
        results["records"] += records
        save(options.out, results)
    if PREDICT in options.cases:
        case = sized(CASES["reg-31"], options)
        if not models:
            once = replace(case, repeats=1)
            models = fit_case(once, chosen, options.threads, memory=False)[1]
        repeats = options.repeats or PREDICT_REPEATS
        results["records"] += predict_case(case, models, options.threads, repeats)
        save(options.out, results)
    print(f"written: {options.out / 'trees.json'} and trees.md", flush=True)


if __name__ == "__main__":
    main()

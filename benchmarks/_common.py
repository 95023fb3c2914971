"""Shared helpers of the benchmarks: data, machine, timing, command line, results and pages."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"

Record = dict[str, Any]

DISTRIBUTIONS = {
    "hilboost": ("hilboost",),
    "lightgbm": ("lightgbm",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "catboost": ("catboost",),
    "sklearn": ("scikit-learn",),
    "chimeraboost": ("chimeraboost",),
    "ngboost": ("ngboost",),
    "lightgbmlss": ("lightgbmlss",),
    "numpy": ("numpy",),
    "scipy": ("scipy",),
}


def data_folder() -> Path:
    """Return ``$HILBOOST_DATA`` or, without it, ``../shared/data`` beside the checkout."""
    named = os.environ.get("HILBOOST_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        raise FileNotFoundError(
            "benchmark data not found: set HILBOOST_DATA to the folder with the .npz files"
        )
    return folder


@cache
def arrays(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file in the data folder."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def parts(name: str, *keys: str) -> tuple[np.ndarray, ...]:
    """Arrays ``KEY_train`` and ``KEY_test`` of a file, one below the other."""
    found = arrays(name)
    return tuple(np.concatenate([found[f"{key}_train"], found[f"{key}_test"]]) for key in keys)


def importable(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def version_of(package: str) -> str | None:
    for distribution in DISTRIBUTIONS.get(package, (package,)):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    module = sys.modules.get(package)
    return getattr(module, "__version__", None)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gb() -> float | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    return round(size / 2**30, 1)


def _commit() -> str | None:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def environment(threads: int) -> dict[str, Any]:
    """Describe the machine, the date and the versions behind a set of results."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "logical_cpus": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "threads": threads,
        "load_average_at_start": [round(load, 2) for load in os.getloadavg()],
        "commit": _commit(),
        "versions": {name: version_of(name) for name in DISTRIBUTIONS},
    }


def machine(facts: Record) -> str:
    return f"{facts['cpu']}, {facts['logical_cpus']} logical CPUs, {facts['memory_gb']} GB"


def circumstances(threads: int) -> Record:
    """What a record says about its run, if the runs of a page belong to several days."""
    facts = environment(threads)
    return {
        "date": facts["date"],
        "machine": machine(facts),
        "versions": facts["versions"],
        "commit": facts["commit"],
        "load_average": round(os.getloadavg()[0], 2),
    }


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def describe_error(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"


def _status_mb(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    values = [float(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")]
    return values[0] if values else None


def reset_peak_memory() -> None:
    """Start the peak count of this process anew, where the system can do so (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def resident_mb() -> float | None:
    return _status_mb("VmRSS")


def peak_memory_mb() -> float:
    """Peak resident memory since the start or the last reset, in MiB."""
    peak = _status_mb("VmHWM")
    if peak is not None:
        return peak
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def run_fresh(script: str | Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Run ``script`` in a new interpreter and return the JSON object on its last output line."""
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return {"error": tail[0][:200]}
    return json.loads(lines[-1])


LIBRARIES: dict[str, tuple[str, str, str, str, Record]] = {
    "hilboost": ("hilboost", "Boosting", "random_state", "n_jobs", {}),
    "lightgbm": ("lightgbm", "LGBM", "random_state", "n_jobs", {"verbose": -1}),
    "xgboost": ("xgboost", "XGB", "random_state", "n_jobs", {}),
    "catboost": (
        "catboost",
        "CatBoost",
        "random_seed",
        "thread_count",
        {"verbose": 0, "allow_writing_files": False},
    ),
    "sklearn": ("sklearn.ensemble", "HistGradientBoosting", "random_state", "", {}),
    "chimeraboost": ("chimeraboost", "ChimeraBoost", "random_state", "thread_count", {}),
}
"""Module, beginning of the names of estimators, names of seed and threads, and silence."""


def estimator(library: str, regression: bool, seed: int, threads: int, **parameters: Any) -> Any:
    """Create a silent regressor or classifier of a library; scikit-learn's has no ``threads``."""
    module, name, seed_name, threads_name, silent = LIBRARIES[library]
    name += "Regressor" if regression else "Classifier"
    given = silent | {seed_name: seed} | ({threads_name: threads} if threads_name else {})
    return getattr(importlib.import_module(module), name)(**given, **parameters)


def peer_trees(n_trees: int, **given: Any) -> Any:
    """Create a model of trees of 31 leaves with the settings of LightGBM and XGBoost."""
    from hilboost import BoostingRegressor

    settings = {"learning_rate": 0.1, "max_leaf_nodes": 31, **given}
    return BoostingRegressor(
        learner="tree",
        n_estimators=n_trees,
        min_samples_leaf=20,
        l2_regularization=0.0,
        subsample=1.0,
        max_features=1.0,
        early_stopping=False,
        random_state=0,
        **settings,
    )


def median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def write_json(path: Path, content: Any) -> None:
    """Write through a temporary file so that an interrupted run never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".term")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)


def publish(path: Path, content: Mapping[str, Any], page: str) -> None:
    """Write results and their page, and print the page."""
    write_json(path, content)
    path.with_suffix(".md").write_text(page.rstrip("\n") + "\n")
    print(page)


def study_options(about: str | None, quick: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=comma_list, default=[], help="cases with all these texts")
    parser.add_argument("--again", action="store_true", help="measure these cases anew")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no case after this time"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--list", action="store_true", help="print the cases that are missing")
    parser.add_argument("--render", action="store_true", help="only write the page again")
    if quick:
        parser.add_argument(
            "--quick", action="store_true", help="smoke test, in a temporary folder"
        )
    return parser.parse_args()


def study(
    name: str,
    cases: Iterable[Record],
    measure: Callable[..., Record],
    page: Callable[[list[Record], str], str] | None,
    *,
    about: str | None = None,
    threads: int = 1,
    quick: Callable[..., Record] | None = None,
) -> None:
    """Measure the cases that ``results/NAME.json`` lacks, and write ``NAME.md`` from all records.

    A record is a case and what ``measure(**case)`` returns.  The file is saved after each case, so
    that a later run goes on from there.  ``page`` takes the records and a line on the environment;
    ``quick`` measures a case with little data.
    """
    options = study_options(about, quick is not None)
    if quick is not None and options.quick:
        measure, options.out = quick, Path(tempfile.mkdtemp())
    path = options.out / f"{name}.json"
    content: Record = {"environment": environment(threads), "records": []}
    if path.exists():
        content = json.loads(path.read_text())
    wanted = [
        case
        for case in cases
        if all(any(text in str(value) for value in case.values()) for text in options.only)
    ]
    records: list[Record] = content["records"]
    if options.again:
        records[:] = [r for r in records if not any(case.items() <= r.items() for case in wanted)]
    missing = [case for case in wanted if not any(case.items() <= r.items() for r in records)]
    until = time.perf_counter() + options.seconds
    for case in [] if options.render else missing:
        if options.list:
            print(case)
        elif time.perf_counter() < until:
            records.append({**case, **measure(**case)})
            print(str(records[-1])[:300], flush=True)
            write_json(path, content)
    if page is not None and records and not options.list:
        facts = environment_markdown(content["environment"])
        path.with_suffix(".md").write_text(page(records, facts).rstrip("\n") + "\n")
        print(f"written: {path} and {path.stem}.md")


def standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [header, rule, *([cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def environment_markdown(facts: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {found}" for name, found in facts["versions"].items() if found)
    return (
        f"{facts['date']}; {facts['cpu']}, {facts['logical_cpus']} logical CPUs, "
        f"{facts['memory_gb']} GB; {facts['threads']} threads for every library; "
        f"load average at the start {facts['load_average_at_start'][0]}; "
        f"Python {facts['python']}; {versions}."
    )


def sources(records: Sequence[Record]) -> str:
    """Days, machines, threads and versions behind records with their circumstances."""
    dates = sorted(record["date"][:10] for record in records)
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    machines = " / ".join(sorted({record["machine"] for record in records}))
    threads = ", ".join(sorted({str(record["threads"]) for record in records}))
    versions: dict[str, set[str]] = {}
    for record in records:
        for module, version in record.get("versions", {}).items():
            if version:
                versions.setdefault(module, set()).add(version)
    named = ", ".join(f"{module} {'/'.join(sorted(v))}" for module, v in sorted(versions.items()))
    load = max(record["load_average"] for record in records)
    return (
        f"{days}; {machines}; {threads} threads for every method; load average before a run at "
        f"most {load}; {named}."
    )


def failures_section(records: Iterable[Record], names: Sequence[str]) -> str:
    rows = [
        [*(r[name] for name in names), f"`{r['failure'].replace('|', '/')}`"]
        for r in records
        if "failure" in r
    ]
    return f"## Not finished\n\n{markdown_table([*names, 'reason'], rows)}" if rows else ""


def by(records: Iterable[Record], name: str) -> dict[Any, list[Record]]:
    """Group records by a field, in the order of its first values."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[name], []).append(record)
    return groups


def comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

"""What ``hilboost reproduce`` does: measure claims, compare them, and write a page about each."""

from __future__ import annotations

import json
import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from reproductions.claims import Claim, Value, claim_named, function_of, read_claims
from reproductions.pages import write_figure, write_page, write_summary

from hilboost.cli.errors import CliError, UsageError, note
from hilboost.cli.options import ReproduceJob

__all__ = ["list_claims", "run_reproduce", "verdict"]

_PACKAGES = ("hilboost", "numpy", "scipy", "scikit-learn", "sklearn", "numba")


def list_claims(folder: Path) -> str:
    """List the claims, one per line: key, minutes, source, and title."""
    claims = read_claims(folder)
    width = max(len(claim.key) for claim in claims)
    return "\n".join(
        f"{claim.key:{width}}  {claim.minutes:5g} min  {claim.source}, {claim.where}: {claim.title}"
        for claim in claims
    )


def run_reproduce(folder: Path, job: ReproduceJob) -> str:
    """Measure a claim, write its page, and summarize the results."""
    claim = claim_named(job.key, read_claims(folder))
    if job.runs is not None and job.recorded is not None:
        raise UsageError("--runs and --recorded exclude each other; use only one of them.")
    if job.recorded is None and claim.minutes >= 1:
        note(f"{claim.runs} runs take about {claim.minutes:g} minutes on two cores.")
    began = time.perf_counter()
    with function_of(claim) as function:
        try:
            measured = function(runs=job.runs or claim.runs, recorded=job.recorded)
        except FileNotFoundError as error:
            raise CliError(f"{error}.") from error
    facts = _facts(claim, measured, time.perf_counter() - began)
    out = job.out or claim.path.parent / "results"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{claim.key}.json").write_text(
        json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    write_figure(facts, out / f"{claim.key}.svg")
    write_page(facts, out / f"{claim.key}.md")
    if job.out is None:
        write_summary(folder)
    lines = [f"{value['name']}: {value['verdict']}" for value in facts["values"]]
    return "\n".join([*lines, f"Saved the page to '{out / claim.key}.md'."])


def verdict(value: Value, measured: float | None) -> str:
    """Compare a measured value with the published one."""
    if value.missing:
        return f"not measured: {value.missing}"
    if measured is None:
        return "not measured: not run yet"
    if abs(measured - value.published) <= value.tolerance:
        return "reproduced"
    if value.better and (measured < value.published) == (value.better == "lower"):
        return "better than published"
    return "differs"


def _facts(claim: Claim, measured: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Collect the content of the page and the figure as plain data."""
    known = {value.name for value in claim.values}
    odd = set(measured["values"]) - known
    if odd:
        raise CliError(
            f"{claim.path} does not contain the measured value {sorted(odd)[0]!r}; add it, or "
            "rename the measured value."
        )
    recorded = measured.get("recorded")
    return {
        "key": claim.key,
        "source": claim.source,
        "where": claim.where,
        "title": claim.title,
        "measure": claim.measure,
        "protocol": claim.protocol,
        "notes": measured.get("notes", []),
        "published_runs": claim.runs,
        "recorded": recorded,
        "date": recorded or datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None if recorded else round(seconds, 1),
        "machine": measured.get("machine")
        or f"{platform.machine()}, {os.cpu_count()} logical CPUs",
        "versions": {
            name: number
            for name, number in (measured.get("versions") or _versions()).items()
            if name in _PACKAGES and number
        },
        "values": [
            _compared(value, measured["values"].get(value.name, [])) for value in claim.values
        ],
        "tables": measured.get("tables", []),
        "curves": measured.get("curves", {}),
        "axes": measured.get("axes", ["", ""]),
    }


def _compared(value: Value, measured: list[Any]) -> dict[str, Any]:
    """A published value beside the mean of its runs."""
    runs = [float(x) for x in measured]
    mean = float(np.mean(runs)) if runs else None
    return {
        "name": value.name,
        "published": value.published,
        "published_deviation": value.deviation,
        "tolerance": value.tolerance,
        "measured": mean,
        "measured_deviation": float(np.std(runs, ddof=1)) if len(runs) > 1 else None,
        "runs": len(runs),
        "verdict": verdict(value, mean),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

"""Geurts, Wehenkel & d'Alché-Buc 2007: the group ``g2007`` of ``benchmarks/structured.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import structured
from _common import environment

THREADS = 2
NAMES = {
    "OK3 single": "OK3 (single trees)",
    "OK3 + bagging": "OK3 + bagging",
    "OK3 + ET": "OK3 + ET",
    "OK3 + OKBoost": "OK3 + OKBoost",
    "OK3-et + OKBoost": "OK3-et + OKBoost",
}
FOUR = ", 4 columns"
"""Of Friedman1's ten columns, √10 rounded up."""


def records(
    group: str, name: str, methods: list[str], runs: int, recorded: Path | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs of a group, and what the page says about their origin."""
    if recorded is not None:
        path = recorded / "structured.json"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; leave out --recorded to measure")
        found = [
            record
            for record in json.loads(path.read_text())["records"]
            if (record["group"], record["set"]) == (group, name)
            and record["method"] in methods
            and "failure" not in record
            and not record["quick"]
        ]
        if not found:
            raise FileNotFoundError(f"{path} has no such runs; leave out --recorded to measure")
        return found, {
            "recorded": max(record["date"] for record in found),
            "machine": found[0]["machine"],
            "versions": found[0]["versions"],
        }
    facts = environment(THREADS)
    structured.warm_up(THREADS)
    run = structured.GROUPS[group].run
    found = [
        {"method": method, "split": split, **run(name, method, split, False, THREADS)}
        for split in range(runs)
        for method in methods
    ]
    return found, {"versions": facts["versions"]}


def table(
    group: str, name: str, methods: dict[str, str], runs: int, recorded: Path | None
) -> dict[str, Any]:
    found, origin = records(group, name, list(methods), runs, recorded)
    values: dict[str, list[float]] = {}
    for record in found:
        for score, title in {"err_phi": "Err_φ", "err_y": "Err_Y"}.items():
            values.setdefault(f"{methods[record['method']]}, {title}", []).append(record[score])
    return {"values": values, **origin}


def friedman1(runs: int, recorded: Path | None) -> dict[str, Any]:
    """Ten learning samples of 300, one test sample of 1,000."""
    random = {"OK3 + ET", "OK3-et + OKBoost"}
    methods = {name + FOUR * (name in random): title for name, title in NAMES.items()}
    result = table("friedman", "friedman1", methods, runs, recorded)
    result["notes"] = [
        "The samples and their noise are drawn anew; single trees, which leave nothing to choose, "
        "show by how much such draws differ.",
        "Random cuts look at √d columns, of ten here: 4, since the published figures come out with "
        "these. With √10 rounded down to 3, as hilboost has it by default, extra-trees have 6.97 "
        "and OK3-et + OKBoost 3.82.",
    ]
    return result


def images(runs: int, recorded: Path | None) -> dict[str, Any]:
    """200 images to learn and 800 to test, five folds."""
    result = table("usps", "usps_test", NAMES, runs, recorded)
    result["notes"] = [
        "The paper does not say which 1,000 digits of USPS it took; here they are the first "
        "of the test file."
    ]
    return result


def network(runs: int, recorded: Path | None) -> dict[str, Any]:
    """Nothing can be measured."""
    return {
        "values": {},
        "notes": [
            "The benchmarks complete other networks, drugs with their targets and yeast proteins "
            "(group `links`); they do not stand in for this one."
        ],
    }


def figure1(runs: int, recorded: Path | None) -> dict[str, Any]:
    """Errors along the stages; the paper's statements about them, as 1 (true) or 0."""
    plan = [method for _, method, _, _ in structured.GROUPS["figure1"].plan(False)]
    found, origin = records("figure1", "usps_test", plan, 1, recorded)
    curves = {record["method"]: record["curve"] for record in found}
    values: dict[str, list[float]] = {}
    rates = [f"ν={rate:g}" for rate in structured.images.FIGURE_RATES[::-1]]
    both = [rate for rate in rates if {f"{rate} J=1", f"{rate} J=20"} <= set(curves)]
    least = both[0] if both else "ν=0.01"  # records may not have them all
    fast, slow = curves.get("ν=1 J=20"), curves.get(f"{least} J=20")
    if fast and slow:
        test = [[point[2] for point in curve] for curve in (fast, slow)]
        values["test error rises after a few stages at ν = 1"] = [float(test[0][-1] > min(test[0]))]
        values["a smaller ν has the smaller minimum"] = [float(min(test[1]) < min(test[0]))]
        pairs = zip((fast, slow), test, strict=True)
        best = [curve[errors.index(min(errors))][0] for curve, errors in pairs]
        values["and has it at a larger M"] = [float(best[1] > best[0])]
    small, large = curves.get(f"{least} J=1"), slow
    if small and large:
        values["the learning error falls faster with larger trees"] = [
            float(large[-1][1] < small[-1][1])
        ]
    if fast:
        at = [
            [point[column] for point in fast].index(min(point[column] for point in fast))
            for column in (2, 4)
        ]
        close = abs(fast[at[0]][4] - fast[at[1]][4]) < 0.02
        values["Err_Y is least where Err_φ is (within .02)"] = [float(close)]
    shown = {
        f"{name} {sample}": [[point[0], point[i]] for point in curves[name]]
        for name in ("ν=1 J=20", "ν=0.1 J=20", f"{least} J=20", f"{least} J=1")
        if name in curves
        for sample, i in (("test", 2),)
    }
    return {
        "values": values,
        "curves": shown,
        "axes": ["stages M", "Err_φ (TS)"],
        "notes": ["The paper prints curves, not numbers; these are its statements about them."],
        **origin,
    }

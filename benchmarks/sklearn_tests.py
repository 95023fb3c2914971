"""scikit-learn's own tests of its gradient boosting, run on hilboost.

Run ``python benchmarks/sklearn_tests.py``.  The test files are those of the installed scikit-learn.
A shim gives hilboost's estimators the names of scikit-learn's classes and parameters, and nothing
else; what scikit-learn's private classes do is tested by the same files, and passes by itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import sklearn

from _common import RESULTS, write_json

SOURCE = Path(sklearn.__file__).parent / "ensemble"
FILES = (
    "_hist_gradient_boosting/tests/test_gradient_boosting.py",
    "_hist_gradient_boosting/tests/test_monotonic_constraints.py",
    "_hist_gradient_boosting/tests/test_warm_start.py",
    "tests/test_gradient_boosting.py",
)
SHIM = Path(__file__).parent / "_sklearn_shim.py"
IMPORT = re.compile(
    r"from sklearn\.ensemble import (\([^)]*Boosting[^)]*\)|[^\n]*Boosting[^\n]*)\n"
)
_ABSENT = r"not in hilboost|has no (attribute|argument)|parameter of Boosting"
# Why a test fails, by its message; the first that matches.
CAUSES = (
    ("a private attribute or class of scikit-learn", r"has no attribute '_|Mock|sklearn\._loss"),
    (
        "a parameter or attribute that hilboost does not have",
        _ABSENT,
    ),
    ("the wording of a message", r"(?i)regex(?: pattern)? did not match|Pattern .* not found"),
    ("a warning that only scikit-learn issues", r"DID NOT WARN"),
    ("an error that only scikit-learn raises", r"DID NOT RAISE"),
)

# Why tests with another result are not wanted here, by their names and messages.
OTHERS = (
    (
        "`scoring` on the training rows: `eval_metric` requires held-out rows, because a metric of "
        "the training rows improves as long as the model overfits",
        r"test_early_stopping_\w+\[.*-None-True",
    ),
    (
        "`n_iter_` counts the stages after the best one, and a warm start adds at least one: the "
        "model keeps the best stage, and nothing is added if nothing improves",
        r"test_early_stopping_\w+\[|test_warm_start_early_stopping|boosting_validation_fraction",
    ),
    (
        "categories that were not seen are missing values: where missing values occur in `fit`, "
        "they have their own side of a split, and other levels go to the larger side",
        r"test_unknown_categories_nan",
    ),
    (
        "own validation rows stop where scikit-learn's split with the same seed stops: a seed "
        "holds out other rows here",
        r"test_X_val_in_fit",
    ),
    (
        "`apply` has three axes: it has one column for each tree",
        r"test_iris|test_classification_toy",
    ),
    (
        "predictions that were recorded digit by digit, from splits between all values",
        r"exact_backward_compat",
    ),
    ("the text of `verbose`", r"verbose_output"),
    (
        "`scoring` is a function of an estimator and rows: functions of targets and predictions "
        "are metrics (`FunctionMetric`)",
        r"test_random_seeds_warm_start",
    ),
    (
        "a training loss that grows, as it does with `learning_rate=100`, is an error",
        r"test_zero_division_hessians",
    ),
    (
        '`class_weight="balanced"` and the same `sample_weight` give equal scores up to 5e-4 only',
        r"test_class_weights",
    ),
    (
        "an interaction has the right sign at each of 1,125 points: other splits miss it "
        "at one of them",
        r"test_interaction_cst_numerically",
    ),
)


def reason_of(test: str) -> str:
    """Why another result is not wanted."""
    return next((why for why, pattern in OTHERS if re.search(pattern, test)), "not explained")


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    """Outcome and message of every test."""
    for name in FILES:
        text = (SOURCE / name).read_text()
        changed = IMPORT.sub(r"from _sklearn_shim import \1\n", text)
        assert changed != text, name
        (folder / f"{Path(name).parts[0].strip('_')}_{Path(name).name}").write_text(changed)
    for old in folder.glob("*_test_*.py"):
        old.rename(folder / f"test_{old.name}")
    (folder / SHIM.name).write_text(SHIM.read_text())
    (folder / "conftest.py").write_text("from sklearn.conftest import *\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=out.xml"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    subprocess.run(command, cwd=folder, env=env, check=False)
    found = {}
    for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        failed = next((one for one in case if one.tag in ("failure", "error")), None)
        skipped = any(one.tag == "skipped" for one in case)
        message = "" if failed is None else (failed.get("message") or "") + (failed.text or "")
        found[name] = ("skipped" if skipped else "failed" if message else "passed", message)
    return found


def cause_of(message: str) -> str:
    """Why a test fails."""
    last = message.split("\n")[0]
    for cause, pattern in CAUSES:
        if re.search(pattern, last):
            return cause
    return "other behavior"


def main() -> None:
    """Run the tests, write JSON and Markdown, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = outcomes(Path(folder))
    records: list[dict[str, Any]] = [
        {
            "test": name,
            "outcome": outcome,
            "cause": cause_of(message) if outcome == "failed" else None,
            "reason": reason_of(name)
            if outcome == "failed" and cause_of(message) == "other behavior"
            else None,
            "message": message.split("\n")[0][:200] or None,
        }
        for name, (outcome, message) in found.items()
    ]
    totals = Counter(record["outcome"] for record in records)
    causes = Counter(record["cause"] for record in records if record["cause"])
    facts = {"scikit-learn": sklearn.__version__, "totals": totals, "causes": causes}
    write_json(RESULTS / "sklearn_tests.json", {**facts, "records": records})
    rows = "\n".join(f"| fails: {cause} | {count} |" for cause, count in causes.most_common())
    reasons = Counter(record["reason"] for record in records if record["reason"])
    others = "\n".join(f"| {count} | {reason} |" for reason, count in reasons.most_common())
    text = (
        "# scikit-learn's tests of its boosting, run on hilboost\n\n"
        f"scikit-learn {sklearn.__version__}; {len(records)} tests.\n\n"
        "| outcome | tests |\n"
        "| --- | ---: |\n"
        f"| passes | {totals['passed']} |\n"
        f"| skipped | {totals['skipped']} |\n"
        f"{rows}\n\n"
        "What the tests with other behavior expect, and what hilboost does instead:\n\n"
        f"| tests | expected |\n| ---: | --- |\n{others}\n"
    )
    (RESULTS / "sklearn_tests.md").write_text(text)
    print(text)
    print(json.dumps([r for r in records if r["cause"]], indent=0)[:30000])


if __name__ == "__main__":
    main()

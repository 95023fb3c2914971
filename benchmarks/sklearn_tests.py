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
            "message": message.split("\n")[0][:200] or None,
        }
        for name, (outcome, message) in found.items()
    ]
    totals = Counter(record["outcome"] for record in records)
    causes = Counter(record["cause"] for record in records if record["cause"])
    facts = {"scikit-learn": sklearn.__version__, "totals": totals, "causes": causes}
    write_json(RESULTS / "sklearn_tests.json", {**facts, "records": records})
    rows = "\n".join(f"| fails: {cause} | {count} |" for cause, count in causes.most_common())
    other = [r["test"].partition("::")[2] for r in records if r["cause"] == "other behavior"]
    others = sorted({name.partition("[")[0] for name in other})
    text = (
        "# scikit-learn's tests of its boosting, run on hilboost\n\n"
        f"scikit-learn {sklearn.__version__}; {len(records)} tests.\n\n"
        "| outcome | tests |\n"
        "| --- | ---: |\n"
        f"| passes | {totals['passed']} |\n"
        f"| skipped | {totals['skipped']} |\n"
        f"{rows}\n\n"
        "Other behavior: " + (", ".join(f"`{name}`" for name in others) or "none") + ".\n"
    )
    (RESULTS / "sklearn_tests.md").write_text(text)
    print(text)
    print(json.dumps([r for r in records if r["cause"]], indent=0)[:30000])


if __name__ == "__main__":
    main()

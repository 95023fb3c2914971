"""Candidate and exact decoding of strings: share of correct strings, and edit distances.

Run ``python benchmarks/string_preimages.py``.  An interrupted run goes on; delete the JSON file to
start anew.  The data need no download.

Words with one random error each are corrected.  The words are those of Python's language reference
(``pydoc_data.topics``), 3 to 12 letters long.  Inputs are the counts of the 1-, 2- and 3-grams of
the misspelled word.  Either no test word occurs in training ("new words"), or all do, with other
errors ("known words").

Labels begin with ``^`` and end with ``$``, so that n-grams tell where a string begins and ends.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pydoc_data.topics import topics
from string import ascii_lowercase
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from _common import RESULTS, environment, environment_markdown, markdown_table, write_json
from hilboost import OutputKernelBoostingRegressor
from hilboost.core.errors import DecodeWarning
from hilboost.outputs import Strings

SEEDS, TESTED, ERRORS = range(2), 200, 2
SPACES: dict[str, Callable[[], Strings]] = {
    "counts of 1- and 2-grams": lambda: Strings((1, 2), normalize=False),
    "normalized counts of 1- and 2-grams": lambda: Strings((1, 2)),
    "counts of 2-grams": lambda: Strings(2, normalize=False),
}
WAYS = ("nearest", "cosine", "exact", "exact_cosine")
Split = tuple[Any, list[str], Any, list[str]]


def misspelled(word: str, rng: np.random.Generator) -> str:
    """Replace, insert, omit or swap letters at one place."""
    kind, i = rng.integers(4), int(rng.integers(len(word)))
    letter = ascii_lowercase[rng.integers(26)]
    if kind == 0:
        return word[:i] + letter + word[i + 1 :]
    if kind == 1:
        return word[:i] + letter + word[i:]
    if kind == 2:
        return word[:i] + word[i + 1 :]
    return word[:i] + word[i : i + 2][::-1] + word[i + 2 :]


def spelling(seed: int, known: bool) -> Split:
    found = Counter(re.findall(r"\b[a-z]{3,12}\b", " ".join(topics.values())))
    words = sorted(word for word, n in found.items() if n >= 3)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(words))
    tested = [words[i] for i in order[:TESTED]]
    trained = [words[i] for i in order[0 if known else TESTED :] for _ in range(ERRORS)]
    inputs = [[f"^{misspelled(word, rng)}$" for word in some] for some in (trained, tested)]
    features = Strings((1, 3), normalize=False).fit(inputs[0])
    X, X_test = (features.encode(some) for some in inputs)
    return X, [f"^{word}$" for word in trained], X_test, [f"^{word}$" for word in tested]


DATA: dict[str, Callable[[int], Split]] = {
    "new words": lambda seed: spelling(seed, known=False),
    "known words": lambda seed: spelling(seed, known=True),
}


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def measure(data: str, space: str, seed: int) -> list[dict[str, Any]]:
    X, y, X_test, truth = DATA[data](seed)
    model = OutputKernelBoostingRegressor(
        SPACES[space](), learner=Ridge(alpha=3.0), n_estimators=1, learning_rate=1.0
    ).fit(X, y)
    raw, records = model.predict_embedding(X_test), []
    model.output_.decode(raw[:1], "exact")  # compile
    for way in WAYS:
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DecodeWarning)
            found = model.output_.decode(raw, way)
        seconds = time.perf_counter() - start
        stopped = [re.search(r"for (\d+) of", str(one.message)) for one in caught]
        records.append(
            {
                "data": data,
                "space": space,
                "seed": seed,
                "decode": way,
                "correct": float(np.mean([a == b for a, b in zip(found, truth, strict=True)])),
                "edits": float(
                    np.mean([edit_distance(a, b) for a, b in zip(found, truth, strict=True)])
                ),
                "seen": float(np.mean([word in set(y) for word in truth])),
                "stopped": sum(int(match.group(1)) for match in stopped if match) / len(truth),
                "milliseconds": 1000 * seconds / len(truth),
            }
        )
    return records


def summary(records: list[dict[str, Any]]) -> str:
    rows = []
    for data in DATA:
        for space in SPACES:
            for way in WAYS:
                own = [
                    one
                    for one in records
                    if (one["data"], one["space"], one["decode"]) == (data, space, way)
                ]
                if own:
                    mean = {
                        key: float(np.mean([one[key] for one in own]))
                        for key in ("seen", "correct", "edits", "stopped", "milliseconds")
                    }
                    rows.append(
                        [
                            data,
                            space,
                            f"`{way}`",
                            f"{100 * mean['seen']:.0f}",
                            f"{100 * mean['correct']:.1f}",
                            f"{mean['edits']:.2f}",
                            f"{100 * mean['stopped']:.0f}",
                            f"{mean['milliseconds']:.2f}",
                        ]
                    )
    header = [
        "data",
        "embedding",
        "decode",
        "test words in training, %",
        "correct, %",
        "edits",
        "search stopped, %",
        "ms per row",
    ]
    return markdown_table(header, rows)


def main() -> None:
    path = RESULTS / "string_preimages.json"
    stored = json.loads(path.read_text()) if path.exists() else {"records": []}
    stored.setdefault("environment", environment(1))
    for seed in SEEDS:
        for data in DATA:
            for space in SPACES:
                done = {(one["data"], one["space"], one["seed"]) for one in stored["records"]}
                if (data, space, seed) not in done:
                    stored["records"] += measure(data, space, seed)
                    write_json(path, stored)
    text = (
        "# Pre-images of strings\n\n"
        f"{environment_markdown(stored['environment'])}\n\n"
        "Words with one spelling error are corrected. “New words” do not occur in training, “known "
        f"words” do, with other errors. Means over {len(SEEDS)} random splits with {TESTED} test "
        "words; the model is `learner=Ridge(alpha=3.0)` on counts of 1-, 2- and 3-grams. “Edits” "
        "is the mean number of insertions, deletions and replacements between the decoded and the "
        "true word. “Search stopped” is "
        "the share of rows in which the search ended at `max_nodes=200_000`.\n\n"
        f"{summary(stored['records'])}\n"
    )
    (RESULTS / "string_preimages.md").write_text(text)


if __name__ == "__main__":
    main()

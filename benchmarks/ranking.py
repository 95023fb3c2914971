"""Rankings: hilboost, LightGBM, XGBoost and CatBoost on the same queries.

Run ``python benchmarks/ranking.py``.
*equal* gives all libraries the same rounds, learning rate and random samples; LightGBM and XGBoost
grow trees of 31 leaves, hilboost and CatBoost symmetric trees of 64, each its default.  *defaults*
leaves everything to the library except the loss.  Scores are those of ``hilboost.metrics.NDCG``:
the mean over all queries of the test part, 1 for queries without a relevant row.  LightGBM requires
labels that are integers; for fractions it receives their numbers, and the fractions as gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from _common import arrays, data_folder, markdown_table, study, timed
from hilboost import BoostingRanker
from hilboost.boosting import metric_value
from hilboost.core.target import Target
from hilboost.losses import LambdaRank
from hilboost.metrics import NDCG

ROUNDS, RATE, LEAVES, PER_LEAF, PART = 200, 0.1, 31, 20, 0.8
POSITIONS = (1, 5, 10)
SEEDS, THREADS = 5, 1
SETS = {
    "ltr_lightgbm_rank": "LightGBM's sample, 201 and 50 queries, 301 columns, gain `2**y - 1`",
    "ltr_yandex_jmll": "Yandex, 666 and 2,668 queries, 50 columns, fractions as labels, gain `y`",
    "flights": "flights of an airport and hour by delay, 1,500 and 3,000 queries, 10 columns, gain "
    "`2**y - 1`",
}
GAINS = {"ltr_lightgbm_rank": "exponential", "ltr_yandex_jmll": "linear"}
DELAYS = (0, 15, 60, 120)  # minutes, between the labels 0 to 4
FLIGHTS = 1500, 3000


@dataclass(frozen=True)
class Table:
    """Rows in the order of their queries, and the numbers of these."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray
    gain: str

    @property
    def sizes(self) -> np.ndarray:
        return np.unique(self.query, return_counts=True)[1]

    def scores(self, predicted: np.ndarray) -> list[float]:
        target = Target(self.y[:, None].astype(np.float64), None, self.query)
        parts = [(target, np.asarray(predicted, dtype=np.float64)[:, None])]
        metrics = [NDCG(k, self.gain) for k in POSITIONS]
        return [metric_value(metric, LambdaRank(), None, parts) for metric in metrics]


def flights() -> tuple[Table, Table]:
    """Flights that leave the same airport in the same hour; the label is a range of the delay."""
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet").dropna(subset="arr_delay")
    query = frame.groupby(["month", "day", "origin", "hour"]).ngroup().to_numpy()
    numbers = ["month", "day", "sched_dep_time", "sched_arr_time", "hour", "minute", "distance"]
    codes = [pd.factorize(frame[name], sort=True)[0] for name in ("carrier", "origin", "dest")]
    X = np.column_stack([frame[numbers].to_numpy(dtype=np.float64), *codes])
    y = np.searchsorted(DELAYS, frame["arr_delay"]).astype(np.float64)
    drawn = np.random.default_rng(0).permutation(query.max() + 1)[: sum(FLIGHTS)]
    tables = []
    for part in (drawn[: FLIGHTS[0]], drawn[FLIGHTS[0] :]):
        rows = np.flatnonzero(np.isin(query, part))
        rows = rows[np.argsort(query[rows], kind="stable")]
        numbered = np.unique(query[rows], return_inverse=True)[1].astype(np.int64)
        tables.append(Table(X[rows], y[rows], numbered, "exponential"))
    return tables[0], tables[1]


@cache
def read(name: str) -> tuple[Table, Table]:
    if name == "flights":
        return flights()
    found = arrays(name)
    tables = []
    for part in ("train", "test"):
        X, y = found[f"X_{part}"], found[f"y_{part}"]
        if f"qid_{part}" in found:
            labels = found[f"qid_{part}"]
        else:
            sizes = found[f"group_{part}"]
            labels = np.repeat(np.arange(len(sizes)), sizes)
        query = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(query, kind="stable")
        tables.append(Table(X[order], y[order], query[order], GAINS[name]))
    return tables[0], tables[1]


def hilboost(loss: str, equal: bool) -> Callable[[Table, int, int], Any]:
    settings: dict[str, Any] = {}
    if equal:
        settings = {
            "n_estimators": ROUNDS,
            "learning_rate": RATE,
            "min_samples_leaf": PER_LEAF,
            "subsample": PART,
            "max_features": PART,
            "early_stopping": False,
        }

    def fit(table: Table, seed: int, n_jobs: int) -> Any:
        given = {"gain": table.gain, "random_state": seed, "n_jobs": n_jobs}
        model = BoostingRanker(loss, **given, **settings)
        return model.fit(table.X, table.y, groups=table.query).predict

    return fit


def lightgbm(loss: str, equal: bool) -> Callable[[Table, int, int], Any]:
    import lightgbm as lgb

    settings: dict[str, Any] = {}
    if equal:
        settings = {
            "learning_rate": RATE,
            "num_leaves": LEAVES,
            "min_data_in_leaf": PER_LEAF,
            "bagging_fraction": PART,
            "bagging_freq": 1,
            "feature_fraction_bynode": PART,
        }

    def fit(table: Table, seed: int, n_jobs: int) -> Any:
        given = {"objective": loss, "seed": seed, "num_threads": n_jobs, "verbose": -1, **settings}
        y = table.y
        if table.gain == "linear":  # labels must be integers, but may have any gains
            gains, y = np.unique(y, return_inverse=True)
            given["label_gain"] = gains.tolist()
        data = lgb.Dataset(table.X, y, group=table.sizes)
        return lgb.train(given, data, ROUNDS if equal else 100).predict

    return fit


def xgboost(loss: str, equal: bool) -> Callable[[Table, int, int], Any]:
    from xgboost import XGBRanker

    settings: dict[str, Any] = {}
    if equal:
        settings = {
            "n_estimators": ROUNDS,
            "learning_rate": RATE,
            "max_leaves": LEAVES,
            "max_depth": 0,
            "grow_policy": "lossguide",
            "subsample": PART,
            "colsample_bynode": PART,
        }

    def fit(table: Table, seed: int, n_jobs: int) -> Any:
        given = {"objective": loss, "random_state": seed, "n_jobs": n_jobs}
        model = XGBRanker(**given, ndcg_exp_gain=table.gain == "exponential", **settings)
        return model.fit(table.X, table.y, qid=table.query).predict

    return fit


def catboost(loss: str, equal: bool) -> Callable[[Table, int, int], Any]:
    from catboost import CatBoost, Pool

    settings: dict[str, Any] = {}
    if equal:
        settings = {
            "iterations": ROUNDS,
            "learning_rate": RATE,
            "bootstrap_type": "Bernoulli",
            "subsample": PART,
            "rsm": PART,
        }

    def fit(table: Table, seed: int, n_jobs: int) -> Any:
        given = {
            "loss_function": loss,
            "random_seed": seed,
            "thread_count": n_jobs,
            "verbose": False,
            "allow_writing_files": False,
        }
        model = CatBoost(given | settings)
        model.fit(Pool(table.X, table.y, group_id=table.query))
        return model.predict

    return fit


METHODS: dict[str, tuple[Callable[[str, bool], Any], str]] = {
    **{
        f"hilboost {loss}": (hilboost, loss)
        for loss in ("lambdarank", "yetirank", "xendcg", "pairwise_logistic", "query_rmse")
    },
    "LightGBM lambdarank": (lightgbm, "lambdarank"),
    "LightGBM rank_xendcg": (lightgbm, "rank_xendcg"),
    "XGBoost rank:ndcg": (xgboost, "rank:ndcg"),
    "XGBoost rank:pairwise": (xgboost, "rank:pairwise"),
    "CatBoost YetiRank": (catboost, "YetiRank"),
    "CatBoost QueryRMSE": (catboost, "QueryRMSE"),
}
DEFAULTS = (
    "hilboost lambdarank",
    "hilboost yetirank",
    "hilboost pairwise_logistic",
    "hilboost query_rmse",
    "LightGBM lambdarank",
    "XGBoost rank:ndcg",
    "CatBoost YetiRank",
    "CatBoost QueryRMSE",
)


@cache
def warm_up(part: str, method: str) -> None:
    """Compile, and load libraries, before the clock starts."""
    small = read("ltr_lightgbm_rank")[0]
    few = Table(small.X[:600], small.y[:600], small.query[:600], small.gain)
    fit_of(part, method)(few, 0, THREADS)


def fit_of(part: str, method: str) -> Callable[[Table, int, int], Any]:
    make, loss = METHODS[method]
    return make(loss, part == "equal")


def measure(part: str, data: str, seed: int, method: str) -> dict[str, Any]:
    warm_up(part, method)
    train, test = read(data)
    seconds, predict = timed(lambda: fit_of(part, method)(train, seed, THREADS))
    return {"seconds": seconds, "ndcg": test.scores(predict(test.X))}


def table_of(rows: list[dict[str, Any]]) -> str:
    lines = []
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        if own:
            scores = np.array([row["ndcg"] for row in own])
            cells = [
                f"{m:.4f} ± {s:.4f}" for m, s in zip(scores.mean(0), scores.std(0), strict=True)
            ]
            seconds = f"{np.median([row['seconds'] for row in own]):.2f}"
            lines.append([method, *cells, seconds, str(len(own))])
    return markdown_table(["method", *(f"NDCG@{k}" for k in POSITIONS), "fit, s", "seeds"], lines)


def page(records: list[dict[str, Any]], facts: str) -> str:
    titles = {
        "equal": f"### {ROUNDS} rounds, rate {RATE}, {PART:.0%} of rows and columns",
        "defaults": "### Defaults",
    }
    texts = ["# Learning to rank", "", __doc__.split("\n\n")[1].split("\n", 1)[1].strip(), ""]
    for part, title in titles.items():
        for name, text in SETS.items():
            rows = [r for r in records if (r["part"], r["data"]) == (part, name)]
            if rows:
                texts += [f"{title}: {text}", "", table_of(rows), ""]
    return "\n".join([*texts, facts])


def main() -> None:
    cases = [
        {"part": part, "data": data, "seed": seed, "method": method}
        for part, methods in {"equal": METHODS, "defaults": DEFAULTS}.items()
        for data in SETS
        for seed in range(SEEDS)
        for method in methods
    ]
    study("ranking", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

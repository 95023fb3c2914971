"""Shapley values of the same trees: hilboost, XGBoost's ``pred_contribs`` and shap's TreeExplainer.

Run ``python benchmarks/shapley.py``.  The trees are those of a hilboost model, which XGBoost reads
from its JSON format.  Path-dependent values differ between the libraries, because hilboost counts
the rows of the background and XGBoost sums of hessians; interventional ones must agree.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _common import RESULTS, environment, environment_markdown, markdown_table, publish

N_TRAIN, N_ROWS, N_BACKGROUND, REPEATS = 20_000, 2_000, 100, 3
N_PAIRED = 500  # rows with interactions
THREADS = 2


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Median seconds of a few calls, after one that compiles, and the last result."""
    call()
    seconds, found = [], None
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def main() -> None:
    """Measure, write JSON and Markdown, print the table."""
    import shap
    import xgboost
    from sklearn.datasets import make_friedman1

    from hilboost import BoostingRegressor, to_xgboost_json

    X, y = make_friedman1(N_TRAIN + N_ROWS, n_features=20, noise=1.0, random_state=0)
    rows, background = X[N_TRAIN:], X[:N_BACKGROUND]
    model = BoostingRegressor(
        learner="tree",
        n_estimators=100,
        max_leaf_nodes=31,
        early_stopping=False,
        random_state=0,
        n_jobs=THREADS,
    ).fit(X[:N_TRAIN], y[:N_TRAIN])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        to_xgboost_json(model, path)
        booster = xgboost.Booster({"nthread": THREADS}, model_file=path)
    matrix, paired = xgboost.DMatrix(rows), xgboost.DMatrix(rows[:N_PAIRED])
    explainer = shap.TreeExplainer(booster, background, feature_perturbation="interventional")
    calls: dict[str, Callable[[], Any]] = {
        "hilboost, path-dependent": lambda: (
            model.shap_values(rows, background, method="path_dependent").values
        ),
        "XGBoost `pred_contribs`, path-dependent": lambda: booster.predict(
            matrix, pred_contribs=True
        )[:, :-1],
        "hilboost, interventional": lambda: model.shap_values(rows, background).values,
        "shap TreeExplainer, interventional": lambda: explainer.shap_values(rows),
        f"hilboost, interactions of {N_PAIRED} rows, path-dependent": lambda: (
            model.shap_interaction_values(
                rows[:N_PAIRED], background, method="path_dependent"
            ).values
        ),
        f"hilboost, interactions of {N_PAIRED} rows, interventional": lambda: (
            model.shap_interaction_values(rows[:N_PAIRED], background).values
        ),
        f"XGBoost `pred_interactions` of {N_PAIRED} rows, path-dependent": lambda: booster.predict(
            paired, pred_interactions=True
        ),
    }
    records, values = [], {}
    for name, call in calls.items():
        seconds, values[name] = timed(call)
        records.append({"what": name, "seconds": seconds})
    exact = model.shap_values(rows, background)
    total = exact.values.sum(axis=1) + exact.base_values
    accuracy = float(np.abs(total - model.predict(rows)).max())
    pair = [values[f"{name}, interventional"] for name in ("hilboost", "shap TreeExplainer")]
    pairs = values[f"hilboost, interactions of {N_PAIRED} rows, interventional"]
    sums = float(np.abs(pairs.sum(axis=2) - pair[0][:N_PAIRED]).max())
    difference = float(np.abs(pair[0] - pair[1]).max())
    facts = environment(THREADS)
    result = {
        "environment": facts,
        "records": records,
        "local_accuracy": accuracy,
        "largest_difference_to_shap": difference,
        "interactions_add_up_within": sums,
    }
    rows = [[r["what"], f"{r['seconds']:.3f}"] for r in records]
    page = (
        f"# Shapley values\n\n{environment_markdown(facts)}\n\n"
        f"{N_ROWS:,} rows × 20 columns, the same 100 trees of 31 leaves, {N_BACKGROUND} background "
        f"rows, {THREADS} threads.\n\n{markdown_table(['method', 's'], rows)}\n\n"
        f"The values of a row and the base value add up to the prediction within {accuracy:.1e}. "
        f"The interventional values differ from those of shap, which computes in single precision, "
        f"by at most {difference:.1e}. Interactions add up to the values within {sums:.1e}."
    )
    publish(RESULTS / "shapley.json", result, page)


if __name__ == "__main__":
    main()

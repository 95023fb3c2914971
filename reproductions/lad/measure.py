"""LAD_TreeBoost (Friedman 2001, Algorithm 3) against the transcription in ``tests/reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.reference.lad import lad_tree_boost

from hilboost import BoostingRegressor

ROWS, STAGES, LEAVES = 120, 10, 8


def sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct inputs and heavy tails: many equal gains, and medians between two rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=ROWS), np.round(rng.normal(size=ROWS), 1), rng.integers(4, size=ROWS)]
    )
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + rng.standard_t(2, size=ROWS)


def algorithm3(runs: int, recorded: Path | None) -> dict[str, Any]:
    """Both side by side, stage by stage."""
    names = (
        "line 1: |E_0 − median(y)|",
        "line 4: splits that differ",
        "line 5: largest difference between a γ and the median of its region",
        "line 6: largest difference of E_m on the rows",
        "stages that increased the mean absolute error",
    )
    columns, curves = [], {}
    for seed in range(runs):
        found, error = compare(seed)
        columns.append(found)
        if seed < 3:
            curves[f"sample {seed}"] = [[m, e] for m, e in enumerate(error)]
    return {
        "values": dict(zip(names, np.transpose(columns).tolist(), strict=True)),
        "curves": curves,
        "axes": ["stages", "mean |y − E_m(x)|"],
    }


def compare(seed: int) -> tuple[list[float], list[float]]:
    X, y = sample(seed)
    model = BoostingRegressor(
        "absolute_error",
        learning_rate=1.0,
        n_estimators=STAGES,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=1,
        l2_regularization=0,
        max_features=1.0,
        subsample=1.0,
        early_stopping=False,
    ).fit(X, y)
    error = [float(np.abs(y - np.median(y)).mean())]
    splits_apart, gammas_apart, sums_apart = 0.0, 0.0, 0.0
    expected = lad_tree_boost(X, y, STAGES, LEAVES, 1)
    for stage, predicted, (splits, gammas, F) in zip(
        model.model_.stages, model.staged_predict(X), expected, strict=True
    ):
        tree = stage.terms[0].model
        inner = tree.leaf_number < 0
        found = list(zip(tree.column[inner], tree.threshold[inner], strict=True))
        splits_apart += len(set(found) ^ set(splits))
        gammas_apart = max(gammas_apart, float(np.abs(tree.values[:, 0] - gammas).max()))
        sums_apart = max(sums_apart, float(np.abs(predicted - F).max()))
        error.append(float(np.abs(y - predicted).mean()))
    risen = float((np.diff(error) > 1e-12).sum())
    start = float(abs(model.model_.initial_raw[0] - np.median(y)))
    return [start, splits_apart, gammas_apart, sums_apart, risen], error

"""Label sets, rankings and several numbers at once, for ``structured.py``.

As in ``structured_images.py``, every group has a plan and a function that does one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import normalize

from _common import arrays, estimator, timed
from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.kernels import Cosine, Gaussian, Linear, Tanimoto
from hilboost.outputs import LabelSets, Rankings
from structured_images import QUICK_STAGES, Plan, Scores

TREES = 100

# Label sets

LABEL_SETS = ("bibtex", "corel5k", "yeast")
SPARSE_BINARY = ("bibtex", "corel5k")
LABEL_WAYS = ("nearest", "cosine", "threshold", "f1", "top")
UNIT_ROWS = ", unit rows"
COSINE_OUTPUT = ", cosine output"
INPUT_KERNELS: dict[str, tuple[Any, bool]] = {
    "kernel machine": ("auto", False),
    "kernel machine, linear": ("linear", False),
    "kernel machine, gaussian": ("gaussian", False),
    "kernel machine, cosine": (Cosine(), True),
    "kernel machine, tanimoto": (Tanimoto(), True),
    "kernel machine, tanimoto" + COSINE_OUTPUT: (Tanimoto(), True),
    "kernel machine" + UNIT_ROWS: ("auto", True),
    "kernel machine, gaussian" + UNIT_ROWS: (Gaussian(0.7), True),
    "kernel machine, linear" + UNIT_ROWS: (Linear(), True),
}
"""Kernel of the inputs, and whether it is for sparse binary inputs, which are not standardized."""
LABEL_TREES = ("OK3-et boosting", "OK3-et forest")
LABEL_PEER = "ExtraTreesRegressor"
PEER_LEAVES = (1, 2, 5)
MANY_CELLS = 5_000_000  # rows times labels; fully grown forests would fill the memory


def labels_plan() -> Plan:
    for name in LABEL_SETS:
        for method, (_, sparse) in INPUT_KERNELS.items():
            if name in SPARSE_BINARY or not sparse:
                yield name, method, 0
        for method in (*LABEL_TREES, LABEL_PEER):
            yield name, method, 0


def samples_f1(Y: np.ndarray, found: np.ndarray) -> float:
    """Mean over rows of F1, which is 1 where both sets are empty."""
    Y, found = Y.astype(bool), np.asarray(found).astype(bool)
    both, total = (Y & found).sum(axis=1), Y.sum(axis=1) + found.sum(axis=1)
    return float(np.mean(np.where(total > 0, 2 * both / np.maximum(total, 1), 1.0)))


def labels_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    data = arrays("mulan_multilabel")
    parts = (data[f"{name}_{part}"] for part in ("X_train", "Y_train", "X_test", "Y_test"))
    X, Y, X_test, Y_test = (
        part.astype(np.float64 if k % 2 == 0 else np.int8) for k, part in enumerate(parts)
    )
    if quick:
        X, Y, X_test, Y_test = X[:300], Y[:300], X_test[:200], Y_test[:200]
    if method.endswith(UNIT_ROWS):
        X, X_test = normalize(X), normalize(X_test)
    if method == LABEL_PEER:
        fit_s, (model, leaf) = timed(lambda: tuned_forest(X, Y, quick, threads))
        note = {"min_samples_leaf": leaf}
        embedding = LabelSets().fit(Y)
        predict_s, raw = timed(lambda: model.predict(X_test))
    else:
        model, note = label_model(method, Y.size, quick, threads), {}
        fit_s, _ = timed(lambda: model.fit(X, Y))
        embedding = model.output_
        predict_s, raw = timed(lambda: model.predict_embedding(X_test))
    ways = [way for way in LABEL_WAYS if way in embedding.ways]
    decoded = {way: timed(lambda way=way: embedding.decode(raw, way)) for way in ways}
    return {
        "fit_s": fit_s,
        "predict_s": predict_s,
        **note,
        **{f"f1_{way}": samples_f1(Y_test, found) for way, (_, found) in decoded.items()},
        **{f"{way}_s": seconds for way, (seconds, _) in decoded.items()},
    }


def label_model(method: str, cells: int, quick: bool, threads: int) -> Any:
    common = {"output": "label_set", "random_state": 0, "n_jobs": threads}
    stages = {"n_estimators": QUICK_STAGES} if quick else {}
    if method == "OK3-et boosting":
        return OutputKernelBoostingRegressor(learner="extra_trees", **common, **stages)
    if method == "OK3-et forest":
        leaf = 5 if cells > MANY_CELLS else 1
        return OutputKernelForestRegressor(min_samples_leaf=leaf, **common, **stages)
    kernel, sparse = INPUT_KERNELS[method]
    standardize = False if sparse else "auto"
    learner = KernelBoostingRegressor(kernel=kernel, standardize=standardize)
    if method.endswith(COSINE_OUTPUT):
        common["output"] = "cosine"
    return OutputKernelBoostingRegressor(learner=learner, **common)


def tuned_forest(X: np.ndarray, Y: np.ndarray, quick: bool, threads: int) -> tuple[Any, int]:
    """Extra-trees, the smallest leaf chosen by F1 at 1/2 on a fifth of the rows."""
    few = quick or Y.size > MANY_CELLS
    leaves = (5,) if Y.size > MANY_CELLS else PEER_LEAVES

    def make(leaf: int) -> Any:
        return ExtraTreesRegressor(
            20 if few else TREES,
            min_samples_leaf=leaf,
            max_features="sqrt",
            random_state=0,
            n_jobs=threads,
        )

    fit, choose = train_test_split(np.arange(len(X)), test_size=0.2, random_state=0)
    scores = {}
    for leaf in leaves if len(leaves) > 1 else ():
        predicted = make(leaf).fit(X[fit], Y[fit]).predict(X[choose])
        scores[leaf] = samples_f1(Y[choose], predicted >= 0.5)
    leaf = max(scores, key=scores.__getitem__) if scores else leaves[0]
    return make(leaf).fit(X, Y), leaf


# Rankings

RANKING_SETS = ("iris", "glass", "wine", "vehicle", "authorship", "vowel")
RANKERS: dict[str, Callable[[Any], Any]] = {
    "OK3-et boosting": lambda common: OutputKernelBoostingRegressor(
        learner="extra_trees", **common
    ),
    "OK3-et boosting, J = 40": lambda common: OutputKernelBoostingRegressor(
        learner="extra_trees", max_splits=40, **common
    ),
    "OK3-et forest": lambda common: OutputKernelForestRegressor(**common),
    "OK3-et forest, all columns": lambda common: OutputKernelForestRegressor(
        max_features=1.0, **common
    ),
    "kernel machine": lambda common: OutputKernelBoostingRegressor(learner="kernel", **common),
}


def rankings_plan() -> Plan:
    for name in RANKING_SETS:
        for method in RANKERS:
            yield name, method, 0


def kendall(ranks: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Kendall's τ of every row, without ties."""
    first, second = np.triu_indices(ranks.shape[1], 1)
    signs = (np.sign(table[:, first] - table[:, second]) for table in (ranks, np.asarray(found)))
    return np.prod(list(signs), axis=0).mean(axis=1)


def rankings_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    data = arrays("label_ranking")
    X = data[f"{name}_X"].astype(np.float64)
    ranks = data[f"{name}_ranks"].astype(np.int64)
    model = RANKERS[method]({"output": Rankings(), "random_state": split, "n_jobs": threads})
    scores, seconds = [], 0.0
    for learn, test in KFold(3 if quick else 10, shuffle=True, random_state=split).split(X):
        fitted = clone(model)
        seconds += timed(lambda model=fitted, rows=learn: model.fit(X[rows], ranks[rows]))[0]
        scores.append(float(kendall(ranks[test], fitted.predict(X[test])).mean()))
    return {"fit_s": seconds, "tau": float(np.mean(scores)), "folds": scores}


# Several numbers at once

TARGET_SETS = ("andro", "atp1d", "atp7d", "edm", "enb", "jura", "sf1", "sf2", "slump", "wq")
TEN_FOLDS_UP_TO = 500, 200
"""Rows and columns; of larger sets there are 5 folds."""


def xgboost_regressor(seed: int, threads: int, quick: bool, **params: Any) -> Any:
    if quick:
        params["n_estimators"] = QUICK_STAGES
    one_tree = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
    return estimator("xgboost", True, seed, threads, **one_tree, **params)


def catboost_regressor(seed: int, threads: int, quick: bool, **params: Any) -> Any:
    if quick:
        params["iterations"] = QUICK_STAGES
    return estimator("catboost", True, seed, threads, loss_function="MultiRMSE", **params)


def ours(kind: str, seed: int, threads: int, quick: bool) -> Any:
    common = {"output": "linear", "random_state": seed, "n_jobs": threads}
    stages = {"n_estimators": QUICK_STAGES} if quick else {}
    if kind == "forest":
        return OutputKernelForestRegressor(**common, **stages)
    if kind == "kernel":
        return OutputKernelBoostingRegressor(learner="kernel", **common)
    return OutputKernelBoostingRegressor(learner="extra_trees", **common, **stages)


REGRESSORS: dict[str, Callable[[int, int, bool], Any]] = {
    "OK3-et boosting": lambda *run: ours("boosting", *run),
    "OK3-et forest": lambda *run: ours("forest", *run),
    "kernel machine": lambda *run: ours("kernel", *run),
    "ExtraTreesRegressor": lambda seed, threads, quick: ExtraTreesRegressor(
        TREES, random_state=seed, n_jobs=threads
    ),
    "XGBoost": xgboost_regressor,
    "XGBoost, 300 x .1, depth 3": lambda *run: xgboost_regressor(
        *run, n_estimators=300, learning_rate=0.1, max_depth=3
    ),
    "CatBoost, 300 x .1, depth 4": lambda *run: catboost_regressor(
        *run, iterations=300, learning_rate=0.1, depth=4
    ),
}
"""Models of a seed, the threads and whether the run is a quick one."""


def n_folds(X: np.ndarray, quick: bool) -> int:
    small = all(size <= most for size, most in zip(X.shape, TEN_FOLDS_UP_TO, strict=True))
    return 2 if quick else 10 if small else 5


def targets_plan() -> Plan:
    for name in TARGET_SETS:
        for method in REGRESSORS:
            yield name, method, 0


def targets_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    """Relative root mean squared error of every target, squares pooled over the folds."""
    data = arrays("mulan_mtr")
    X, Y = (data[f"{name}_{part}"].astype(np.float64) for part in "XY")
    squares, around_mean, seconds = np.zeros(Y.shape[1]), np.zeros(Y.shape[1]), 0.0
    folds = KFold(n_folds(X, quick), shuffle=True, random_state=split).split(X)
    for learn, test in folds:
        mean, spread = Y[learn].mean(axis=0), Y[learn].std(axis=0)
        spread[spread == 0] = 1.0
        model = REGRESSORS[method](split, threads, quick)
        scaled = (Y[learn] - mean) / spread
        seconds += timed(lambda model=model, a=learn, b=scaled: model.fit(X[a], b))[0]
        found = mean + spread * model.predict(X[test])
        squares += ((Y[test] - found) ** 2).sum(axis=0)
        around_mean += ((Y[test] - mean) ** 2).sum(axis=0)
    relative = np.sqrt(squares / around_mean)
    return {"fit_s": seconds, "arrmse": float(relative.mean()), "rrmse": relative.tolist()}

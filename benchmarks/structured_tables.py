"""Label sets, rankings and several numbers at once, for ``structured.py``.

As in ``structured_images.py``, every group has a plan and a function that does one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from _common import timed
from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.kernels import Cosine, Gaussian, Linear, Tanimoto
from hilboost.outputs import LabelSets, Rankings
from structured_images import QUICK_STAGES, Plan, Scores, arrays

TREES = 100

# Label sets

LABEL_SETS = ("bibtex", "corel5k", "yeast", "delicious")
SPARSE_BINARY = ("bibtex", "corel5k", "delicious")
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


def labels_plan(quick: bool) -> Plan:
    size = {"yeast": 0.1, "bibtex": 1.0, "corel5k": 2.0, "delicious": 8.0}
    for name in ("yeast",) if quick else LABEL_SETS:
        for method, (_, sparse) in INPUT_KERNELS.items():
            if name in SPARSE_BINARY or not sparse:
                yield name, method, 0, 30 * size[name]
        for method in (*LABEL_TREES, LABEL_PEER):
            yield name, method, 0, 60 * size[name]


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

RANKING_SETS = (
    *("iris", "glass", "wine", "vehicle", "authorship", "vowel"),
    *("bodyfat", "housing", "stock", "segment", "wisconsin"),
)
BEST_OF = "best of five by inner CV"
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
RANKING_SIZE = {"vehicle": 2, "authorship": 3, "vowel": 4, "segment": 6, "stock": 2, "wisconsin": 2}


def rankings_plan(quick: bool) -> Plan:
    for name in RANKING_SETS[:1] if quick else RANKING_SETS:
        for seed in range(1 if quick else 3):
            for method in (*RANKERS, BEST_OF):
                size = RANKING_SIZE.get(name, 1)
                yield name, method, seed, size * (110.0 if method == BEST_OF else 8.0)


def kendall(ranks: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Kendall's τ of every row, without ties."""
    first, second = np.triu_indices(ranks.shape[1], 1)
    signs = (np.sign(table[:, first] - table[:, second]) for table in (ranks, np.asarray(found)))
    return np.prod(list(signs), axis=0).mean(axis=1)


def rankings_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    data = arrays("label_ranking")
    X = data[f"{name}_X"].astype(np.float64)
    ranks = data[f"{name}_ranks"].astype(np.int64)
    common = {"output": Rankings(), "random_state": split, "n_jobs": threads}
    models = {kind: make(common) for kind, make in RANKERS.items()}
    if quick:
        models["OK3-et boosting"].set_params(n_estimators=QUICK_STAGES)
    scores, chosen, seconds = [], [], 0.0
    for learn, test in KFold(3 if quick else 10, shuffle=True, random_state=split).split(X):
        if method == BEST_OF:
            spent, kind = timed(lambda learn=learn: best_ranker(models, X[learn], ranks[learn]))
            seconds += spent
        else:
            kind = method
        model = clone(models[kind])
        seconds += timed(lambda model=model, learn=learn: model.fit(X[learn], ranks[learn]))[0]
        scores.append(float(kendall(ranks[test], model.predict(X[test])).mean()))
        chosen.append(kind)
    taken = {kind: chosen.count(kind) for kind in dict.fromkeys(chosen)}
    return {"fit_s": seconds, "tau": float(np.mean(scores)), "folds": scores, "taken": taken}


def best_ranker(models: Mapping[str, Any], X: np.ndarray, ranks: np.ndarray) -> str:
    """The learner with the largest τ in 5-fold cross-validation within the learning rows."""
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))

    def score(model: Any) -> float:
        parts = (
            kendall(ranks[b], clone(model).fit(X[a], ranks[a]).predict(X[b])) for a, b in folds
        )
        return float(np.concatenate(list(parts)).mean())

    return max(models, key=lambda kind: score(models[kind]))


# Several numbers at once

TARGET_SETS = (
    *("andro", "atp1d", "atp7d", "edm", "enb", "jura", "oes10", "oes97"),
    *("osales", "scpf", "sf1", "sf2", "slump", "wq"),
)
TEN_FOLDS_UP_TO = 500, 200
"""Rows and columns; of larger sets there are 5 folds."""


@dataclass(frozen=True)
class Regressor:
    """``make`` takes a seed, the threads and whether the run is a quick one."""

    make: Callable[[int, int, bool], Any]
    takes_nan: bool = True
    seconds: float = 2.0  # a fit, roughly


def xgboost_regressor(seed: int, threads: int, quick: bool, **params: Any) -> Any:
    from xgboost import XGBRegressor

    if quick:
        params["n_estimators"] = QUICK_STAGES
    return XGBRegressor(
        multi_strategy="multi_output_tree",
        tree_method="hist",
        random_state=seed,
        n_jobs=threads,
        **params,
    )


def catboost_regressor(seed: int, threads: int, quick: bool, **params: Any) -> Any:
    from catboost import CatBoostRegressor

    if quick:
        params["iterations"] = QUICK_STAGES
    return CatBoostRegressor(
        loss_function="MultiRMSE",
        random_seed=seed,
        thread_count=threads,
        verbose=False,
        allow_writing_files=False,
        **params,
    )


def ours(kind: str, seed: int, threads: int, quick: bool) -> Any:
    common = {"output": "linear", "random_state": seed, "n_jobs": threads}
    stages = {"n_estimators": QUICK_STAGES} if quick else {}
    if kind == "forest":
        return OutputKernelForestRegressor(**common, **stages)
    if kind == "kernel":
        return OutputKernelBoostingRegressor(learner="kernel", **common)
    return OutputKernelBoostingRegressor(learner="extra_trees", **common, **stages)


REGRESSORS: dict[str, Regressor] = {
    "OK3-et boosting": Regressor(lambda *run: ours("boosting", *run), seconds=0.6),
    "OK3-et forest": Regressor(lambda *run: ours("forest", *run), seconds=0.3),
    "kernel machine": Regressor(lambda *run: ours("kernel", *run), takes_nan=False, seconds=3.0),
    "ExtraTreesRegressor": Regressor(
        lambda seed, threads, quick: ExtraTreesRegressor(TREES, random_state=seed, n_jobs=threads),
        seconds=0.6,
    ),
    "XGBoost": Regressor(xgboost_regressor, seconds=3.0),
    "XGBoost, 300 x .1, depth 3": Regressor(
        lambda *run: xgboost_regressor(*run, n_estimators=300, learning_rate=0.1, max_depth=3),
        seconds=2.0,
    ),
    "CatBoost, 300 x .1, depth 4": Regressor(
        lambda *run: catboost_regressor(*run, iterations=300, learning_rate=0.1, depth=4),
        seconds=4.0,
    ),
}


def n_folds(X: np.ndarray, quick: bool) -> int:
    small = all(size <= most for size, most in zip(X.shape, TEN_FOLDS_UP_TO, strict=True))
    return 2 if quick else 10 if small else 5


def targets_plan(quick: bool) -> Plan:
    data = arrays("mulan_mtr")
    for name in ("slump", "scpf") if quick else TARGET_SETS:
        X = data[f"{name}_X"]
        for method, regressor in REGRESSORS.items():
            yield name, method, 0, regressor.seconds * n_folds(X, quick) * (1 + X.shape[1] / 60)


def targets_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    """Relative root mean squared error of every target, squares pooled over the folds."""
    data = arrays("mulan_mtr")
    X, Y = (data[f"{name}_{part}"].astype(np.float64) for part in "XY")
    regressor = REGRESSORS[method]
    squares, around_mean, seconds = np.zeros(Y.shape[1]), np.zeros(Y.shape[1]), 0.0
    folds = KFold(n_folds(X, quick), shuffle=True, random_state=split).split(X)
    for learn, test in folds:
        mean, spread = Y[learn].mean(axis=0), Y[learn].std(axis=0)
        spread[spread == 0] = 1.0
        model = regressor.make(split, threads, quick)
        if not regressor.takes_nan and np.isnan(X).any():
            filled = SimpleImputer(strategy="mean", add_indicator=True)
            model = make_pipeline(filled, model)
        scaled = (Y[learn] - mean) / spread
        seconds += timed(lambda model=model, a=learn, b=scaled: model.fit(X[a], b))[0]
        found = mean + spread * model.predict(X[test])
        squares += ((Y[test] - found) ** 2).sum(axis=0)
        around_mean += ((Y[test] - mean) ** 2).sum(axis=0)
    relative = np.sqrt(squares / around_mean)
    return {"fit_s": seconds, "arrmse": float(relative.mean()), "rrmse": relative.tolist()}

"""Trees on a GPU: the same models as on the processor, and the time of their fits.

Run ``PYTHONPATH=src python benchmarks/cuda_trees.py`` on a machine with a GPU and numba-cuda; it
takes three to four minutes, of which compiling takes one.  ``--compile`` runs the kernels on the
processor, which needs no GPU and fills the cache of compiled code (``NUMBA_CACHE_DIR``) with the
code of the processor alone; the kernels are compiled in every process.  With
``NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=``, other machines with the same versions of Python
and Numba can use it.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

if not hasattr(np, "row_stack"):  # which numba-cuda 0.30 expects
    np.row_stack = np.vstack  # type: ignore[attr-defined]  # noqa: NPY201

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.engine.ops.cuda.gpu import Gpu
from hilboost.engine.ops.cuda.processor import Processor

BEGAN, LIMIT = perf_counter(), 225.0
ONLY_COMPILES = "--compile" in sys.argv
FAILED: list[str] = []
warnings.simplefilter("ignore")


def tried(name: str, case: Any) -> None:
    """Run a case, whose failure does not end the others."""
    if perf_counter() - BEGAN > LIMIT and not ONLY_COMPILES:
        print(f"{name}: left out, because the time is over", flush=True)
        return
    try:
        case(name)
    except Exception:
        FAILED.append(name)
        print(f"{name}: FAILED", flush=True)
        traceback.print_exc(file=sys.stdout)


# Equal models


def small_table(n: int) -> tuple[pd.DataFrame, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 11))
    X[:, 0] = np.round(X[:, 0])
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.1 * rng.normal(size=n)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X).add_prefix("x")
    frame["level"] = pd.Categorical.from_codes(rng.integers(12, size=n), list("abcdefghijkl"))
    return frame, y, rng.uniform(0.1, 3, n)


LOSSES: dict[str, dict[str, Any]] = {
    "squared error": {},
    "absolute error": {"loss": "absolute_error"},
    "two classes": {},
    "three classes": {},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "monotonic": {"monotonic_cst": {"x1": 1, "x2": -1}},
    "samples": {"subsample": 0.6, "max_features": 0.5, "max_leaf_nodes": 40},
    "symmetric": {"growth": "symmetric"},
}


def equal_models(name: str, n: int, loss: str, settings: str, weighted: bool) -> None:
    X, y, weight = small_table(n)
    estimator = BoostingRegressor
    if "classes" in loss:
        estimator = BoostingClassifier
        y = np.digitize(y, [0] if loss == "two classes" else [-0.5, 0.5])
    if settings == "symmetric":
        X = X.drop(columns="level")
    given = {"n_estimators": 5, "random_state": 0, "early_stopping": False, "learner": "tree"}
    hashes, seconds = [], []
    for device in (None, "cuda"):
        model = estimator(device=device, **given, **LOSSES[loss], **SETTINGS[settings])
        began = perf_counter()
        model.fit(X, y, weight if weighted else None)
        seconds.append(perf_counter() - began)
        found = getattr(model, "predict_proba", model.predict)(X)
        hashes.append(hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()[:10])
    same = hashes[0] == hashes[1]
    if not same:
        FAILED.append(name)
    times = f"{seconds[0]:6.2f} {seconds[1]:6.2f} s"
    print(f"{'same' if same else 'DIFFERENT':10}{name:45}{times} {' '.join(hashes)}", flush=True)


def all_equal_models() -> None:
    print("Model hashes of the processor and of the GPU; times include compiling", flush=True)
    cases = [
        (2000, *case)
        for case in product(LOSSES, SETTINGS, (False, True))
        if case[:2] != ("three classes", "monotonic")
    ]
    cases += [(300_000, loss, "plain", weighted) for loss in LOSSES for weighted in (False, True)]
    for n, loss, settings, weighted in cases:
        name = f"{loss}, {settings}{', weights' if weighted else ''}, {n} rows"
        tried(name, lambda name, n=n, k=(loss, settings, weighted): equal_models(name, n, *k))


# Times


def large_table(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 28), dtype=np.float32)
    noise = rng.standard_normal(n, dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * noise
    return X, y.astype(np.float64)


def fitted(X: Any, y: Any, two_classes: bool, leaves: int, **given: Any) -> tuple[Any, float]:
    estimator: Any = BoostingClassifier if two_classes else BoostingRegressor
    trees = {"learner": "tree", "max_leaf_nodes": leaves, "min_samples_leaf": 20}
    model = estimator(
        **trees, **given, n_estimators=100, learning_rate=0.1, early_stopping=False, random_state=0
    )
    target = (y > 0).astype(np.int64) if two_classes else y
    began = perf_counter()
    model.fit(X, target)
    return model, perf_counter() - began


def all_times(n: int, cpu: bool) -> None:
    X, y = large_table(n)
    print(f"\n{n:,} x 28, 100 rounds, seconds from NumPy arrays to the model", flush=True)
    for two_classes, leaves in product((False, True), (31, 255)):
        name = f"{n:,} rows, {'two classes' if two_classes else 'squared error'}, {leaves} leaves"

        def case(name: str, given: Any = (two_classes, leaves)) -> None:
            on_gpu, seconds = fitted(X, y, *given, device="cuda")
            line = f"{name:45} GPU {seconds:6.2f} s"
            if cpu and given[1] == 31:
                on_cpu, seconds = fitted(X, y, *given)
                found = [model.predict_raw(X[:100_000]) for model in (on_gpu, on_cpu)]
                line += f", processor {seconds:6.2f} s, {'same' if np.array_equal(*found) else ''}"
                if not np.array_equal(*found):
                    FAILED.append(name)
                    line += "DIFFERENT"
            print(line, flush=True)

        tried(name, case)


def main() -> None:
    if ONLY_COMPILES:
        Gpu.of = lambda device: Processor()  # type: ignore[method-assign,assignment,return-value]
        all_equal_models()
        return
    from numba import __version__, cuda

    print("Numba", __version__, "NumPy", np.__version__, cuda.get_current_device().name, flush=True)
    all_equal_models()
    all_times(1_000_000, cpu=True)
    all_times(10_000_000, cpu=False)
    print(f"\nFailed: {FAILED or 'nothing'}; {perf_counter() - BEGAN:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()

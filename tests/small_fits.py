"""Small fits that pass through every compiled loop, and a digest of what each predicts.

``python -m tests.small_fits`` prints them.  With ``NUMBA_DISABLE_JIT=1`` the loops run as Python;
with ``NUMBA_BOUNDSCHECK=1``, and a ``NUMBA_CACHE_DIR`` of its own, every index is checked.
"""

import hashlib
import json
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelRidge,
)
from hilboost.kernels import Matern
from hilboost.outputs import Strings

N, D = 40, 9
SMALL = {"n_estimators": 3, "min_samples_leaf": 2, "early_stopping": False, "random_state": 0}
SMALL_TREES = SMALL | {"learner": "tree", "max_leaf_nodes": 6}
HELD_OUT = {"early_stopping": True}
DEFAULT = HELD_OUT | {"learner": "auto"}  # and a kernel machine


def _table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, ::2] = np.round(X[:, ::2], 1)
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3], rng


def _gaps(X, rng):
    return np.where(rng.uniform(size=X.shape) < 0.15, np.nan, X)


def _regress(weight=None, n=N, **parameters):
    X, y, rng = _table(n=n)
    X = _gaps(X, rng)
    model = BoostingRegressor(**SMALL_TREES | parameters)
    return model.fit(X, y, None if weight is None else rng.uniform(0.1, 2, n)).predict(X)


def _classify(n_classes, **parameters):
    X, y, rng = _table(1)
    classes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return BoostingClassifier(**SMALL_TREES | parameters).fit(X, classes).predict_proba(X)


def _categories():
    X, y, rng = _table(2)
    levels = rng.integers(9, size=N)
    frame = pd.DataFrame(X[:, :3]).add_prefix("x")
    frame["level"] = pd.Categorical([f"level {level}" for level in levels])
    model = BoostingRegressor(**SMALL | HELD_OUT, learner="tree", target_encoding=False)
    return model.fit(frame, y + levels % 3).predict(frame)


def _sparse():
    X, y, rng = _table(3)
    X = csr_array(np.where(rng.uniform(size=X.shape) < 0.7, 0.0, X))
    return BoostingRegressor(**SMALL).fit(X, y).predict(X)


def _outputs(estimator, **parameters):
    X, y, _ = _table(4)
    model = estimator(random_state=0, **parameters).fit(X, np.column_stack([y, -(y**2)]))
    return model.predict(1.01 * X + 0.03)


def _strings(**parameters):
    X, y, _ = _table(6)
    words = [
        "".join("ab"[int(x > 0)] for x in row[: 3 + int(t > 0)])
        for row, t in zip(X, y, strict=True)
    ]
    space = Strings((1, 2), **parameters)
    model = OutputKernelForestRegressor(space, n_estimators=3, decode="exact", random_state=0)
    return np.array(model.fit(X, words).predict(1.01 * X + 0.03))


def _kernels(estimator, n=N, **parameters):
    X, y, _ = _table(5, n)
    return estimator(random_state=0, **parameters).fit(X, y).predict(X)


_MATERN = {"kernel": Matern(2.0, 2.5), "regularization": 0.1}


FITS: dict[str, Callable[[], np.ndarray]] = {
    "regression": lambda: _regress(**DEFAULT),
    "two threads": lambda: _regress(n_jobs=2),
    "absolute": lambda: _regress(loss="absolute_error"),
    "weights": lambda: _regress(weight=True),
    "sampled": lambda: _regress(subsample=0.6, max_features=0.5, **HELD_OUT),
    "monotonic": lambda: _regress(monotonic_cst=[1, -1] + [0] * 7, **HELD_OUT),
    "interactions": lambda: _regress(interaction_cst=[[0, 1], [1, 2, 3], [4, 5, 6, 7, 8]]),
    "large trees": lambda: _regress(
        n=70, max_leaf_nodes=70, min_samples_leaf=1, n_estimators=1, **HELD_OUT
    ),
    "two classes": lambda: _classify(2, monotonic_cst=[1] + [0] * 8),
    "three classes": lambda: _classify(3, **DEFAULT),
    "shared trees": lambda: _classify(3, multi_output="shared", **HELD_OUT),
    "categories": _categories,
    "sparse": _sparse,
    "output kernel tree": lambda: _outputs(OutputKernelTreeRegressor),
    "output kernel forest": lambda: _outputs(
        OutputKernelForestRegressor, n_estimators=3, max_features="sqrt", n_jobs=2
    ),
    "output kernel boosting": lambda: _outputs(OutputKernelBoostingRegressor, n_estimators=3),
    "strings": lambda: _strings(normalize=False),
    "strings by angle": _strings,
    # Distances are sums in any order: the last bits differ.
    "output kernel boosting, medians": lambda: np.round(
        _outputs(
            OutputKernelBoostingRegressor, n_estimators=3, learning_rate=0.02, loss="absolute_error"
        ),
        6,
    ),
    "kernel boosting": lambda: _kernels(KernelBoostingRegressor, n_estimators=2, **_MATERN),
    "sparse kernel ridge": lambda: _kernels(SparseKernelRidge, n_basis=10, **_MATERN),
    "search for a kernel": lambda: _kernels(KernelBoostingRegressor, n=12, n_estimators=2),
}


def digests() -> dict[str, str]:
    """A digest of the bits of every fit's predictions."""
    return {
        name: hashlib.sha256(np.ascontiguousarray(fit()).tobytes()).hexdigest()
        for name, fit in FITS.items()
    }


if __name__ == "__main__":
    print(json.dumps(digests()))

"""What users fit first, and how many functions are compiled for it.

``python tests/first_fits.py`` prints the number; it is zero after ``hilboost warmup``, and where a
wheel with native code is installed.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
from numba.core import event

import hilboost

N = 1000


def table(n=N, d=6, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=n)


def regress(n=N, kind=np.float64, target=lambda y: y, weight=None, **parameters):
    X, y = table(n)
    model = hilboost.BoostingRegressor(random_state=0, **{"n_estimators": 15, **parameters})
    model.fit(X.astype(kind), target(y), sample_weight=weight)
    return model.predict(X)


def classify(n_classes, n=N, weight=None, **parameters):
    X, y = table(n)
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = hilboost.BoostingClassifier(random_state=0, **{"n_estimators": 15, **parameters})
    return model.fit(X, labels, sample_weight=weight).predict_proba(X)


def frame(n=N, **parameters):
    pandas = __import__("pandas")
    X, y = table(n)
    columns = pandas.DataFrame(X).add_prefix("x")
    columns["city"] = pandas.Categorical([f"city {i % 11}" for i in range(n)])
    columns["name"] = [f"name {i % 97}" for i in range(n)]
    model = hilboost.BoostingRegressor(random_state=0, n_estimators=15, **parameters)
    return model.fit(columns, y).predict(columns)


def rank(**parameters):
    X, y = table()
    grades = np.digitize(y, [-1, 0, 1]).astype(float)
    model = hilboost.BoostingRanker(random_state=0, **{"n_estimators": 15, **parameters})
    return model.fit(X, grades, groups=np.arange(N) // 20).predict(X)


def survive(loss):
    X, y = table()
    times = np.empty(N, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = np.arange(N) % 4 > 0, np.exp(y)
    return hilboost.BoostingSurvival(loss, n_estimators=15, random_state=0).fit(X, times).predict(X)


def explain(interactions=False):
    X, y = table()
    model = hilboost.BoostingRegressor(random_state=0, n_estimators=15, learner="tree").fit(X, y)
    return model.shap_interaction_values(X) if interactions else model.shap_values(X)


def kernel(name, n_classes=0):
    X, y = table()
    target = np.digitize(y, [-0.5, 0.5])[: len(y)] if n_classes else y
    return getattr(hilboost, name)(random_state=0).fit(X, target).predict(X)


def complete():
    X, y = table()
    model = hilboost.OutputKernelBoostingRegressor(n_estimators=15, random_state=0)
    return model.fit(X, np.column_stack([y, y**2])).predict(X)


FITS: dict[str, Callable[[], object]] = {
    "regression": regress,
    "regression, float32": lambda: regress(kind=np.float32),
    "regression, weights": lambda: regress(weight=np.linspace(1, 2, N)),
    "regression, default settings": lambda: regress(n_estimators="auto"),
    "regression, 40,000 rows": lambda: regress(n=40_000),
    "regression, 300,000 rows": lambda: regress(n=300_000, n_estimators=3),
    "symmetric trees": lambda: regress(growth="symmetric"),
    "samples": lambda: regress(subsample=0.7, max_features=0.5),
    "monotonic constraints": lambda: regress(monotonic_cst=[1, 0, 0, 0, 0, -1]),
    "interaction constraints": lambda: regress(interaction_cst=[[0, 1], [2, 3, 4, 5]]),
    "absolute error": lambda: regress(loss="absolute_error"),
    "quantiles": lambda: regress(loss="quantile", quantile=[0.1, 0.5, 0.9]),
    "Poisson": lambda: regress(loss="poisson", target=np.exp),
    "several outputs": lambda: regress(target=lambda y: np.column_stack([y, y**2])),
    "shared trees": lambda: regress(
        target=lambda y: np.column_stack([y, y**2]), multi_output="shared"
    ),
    "two classes": lambda: classify(2),
    "two classes, early stopping": lambda: classify(2, n=20_000, early_stopping=True),
    "two classes, monotonic": lambda: classify(2, monotonic_cst=[1, 0, 0, 0, 0, 0]),
    "two classes, monotonic, weights": lambda: classify(
        2, weight=np.linspace(1, 2, N), monotonic_cst=[1, 0, 0, 0, 0, 0]
    ),
    "three classes, symmetric trees, weights": lambda: classify(
        3, 20_000, np.linspace(1, 2, 20_000), growth="symmetric", learner="tree"
    ),
    "two classes, 300,000 rows": lambda: classify(2, n=300_000, n_estimators=3),
    "three classes": lambda: classify(3),
    "three classes, shared trees": lambda: classify(3, multi_output="shared"),
    "categories and texts": frame,
    "categories, 40,000 rows": lambda: frame(40_000, target_encoding=False),
    "ranking": rank,
    "ranking, pairwise": lambda: rank(loss="pairwise_logistic"),
    "survival, Cox": lambda: survive("cox"),
    "survival, accelerated failure times": lambda: survive("aft"),
    "SHAP values": explain,
    "SHAP interaction values": lambda: explain(interactions=True),
    "kernel machine": lambda: kernel("KernelBoostingRegressor"),
    "sparse kernel machine": lambda: kernel("SparseKernelRidge"),
    "kernel machine, classes": lambda: kernel("KernelBoostingClassifier", 3),
    "output space": complete,
}


class Compiled(event.Listener):
    """Names of functions that are compiled."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


def compiled_for(names):
    """For each fit, the functions that are compiled."""
    found = {}
    for name in names:
        listener = Compiled()
        with warnings.catch_warnings(), event.install_listener("numba:compile", listener):
            warnings.simplefilter("ignore")
            FITS[name]()
        found[name] = listener.names
    return found


if __name__ == "__main__":
    compiled = {name: names for name, names in compiled_for(sys.argv[1:] or FITS).items() if names}
    print(sum(map(len, compiled.values())), *compiled)

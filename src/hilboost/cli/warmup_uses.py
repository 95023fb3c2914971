"""Small fits that together call every compiled function with all types of its arguments.

These types depend on the loss, the growth of trees, kinds of columns, and numbers of rows, which
decide how sums are kept and whether threads share a tree.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_friedman1

import hilboost
from hilboost.losses.registry import (
    classification_losses,
    ranking_losses,
    regression_losses,
    survival_losses,
)
from hilboost.workers.exchange import Message, TreeExchange
from hilboost.workers.fit import WorkerTask, fit_share
from hilboost.workers.partitions import Partition

_FEWEST, _FEW, _SEVERAL, _TO_SHARE, _MANY = 200, 400, 30_000, 200_000, 300_000
_SIZES = (_FEW, _SEVERAL)
_STAGES: dict[str, Any] = {"n_estimators": 2, "early_stopping": False, "random_state": 0}
_ONE_THREAD: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
_SAMPLES: dict[str, Any] = {"subsample": 0.5, "max_features": 0.5}
_ROWS: list[dict[str, Any]] = [{}, _SAMPLES]
_LEVELS: dict[str, Any] = {"loss": "quantile", "quantile": [0.05, 0.5, 0.95]}
_MONOTONIC: dict[str, Any] = {"monotonic_cst": [1, 0, 0, 0]}
_SHARED: dict[str, Any] = {"multi_output": "shared"}
_SYMMETRIC: dict[str, Any] = {"growth": "symmetric"}
_GROWTH: dict[str, dict[str, Any]] = {
    "trees": {},
    "symmetric trees": _SYMMETRIC,
    "constraints": {**_MONOTONIC, "interaction_cst": [[0, 1], [1, 2, 3]]},
    "interaction constraints": {"interaction_cst": [[0, 1], [1, 2, 3]]},
}
_SETTINGS: list[dict[str, Any]] = [
    {"early_stopping": True, "cv_folds": 2},
    {"bootstrap": True, "max_features_per_tree": 0.5},
    {"max_leaf_nodes": 100, "min_samples_leaf": 1},
    {"line_search": True},
    {"n_shards": 2},
]
_ENCODINGS: list[dict[str, Any]] = [{"target_encoding": "auto"}, {"target_encoding": False}]
_OUTPUTS: list[dict[str, Any]] = [
    {},
    _SHARED,
    {**_SHARED, **_SAMPLES},
    {**_SHARED, **_SYMMETRIC},
    {**_SHARED, "sketch": 2},
    {**_SHARED, **_MONOTONIC},
]
_EXPLAINED: list[tuple[str, dict[str, Any]]] = [
    ("regression", {}),
    ("regression", _SYMMETRIC),
    ("three classes", _SHARED),
    ("two classes", {}),
]
_POINTS: list[dict[str, Any]] = [
    {},
    {"learner": "ok3"},
    {"learner": "ok3", "loss": "absolute_error"},
    {"learner": "extra_trees", "loss": "absolute_error"},
]


Table = tuple[Any, Any, Any]
"""Columns, a positive target, weights."""


def _table(n: int = _FEW, kind: Any = np.float64) -> Table:
    """Columns with missing values, a positive target, weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(kind)
    y = np.exp(0.3 * X[:, 0] + 0.1 * rng.normal(size=n)).astype(np.float64)
    X[::17, 0] = np.nan
    return X, y, rng.uniform(0.5, 1.5, size=n)


def _few_values(n: int) -> Table:
    """Columns of few values, which are read together."""
    X, y, weight = _table(n)
    return np.round(X), y, weight


def _texts(n: int) -> Table:
    """Numbers, categories and texts."""
    import pandas as pd

    X, y, weight = _table(n)
    frame = pd.DataFrame(X).add_prefix("x")
    codes = np.arange(n)
    frame["level"] = pd.Categorical([f"level {code % 7}" for code in codes])
    frame["text"] = [f"words of {code % 37}" for code in codes]
    return frame, y + codes % 7, weight


def _classes(y: Any, n_classes: int) -> Any:
    return np.argsort(np.argsort(y)) * n_classes // len(y)


def _fit(estimator: Any, X: Any, y: object, weight: object = None, **held_out: Any) -> None:
    """Fit, and predict many rows, one row, and after every stage."""
    model = estimator.fit(X, y, sample_weight=weight, **held_out)
    predict = getattr(model, "predict_proba", model.predict)
    predict(X)
    predict(X[:1])
    if hasattr(model, "staged_predict"):
        for _ in model.staged_predict(X):
            pass


# The tasks whose gradients are computed in loops of their own.
_N_CLASSES = {"two classes": 2, "three classes": 3}
_TASKS: dict[str, dict[str, Any]] = {
    "regression": {},
    "two classes": {},
    "three classes": {},
    "regression by another loss": {"loss": "absolute_error"},
}


def _model(task: str, **settings: Any) -> Any:
    name = "BoostingClassifier" if task in _N_CLASSES else "BoostingRegressor"
    return getattr(hilboost, name)(**{**_STAGES, **_TASKS[task], **settings})


def _target(task: str, y: object) -> Any:
    return _classes(y, _N_CLASSES[task]) if task in _N_CLASSES else y


def _learn(task: str, table: Table, weighted: bool = False, **settings: Any) -> None:
    X, y, weight = table
    _fit(_model(task, **settings), X, _target(task, y), weight if weighted else None)


def _grow(
    task: str,
    table: Callable[[int], Table],
    growths: list[dict[str, Any]],
    others: list[dict[str, Any]],
) -> None:
    """Fit few and several rows of a table with each combination of settings."""
    for n, growth, more in product(_SIZES, growths, others):
        _learn(task, table(n), **growth, **more)


def _growths(task: str) -> dict[str, dict[str, Any]]:
    """The growths of trees by name; three classes have no monotonic constraints."""
    left_out = "constraints" if task == "three classes" else ""
    return {name: growth for name, growth in _GROWTH.items() if name != left_out}


def _grow_of_many_rows(task: str) -> None:
    for n, n_jobs in (_MANY, 1), (_MANY, 2), (_TO_SHARE, 2):
        X, y, _ = table = _table(n, np.float32)
        for settings in *_growths(task).values(), _SAMPLES, {"early_stopping": True}:
            _learn(task, table, n_jobs=n_jobs, **settings)
        if n_jobs == 2:
            _learn(task, _texts(n), n_jobs=n_jobs, target_encoding=False)
        if n == _MANY:
            # large enough to sort its rows by the first two trees
            _learn(task, (np.tile(X, 7), y, None), n_jobs=n_jobs, n_estimators=4)


def _choose(task: str) -> None:
    """Default settings, weights, early stopping, and what else a fit may be asked for."""
    for kind in np.float64, np.float32:
        _learn(task, _table(kind=kind), True, n_estimators=20, early_stopping="auto")
        for n in _SIZES:
            _learn(task, _table(n, kind), True, early_stopping=True, learner="tree")
    for settings in _SETTINGS:
        _learn(task, _table(), **settings)


def _try_losses() -> None:
    X, y, weight = _table()
    possible = {"counts": np.rint(y), "fractions": y / (1 + y)}
    for name, kind in regression_losses().items():
        target = possible.get(getattr(kind, "support", ""), y)
        for given in None, weight:
            _fit(hilboost.BoostingRegressor(name, **_STAGES), X, target, given)
    for loss in classification_losses():
        for n_classes in _N_CLASSES.values():
            _fit(hilboost.BoostingClassifier(loss, **_STAGES), X, _classes(y, n_classes), weight)


def _share_trees() -> None:
    """Several outputs, each with trees of its own or with one for all."""
    for n in _SIZES:
        X, y, weight = table = _table(n)
        for settings in _OUTPUTS:
            _learn("regression", table, True, **_LEVELS, **settings)
            _learn("regression", (X, np.column_stack([y, -y, y**2]), weight), **settings)
            if "monotonic_cst" not in settings:
                _learn("three classes", table, **settings)
    _grow("three classes", _few_values, [_SHARED], [{}, _SYMMETRIC])
    _grow("three classes", _texts, [_SHARED], [{}])


def _rank(losses: Mapping[str, Any]) -> None:
    for n, n_copies in (_FEW, 1), (20_000, 15), (_SEVERAL, 15):
        X, y, weight = _table(n)
        labels, groups = _classes(y, 3), np.arange(n) // 10
        held_out = {"X_val": X, "y_val": labels, "groups_val": groups}
        for loss in losses if n == _FEW else ("lambdarank",):
            metrics = ["ndcg", "map", "mrr"]
            ranker = hilboost.BoostingRanker(loss, **_STAGES, eval_metric=metrics)
            for given in None, weight[groups]:
                _fit(ranker, X, labels, given, groups=groups, **held_out)
        for rows in _ROWS:
            for growth in {}, _GROWTH["constraints"]:
                ranker = hilboost.BoostingRanker(growth="best_first", **_STAGES, **growth, **rows)
                _fit(ranker, X, labels, groups=groups)
            wide = np.tile(X, n_copies)
            _fit(hilboost.BoostingRanker(**_STAGES, **rows), wide, labels, groups=groups)


def _survive() -> None:
    for n in _SIZES:
        X, y, weight = _table(n)
        times = np.empty(n, dtype=[("event", bool), ("time", float)])
        times["event"], times["time"] = np.arange(n) % 3 > 0, np.ceil(9 * y)
        for loss in survival_losses():
            model = hilboost.BoostingSurvival(loss, **_STAGES, eval_metric="concordance")
            _fit(model, X, times, X_val=X + 1, y_val=times)
            _fit(hilboost.BoostingSurvival(loss, **_STAGES), X, times, weight)


def _explain() -> None:
    X, y, _ = _table()
    for task, settings in _EXPLAINED:
        target = _target(task, y)
        model = _model(task, **settings).fit(X, target)
        model.shap_values(X[:9], background=X)
        model.shap_values(X)
        model.shap_interaction_values(X)
        model.apply(X)
        model.refit_leaves(X, target)
        calibrated = model.calibrate(X, target)
        if task in _N_CLASSES:
            calibrated.predict_set(X)
        else:
            calibrated.predict_interval(X)


def _fit_kernel_machines() -> None:
    X, y, _ = _table(_FEWEST)
    X = np.nan_to_num(X)
    for precision in "float64", "float32":
        for kernel in "gaussian", "matern52", "laplace", "additive":
            machine = hilboost.SparseKernelRidge(
                kernel=kernel, precision=precision, n_basis=30, random_state=0
            )
            _fit(machine, X, y)
        _fit(hilboost.KernelBoostingRegressor(random_state=0, precision=precision), X, y)
    for n_classes in _N_CLASSES.values():
        _fit(hilboost.KernelBoostingClassifier(random_state=0), X, _classes(y, n_classes))
        _fit(hilboost.SparseKernelClassifier(random_state=0, n_basis=30), X, _classes(y, n_classes))
    _fit(hilboost.AveragedKernelRidge(n_estimators=2, subset_size=100, random_state=0), X, y)


def _learn_structures() -> None:
    """Trees of points in an output space, with the best and with random splits; medians."""
    X, y, _ = _table()
    points, words = np.column_stack([y, -y]), ["ab" * (1 + i % 5) for i in range(len(y))]
    for settings in _POINTS:
        model = hilboost.OutputKernelBoostingRegressor(n_estimators=2, random_state=0, **settings)
        _fit(model, X, points)
    for max_features in "sqrt", 1.0:
        forest = hilboost.OutputKernelForestRegressor(
            n_estimators=2, max_features=max_features, random_state=0
        )
        _fit(forest, X, points)
        _fit(forest, _texts(_FEW)[0], points)
    _fit(hilboost.OutputKernelTreeRegressor(random_state=0), X, points)
    for normalize in False, True:
        space = hilboost.outputs.Strings((1, 2), normalize=normalize)
        strings = hilboost.OutputKernelForestRegressor(
            space, n_estimators=2, decode="exact", random_state=0
        )
        _fit(strings, X, words)


def _complete_small_images() -> None:
    images = load_digits().images[:200]
    model = hilboost.OutputKernelBoostingRegressor("gaussian", n_estimators=2, **_ONE_THREAD)
    _fit(model, images[:, :4].reshape(200, -1), images[:, 4:])


def _fit_small_tables() -> None:
    X, y = make_friedman1(300, random_state=0)
    hilboost.BoostingRegressor(**_ONE_THREAD).fit(X, y).predict_interval(X)
    for loss in "squared_error", "absolute_error", "huber", "quantile":
        settings = {**_STAGES, **(_LEVELS if loss == "quantile" else {"loss": loss}), **_ONE_THREAD}
        _fit(hilboost.BoostingRegressor(**settings), X[:, :1], y)


def _fit_digits() -> None:
    X, y = load_digits(return_X_y=True)
    _fit(hilboost.BoostingClassifier(n_estimators=20, **_ONE_THREAD), X[:300], y[:300])


def _fit_sparse() -> None:
    from scipy.sparse import csr_array

    X, y, _ = _table()
    _fit(hilboost.BoostingRegressor(**_STAGES), csr_array(np.where(X > 0, X, 0.0)), y)


class _Alone(TreeExchange):
    """The exchange of a worker that has all rows, and no neighbors."""

    def send(self, rank: int, message: Message) -> None:
        """Send nothing."""

    def receive(self, rank: int) -> Message:
        """Receive nothing."""
        return []


def _fit_on_worker(model: Any, X: Any, y: Any, weight: Any = None) -> None:
    fit_share(WorkerTask(model, 0), [Partition(0, X, y, weight)], [], _Alone(0, 1))


def _fit_on_workers() -> None:
    """Growth of trees by one operation after the other, between which workers add their sums."""
    for n in _SIZES:
        X, y, weight = _table(n)
        for growth in {**_MONOTONIC, **_SAMPLES}, _SYMMETRIC, _SAMPLES:
            for task in "regression", "two classes":
                _fit_on_worker(_model(task, **growth), X, _target(task, y), weight)
    X, y, _ = _table()
    points = hilboost.OutputKernelBoostingRegressor(n_estimators=2, random_state=0)
    _fit_on_worker(points, X, np.column_stack([y, -y]))


def _growth_uses(task: str) -> dict[str, Callable[[], object]]:
    grow, rows = partial(_grow, task), [*_ROWS, {"weighted": True}]
    return {
        **{name: partial(grow, _table, [one], rows) for name, one in _growths(task).items()},
        "columns of few values": partial(grow, _few_values, [{}, _SYMMETRIC], _ROWS),
        "categories and texts": partial(grow, _texts, _ENCODINGS, _ROWS),
        "many rows": partial(_grow_of_many_rows, task),
    }


USES: dict[str, Callable[[], object]] = {
    "small tables": _fit_small_tables,
    "small digits": _fit_digits,
    "small images": _complete_small_images,
    "regression: default settings": partial(_choose, "regression"),
    "several outputs": _share_trees,
    "kernel machines": _fit_kernel_machines,
    "two classes: default settings": partial(_choose, "two classes"),
    "three classes: default settings": partial(_choose, "three classes"),
    "output spaces": _learn_structures,
    "rankings": partial(_rank, ranking_losses()),
    "losses": _try_losses,
    "survival times": _survive,
    "explanations and intervals": _explain,
    "sparse tables": _fit_sparse,
    "several workers": _fit_on_workers,
    **{f"{task}: {name}": use for task in _TASKS for name, use in _growth_uses(task).items()},
}
"""Fits that compile everything in advance, by name."""

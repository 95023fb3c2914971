"""A list of kernels against each kernel alone and against their sum, nothing tuned by hand.

Run ``python benchmarks/multiple_kernels.py``.  Every model is a ``KernelBoostingRegressor`` with
``regularization="auto"``, or a list with λ = 0.1, for which no amplitudes are fitted.

* *blocks*: a made table with a smooth function of five columns, a linear function of five others,
  and 30 columns of noise; 500 training and 2,000 test rows.
* *diamonds*, *abalone*: tables with numbers and categories; 1,500 training and 2,000 test rows.
* *gpcr*, *ion channels*, *nuclear receptors*: links of drugs with proteins, predicted for drugs
  without known links (ten folds) from four similarities of the drugs: SIMCOMP, and the Tanimoto
  similarity of three fingerprints.  Here, one of the kernels is also chosen by ten-fold
  cross-validation on the training rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold

from _common import arrays, data_folder, markdown_table, study
from hilboost import KernelBoostingRegressor
from hilboost.kernels import (
    Delta,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    OnColumns,
    Precomputed,
    Scaled,
    Sum,
    Tanimoto,
)
from hilboost.network import link_curves

SPLITS, FOLDS = 5, 10
LIST, GIVEN, TOTAL = "list of these", "list of these, λ = 0.1", "sum of these"
CHOSEN = "one of these, by cross-validation"
TOGETHER = (LIST, GIVEN, TOTAL, CHOSEN)
NETWORKS = {"gpcr": "gpcr", "ion channels": "ic", "nuclear receptors": "nr"}
FINGERPRINTS = ("maccs", "fp2", "ecfp4")


@dataclass(frozen=True)
class Task:
    """Inputs, targets, kernels by name, and the training and test rows of every split."""

    X: Any
    y: Any
    kernels: dict[str, Kernel]
    splits: list[tuple[Any, Any]]
    categories: list[int] | None = None
    links: bool = False


def _blocks() -> Task:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SPLITS * 2500, 40))
    smooth = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1]) * X[:, 2] + 0.5 * X[:, 3] * X[:, 4]
    linear = X[:, 5:10] @ [1.0, -0.5, 0.7, 0.3, -0.8]
    y = smooth / smooth.std() + linear / linear.std() + 0.3 * rng.normal(size=len(X))
    kernels: dict[str, Kernel] = {
        "Gaussian on the smooth block": OnColumns(Gaussian(1.0), range(5)),
        "linear on the linear block": OnColumns(Linear(), range(5, 10)),
        "Gaussian on the noise": OnColumns(Gaussian(4.0), range(10, 40)),
        "linear on the noise": OnColumns(Linear(), range(10, 40)),
        "Gaussian on all columns": Gaussian(5.0),
    }
    first = [2500 * k for k in range(SPLITS)]
    splits = [(np.arange(k, k + 500), np.arange(k + 500, k + 2500)) for k in first]
    return Task(X, y, kernels, splits)


def _table(name: str, target: str, numbers: list[str], categories: list[str]) -> Task:
    frame = pd.read_csv(data_folder() / f"{name}.csv.gz")
    codes = [frame[column].astype("category").cat.codes.to_numpy() for column in categories]
    X = np.column_stack([frame[numbers].to_numpy(float), *codes]).astype(float)
    d, every = len(numbers), list(range(X.shape[1]))
    smooth, equal = OnColumns(Matern(2.0, 2.5), every[:d]), OnColumns(Delta(), every[d:])
    kernels: dict[str, Kernel] = {
        "Matérn 5/2 on the numbers": smooth,
        "linear on the numbers": OnColumns(Linear(), every[:d]),
        "equality of the categories": equal,
        "product of Matérn and equality": smooth * equal,
    }
    order = [np.random.default_rng(k).permutation(len(X)) for k in range(SPLITS)]
    y = frame[target].to_numpy(float)
    return Task(X, y, kernels, [(rows[:1500], rows[1500:3500]) for rows in order], every[d:])


def _diamonds() -> Task:
    return _table(
        *("diamonds", "price"),
        ["carat", "depth", "table", "x", "y", "z"],
        ["cut", "color", "clarity"],
    )


def _abalone() -> Task:
    frame = pd.read_csv(data_folder() / "abalone.csv.gz")
    categories = [name for name in frame if frame[name].dtype.kind not in "if"]
    numbers = [name for name in frame if name not in [*categories, "Rings"]]
    return _table("abalone", "Rings", numbers, categories)


def _network(short: str) -> Task:
    data = arrays("yamanishi2008_dti")
    links = data[f"{short}_Y_drug_x_target"].astype(float)
    grams = {"SIMCOMP": _semidefinite(data[f"{short}_S_drug"].astype(float))}
    for kind in FINGERPRINTS:
        bits = data[f"{short}_fp_{kind}"].astype(float)
        grams[f"Tanimoto of {kind}"] = np.asarray(Tanimoto().block(bits, bits))
    n = len(links)
    order = np.random.default_rng(0).permutation(n)
    splits = [(np.setdiff1d(order, new), new) for new in np.array_split(order, FOLDS)]
    kernels: dict[str, Kernel] = {name: Precomputed(gram) for name, gram in grams.items()}
    return Task(np.arange(n, dtype=float)[:, None], links, kernels, splits, links=True)


def _semidefinite(similarity: np.ndarray) -> np.ndarray:
    """The nearest positive semidefinite matrix to a symmetric one."""
    values, vectors = np.linalg.eigh((similarity + similarity.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


TASKS: dict[str, Callable[[], Task]] = {
    "blocks": _blocks,
    "diamonds": _diamonds,
    "abalone": _abalone,
    **{name: (lambda short=short: _network(short)) for name, short in NETWORKS.items()},
}


def methods(task: Task) -> dict[str, tuple[Any, float | str]]:
    """Kernels and λ by name; the sum has equal weights."""
    kernels = list(task.kernels.values())
    several = {
        TOTAL: (Sum([Scaled(kernel, 1 / len(kernels)) for kernel in kernels]), "auto"),
        GIVEN: (kernels, 0.1),
        LIST: (kernels, "auto"),
    }
    alone = {name: (kernel, "auto") for name, kernel in task.kernels.items()}
    return alone | several | ({CHOSEN: (None, "auto")} if task.links else {})


def chosen(kernels: Iterable[Kernel], X: Any, y: Any) -> Kernel:
    """The kernel with the smallest squared error by cross-validation."""
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(
        KernelBoostingRegressor(random_state=0, n_jobs=1),
        {"kernel": list(kernels)},
        scoring="neg_mean_squared_error",
        cv=folds,
        refit=False,
    )
    kernel: Kernel = search.fit(X, y).best_params_["kernel"]
    return kernel


@cache
def task_of(data: str) -> Task:
    return TASKS[data]()


def measure(data: str, method: str) -> dict[str, Any]:
    """Errors, seconds and weights of all splits."""
    task = task_of(data)
    kernel, regularization = methods(task)[method]
    errors, ranked, seconds, weights, stages = [], [], [], [], []
    for known, new in task.splits:
        began = time.process_time()
        model = KernelBoostingRegressor(
            kernel=kernel or chosen(task.kernels.values(), task.X[known], task.y[known]),
            regularization=regularization,
            categorical_features=task.categories,
            random_state=0,
            n_jobs=1,
        )
        model.fit(task.X[known], task.y[known])
        seconds.append(time.process_time() - began)
        predicted, truth = model.predict(task.X[new]), task.y[new]
        errors.append(float(np.sqrt(((predicted - truth) ** 2).mean()) / task.y.std()))
        weights.append(model.kernel_weights_.tolist())
        stages.append(model.n_estimators_)
        if task.links:
            curves = link_curves(truth, predicted)
            ranked.append([curves.auroc, curves.average_precision])
    return {
        "errors": errors,
        "seconds": float(np.mean(seconds)),
        "weights": np.mean(weights, axis=0).tolist(),
        "stages": float(np.mean(stages)),
        "ranked": np.mean(ranked, axis=0).tolist() if ranked else None,
    }


def page(records: list[dict[str, Any]], facts: str) -> str:
    parts = [f"# Several kernels in one model\n\n{facts}\n"]
    parts.append(__doc__.split("\n\n", 2)[2] if __doc__ else "")
    parts.append(
        "Errors are root mean squared errors over the standard deviation of the targets, means of "
        "all splits. Weights are `kernel_weights_` of the list, averaged. Seconds of one fit are "
        "those of one processor.\n"
    )
    for name in TASKS:
        cells = {r["method"]: r for r in records if r["data"] == name}
        if LIST in cells:
            parts += section(name, cells)
    return "\n".join(parts)


def section(name: str, cells: dict[str, dict[str, Any]]) -> list[str]:
    linked = cells[LIST]["ranked"] is not None
    header = ["kernel", "error", *(["AUROC", "AUPR"] if linked else []), "seconds", "weight"]
    rows = []
    for k, (method, cell) in enumerate(cells.items()):
        weight = f"{cells[LIST]['weights'][k]:.3f}" if method not in TOGETHER else ""
        ranked = [f"{value:.3f}" for value in cell["ranked"]] if linked else []
        error, seconds = f"{np.mean(cell['errors']):.4f}", f"{cell['seconds']:.2f}"
        rows.append([method, error, *ranked, seconds, weight])
    best = min(np.mean(cell["errors"]) for method, cell in cells.items() if method not in TOGETHER)
    ratio = np.mean(cells[LIST]["errors"]) / best
    return [
        f"## {name}\n\n{markdown_table(header, rows)}\n",
        f"Error of the list over that of the best single kernel: {ratio:.3f}.\n",
    ]


def main() -> None:
    cases = [
        {"data": data, "method": method} for data in TASKS for method in methods(task_of(data))
    ]
    study("multiple_kernels", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

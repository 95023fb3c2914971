"""Ways to combine small kernel machines, beside boosting them.

All methods of a data set have the same kernel and the same λ, chosen once for members of 1,000
rows; what differs is how 20 members are combined.  SY2006 (section 1) names averaging, convex
combination, Bayesian committee machine and mixture of experts, and AdaBoost for classification;
section 2.1 names the penalty Σc².

Run ``python benchmarks/combiners.py``: three regressions, three classifications.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from _common import markdown_table, study, timed
from hilboost import KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.estimators.subset_ensembles import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
)
from kernel_data import SETS

MEMBERS = 20
ROWS = 1000
REGRESSIONS = ("kin40k", "california_housing", "cpu_act")
CLASSIFICATIONS = ("letter", "usps", "digits")
SPLITS = 3
THREADS = 2
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def regressors(kernel: Any, lam: float, seed: int) -> dict[str, Callable[[], Any]]:
    """Every way to combine members, by name."""
    common = {"kernel": kernel, "regularization": lam, "random_state": seed, "n_jobs": THREADS}
    several = {**common, "n_estimators": MEMBERS, "subset_size": ROWS}
    return {
        "one member": lambda: AveragedKernelRidge(**{**several, "n_estimators": 1}),
        "average": lambda: AveragedKernelRidge(**several),
        "convex combination": lambda: ConvexKernelRidge(**several),
        "penalty Σc²": lambda: StackedKernelRidge(**several),
        "Bayesian committee machine": lambda: BayesianCommitteeMachine(**several),
        "mixture of experts, random subsets": lambda: MixtureOfKernelExperts(**several, n_rounds=1),
        "mixture of experts": lambda: MixtureOfKernelExperts(**several),
        "boosting": lambda: KernelBoostingRegressor(
            stages="sparse", n_basis=ROWS, n_estimators=MEMBERS, **common
        ),
    }


def classifiers(kernel: Any, lam: float, seed: int) -> dict[str, Callable[[], Any]]:
    """AdaBoost in three sizes, and boosting under two losses."""
    common = {"kernel": kernel, "regularization": lam, "random_state": seed, "n_jobs": THREADS}
    boosted = {"stages": "sparse", "n_estimators": MEMBERS, **common}
    return {
        "one member": lambda: AdaBoostKernelClassifier(**common, n_estimators=1, subset_size=ROWS),
        "AdaBoost, 3 % of the rows": lambda: AdaBoostKernelClassifier(
            **common, n_estimators=MEMBERS, subset_size=0.03
        ),
        "AdaBoost": lambda: AdaBoostKernelClassifier(
            **common, n_estimators=MEMBERS, subset_size=ROWS
        ),
        "boosting, squared error": lambda: KernelBoostingClassifier(n_basis=ROWS, **boosted),
        "boosting, squared hinge, 200 basis vectors": lambda: KernelBoostingClassifier(
            "squared_hinge", n_basis=200, **boosted
        ),
    }


def load(name: str, split: int) -> Split:
    if name != "digits":
        train, test = SETS[name].load(min(split, SETS[name].splits - 1))
        return train.X, train.y, test.X, test.y
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(split).permutation(len(X))
    return X[order[450:]], y[order[450:]], X[order[:450]], y[order[:450]]


@cache
def methods(data: str, split: int) -> dict[str, Callable[[], Any]]:
    """The methods, with the kernel and the λ of a first member."""
    X, y, *_ = load(data, split)
    is_numbers = data in REGRESSIONS
    first = (AveragedKernelRidge if is_numbers else AdaBoostKernelClassifier)(
        n_estimators=1, subset_size=ROWS, random_state=split, n_jobs=THREADS
    ).fit(X, y)
    make = regressors if is_numbers else classifiers
    return make(first.kernel_, first.regularization_, split)


def measure(data: str, split: int, method: str) -> dict[str, float]:
    X, y, X_test, y_test = load(data, split)
    build = methods(data, split)[method]
    fit_s, model = timed(lambda: build().fit(X, y))
    predict_s, predicted = timed(lambda: model.predict(X_test))
    if data in REGRESSIONS:
        error = float(np.mean((predicted - y_test) ** 2) / np.var(y))
    else:
        error = float(100 * np.mean(predicted != y_test))
    return {"error": error, "fit_s": fit_s, "predict_s": predict_s}


def page(records: list[dict[str, Any]], facts: str) -> str:
    """Two tables: a row a method, two columns a data set."""
    parts = [
        "# Combiners of kernel machines",
        facts,
        f"All methods of a data set have the same kernel and λ. {MEMBERS} members of {ROWS:,} rows "
        f"or basis vectors, unless said; mean of {SPLITS} splits or seeds, with the standard "
        "deviation between them. Seconds are of the fit, without the choice of the kernel.",
        "## Regression: mean squared error over the variance of the target",
        _table(records, REGRESSIONS),
        "## Classification: errors in percent",
        _table(records, CLASSIFICATIONS),
    ]
    return "\n\n".join(parts)


def _table(records: list[dict[str, Any]], names: tuple[str, ...]) -> str:
    here = [record for record in records if record["data"] in names]
    rows = []
    for method in dict.fromkeys(record["method"] for record in here):
        row = [method]
        for name in names:
            own = [r for r in here if r["data"] == name and r["method"] == method]
            errors = np.array([r["error"] for r in own])
            row.append(f"{errors.mean():.4g} ± {errors.std():.2g}" if own else None)
            row.append(f"{np.mean([r['fit_s'] for r in own]):.1f}" if own else None)
        rows.append(row)
    header = ["method", *(text for name in names for text in (name, "s"))]
    return markdown_table(header, rows)


def main() -> None:
    kinds = dict.fromkeys(REGRESSIONS, regressors) | dict.fromkeys(CLASSIFICATIONS, classifiers)
    cases = [
        {"data": name, "split": split, "method": method}
        for name, kind in kinds.items()
        for split in range(SPLITS)
        for method in kind("auto", 1.0, 0)
    ]
    study("combiners", cases, measure, page, about=__doc__, threads=THREADS)


if __name__ == "__main__":
    main()

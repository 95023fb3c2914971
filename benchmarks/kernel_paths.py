"""Test error against CPU seconds: the curves, tables and settings of Sun & Yao (2006).

Every fit has one thread, and its CPU seconds are counted, so that other work on the machine does
not matter much.  A boosted ensemble gives its whole path: the error and the seconds after every
stage.  A single model gives the errors of its nested models, and the seconds of the largest one;
smaller ones are fitted again for theirs.  ``variants`` change one setting of the ensemble at a
time and keep the kernel that the marginal likelihood has found.

kin40k is the data set of the paper.  The others are relatives of its data sets, with other rows:
SARCOS has only the rows of the published test file, house_16H 16 of 138 columns.

Run ``python benchmarks/kernel_paths.py``.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from _common import Record, circumstances, study
from hilboost import KernelBoostingRegressor, SparseKernelRidge
from hilboost.core.base_model import Term
from hilboost.kernels import Constant, Gaussian
from hilboost.kernels.marginal_likelihood import maximize
from kernel_data import SETS, Rows
from kernels import loss_of, made_up

STAGES = 150
SIZES = (100, 200, 400)
POINTS = 40
ALWAYS_SHOWN = (5, 15, 30, 50, 100, 150)


class PaperSet(NamedTuple):
    """The size of the single model in Table 2, and how the paper finds the kernel."""

    basis: int
    tuning: str


PAPER = {
    "kin40k": PaperSet(680, "marginal_likelihood"),
    "sarcos": PaperSet(560, "marginal_likelihood"),
    "house_16h": PaperSet(1040, "mean_distance"),
}
BOOSTED = "boosted"
FACTORS = (1.0, 0.3, 0.1, 0.03, 0.01)
SCALES = (0.5, 0.65, 0.8, 1.4, 2.0)
FEW_STAGES = 50
VARIANTS: dict[str, Record] = {
    **{f"λ × {factor:g}": {"factor": factor} for factor in FACTORS},
    **{
        f"length scales × {scale:g}, {FEW_STAGES} stages": {
            "scale": scale,
            "n_estimators": FEW_STAGES,
        }
        for scale in SCALES
    },
    **{f"length scales × {scale:g}": {"scale": scale} for scale in (0.5, 0.65, 0.8)},
    "300 stages": {"n_estimators": 300},
    "300 stages, λ × 0.1": {"n_estimators": 300, "factor": 0.1},
    **{f"{size} rows to choose from": {"subset_size": size} for size in (1000, 4000, 8000)},
    **{
        f"forward selection, κ = {number}": {"selection": "forward", "n_candidates": number}
        for number in (59, 200)
    },
}
"""Changes of the ensemble; ``factor`` and ``scale`` are of the λ and length scales found."""
SINGLE_VARIANTS = {f"single, length scales × {scale:g}": scale for scale in (0.65, 0.8, 1.4)}
"""Changes of the single model with as many basis vectors as in the paper."""
LIKELIHOODS = "marginal likelihood"
STARTS, SUBSETS, ROWS = 8, 2, 1000


def single(basis: int) -> str:
    return f"single, {basis} basis vectors"


# One run


def shared(name: str) -> Record:
    return {"tuning": PAPER[name].tuning, "random_state": 0, "n_jobs": 1}


def run_one(name: str, split: int, method: str) -> Record:
    """Measure a method on a split, in this process."""
    train, test = SETS[name].load(split)
    variances = [float(np.var(rows.y)) for rows in (train, test)]
    facts = {"n_train": len(train), "n_test": len(test), "variances": variances}
    return facts | measured(name, method, train, test)


def measured(name: str, method: str, train: Rows, test: Rows) -> Record:
    with threadpool_limits(1):
        if method == BOOSTED:
            model = KernelBoostingRegressor.sun_yao_2006(n_estimators=STAGES, **shared(name))
            return ensemble(model, train, test)
        if method == LIKELIHOODS:
            return likelihoods(train)
        if method in VARIANTS:
            return ensemble(variant(name, train, **VARIANTS[method]), train, test)
        if method in SINGLE_VARIANTS:
            kernel = changed_kernel(name, train, scale=SINGLE_VARIANTS[method])
            return single_model(PAPER[name].basis, {**kernel, "n_jobs": 1}, train, test)
        sizes = {single(size): size for size in (*SIZES, PAPER[name].basis)}
        return single_model(sizes[method], shared(name), train, test)


def variant(name: str, train: Rows, factor: float = 1.0, scale: float = 1.0, **changes: Any) -> Any:
    """An ensemble with multiples of the length scales and λ that the paper's setting finds."""
    kernel = changed_kernel(name, train, factor, scale)
    return KernelBoostingRegressor.sun_yao_2006(tuning="auto", n_jobs=1, **kernel, **changes)


def changed_kernel(name: str, train: Rows, factor: float = 1.0, scale: float = 1.0) -> Record:
    found = KernelBoostingRegressor.sun_yao_2006(n_estimators=1, **shared(name))
    found.fit(train.X, train.y)
    logarithms = found.kernel_.log_parameters.copy()
    logarithms[: train.X.shape[1]] += np.log(scale)  # the length scales come first
    return {
        "kernel": found.kernel_.with_log_parameters(logarithms),
        "regularization": factor * found.regularization_,
        "random_state": 0,
    }


def likelihoods(train: Rows) -> Record:
    """Negative log likelihoods a row that several starts end at, on random rows; and the best λ."""
    X = (train.X - train.X.mean(axis=0)) / train.X.std(axis=0)
    ends, lambdas, began = [], [], time.process_time()
    for subset in range(SUBSETS):
        rng = np.random.default_rng(subset)
        rows = rng.permutation(len(X))[:ROWS]
        Y = (train.y[rows] - train.y.mean())[:, None]
        found = []
        for _ in range(STARTS):
            length_scales = np.exp(rng.uniform(-1, 1.5, X.shape[1]))
            kernel = 1.0 * Gaussian(length_scales) + Constant(0.1)
            found.append(maximize(kernel, np.exp(rng.uniform(-5, -1)), X[rows], Y))
        best = min(found, key=lambda evidence: evidence.value)
        ends.append([evidence.value for evidence in found])
        lambdas.append(best.noise)
    spent = time.process_time() - began
    return {"cpu_s": spent, "ends": ends, "lambdas": lambdas}


def ensemble(model: Any, train: Rows, test: Rows) -> Record:
    clock: list[float] = []
    began = time.process_time()

    def note(event: Any) -> None:
        clock.append(time.process_time() - began)

    model.fit(train.X, train.y, callbacks=[note])
    errors = errors_of_stages(model, test)
    shown = np.geomspace(1, len(errors), POINTS).round().astype(int).tolist()
    shown = sorted({k for k in (*shown, *ALWAYS_SHOWN) if k <= len(errors)})
    return {
        "cpu_s": clock[-1],
        "nmse": errors[-1],
        "regularization": float(model.regularization_),
        "path": [[k, round(clock[k - 1], 3), errors[k - 1]] for k in shown],
    }


def errors_of_stages(model: Any, test: Rows) -> list[float]:
    """NMSE after every stage.

    A stage changes the coefficients of earlier ones (27).  The outputs of each machine are computed
    once, and added with the coefficients of the stage.
    """
    raw = np.tile(model.model_.initial_raw, (len(test), 1))
    outputs: dict[int, np.ndarray] = {}
    errors = []
    for stage in model.model_.stages:
        for term in stage.terms:
            if id(term.model) not in outputs:
                outputs[id(term.model)] = np.zeros_like(raw)
                plain = Term.of(term.model, term.columns)
                type(term.model).sum_of([plain]).add_to(outputs[id(term.model)], test.X, 1)
            raw += term.coefficient * outputs[id(term.model)]
        errors.append(loss_of(test, raw))
    assert np.isclose(errors[-1], loss_of(test, model.predict(test.X)), rtol=1e-3)
    return errors


def single_model(basis: int, setting: Record, train: Rows, test: Rows) -> Record:
    model = SparseKernelRidge(n_basis=basis, selection="forward", **setting)
    began = time.process_time()
    model.fit(train.X, train.y)
    spent = time.process_time() - began
    errors = [loss_of(test, predicted) for predicted in model.staged_predict(test.X)]
    return {
        "cpu_s": spent,
        "nmse": errors[-1],
        "regularization": float(model.regularization_),
        "path": [[int(size), error] for size, error in zip(model.path_, errors, strict=True)],
    }


@cache
def warm_up() -> None:
    """Compile and load what the timed runs need."""
    rows = made_up("regression", 3_000, 8)
    setting = {"tuning": "marginal_likelihood", "n_jobs": 1}
    with threadpool_limits(1):
        KernelBoostingRegressor.sun_yao_2006(n_estimators=3, **setting).fit(rows.X, rows.y)
        SparseKernelRidge(n_basis=60, selection="forward", **setting).fit(rows.X, rows.y)


def measure(**case: Any) -> Record:
    warm_up()
    run = run_one(case["set"], case["split"], case["method"])
    return {**circumstances(1), **run}


def cases() -> list[Record]:
    """Tables 3 and 4 and the figures of the paper, relatives of its data, and other settings."""
    sizes = map(single, (PAPER["kin40k"].basis, *SIZES[::-1]))
    methods = {"kin40k": (BOOSTED, *sizes)}
    methods |= {name: (BOOSTED, single(PAPER[name].basis)) for name in ("sarcos", "house_16h")}
    found = [
        {"set": name, "split": split, "method": method}
        for split in range(10)
        for name, of_set in methods.items()
        for method in of_set
    ]
    others = (*VARIANTS, *SINGLE_VARIANTS, LIKELIHOODS)
    return [*found, *({"set": "kin40k", "split": 0, "method": method} for method in others)]


if __name__ == "__main__":
    study("kernel_paths", cases(), measure, None, about=__doc__)

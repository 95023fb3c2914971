"""The methods of ``kernels.py``: kernel machines, Gaussian processes and boosted trees.

Every method gets the raw training rows and does all the rest within the measured fit: scaling,
choice of kernel and penalty on rows held out of the training part, restriction to a random subset
where the method cannot take all rows (the record says how many it took).  Nothing sees the test
rows before the prediction.

``METHODS`` lists the methods, each with its settings.  Our own estimators are configured in the
dictionaries ``HILBOOST``, ``SUN_YAO_2006``, ``SPARSE_RIDGE`` and ``TREES``, and in ``fit_stacked``.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR

from _common import estimator
from kernel_data import CLASSIFICATION, REGRESSION, Rows
from kernel_processes import ard_kernel, fit_exact_process, fit_sparse_process
from kernel_tuning import (
    CHOICE_ROWS,
    CHOICE_SHARE,
    Fitted,
    Inputs,
    Targets,
    choose_kernel,
    chosen_penalty,
    ridge_weights,
)

BOTH = (REGRESSION, CLASSIFICATION)
STAGES_SHOWN = 10


@dataclass(frozen=True)
class Setting:
    """One configuration of a method; ``fit`` takes the rows, a seed, the threads and options.

    No comma in the name: the command line takes ``method:setting`` in lists.  Sets with no more
    than ``more_rows_than`` training rows leave a setting out, being served by a smaller one.
    """

    name: str
    fit: Callable[..., Fitted]
    options: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[str, ...] = BOTH
    more_rows_than: int = 0


@dataclass(frozen=True)
class Method:
    """A family of settings: one line in a figure, one row in the tables of best results."""

    title: str
    modules: tuple[str, ...]
    settings: tuple[Setting, ...]
    warm_up_rows: int = 200
    ours: bool = False


# Our own estimators


@dataclass(frozen=True)
class Ours:
    """A configuration of a hilboost estimator: class names, a preset, parameters."""

    regressor: str | None = "KernelBoostingRegressor"
    classifier: str | None = "KernelBoostingClassifier"
    preset: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


HILBOOST: dict[str, Ours] = {
    "default": Ours(),
    **{f"{seconds} s": Ours(params={"time_budget": seconds}) for seconds in (5, 10, 25, 60)},
}
SUN_YAO_2006: dict[str, Ours] = {
    f"{stages} stages": Ours(
        classifier=None, preset="sun_yao_2006", params={"n_estimators": stages}
    )
    for stages in (5, 15, 50, 150)
}
SPARSE_RIDGE: dict[str, Ours] = {
    f"{basis} basis{note}": Ours(
        "SparseKernelRidge",
        None,
        params={"n_basis": basis, "selection": "forward", "tuning": tuning},
    )
    for basis, note, tuning in (
        (100, "", "marginal_likelihood"),  # the kernel of Sun & Yao's setting
        (200, "", "marginal_likelihood"),
        (400, "", "marginal_likelihood"),
        (680, "", "marginal_likelihood"),
        (680, " (learned map)", "auto"),
    )
}
TREES: dict[str, Ours] = {"default": Ours("BoostingRegressor", "BoostingClassifier")}
WARM_UP_SECONDS = 2.0
WARM_UP_STAGES = 3
STACKING_FOLDS = 3


def fit_hilboost(
    train: Rows, seed: int, threads: int, config: Ours, warm_up: bool = False
) -> Fitted:
    """Our estimator; its stages give a curve unless they change the weights of earlier ones."""
    import hilboost

    kind = getattr(hilboost, config.regressor if train.regression else config.classifier)
    model = getattr(kind, config.preset)() if config.preset else kind()
    params = {**config.params, "random_state": seed, "n_jobs": threads}
    if warm_up:
        shorter = {"time_budget": WARM_UP_SECONDS}
        if "n_estimators" in params:
            shorter["n_estimators"] = WARM_UP_STAGES
        params |= {name: value for name, value in shorter.items() if name in model.get_params()}
    model.set_params(**params)
    clock, staged = _Clock(), None
    if "callbacks" in inspect.signature(model.fit).parameters:
        model.fit(train.X, train.y, callbacks=[clock])
        if not getattr(model, "reweight", False):

            def staged(X: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
                yield from zip(clock.seconds, model.staged_predict(X), strict=False)
    else:
        model.fit(train.X, train.y)
    proba = None if train.regression else getattr(model, "predict_proba", None)
    return Fitted(model.predict, len(train), proba=proba, staged=staged, cumulative=True)


def our_settings(configs: Mapping[str, Ours]) -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name,
            fit_hilboost,
            {"config": config},
            (REGRESSION,) * (config.regressor is not None)
            + (CLASSIFICATION,) * (config.classifier is not None),
        )
        for name, config in configs.items()
    )


def fit_stacked(train: Rows, seed: int, threads: int, warm_up: bool = False) -> Fitted:
    """Trees and a kernel machine, weighted by scikit-learn on what they say of rows not theirs."""
    from sklearn.ensemble import StackingRegressor
    from sklearn.linear_model import LinearRegression

    from hilboost import BoostingRegressor, KernelBoostingRegressor

    both = {"random_state": seed, "n_jobs": threads}
    budget = {"time_budget": WARM_UP_SECONDS} if warm_up else {}
    members = [
        ("trees", BoostingRegressor(**both)),
        ("kernel", KernelBoostingRegressor(**both, **budget)),
    ]
    weights = LinearRegression(positive=True)
    model = StackingRegressor(members, weights, cv=STACKING_FOLDS).fit(train.X, train.y)
    return Fitted(model.predict, len(train))


# scikit-learn


def fit_kernel_ridge(train: Rows, seed: int, threads: int, rows: int, ard: bool = False) -> Fitted:
    """KernelRidge; the penalty is chosen again with half of the rows."""
    part = train.sample(rows, seed)
    kernel = ard_kernel(part, seed, matern=True) if ard else choose_kernel(part, seed)
    targets = Targets(part)
    half, other = part.held_out(0.5, seed)
    other = other.sample(2_000, seed)
    Z = kernel.inputs(half.X)
    K, K_other = kernel.gram(Z, Z), kernel.gram(kernel.inputs(other.X), Z)
    loss = partial(targets.loss, other)
    penalty = chosen_penalty(K, targets(half), kernel.penalty, K_other, loss)
    del K, K_other
    Z = kernel.inputs(part.X)
    if kernel.matern:
        model = KernelRidge(alpha=penalty, kernel="precomputed").fit(
            kernel.gram(Z, Z), targets(part)
        )
    else:
        model = KernelRidge(alpha=penalty, kernel="rbf", gamma=kernel.gamma).fit(Z, targets(part))

    def predict(X: np.ndarray) -> np.ndarray:
        inputs = kernel.inputs(X)
        return targets.back(model.predict(kernel.gram(inputs, Z) if kernel.matern else inputs))

    return Fitted(predict, len(part), f"penalty {penalty:.1e}")


def fit_nystroem(train: Rows, seed: int, threads: int, components: int) -> Fitted:
    """Nystroem features and ridge regression; normal equations serve all penalties at once."""
    kernel = ard_kernel(train, seed, matern=False)
    targets = Targets(train)
    components = min(components, len(train) // 2)
    features = Nystroem(
        kernel="rbf", gamma=kernel.gamma, n_components=components, random_state=seed, n_jobs=1
    )
    fit, choose = train.held_out(0.1, seed)
    F = features.fit_transform(kernel.inputs(fit.X))
    gram, moments = F.T @ F, F.T @ targets(fit)
    del F
    F_choose = features.transform(kernel.inputs(choose.X))
    loss = partial(targets.loss, choose)
    penalty = chosen_penalty(gram, moments, kernel.penalty, F_choose, loss)
    gram += F_choose.T @ F_choose
    moments += F_choose.T @ targets(choose)
    final = ridge_weights(gram, moments, penalty)

    def predict(X: np.ndarray) -> np.ndarray:
        return targets.back(features.transform(kernel.inputs(X)) @ final)

    return Fitted(predict, len(train), f"{components} components, penalty {penalty:.1e}")


SVM_CACHE_MB = 2_000
SVM_COSTS = (1.0, 10.0, 100.0)
SVR_TUBES = (0.02, 0.1)


def fit_svm(train: Rows, seed: int, threads: int, rows: int) -> Fitted:
    """SVR or SVC with a Gaussian kernel; cost and width of the tube on held-out rows."""
    part = train.sample(rows, seed)
    kernel = choose_kernel(part, seed)
    targets = Targets(part)

    def machine(cost: float, tube: float) -> SVR | SVC:
        shared = {"C": cost, "gamma": kernel.gamma, "cache_size": SVM_CACHE_MB}
        return SVR(epsilon=tube, **shared) if train.regression else SVC(**shared)

    def answers(found: Rows) -> np.ndarray:
        return targets(found) if train.regression else found.y

    fit, choose = part.sample(CHOICE_ROWS, seed).held_out(CHOICE_SHARE, seed)
    Z, Z_choose = kernel.inputs(fit.X), kernel.inputs(choose.X)
    best, chosen = math.inf, (1.0, 0.1)
    for cost in SVM_COSTS:
        for tube in SVR_TUBES if train.regression else (0.0,):
            wrong = machine(cost, tube).fit(Z, answers(fit)).predict(Z_choose) - answers(choose)
            loss = float(np.mean(wrong**2 if train.regression else wrong != 0))
            if loss < best:
                best, chosen = loss, (cost, tube)
    model = machine(*chosen).fit(kernel.inputs(part.X), answers(part))

    def predict(X: np.ndarray) -> np.ndarray:
        found = model.predict(kernel.inputs(X))
        return targets.back(found) if train.regression else found

    return Fitted(predict, len(part), f"C {chosen[0]:g}, one thread")


# xRFM


XRFM_SHARE = 0.1


def fit_xrfm(
    train: Rows, seed: int, threads: int, rows: int | None = None, leaf: int | None = None
) -> Fitted:
    """XRFM at its defaults, a tenth of the rows for its validation.

    With ``leaf`` the space is split until the parts are no larger, the directions found on no more
    rows than that.
    """
    import torch
    from xrfm import xRFM

    part = train.sample(rows or len(train), seed)
    inputs, targets = Inputs("columns", part.X), Targets(part)

    def tensors(found: Rows) -> tuple[Any, Any]:
        values = targets(found).astype(np.float32) if train.regression else found.y
        return torch.as_tensor(inputs(found.X), dtype=torch.float32), torch.as_tensor(values)

    size = {} if leaf is None else {"max_leaf_size": leaf}
    model = xRFM(None, device="cpu", n_threads=threads, random_state=seed, verbose=False, **size)
    if leaf is not None:
        found = model._get_agop_on_subset
        model._get_agop_on_subset = lambda X, y, **rest: found(X, y, subset_size=leaf, **rest)
    fit, choose = part.held_out(XRFM_SHARE, seed)
    model.fit(*tensors(fit), *tensors(choose))
    note = "a tenth of the rows for validation"

    def batch(X: np.ndarray) -> Any:
        return torch.as_tensor(inputs(X), dtype=torch.float32)

    if train.regression:
        return Fitted(lambda X: targets.back(model.predict(batch(X)).ravel()), len(part), note)
    return Fitted(
        lambda X: model.predict(batch(X)).ravel(),
        len(part),
        note,
        proba=lambda X: model.predict_proba(batch(X)),
    )


# Boosted trees


def _rounds_shown(last: int) -> list[int]:
    return sorted({max(1, round(last * 0.6**power)) for power in range(STAGES_SHOWN)})


class _Clock:
    """Callback for all boosting libraries that notes the seconds at the end of each round."""

    order = 0
    before_iteration = False

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.seconds: list[float] = []

    def __call__(self, _: Any) -> None:
        self.seconds.append(time.perf_counter() - self._start)

    def after_iteration(self, _: Any) -> bool:
        self(None)
        return True


EARLY_STOPPING_SHARE = 0.1
EARLY_STOPPING_ROUNDS = 100


def fit_lightgbm(
    train: Rows, seed: int, threads: int, stop_early: bool = False, **params: Any
) -> Fitted:
    import lightgbm

    clock = _Clock()
    model = estimator("lightgbm", train.regression, seed, threads, **params)
    callbacks: list[Any] = [clock]
    part, extra = train, {}
    if stop_early:
        part, choose = train.held_out(EARLY_STOPPING_SHARE, seed)
        callbacks.append(lightgbm.early_stopping(EARLY_STOPPING_ROUNDS, verbose=False))
        extra = {"eval_set": [(choose.X, choose.y)]}
    model.fit(part.X, part.y, callbacks=callbacks, **extra)
    last = model.best_iteration_ or len(clock.seconds)

    def staged(X: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        for rounds in _rounds_shown(last):
            yield clock.seconds[rounds - 1], model.predict(X, num_iteration=rounds)

    return Fitted(
        model.predict,
        len(train),
        f"{last} rounds",
        proba=None if train.regression else model.predict_proba,
        staged=staged,
    )


def fit_catboost(train: Rows, seed: int, threads: int) -> Fitted:
    clock = _Clock()
    model = estimator("catboost", train.regression, seed, threads)
    model.fit(train.X, train.y, callbacks=[clock])
    last = model.tree_count_

    def staged(X: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        for rounds in _rounds_shown(last):
            yield clock.seconds[rounds - 1], np.ravel(model.predict(X, ntree_end=rounds))

    return Fitted(
        lambda X: np.ravel(model.predict(X)),
        len(train),
        f"{last} rounds",
        proba=None if train.regression else model.predict_proba,
        staged=staged,
    )


def our_method(title: str, settings: tuple[Setting, ...]) -> Method:
    return Method(title, ("hilboost",), settings, warm_up_rows=3_000, ours=True)


NUMBERS = (REGRESSION,)
METHODS: dict[str, Method] = {
    "hilboost": our_method("hilboost", our_settings(HILBOOST)),
    "hilboost-sy2006": our_method("hilboost, Sun & Yao 2006", our_settings(SUN_YAO_2006)),
    "hilboost-sparse": our_method("hilboost, single sparse KRR", our_settings(SPARSE_RIDGE)),
    "hilboost-trees": our_method("hilboost, trees", our_settings(TREES)),
    "hilboost-stacked": our_method(
        "hilboost, trees & kernel stacked",
        (Setting(f"{STACKING_FOLDS} folds", fit_stacked, tasks=NUMBERS),),
    ),
    "krr": Method(
        "scikit-learn KernelRidge",
        ("sklearn",),
        (Setting("8000 rows", fit_kernel_ridge, {"rows": 8_000}),),
    ),
    "krr-ard": Method(
        "KernelRidge, GPyTorch ARD",
        ("sklearn", "gpytorch", "torch"),
        (Setting("8000 rows Matern ARD", fit_kernel_ridge, {"rows": 8_000, "ard": True}, NUMBERS),),
    ),
    "nystroem-ard": Method(
        "Nystroem, GPyTorch ARD",
        ("sklearn", "gpytorch", "torch"),
        (
            Setting("2000 components ARD", fit_nystroem, {"components": 2_000}, NUMBERS),
            Setting("4000 components ARD", fit_nystroem, {"components": 4_000}, NUMBERS, 4_000),
        ),
    ),
    "svm": Method(
        "scikit-learn SVM", ("sklearn",), (Setting("8000 rows", fit_svm, {"rows": 8_000}),)
    ),
    "gpytorch-exact": Method(
        "GPyTorch exact",
        ("gpytorch", "torch"),
        (
            Setting("Matern 3000 rows", fit_exact_process, {"rows": 3_000}, NUMBERS),
            Setting(
                "Matern 3000 to 12000 rows",
                fit_exact_process,
                {"rows": 3_000, "conditioned": 12_000},
                NUMBERS,
                3_000,
            ),
        ),
    ),
    "gpytorch-svgp": Method(
        "GPyTorch SVGP",
        ("gpytorch", "torch"),
        (Setting("M=512 20 epochs", fit_sparse_process, {"inducing": 512, "epochs": 20}, NUMBERS),),
    ),
    "xrfm": Method(
        "xRFM",
        ("xrfm", "torch"),
        (
            Setting("defaults", fit_xrfm),
            Setting("defaults 10000 rows", fit_xrfm, {"rows": 10_000}, more_rows_than=10_000),
            Setting("leaves 9000", fit_xrfm, {"leaf": 9_000}, more_rows_than=10_000),
        ),
    ),
    "lightgbm": Method(
        "LightGBM",
        ("lightgbm",),
        (
            Setting("2000x63", fit_lightgbm, {"n_estimators": 2_000, "num_leaves": 63}),
            Setting(
                "early stopping",
                fit_lightgbm,
                {
                    "n_estimators": 10_000,
                    "num_leaves": 63,
                    "learning_rate": 0.05,
                    "stop_early": True,
                },
            ),
        ),
    ),
    "catboost": Method("CatBoost", ("catboost",), (Setting("defaults", fit_catboost),)),
}
OURS_ON_ALL_SPLITS = (
    ("hilboost", "default"),
    ("hilboost-sy2006", "150 stages"),
    ("hilboost-sparse", "680 basis"),
)

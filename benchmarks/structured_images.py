"""Friedman1 and images, for ``structured.py``: the tables of Geurts, Wehenkel and d'Alché-Buc.

G2007 is their *Gradient boosting for kernelized output spaces* (ICML 2007).  Every group has a
plan, which yields (set, method, split), and a function that does one such run and returns its
scores.  ``Err_φ`` is the mean of ``|φ(y) - F(x)|²``; ``Err_Y`` that of
``|φ(y) - φ(ŷ)|²``, computed with the kernel itself, so that no truncation of the output space is
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import NearestNeighbors

from _common import arrays, timed
from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput

Plan = Iterator[tuple[str, str, int]]
Scores = dict[str, Any]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

SIGMA = 7.0711
STAGES, RATE, TREES = 500, 0.01, 100
SPLITS_GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40)
QUICK_STAGES, QUICK_GRID = 20, (3, 10)


def halves(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper and lower halves of images (n, pixels)."""
    middle = images.shape[1] // 2
    rows = images.astype(np.float64)
    return np.ascontiguousarray(rows[:, :middle]), np.ascontiguousarray(rows[:, middle:])


def kernel_loss(Y: np.ndarray, found: np.ndarray) -> float:
    """``|φ(y) - φ(ŷ)|²`` under the Gaussian kernel, the mean over rows."""
    return float(np.mean(2 - 2 * np.exp(-((Y - found) ** 2).sum(axis=1) / (2 * SIGMA**2))))


def point_loss(output: Any, Y: np.ndarray, raw: np.ndarray) -> float:
    """``|φ(y) - F(x)|²``, the mean over rows."""
    inner = np.einsum("ij,ij->i", output.encode(Y), raw)
    return float(np.mean(1 - 2 * inner + (raw**2).sum(axis=1)))


def nearest_loss(output: Any, Y: np.ndarray, raw: np.ndarray) -> float:
    return kernel_loss(Y, output.decode(raw, "nearest"))


def image_scores(raw: np.ndarray, output: Any, Y: np.ndarray) -> Scores:
    """Both losses of predicted points; of pre-images among the training outputs and of any."""
    return {
        "err_phi": point_loss(output, Y, raw),
        "err_y": nearest_loss(output, Y, raw),
        "err_y_continuous": kernel_loss(Y, output.decode(raw, "continuous")),
    }


def nearest_images(images: np.ndarray, known: np.ndarray) -> np.ndarray:
    return known[NearestNeighbors(n_neighbors=1).fit(known).kneighbors(images)[1][:, 0]]


# Table 1 of G2007: Friedman1 and 1,000 images

IMAGE_SETS = {"usps_test": "first 1,000 of the test file"}
FORESTS = ("OK3 single", "OK3 + bagging", "OK3 + ET")
BOOSTED = {
    "OK3 + OKBoost": {"learner": "ok3", "sketch": None},
    "OK3 + OKBoost, sketch": {"learner": "ok3", "sketch": 32},
    "OK3-et + OKBoost": {"learner": "extra_trees"},
}
KERNEL_METHODS = (
    "kernel machine",
    "KDE",
    "KDE of KernelRidge",
    "kernel machine & OK3-et + OKBoost",
)


def forest(method: str, output: Any, seed: int, threads: int) -> Any:
    """Fully grown trees: one, bagged with all columns, or extra-trees with √d of them."""
    common = {"random_state": seed, "n_jobs": threads}
    if method == "OK3 single":
        return OutputKernelTreeRegressor(output, **common)
    more: dict[str, Any] = {"n_estimators": TREES, **common}
    if method == "OK3 + bagging":
        more |= {"splitter": "best", "bootstrap": True, "max_features": 1.0}
    return OutputKernelForestRegressor(output, **more)


def chosen_splits(make: Callable[[int], Any], X: np.ndarray, Y: np.ndarray, quick: bool) -> int:
    """J by 5-fold cross-validation of ``Err_φ`` with all stages; one fit a fold and J."""
    grid = QUICK_GRID if quick else SPLITS_GRID
    folds = list(KFold(2 if quick else 5, shuffle=True, random_state=0).split(X))
    losses = [
        np.mean([make(J).fit(X[a], Y[a]).embedding_loss(X[b], Y[b]) for a, b in folds])
        for J in grid
    ]
    return grid[int(np.argmin(losses))]


def boosting(
    method: str,
    output: Any,
    X: np.ndarray,
    Y: np.ndarray,
    seed: int,
    threads: int,
    quick: bool,
    **more: Any,
) -> Any:
    """OKBoost with the J that inner cross-validation chose."""

    def make(J: int) -> Any:
        return OutputKernelBoostingRegressor(
            output,
            n_estimators=QUICK_STAGES if quick else STAGES,
            learning_rate=RATE,
            max_splits=J,
            random_state=seed,
            n_jobs=threads,
            **BOOSTED[method],
            **more,
        )

    return make(chosen_splits(make, X, Y, quick))


CANDIDATES: dict[str, Scores] = {", K = 3": {}, ", K = 4": {"max_features": 0.4}}
"""Candidate columns of random splits: √10 is between 3, the default of hilboost, and 4."""
TEST_SAMPLES = 20
DEFAULTS = "OK3-et boosting, defaults"
FRIEDMAN_METHODS = (
    *FORESTS[:2],
    *("OK3 + ET" + columns for columns in CANDIDATES),
    "OK3 + OKBoost",
    *("OK3-et + OKBoost" + columns for columns in CANDIDATES),
    DEFAULTS,
)


def friedman_plan() -> Plan:
    for split in range(10):
        for method in FRIEDMAN_METHODS:
            yield "friedman1", method, split


def friedman_run(set_name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    """Errors on several test samples; G2007 has one."""
    X, y = make_friedman1(300, n_features=10, noise=1.0, random_state=1 + split)
    kind, comma, columns = method.partition(", K")
    more = CANDIDATES.get(comma + columns, {})
    if method == DEFAULTS:
        model = OutputKernelBoostingRegressor(
            "linear", learner="extra_trees", random_state=split, n_jobs=threads
        )
    elif kind in BOOSTED:
        model = boosting(kind, "linear", X, y, split, threads, quick, **more)
    else:
        model = forest(kind, "linear", split, threads).set_params(**more)
    scores: Scores = {"fit_s": timed(lambda: model.fit(X, y))[0]}
    model.set_params(decode="nearest")
    samples = [
        make_friedman1(1_000, n_features=10, noise=1.0, random_state=1_000 + sample)
        for sample in range(2 if quick else TEST_SAMPLES)
    ]
    for name, loss in {"err_phi": model.embedding_loss, "err_y": model.preimage_loss}.items():
        errors = [loss(*sample) for sample in samples]
        scores |= {name: float(np.mean(errors)), f"{name}_samples": errors}
    if kind in BOOSTED or method == DEFAULTS:
        scores["max_splits"] = model.max_splits
    return scores


def image_fold(split: int) -> Split:
    """200 images to learn, the 800 of the other folds to test."""
    X, Y = halves(arrays("usps")["X_test"][:1_000])
    test, learn = list(KFold(5, shuffle=True, random_state=0).split(X))[split]
    return X[learn], Y[learn], X[test], Y[test]


def usps_plan() -> Plan:
    for name in IMAGE_SETS:
        for split in range(5):
            for method in (*FORESTS, *BOOSTED, *KERNEL_METHODS):
                yield name, method, split


def dependency_estimation(output: Any, learner: Any, seed: int, threads: int) -> Any:
    """Kernel ridge regression in the output space (Weston et al. 2002): one stage, no shrinkage."""
    return OutputKernelBoostingRegressor(
        output, learner=learner, n_estimators=1, learning_rate=1, random_state=seed, n_jobs=threads
    )


def kernel_ridge(output: KernelOutput, X: np.ndarray, Y: np.ndarray) -> KernelRidge:
    """scikit-learn's, its length scale and λ by 5-fold cross-validation in the output space."""
    grid = {"gamma": [0.002, 0.005, 0.01, 0.02, 0.05], "alpha": [0.01, 0.03, 0.1, 0.3, 1.0]}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, scoring="neg_mean_squared_error")
    return search.fit(X, output.fit(Y).encode(Y)).best_estimator_


def usps_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    X, Y, X_test, Y_test = image_fold(split)
    output = KernelOutput(Gaussian(SIGMA), tolerance=0.001)
    members: list[Any] = []
    if method in FORESTS:
        members.append(forest(method, output, split, threads))
    if method.startswith("kernel machine"):
        members.append(
            OutputKernelBoostingRegressor(
                output, learner="kernel", random_state=split, n_jobs=threads
            )
        )
    if method == "KDE":
        learner = KernelBoostingRegressor(stages="full", tuning="mean_distance")
        members.append(dependency_estimation(output, learner, split, threads))
    if method == "KDE of KernelRidge":
        members.append(dependency_estimation(output, kernel_ridge(output, X, Y), split, threads))
    trees = method.removeprefix("kernel machine & ")
    if trees in BOOSTED:
        members.append(boosting(trees, output, X, Y, split, threads, quick))
    fit_s, _ = timed(lambda: [member.fit(X, Y) for member in members])
    raw = np.mean([member.predict_embedding(X_test) for member in members], axis=0)
    scores = {"fit_s": fit_s, **image_scores(raw, members[0].output_, Y_test)}
    if trees in BOOSTED:
        scores["max_splits"] = members[-1].max_splits
    return scores


# Figure 1 of G2007: the errors against the number of stages

FIGURE_RATES, FIGURE_SPLITS = (1.0, 0.1, 0.05, 0.01), (1, 5, 20, 40)


def figure_plan() -> Plan:
    for rate in FIGURE_RATES:
        for J in FIGURE_SPLITS:
            yield "usps_test", f"ν={rate:g} J={J}", 0


def figure_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    """[M, Err_φ of learning and test sample, Err_Y of learning and test sample] along the way."""
    rate, J = (part.partition("=")[2] for part in method.split())
    X, Y, X_test, Y_test = image_fold(split)
    model = OutputKernelBoostingRegressor(
        KernelOutput(Gaussian(SIGMA), tolerance=0.001),
        learner="ok3",
        sketch=None,
        n_estimators=QUICK_STAGES if quick else STAGES,
        learning_rate=float(rate),
        max_splits=int(J),
        random_state=0,
        n_jobs=threads,
    )
    fit_s, _ = timed(lambda: model.fit(X, Y))
    shown = set(np.geomspace(1, STAGES, 60).round().astype(int).tolist())
    output, curve = model.output_, []
    stages = zip(
        model.staged_predict_embedding(X), model.staged_predict_embedding(X_test), strict=True
    )
    for stage, points in enumerate(stages, 1):
        if stage in shown:
            pairs = list(zip((Y, Y_test), points, strict=True))
            losses = [loss(output, *pair) for loss in (point_loss, nearest_loss) for pair in pairs]
            curve.append([stage, *losses])
    return {"fit_s": fit_s, "curve": curve}


# All of USPS

FULL_PIXELS: dict[str, Callable[[int, int], Any]] = {
    "ExtraTreesRegressor": lambda trees, threads: ExtraTreesRegressor(
        trees, random_state=0, n_jobs=threads
    ),
    "ExtraTreesRegressor, √d columns": lambda trees, threads: ExtraTreesRegressor(
        trees, max_features="sqrt", random_state=0, n_jobs=threads
    ),
    "RandomForestRegressor, √d columns": lambda trees, threads: RandomForestRegressor(
        trees, max_features="sqrt", random_state=0, n_jobs=threads
    ),
}
FULL_OURS: dict[str, Callable[..., Any]] = {
    "OK3-et boosting": lambda stages, common: OutputKernelBoostingRegressor(
        learner="extra_trees", n_estimators=stages, learning_rate=0.02, **common
    ),
    "OK3-et boosting, J = 100": lambda stages, common: OutputKernelBoostingRegressor(
        learner="extra_trees", n_estimators=stages, learning_rate=0.02, max_splits=100, **common
    ),
    "OK3-et forest": lambda stages, common: OutputKernelForestRegressor(
        n_estimators=max(2, stages // 5), min_samples_leaf=5, **common
    ),
    "kernel machine": lambda stages, common: OutputKernelBoostingRegressor(
        learner="kernel", **common
    ),
}
LINEAR = ", linear output"


def usps_full_plan() -> Plan:
    linear = ("OK3-et boosting, J = 100" + LINEAR, "kernel machine" + LINEAR)
    for method in (*FULL_OURS, *linear, *FULL_PIXELS):
        yield "usps_all", method, 0


def usps_full_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    digits = arrays("usps")
    (X, Y), (X_test, Y_test) = halves(digits["X_train"]), halves(digits["X_test"])
    if quick:
        X, Y, X_test, Y_test = X[:300], Y[:300], X_test[:200], Y_test[:200]
    if method in FULL_PIXELS:
        model = FULL_PIXELS[method](10 if quick else 100, threads)
    else:
        linear = method.endswith(LINEAR)
        output = "linear" if linear else KernelOutput(Gaussian(SIGMA), tolerance=0.05)
        common = {"output": output, "random_state": 0, "n_jobs": threads}
        stages = QUICK_STAGES if quick else STAGES
        model = FULL_OURS[method.removesuffix(LINEAR)](stages, common)
    scores = {"fit_s": timed(lambda: model.fit(X, Y))[0]}
    if method in FULL_OURS:
        scores["predict_s"], raw = timed(lambda: model.predict_embedding(X_test))
        scores["rank"] = raw.shape[1]
        scores["decode_s"], found = timed(lambda: image_scores(raw, model.output_, Y_test))
        return {**scores, **found}
    scores["predict_s"], images = timed(lambda: model.predict(X_test))
    return {
        **scores,
        "err_y": kernel_loss(Y_test, nearest_images(images, Y)),
        "err_y_continuous": kernel_loss(Y_test, images),
    }


# Faces

FACE_OURS = ("OK3-et boosting", "OK3-et forest", "kernel machine")
FACE_OUTPUTS = ("linear", "gaussian")
FACE_PEERS: dict[str, Callable[[int], Any]] = {
    "ExtraTreesRegressor, √d columns": lambda threads: ExtraTreesRegressor(
        TREES, max_features="sqrt", random_state=0, n_jobs=threads
    ),
    "RidgeCV": lambda threads: RidgeCV(np.logspace(-1, 4, 11)),
    "1 nearest neighbor": lambda threads: None,
}


def faces_plan() -> Plan:
    ours = [f"{method}, {output} output" for output in FACE_OUTPUTS for method in FACE_OURS]
    for split in range(8):
        for method in (*ours, *FACE_PEERS):
            yield "faces", method, split


def face_split(split: int) -> Split:
    """Five people nobody has learned from; split 7 has the last five."""
    faces = arrays("olivetti_faces")
    X, Y = halves(faces["images"].reshape(len(faces["images"]), -1) / 255.0)
    group = faces["person"] // 5
    learn, test = group != split, group == split
    return X[learn], Y[learn], X[test], Y[test]


def faces_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    X, Y, X_test, Y_test = face_split(split)
    if method == "1 nearest neighbor":
        fit_s, found = timed(lambda: NearestNeighbors(n_neighbors=1).fit(X).kneighbors(X_test)[1])
        return {"fit_s": fit_s, **pixel_scores(Y_test, Y[found[:, 0]], Y)}
    if method in FACE_PEERS:
        model = FACE_PEERS[method](threads)
    else:
        kind, output = method.removesuffix(" output").rsplit(", ", 1)
        common = {"output": output, "random_state": 0, "n_jobs": threads}
        stages = {"n_estimators": QUICK_STAGES} if quick else {}
        if kind == "OK3-et forest":
            model = OutputKernelForestRegressor(**{"n_estimators": TREES, **stages}, **common)
        else:
            learner = "kernel" if kind == "kernel machine" else "extra_trees"
            model = OutputKernelBoostingRegressor(learner=learner, **stages, **common)
    fit_s, _ = timed(lambda: model.fit(X, Y))
    predict_s, found = timed(lambda: model.predict(X_test))
    return {"fit_s": fit_s, "predict_s": predict_s, **pixel_scores(Y_test, found, Y)}


def pixel_scores(Y: np.ndarray, found: np.ndarray, known: np.ndarray) -> Scores:
    """Root mean squared error of pixels in [0, 1], and the part of their variance explained."""
    squares = float(((Y - found) ** 2).sum())
    return {
        "rmse": float(np.sqrt(squares / Y.size)),
        "r2": 1 - squares / float(((Y - known.mean(axis=0)) ** 2).sum()),
    }

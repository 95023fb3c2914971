"""Scores of a model, each with the score of a constant baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics import median_absolute_error

from hilboost.core.dtypes import Floats
from hilboost.report.table import shortened

TARGET_LENGTH = 30  # characters of the name of a target
_RESAMPLES = 100
_MOST_RESAMPLED = 20_000  # rows
_TINY = 1e-15  # the smallest probability
_KEYS = {
    "R²": "r2",
    "RMSE": "rmse",
    "median absolute error": "median_error",
    "Brier score": "brier",
    "Kendall τ": "kendall_tau",
}


def score(name: str, value: float, guess: float | None, better: str, says: str) -> dict[str, Any]:
    """Describe a score and the score of the baseline."""
    key = _KEYS.get(name, name.lower().replace("²", "2").replace(" ", "_").replace("-", "_"))
    return {
        "key": key,
        "name": name,
        "value": float(value),
        "guess": None if guess is None else float(guess),
        "better": better,
        "says": says,
    }


def number_scores(y: Floats, mean: Floats, guess: Floats, weights: Floats) -> list[dict[str, Any]]:
    """Compute regression scores."""
    weighted = partial(np.average, weights=weights)
    scores = []
    explained = variance_explained(y, mean, weights)
    if explained is not None:
        says = "fraction of the variance explained; 1 is best"
        scores.append(score("R²", explained, 0.0, "higher", says))
    given = None if (weights == 1).all() else weights
    measures: dict[str, tuple[Callable[[Floats], float], str]] = {
        "RMSE": (lambda one: np.sqrt(weighted((y - one) ** 2)), "root mean squared error"),
        "MAE": (lambda one: weighted(np.abs(y - one)), "mean absolute error"),
        "median absolute error": (
            lambda one: median_absolute_error(y, one, sample_weight=given),
            "half of the rows have a smaller error",
        ),
    }
    for name, (measure, says) in measures.items():
        scores.append(score(name, measure(mean), measure(guess), "lower", says))
    says = "mean of true minus predicted; near 0 if the model is right on average"
    bias, guessed = float(weighted(y - mean)), float(weighted(y - guess))
    if abs(guessed) < 1e-14 * float(np.abs(y).max()):
        guessed = 0.0  # remove rounding errors
    scores.append(score("bias", bias, guessed, "0", says))
    return scores


def variance_explained(y: Floats, mean: Floats, weights: Floats) -> float | None:
    """Compute R² of known targets (n,) float64; ``None`` if they do not vary."""
    if not len(y):
        return None
    spread = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    error = np.average((y - mean) ** 2, weights=weights)
    return 1 - float(error) / float(spread) if spread > 0 else None


def scores_of_targets(
    y: Floats, mean: Floats, weights: Floats, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Compute R² of several targets (n, c) float64, NaN if missing: the mean, and that of each."""
    known = ~np.isnan(y)
    says, found = "fraction of the variance explained; 1 is best", []
    for k, (name, rows) in enumerate(zip(names, known.T, strict=True)):
        r2 = variance_explained(y[rows, k], mean[rows, k], weights[rows])
        if r2 is not None:
            found.append(of_target(score("R²", r2, 0.0, "higher", says), name))
    if found:
        average = float(np.mean([one["value"] for one in found]))
        says = "fraction of the variance explained, mean over the targets; 1 is best"
        found.insert(0, score("R²", average, 0.0, "higher", says))
    return found


def of_target(one: dict[str, Any], name: str) -> dict[str, Any]:
    """Name the target in a score of one of several targets."""
    shown = f"{one['name']} of {shortened(name, TARGET_LENGTH)}"
    return {**one, "key": f"{one['key']}_of_{name}", "name": shown}


def class_scores(
    codes: NDArray[np.intp],  # (n,) int: indices of the true classes
    proba: Floats,  # (n, k) float64: probabilities, or scores of a model that gives none
    guess: Floats,  # (n, k) float64: predictions of the baseline
    weights: Floats,  # (n,) float64
    gives_probabilities: bool = True,  # whether to include the measures of probabilities
    positive: int = 1,  # index of the class, of two, that the curves are about
    names: Sequence[str] = (),  # names of the classes
) -> list[dict[str, Any]]:
    """Compute classification scores."""
    best = proba.argmax(axis=1)
    constant = guess.argmax(axis=1)
    weighted = partial(np.average, weights=weights)
    says = "fraction of rows classified correctly"
    right, guessed = (weighted(one == codes) for one in (best, constant))
    scores = [score("accuracy", right, guessed, "higher", says)]
    present = np.unique(codes)
    if len(present) > 1:
        own = [codes == k for k in present]
        recalls = [np.average(best[k] == codes[k], weights=weights[k]) for k in own]
        says, chance = "mean recall of the classes", 1 / len(present)
        scores.append(score("balanced accuracy", np.mean(recalls), chance, "higher", says))
    if gives_probabilities:
        scores += _probability_scores(codes, proba, guess, weights)
    if proba.shape[1] == 2 and len(present) == 2:
        auc = metrics.roc_auc_score(codes, proba[:, 1], sample_weight=weights)
        chosen, other = names[positive], names[1 - positive]
        says = f"probability that a row of class {chosen} ranks above a row of class {other}"
        scores.append(score("ROC AUC", auc, 0.5, "higher", says))
        hits = codes == positive
        precision = metrics.average_precision_score(hits, proba[:, positive], sample_weight=weights)
        says = f"area under the precision-recall curve of class {chosen}"
        scores.append(score("average precision", precision, weighted(hits), "higher", says))
    return scores


def _probability_scores(
    codes: NDArray[np.intp], proba: Floats, guess: Floats, weights: Floats
) -> list[dict[str, Any]]:
    # Some versions of scikit-learn's log_loss warn if there are many classes.
    rows, labels = np.arange(len(codes)), np.arange(proba.shape[1])
    weighted = partial(np.average, weights=weights)
    truth, both = codes[:, None] == labels, (proba, guess)
    loss = [weighted(-np.log(np.clip(p[rows, codes], _TINY, 1))) for p in both]
    says = "mean negative log of the predicted probability of the true class"
    squares = "squared error of the probabilities, summed over the classes"
    brier = [weighted(((p - truth) ** 2).sum(axis=1)) for p in both]
    if len(labels) <= 2:  # as in scikit-learn, the sum over two classes is halved
        squares, brier = "squared error of the probability of a class", [0.5 * b for b in brier]
    return [
        score("log loss", loss[0], loss[1], "lower", says),
        score("Brier score", brier[0], brier[1], "lower", squares),
    ]


Measured = Callable[[Any], list[dict[str, Any]]]
"""Maps row indices (m,), which may repeat, or a slice to the scores of these rows."""


def resampled(keys: Sequence[str], n: int, measured: Measured) -> dict[str, Floats]:
    """Compute scores of bootstrap samples of n rows, the same in every call; NaN if undefined."""
    rng = np.random.default_rng(0)
    size = _resample_size(n)
    drawn = {key: np.full(_RESAMPLES, np.nan) for key in keys}
    for k in range(_RESAMPLES):
        for one in measured(rng.integers(n, size=size)):
            if one["key"] in drawn:
                drawn[one["key"]][k] = one["value"]
    return drawn


def _resample_size(n: int) -> int:
    return min(n, _MOST_RESAMPLED)


def interval(value: float, drawn: Floats, n: int) -> tuple[float | None, float | None]:
    """Compute a 95 % confidence interval of a value from bootstrap samples of n rows."""
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) <= _RESAMPLES // 2:
        return None, None
    shrunk = np.sqrt(_resample_size(n) / n)
    low, high = np.quantile(drawn - value, [0.025, 0.975]) * shrunk
    return value + float(low), value + float(high)


def with_intervals(
    scores: list[dict[str, Any]], n: int, measured: Measured
) -> list[dict[str, Any]]:
    """Add 95 % confidence intervals of the scores of n rows, ``low`` and ``high``, by bootstrap."""
    drawn = resampled([one["key"] for one in scores], n, measured)
    found = []
    for one in scores:
        low, high = interval(one["value"], drawn[one["key"]], n)
        found.append({**one, "low": low, "high": high})
    return found

"""Scores of a model, each with the score of a constant baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics import mean_absolute_error, median_absolute_error, root_mean_squared_error

from hilboost.core.dtypes import Floats

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
    key = _KEYS.get(name, name.lower().replace(" ", "_").replace("-", "_"))
    return {
        "key": key,
        "name": name,
        "value": float(value),
        "guess": None if guess is None else float(guess),
        "better": better,
        "says": says,
    }


def number_scores(y: Floats, mean: Floats, guess: float) -> list[dict[str, Any]]:
    """Compute regression scores.

    Parameters
    ----------
    y, mean : (n,) float64
        True and predicted values.
    guess : float
        Prediction of the baseline.
    """
    constant = np.full_like(y, guess)
    scores = []
    spread = float(((y - y.mean()) ** 2).mean())
    if spread > 0:
        explained = 1 - float(((y - mean) ** 2).mean()) / spread
        says = "fraction of the variance explained; 1 is best"
        scores.append(score("R²", explained, 0.0, "higher", says))
    for name, measure, says in (
        ("RMSE", root_mean_squared_error, "root mean squared error"),
        ("MAE", mean_absolute_error, "mean absolute error"),
        ("median absolute error", median_absolute_error, "half of the rows have a smaller error"),
    ):
        scores.append(score(name, measure(y, mean), measure(y, constant), "lower", says))
    says = "mean of true minus predicted; near 0 if the model is right on average"
    bias, guessed = float((y - mean).mean()), float((y - constant).mean())
    if abs(guessed) < 1e-14 * float(np.abs(y).max()):
        guessed = 0.0  # remove rounding errors
    scores.append(score("bias", bias, guessed, "0", says))
    return scores


def class_scores(
    codes: NDArray[np.intp],
    proba: Floats,
    guess: Floats,
    gives_probabilities: bool = True,
    positive: int = 1,
) -> list[dict[str, Any]]:
    """Compute classification scores.

    Parameters
    ----------
    codes : (n,) int
        Indices of the true classes.
    proba : (n, k) float64
        Probabilities, or scores of a model that gives none.
    guess : (k,) float64
        Those of the baseline.
    gives_probabilities : bool, default True
        Whether to include the measures of probabilities.
    positive : int, default 1
        Index of the class, of two, that the average precision is about.
    """
    best = proba.argmax(axis=1)
    guess = np.tile(guess, (len(codes), 1))
    constant = guess.argmax(axis=1)
    scores = [
        score(
            "accuracy",
            (best == codes).mean(),
            (constant == codes).mean(),
            "higher",
            "fraction of rows classified correctly",
        )
    ]
    present = np.unique(codes)
    if len(present) > 1:
        recalls = [(best[codes == k] == k).mean() for k in present]
        says = "mean recall of the classes"
        scores.append(
            score("balanced accuracy", np.mean(recalls), 1 / len(present), "higher", says)
        )
    if gives_probabilities:
        scores += _probability_scores(codes, proba, guess)
    if proba.shape[1] == 2 and len(present) == 2:
        auc = metrics.roc_auc_score(codes, proba[:, 1])
        says = "probability that a row of the second class ranks above a row of the first"
        scores.append(score("ROC AUC", auc, 0.5, "higher", says))
        hits = codes == positive
        precision = metrics.average_precision_score(hits, proba[:, positive])
        which = ("first", "second")[positive]
        says = f"area under the precision-recall curve of the {which} class"
        scores.append(score("average precision", precision, hits.mean(), "higher", says))
    return scores


def _probability_scores(
    codes: NDArray[np.intp], proba: Floats, guess: Floats
) -> list[dict[str, Any]]:
    # Some versions of scikit-learn's log_loss warn if there are many classes.
    rows, labels = np.arange(len(codes)), np.arange(proba.shape[1])
    loss, loss_guess = (
        float(-np.log(np.clip(p[rows, codes], _TINY, 1)).mean()) for p in (proba, guess)
    )
    truth = codes[:, None] == labels
    brier, brier_guess = (float(((p - truth) ** 2).sum(axis=1).mean()) for p in (proba, guess))
    says = "mean negative log of the predicted probability of the true class"
    return [
        score("log loss", loss, loss_guess, "lower", says),
        score(
            "Brier score", brier, brier_guess, "lower", "mean squared error of the probabilities"
        ),
    ]


def with_intervals(
    scores: list[dict[str, Any]],
    n: int,
    measured: Callable[[NDArray[np.intp]], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Add 95 % confidence intervals of the scores, ``low`` and ``high``, by bootstrap.

    Parameters
    ----------
    scores : list of dict
        Of all n rows.
    n : int
    measured : callable
        Maps rows (m,), which may repeat, to scores.

    Returns
    -------
    list of dict
        Resamples of many rows are smaller, and the interval is scaled.
    """
    rng = np.random.default_rng(0)
    size = min(n, _MOST_RESAMPLED)
    drawn: dict[str, list[float]] = {one["key"]: [] for one in scores}
    for _ in range(_RESAMPLES):
        for one in measured(rng.integers(n, size=size)):
            if one["key"] in drawn:
                drawn[one["key"]].append(one["value"])
    found = []
    for one in scores:
        values = np.array(drawn[one["key"]])
        ends: tuple[float | None, float | None] = None, None
        if len(values) > _RESAMPLES // 2:
            low, high = np.quantile(values - one["value"], [0.025, 0.975]) * np.sqrt(size / n)
            ends = one["value"] + float(low), one["value"] + float(high)
        found.append({**one, "low": ends[0], "high": ends[1]})
    return found

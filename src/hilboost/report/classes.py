"""Facts about classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from hilboost.core.dtypes import Floats
from hilboost.losses.registry import gives_probabilities
from hilboost.report.evaluation import Rows
from hilboost.report.figures import class_scores
from hilboost.report.table import (
    histogram_of_shares,
    means_by_column,
    rows_shown,
    shortened,
    thinned,
)

_CURVE_POINTS = 200
_LARGEST_MATRIX = 15
_PAIRS = 12
_WORST = 6
_SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)  # of the rows, with the highest scores
_TINY = 1e-15  # the smallest probability


def class_facts(rows: Rows, order: Sequence[int], positive: int) -> dict[str, Any]:
    """Collect scores, confusion matrix, calibration, curves, and thresholds."""
    columns, names = rows.columns, [shortened(label, 30) for label in rows.fitted.classes]
    codes, guess = rows.class_numbers, rows.class_guess()
    has_probabilities = gives_probabilities(rows.fitted.loss)
    proba = rows.probabilities(rows.raw)  # or scores
    best = proba.argmax(axis=1)
    own = proba[np.arange(len(codes)), codes]
    wrong = (best != codes).astype(float)
    weights, mistakes = columns.weights, np.flatnonzero(wrong)
    worst = mistakes[np.argsort(-proba[mistakes, best[mistakes]], kind="stable")[:_WORST]]
    table = rows_shown(columns, worst, order)
    table["true"] = [names[k] for k in codes[worst]]
    table["predicted"] = [names[k] for k in best[worst]]
    series = {"error": wrong}
    if has_probabilities:
        table["confidence"] = proba[worst, best[worst]].tolist()
        series["log_loss"] = -np.log(np.maximum(own, _TINY))
    if len(names) == 2:
        hits, stated = codes == positive, proba[:, positive]
    else:
        hits, stated = codes == best, proba.max(axis=1)
    return {
        "classes": names,
        "scores": class_scores(codes, proba, guess, weights, has_probabilities, positive, names),
        "by_class": _by_class(names, codes, best, weights),
        "confusion": _confusion(names, codes, best, weights),
        "positive": positive if len(names) == 2 else None,
        "calibration": calibration_facts(hits, stated, weights) if has_probabilities else None,
        "curves": curve_facts(hits, stated, weights) if len(names) == 2 else None,
        "thresholds": _thresholds(hits, stated, weights) if len(names) == 2 else None,
        "by_column": means_by_column(columns, order, series),
        "worst": table,
    }


def _by_class(
    names: list[str], codes: NDArray[np.intp], best: NDArray[np.intp], weights: Floats
) -> list[dict[str, Any]]:
    k, right = len(names), codes == best
    true, predicted = np.bincount(codes, weights, k), np.bincount(best, weights, k)
    return scores_by_name(names, true, predicted, np.bincount(codes[right], weights[right], k))


def scores_by_name(
    names: Sequence[str], true: NDArray[Any], predicted: NDArray[Any], both: NDArray[Any]
) -> list[dict[str, Any]]:
    """Compute scores of classes or labels from sums of the weights of their rows, (k,) each."""
    sums = np.stack([true, predicted, both], axis=1)
    return [
        {
            "name": name,
            "rows": t,
            "predicted": p,
            "precision": common / p if p else None,
            "recall": common / t if t else None,
            "f1": 2 * common / (t + p) if t else None,
        }
        for name, (t, p, common) in zip(names, sums.tolist(), strict=True)
    ]


def _confusion(
    names: list[str], codes: NDArray[np.intp], best: NDArray[np.intp], weights: Floats
) -> dict[str, Any]:
    """Confusion matrix, omitted for many classes, and the most frequent mistakes."""
    k = len(names)
    matrix = np.bincount(codes * k + best, weights, k * k).reshape(k, k)
    mistakes = matrix - np.diag(np.diag(matrix))
    flat = np.argsort(-mistakes, axis=None, kind="stable")[:_PAIRS]
    pairs = [(int(k) // len(names), int(k) % len(names)) for k in flat]
    frequent = [
        {"true": names[i], "predicted": names[j], "count": float(matrix[i, j])}
        for i, j in pairs
        if mistakes[i, j] > 0
    ]
    shown = matrix.tolist() if len(names) <= _LARGEST_MATRIX else None
    return {"matrix": shown, "mistakes": frequent}


def calibration_facts(hits: NDArray[np.bool_], stated: Floats, weights: Floats) -> dict[str, Any]:
    """Compute observed frequencies by predicted probability, in bins with equal numbers of rows.

    ``stated`` (n,) are the probabilities of the positive class of two, or else of the predicted
    class, and ``hits`` (n,) whether the row is of this class.
    """
    hit = hits.astype(float)
    order = np.argsort(stated, kind="stable")
    groups = np.array_split(order, min(10, max(1, len(order) // 10)))
    bins = [
        {
            "stated": float(np.average(stated[rows], weights=weights[rows])),
            "observed": float(np.average(hit[rows], weights=weights[rows])),
            "count": float(weights[rows].sum()),
        }
        for rows in groups
        if len(rows)
    ]
    gap = sum(b["count"] * abs(b["stated"] - b["observed"]) for b in bins) / weights.sum()
    return {"bins": bins, "gap": float(gap), "histogram": histogram_of_shares(stated)}


def curve_facts(hits: NDArray[np.bool_], stated: Floats, weights: Floats) -> dict[str, Any] | None:
    """Compute ROC and precision-recall curves; ``None`` if all rows are of one class."""
    if hits.all() or not hits.any():
        return None

    def curve(*xy: Floats) -> dict[str, Any]:
        return {k: thinned(v, _CURVE_POINTS) for k, v in zip("xy", xy, strict=True)}

    false, true, _ = metrics.roc_curve(hits, stated, sample_weight=weights)
    precision, recall, _ = metrics.precision_recall_curve(hits, stated, sample_weight=weights)
    return {
        "roc": curve(false, true),
        "precision_recall": curve(recall[::-1], precision[::-1]),
        "share": float(np.average(hits, weights=weights)),
    }


def _thresholds(
    hits: NDArray[np.bool_], stated: Floats, weights: Floats
) -> list[dict[str, Any]] | None:
    """Count the rows at or above thresholds that select about the given shares of all rows.

    The lift is the precision as a multiple of the share of the positive class.
    """
    if hits.all() or not hits.any():
        return None
    total, of_class = float(weights.sum()), float(weights[hits].sum())
    descending = np.argsort(-stated, kind="stable")
    reached = np.cumsum(weights[descending])
    found: list[dict[str, Any]] = []
    for share in _SHARES:
        last = np.searchsorted(reached, share * total - 0.5 * total / len(hits))
        threshold = stated[descending[last]]
        selected = stated >= threshold
        both, chosen = float(weights[selected & hits].sum()), float(weights[selected].sum())
        found.append(
            {
                "threshold": float(threshold),
                "share": chosen / total,
                "precision": both / chosen,
                "recall": both / of_class,
                "lift": both / chosen / (of_class / total),
            }
        )
    return [one for k, one in enumerate(found) if one not in found[:k]]

"""Facts about structured outputs: errors in the output space, and a gallery."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.preprocessing import MultiLabelBinarizer

from hilboost.core.dtypes import Floats
from hilboost.core.labels import is_pandas, take_labels
from hilboost.outputs.distances import to_labels, to_points
from hilboost.report.classes import scores_by_name
from hilboost.report.figures import score
from hilboost.report.influence import draw_rows
from hilboost.report.table import Columns, histogram, means_by_column, shortened, thinned
from hilboost.tables.arrays import columns_of, without_frame

_DECODED_ROWS = 2000
_SHOWN = 8
_EXACT = 1e-9  # distances below this fraction of the largest are rounding errors
_LARGEST_PICTURE = 128  # rows or columns of pixels; larger pictures are subsampled
_CURVE_POINTS = 400


def structured_facts(
    model: Any, columns: Columns, order: Sequence[int], y: object, raw: Floats
) -> dict[str, Any]:
    """Collect errors in the output space, and the worst, median, and best predictions."""
    embedded = to_points(model.output_, y, raw)
    scores = explained_scores(model, columns, y)
    explained = scores[0]["value"]
    error = columns.mean(embedded)
    total = error / (1 - explained) if explained < 1 else None
    says = "mean squared distance between predicted and true points in the output space"
    scores.append(score("embedding error", error, total, "lower", says))
    facts: dict[str, Any] = {
        "scores": scores,
        "errors": histogram(np.sqrt(embedded), 24),
        "by_column": means_by_column(columns, order, {"error": embedded}, 3),
        "by_label": None,
        "gallery": None,
    }
    if model.output_.label_kind == "rows":
        return facts
    rows = draw_rows(columns.n_rows, _DECODED_ROWS)
    sample, truth = columns.rows(rows), take_labels(y, rows)
    predicted = model.decode_raw(raw[rows])
    distance = to_labels(model.output_, truth, predicted)
    says = "mean squared distance between decoded and true outputs, in the output space"
    scores.append(score("pre-image error", sample.mean(distance), None, "lower", says))
    true = without_frame(model.output_.settled(truth))
    pair = _Pairs(model.output_.label_kind, true, predicted, columns_of(y))
    scores += pair.scores(sample.weights)
    facts["by_label"] = pair.scores_by_label(sample.weights)
    facts["n_decoded"] = len(rows)
    facts["gallery"] = _gallery(pair, distance, sample)
    return facts


def explained_scores(model: Any, columns: Columns, y: object) -> list[dict[str, Any]]:
    """Compute the share of explained variance, and the metric of the output space if it is set."""
    X, weights = columns.source, columns.weights
    says = "fraction of the variance in the output space explained; 1 is best"
    found = [score("explained", model.explained_variance(X, y, weights), 0.0, "higher", says)]
    if model.metric in model.output_.metrics():
        says = "mean over the rows of the metric that the model serves"
        found.append(score(model.metric, model.score(X, y, weights), None, "higher", says))
    return found


class _Pairs:
    """True and predicted labels, converted for display and comparison; ranks, if they are."""

    def __init__(self, label_kind: str, true: object, predicted: object, names: object) -> None:
        self.kind, self.true, self.predicted = _shown(label_kind, true, predicted, names)
        self.ranks = None
        if label_kind == "ranks":
            self.ranks = np.asarray(true), np.asarray(predicted)

    def scores(self, weights: Floats) -> list[dict[str, Any]]:
        """Compute the scores for this kind of label, with weights (n,) of the rows."""
        weighted = partial(np.average, weights=weights)
        if self.kind in ("image", "curve"):
            error = (np.asarray(self.true) - np.asarray(self.predicted)).reshape(len(weights), -1)
            name = "pixel RMSE" if self.kind == "image" else "entry RMSE"
            says = "root mean squared error of the entries"
            rmse = np.sqrt(weighted((error**2).mean(axis=1)))
            return [score(name, rmse, None, "lower", says)]
        right = weighted([t == p for t, p in zip(self.true, self.predicted, strict=True)])
        found = [score("exactly right", right, None, "higher", "fraction of exact rows")]
        if self.kind == "tags":
            both = zip(self.true, self.predicted, strict=True)
            f1 = [2 * len(t & p) / (len(t) + len(p)) if t or p else 1.0 for t, p in both]
            says = "mean over rows of 2 · common / (true + predicted) labels"
            found.append(score("F1 of rows", float(weighted(f1)), None, "higher", says))
        if self.ranks is not None and self.ranks[0].shape[1] > 1:
            tau = [kendalltau(t, p).statistic for t, p in zip(*self.ranks, strict=True)]
            if np.isfinite(tau).all():
                says = "mean Kendall τ between true and predicted rankings, from −1 to 1"
                found.append(score("Kendall τ", float(weighted(tau)), 0.0, "higher", says))
        return found

    def scores_by_label(self, weights: Floats) -> list[dict[str, Any]] | None:
        """Compute precision, recall and F1 of each label of sets, with weights (n,) of the rows."""
        if self.kind != "tags":
            return None
        encoder = MultiLabelBinarizer(sparse_output=True).fit([*self.true, *self.predicted])
        true, predicted = encoder.transform(self.true), encoder.transform(self.predicted)
        both = true.multiply(predicted)
        found = scores_by_name(
            encoder.classes_.tolist(), true.T @ weights, predicted.T @ weights, both.T @ weights
        )
        return sorted(found, key=lambda one: (-one["rows"], one["name"]))


def _shown(
    label_kind: str, true: Any, predicted: Any, names: object
) -> tuple[str, list[Any], list[Any]]:
    """Return the kind of display, and the true and predicted labels converted for it."""
    if label_kind == "sets":
        return "tags", _sets(true, names), _sets(predicted, names)
    if label_kind == "samples":
        curves = [np.asarray(p, dtype=np.float64) for p in predicted]
        levels = (np.arange(len(curves[0])) + 0.5) / len(curves[0])
        quantiles = [np.quantile(np.asarray(t, dtype=np.float64), levels) for t in true]
        return "curve", quantiles, curves
    if label_kind == "ranks":
        return "text", _orders(np.asarray(true), names), _orders(np.asarray(predicted), names)
    if label_kind == "objects":
        arrays = _numbers(true), _numbers(predicted)
        if arrays[0] is not None and arrays[1] is not None and arrays[0].ndim > 1:
            return "image" if arrays[0].ndim > 2 else "curve", list(arrays[0]), list(arrays[1])
    return "text", _texts(true), _texts(predicted)


def _texts(labels: Any) -> list[str]:
    return [shortened(label, 80) for label in labels]


def _numbers(labels: object) -> NDArray[Any] | None:
    try:
        array = np.asarray(labels)
    except ValueError:  # ragged
        return None
    return array if array.dtype.kind in "biuf" else None


def _sets(labels: Any, names: Any) -> list[set[str]]:
    """Convert to sets of names; indicators without names become sets of column indices."""
    if getattr(labels, "ndim", 1) == 2:
        names = range(labels.shape[1]) if names is None else names
        labels = [[names[k] for k in np.flatnonzero(row)] for row in labels]
    return [{shortened(name, 30) for name in one} for one in labels]


def _orders(ranks: NDArray[Any], names: Any) -> list[str]:
    """Format rankings: names or numbers of items in order of rank, with ties joined by "="."""
    items = range(1, ranks.shape[1] + 1) if names is None else names
    texts = []
    for row in ranks:
        groups = [np.flatnonzero(row == rank) for rank in np.unique(row)]
        texts.append(" › ".join("=".join(f"{items[k]}" for k in group) for group in groups))
    return texts


def _gallery(pair: _Pairs, distance: Floats, columns: Columns) -> dict[str, Any]:
    """Show the worst, median and best predictions of the rows ``columns``."""
    order = np.argsort(-distance, kind="stable")
    wrong = order[distance[order] > _EXACT * max(float(distance.max()), 1.0)]
    n = len(order)
    middle = max(0, n // 2 - _SHOWN // 2)
    parts = [
        ("worst", wrong[:_SHOWN]),
        ("middling", order[middle : middle + _SHOWN] if n >= 3 * _SHOWN else order[:0]),
        ("best", order[::-1][: min(_SHOWN, n)] if n >= 2 * _SHOWN else order[:0]),
    ]
    shape = _input_shape(pair, columns.source)
    span, input_span = (0.0, 1.0), (0.0, 1.0)
    if pair.kind == "image":
        span = float(np.min(pair.true)), float(np.max(pair.true))
    if shape is not None:
        input_span = float(np.nanmin(columns.source)), float(np.nanmax(columns.source))

    def item(k: int) -> dict[str, Any]:
        facts: dict[str, Any] = {"row": int(columns.numbers[k]), "error": float(distance[k])}
        facts |= _shown_as(pair.kind, pair.true[k], pair.predicted[k], span)
        if shape is not None:
            facts["input"] = _pixels(columns.source[k].reshape(shape), input_span)
        return facts

    named = [(name, chosen.tolist()) for name, chosen in parts if len(chosen)]
    shown = [{"name": name, "items": [item(k) for k in chosen]} for name, chosen in named]
    return {"kind": pair.kind, "input_shape": shape, "parts": shown}


def _input_shape(pair: _Pairs, table: Any) -> tuple[int, ...] | None:
    """Return the shape of inputs that are as many as pixels, and so most likely a picture."""
    shape = np.shape(pair.true[0])
    numeric = not is_pandas(table) and table.dtype.kind in "biuf"
    same = pair.kind == "image" and len(shape) == 2 and table.shape[1] == shape[0] * shape[1]
    return shape if numeric and same else None


def _shown_as(kind: str, true: Any, predicted: Any, span: tuple[float, float]) -> dict[str, Any]:
    """Convert a pair of labels to facts; ``span`` are the smallest and the largest pixel."""
    if kind == "tags":
        return {
            "both": sorted(true & predicted),
            "missed": sorted(true - predicted),
            "extra": sorted(predicted - true),
        }
    both = {"true": true, "predicted": predicted}
    if kind == "curve":
        return {name: thinned(curve, _CURVE_POINTS) for name, curve in both.items()}
    return both if kind == "text" else {k: _pixels(one, span) for k, one in both.items()}


def _pixels(picture: object, span: tuple[float, float]) -> list[Any]:
    """Convert to gray values or colors 0 … 255; take the first slice of higher dimensions."""
    picture = np.nan_to_num(np.asarray(picture, dtype=np.float64))
    while picture.ndim > 2 and not (picture.ndim == 3 and picture.shape[2] in (3, 4)):
        picture = picture[..., 0]
    step = -(-max(picture.shape[:2]) // _LARGEST_PICTURE)
    picture = picture[::step, ::step]
    low, high = span
    scaled = (picture - low) / (high - low) if high > low else np.zeros_like(picture)
    return np.round(255 * np.clip(scaled, 0, 1)).astype(int).tolist()

"""Comparison of several models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, counted
from hilboost.core.version import __version__
from hilboost.losses.registry import gives_probabilities
from hilboost.report.about import model_facts
from hilboost.report.classes import calibration_facts, curve_facts
from hilboost.report.collect import FORMAT
from hilboost.report.evaluation import Asides, Rows, check_model, plain
from hilboost.report.figures import interval, resampled
from hilboost.report.influence import importance_facts
from hilboost.report.structured import explained_scores
from hilboost.report.table import Columns, means_by_column, rows_shown, shortened

_MOST_MODELS = 8
_APART = 8  # rows
_COLUMNS = 6


@dataclass(frozen=True, eq=False)
class Entrant:
    """A model with its predictions."""

    name: str
    rows: Rows
    scores: list[dict[str, Any]]
    # dict of str to (100,) float64: scores of bootstrap samples of the rows, the same samples for
    # all models
    drawn: dict[str, Floats]
    seconds: float  # time of a prediction


def comparison_facts(
    models: Mapping[str, Any],
    X: object,
    y: object,
    *,
    title: str | None,
    positive_class: object,
    sample_weight: PerRow,
    offset: PerRow,
) -> dict[str, Any]:
    """Collect JSON-compatible facts about several models, as for ``compare``."""
    if not isinstance(models, Mapping):
        raise InvalidType(
            "models must be a dict of names and fitted models, such as {'trees': first, 'linear': "
            f"second}}; got {type(models).__name__}."
        )
    if not 2 <= len(models) <= _MOST_MODELS:
        raise InvalidParameter(
            f"a comparison requires 2 to {_MOST_MODELS} models; got {len(models)}."
        )
    names = [str(name) for name in models]
    if len(set(names)) < len(names):
        raise InvalidParameter("models must have different names as text; rename one of them.")
    weights = Asides(sample_weight=sample_weight, offset=offset)
    rows = [_rows(model, X, y, weights) for model in models.values()]
    entrants = [
        _entrant(name, of_model, positive_class) for name, of_model in zip(names, rows, strict=True)
    ]
    columns = entrants[0].rows.columns
    _check_same(entrants)
    scores = _scores(entrants, columns.n_rows)
    best = entrants[scores[0]["best"]]
    of_rows = _predictions(entrants, positive_class)
    found = {
        "format": FORMAT,
        "title": title or f"{len(entrants)} models on {counted(columns.n_rows, 'row')}",
        "n_rows": columns.n_rows,
        "weight": None if sample_weight is None else float(columns.weights.sum()),
        "models": [_about(entrant) for entrant in entrants],
        "scores": scores,
        "curves": _curves(entrants, columns, positive_class),
        "by_column": None,
        "apart": None,
        "version": __version__,
    }
    if of_rows is not None:
        order = importance_facts(best.rows.model, columns, best.rows.target)["order"]
        found |= _on_rows(entrants, columns, of_rows, order)
    return plain(found)


def _rows(model: Any, X: object, y: object, weights: Asides) -> Rows:
    check_model(model)
    if model.ranks_groups or model.fitted_.codec.kind == "survival":
        raise InvalidType(
            f"comparisons do not support {type(model).__name__}; use a report of each model."
        )
    return Rows.of(model, X, y, weights)


def _entrant(name: str, rows: Rows, positive_class: object) -> Entrant:
    model, columns = rows.model, rows.columns
    positive = rows.positive_index(positive_class)
    began = perf_counter()
    model.predict_raw(columns.source)
    seconds = perf_counter() - began
    if model.fitted_.codec.kind == "structured":
        scores: list[dict[str, Any]] = explained_scores(model, columns, rows.labels)
        return Entrant(name, rows, scores, {}, seconds)
    measured = rows.scorer(positive)
    scores = measured(slice(None))
    drawn = resampled([one["key"] for one in scores], columns.n_rows, measured)
    return Entrant(name, rows, scores, drawn, seconds)


def _check_same(entrants: list[Entrant]) -> None:
    first = entrants[0].rows
    for other in entrants[1:]:
        rows, kind = other.rows, other.rows.fitted.codec.kind
        same = kind == first.fitted.codec.kind
        if same and kind == "classes":
            same = rows.fitted.classes.tolist() == first.fitted.classes.tolist()
        if not same or rows.codes.shape[1] != first.codes.shape[1]:
            raise InvalidData(
                f"models {entrants[0].name!r} and {other.name!r} have different labels; compare "
                "models of the same target."
            )


def _about(entrant: Entrant) -> dict[str, Any]:
    facts = model_facts(entrant.rows.model)
    chosen = [f"{one['name']}={one['value']}" for one in facts["parameters"] if one["chosen"]]
    return {
        "name": entrant.name,
        "class": facts["class"],
        "loss": facts["loss"],
        "n_stages": facts["n_stages"],
        "parameters": chosen,
        "seconds": entrant.seconds,
    }


def _scores(entrants: list[Entrant], n: int) -> list[dict[str, Any]]:
    """Scores that all models have, each with the best model and differences from it."""
    found = []
    for one in entrants[0].scores:
        same = [s for e in entrants for s in e.scores if s["key"] == one["key"]]
        if len(same) < len(entrants):
            continue
        values = np.array([s["value"] for s in same])
        merit = {"higher": values, "lower": -values}.get(one["better"], -np.abs(values))
        best = int(np.argmax(merit))
        found.append(
            {
                **{key: one[key] for key in ("key", "name", "better", "says")},
                "values": values.tolist(),
                "best": best,
                "differences": [
                    _difference(entrant, entrants[best], one["key"], value - values[best], n)
                    for entrant, value in zip(entrants, values, strict=True)
                ],
            }
        )
    return found


def _difference(
    entrant: Entrant, best: Entrant, key: str, value: float, n: int
) -> dict[str, Any] | None:
    """Difference of a score from that of the best model, with a confidence interval."""
    if entrant is best or key not in entrant.drawn:
        return None
    low, high = interval(float(value), entrant.drawn[key] - best.drawn[key], n)
    clear = low is not None and high is not None and not low <= 0 <= high
    return {"low": low, "high": high, "clear": clear}


def _predictions(entrants: list[Entrant], positive_class: object) -> Floats | None:
    """Main prediction of each row by each model, (n, models); ``None`` for structured outputs.

    For classes, the probability of the positive class of two, or else of the true class.
    """
    kind = entrants[0].rows.fitted.codec.kind
    if kind == "structured":
        return None
    found = []
    for rows in (entrant.rows for entrant in entrants):
        if kind == "numbers":
            predicted, _, k = rows.means()
            found.append(predicted[:, k])
            continue
        proba, codes = rows.probabilities(rows.raw), rows.class_numbers
        chosen = rows.positive_index(positive_class) if proba.shape[1] == 2 else codes
        found.append(proba[np.arange(len(proba)), chosen])
    return np.stack(found, axis=1)


def _curves(
    entrants: list[Entrant], columns: Columns, positive_class: object
) -> dict[str, Any] | None:
    """Curves of each model, for two classes."""
    first = entrants[0].rows
    if first.fitted.codec.n_classes != 2:
        return None
    positive = first.positive_index(positive_class)
    hits = first.codes[:, 0] == positive
    found = []
    for rows in (entrant.rows for entrant in entrants):
        stated = rows.probabilities(rows.raw)[:, positive]
        drawn = {"curves": curve_facts(hits, stated, columns.weights), "calibration": None}
        if gives_probabilities(rows.fitted.loss):
            drawn["calibration"] = calibration_facts(hits, stated, columns.weights)
        found.append(drawn)
    if found[0]["curves"] is None:
        return None
    return {"class": shortened(first.fitted.classes[positive], 30), "of": found}


def _on_rows(
    entrants: list[Entrant], columns: Columns, predicted: Floats, order: list[int]
) -> dict[str, Any]:
    """Errors by column, and the rows on which the predictions differ most."""
    first = entrants[0].rows
    classes = first.fitted.codec.kind == "classes"
    if classes:
        codes = first.class_numbers
        errors = {
            f"error {k}": (e.rows.probabilities(e.rows.raw).argmax(axis=1) != codes) * 1.0
            for k, e in enumerate(entrants)
        }
        truth = [shortened(first.fitted.classes[code], 30) for code in codes]
    else:
        known = np.flatnonzero(~np.isnan(first.codes[:, 0]))
        columns, predicted, target = columns.rows(known), predicted[known], first.codes[known, 0]
        errors = {f"error {k}": np.abs(target - predicted[:, k]) for k in range(len(entrants))}
        truth = target.tolist()
    named = None if classes else first.first_target
    spread = predicted.max(axis=1) - predicted.min(axis=1)
    apart = np.argsort(-spread, kind="stable")[:_APART]
    apart = apart[spread[apart] > 0]
    table = rows_shown(columns, apart, order)
    table["true"] = [truth[row] for row in apart]
    table["predicted"] = predicted[apart].tolist()
    return {
        "error": "error rate" if classes else "mean absolute error",
        "of": named,
        "correlations": _correlations(predicted),
        "by_column": means_by_column(columns, order, errors, _COLUMNS),
        "apart": table,
    }


def _correlations(predicted: Floats) -> list[list[float]] | None:
    """Correlations of the predictions; ``None`` if one is constant."""
    if len(predicted) < 2 or (np.ptp(predicted, axis=0) == 0).any():
        return None
    matrix = np.corrcoef(predicted, rowvar=False)
    return [[float(value) for value in row] for row in np.atleast_2d(matrix)]

"""Collection of all facts of a report in a plain dict, which a template renders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import counted
from hilboost.core.metric import Metric
from hilboost.outputs.distances import to_points
from hilboost.report.about import model_facts
from hilboost.report.classes import class_facts
from hilboost.report.coverage import class_set_facts, distance_facts, interval_facts
from hilboost.report.drift import drift_facts
from hilboost.report.evaluation import Asides, Rows, cautions, plain, quantile_levels
from hilboost.report.figures import with_intervals
from hilboost.report.influence import contribution_facts, dependence_facts, importance_facts
from hilboost.report.ranking import chosen_scores, ranking_facts
from hilboost.report.regression import LEVELS, distribution_facts, quantile_facts, regression_facts
from hilboost.report.structured import explained_scores, structured_facts
from hilboost.report.survival import cause_facts, survival_facts
from hilboost.report.table import Columns, data_facts, histogram

FORMAT = 1
_CLASSES_DRAWN = 4
_OF_TASKS = (
    "regression",
    "quantiles",
    "distribution",
    "intervals",
    "classes",
    "sets",
    "structured",
    "ranking",
    "survival",
)


def facts(
    model: Any,
    X: object,
    y: object,
    *,
    title: str | None = None,
    positive_class: object = None,
    X_train: object = None,
    **asides: Any,
) -> dict[str, Any]:
    """Collect facts about a fitted model on some rows.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or data frame (n, d)
        Evaluation data, preferably not the training data.
    y : array-like (n,), (n, c), or sequence of n labels
        True targets; with several targets, NaN marks missing values.
    title : str, optional
    positive_class : label, optional
        The class, of two, that calibration, curves and thresholds are about; by default the second.
    X_train : array-like or data frame (m, d), optional
        Rows of the training data, with which these rows are compared.
    **asides : array-like (n,), optional
        ``sample_weight``, ``groups``, ``strata``, ``entry``, ``offset``, and ``times`` (k,), see
        :meth:`hilboost.BoostingRegressor.report`.  Rows with zero weight are ignored.

    Returns
    -------
    dict
        JSON-compatible facts: ``format``, ``title``, ``task``, ``model``, ``data``, ``scores``,
        ``importance``, ``contributions``, and ``dependence``; with ``X_train``, ``drift``; and,
        depending on the task, ``regression`` (a list with one entry per target), ``quantiles``,
        ``distribution``, ``intervals``, ``classes``, ``sets``, ``structured``, ``ranking`` and
        ``survival``, which are ``None`` if they do not apply.

    Raises
    ------
    InvalidType
        If ``model`` is not a hilboost estimator.
    InvalidParameter
        If ``positive_class`` is not one of two classes, or the model has no groups or strata, or
        supports no weights.
    InvalidData
        If ``X`` or ``X_train`` is not a table, ``y`` or ``groups`` has the wrong number of rows or
        an unknown class, or a weight is negative.
    ValueError, TypeError
        If the model rejects the inputs or labels.

    Notes
    -----
    The cost is that of predicting about 200,000 rows, mainly for the importances.
    """
    given = Asides.of("facts", asides)
    rows = Rows.of(model, X, y, given)
    columns, raw = rows.columns, rows.raw
    positive = rows.positive_index(positive_class)
    training = None if X_train is None else Columns.of(X_train, rows.fitted.schema.names)
    alone = raw if rows.target.offset is None else raw - rows.target.offset
    found: dict[str, Any] = {
        "format": FORMAT,
        "title": title or f"{type(model).__name__} on {counted(len(raw), 'row')}",
        "model": model_facts(model),
        "importance": importance_facts(model, columns, rows.target),
        "contributions": contribution_facts(model, columns, positive, rows.first_target),
        "drift": None if training is None else drift_facts(model, columns, training, alone),
        **dict.fromkeys(_OF_TASKS),
    }
    order = found["importance"]["order"]
    found["data"] = data_facts(columns, order)
    found["data"]["weight"] = None if given.sample_weight is None else float(columns.weights.sum())
    kind = model.fitted_.codec.kind
    if kind == "classes":
        found |= _of_classes(rows, order, positive)
    elif kind == "structured":
        found |= _of_structures(rows, order)
    elif kind == "survival":
        found |= _of_lifetimes(rows, order, given)
    elif model.ranks_groups:
        found |= _of_groups(rows, order, given.names(len(raw)))
    else:
        found |= _of_numbers(rows, order)
    found["warnings"] = cautions(rows, training)
    return plain(found)


def scores(
    model: Any, X: object, y: object, *, metrics: Sequence[Metric] = (), **asides: Any
) -> list[dict[str, Any]]:
    """Compute the scores only, at the cost of one prediction.

    Parameters
    ----------
    model : estimator of numbers or classes
        Fitted.
    X : array-like or data frame (n, d)
    y : array-like (n,)
    metrics : sequence of Metric, optional
        Metrics of a ranking, computed instead of the usual ones, such as ``NDCG(5)``; NDCG has the
        gain of the model.
    **asides : array-like, optional
        See :func:`facts`.

    Returns
    -------
    list of dict
        ``key``, ``name``, ``value``, ``guess`` (the baseline's score), ``better``, and ``says``
        (a description).  With several targets, first the mean of R², then the scores of each
        target, with keys such as ``"rmse_of_price"``.

    Raises
    ------
    InvalidType, InvalidData, ValueError, TypeError
        Same as :func:`facts`.
    """
    given = Asides.of("scores", asides)
    rows = Rows.of(model, X, y, given)
    kind = model.fitted_.codec.kind
    if kind == "structured":
        return explained_scores(model, rows.columns, rows.labels)
    if kind == "survival":
        listed = survival_facts(model, rows.columns, rows.target, rows.raw, given)["scores"]
    elif model.ranks_groups and metrics:
        listed = chosen_scores(model, rows.target, rows.raw, metrics)
    elif model.ranks_groups:
        listed = ranking_facts(model, rows.target, rows.raw, given.names(len(rows.raw)))["scores"]
    else:
        listed = rows.scores()
    return plain(listed)


def _of_classes(rows: Rows, order: list[int], positive: int) -> dict[str, Any]:
    model, columns, raw = rows.model, rows.columns, rows.raw
    of_classes = class_facts(rows, order, positive)
    names, numbers = of_classes["classes"], rows.class_numbers
    counts = np.bincount(numbers, minlength=len(names))
    levels = [{"level": name, "count": counts[k]} for k, name in enumerate(names)]
    most = np.argsort(-counts, kind="stable")[:_CLASSES_DRAWN].tolist()
    drawn = [positive] if len(names) == 2 else most

    def predict(X: object) -> Floats:
        return rows.probabilities(model.predict_raw(X))[:, drawn]

    measured = rows.scorer(positive)
    return {
        "task": "classification",
        "target": {"kind": "class", "levels": levels},
        "scores": with_intervals(of_classes["scores"], len(raw), measured),
        "classes": of_classes,
        "sets": class_set_facts(model, columns, numbers, rows.target.offset),
        "dependence": dependence_facts(columns, order, [names[k] for k in drawn], predict),
    }


def _of_numbers(rows: Rows, order: list[int]) -> dict[str, Any]:
    model, columns, raw, y = rows.model, rows.columns, rows.raw, rows.codes
    found: dict[str, Any] = {"task": "regression"}
    found["target"] = {"kind": "number", "of": rows.first_target}
    found["target"]["histogram"] = histogram(y[~np.isnan(y[:, 0]), 0])
    predicted, guess, first = rows.means()
    levels = quantile_levels(model.loss_)
    measured = rows.scorer(1)
    found["scores"] = with_intervals(measured(slice(None)), len(raw), measured)
    found["intervals"] = interval_facts(model, columns, y, rows.target.offset)
    if model.loss_.has_distribution:
        distribution, known = model.fitted_.distribution_of(raw), y[:, 0]
        found["distribution"] = distribution_facts(columns, known, distribution)
        quantiles = distribution.quantile(LEVELS)
        found["quantiles"] = quantile_facts(columns, order, known, quantiles, LEVELS)
    if levels:
        found["task"] = "quantile regression"
        found["quantiles"] = quantile_facts(columns, order, y[:, 0], predicted, levels)
        names = [f"quantile {levels[first]:g}"]
        y, mean, guess = y[:, :1], predicted[:, [first]], guess[:, [first]]
        found["of"] = names[0]
    else:
        mean = predicted
        names = [f"output {k}" for k in range(predicted.shape[1])]
        names = rows.target_names if y.shape[1] > 1 else names if len(names) > 1 else ["mean"]
    found["regression"] = regression_facts(columns, order, y, mean, guess, names)

    def predict(X: object) -> Floats:
        return np.asarray(model.loss_.inverse_link(model.predict_raw(X)))[:, :_CLASSES_DRAWN]

    found["dependence"] = dependence_facts(columns, order, names[:_CLASSES_DRAWN], predict)
    return found


def _of_structures(rows: Rows, order: list[int]) -> dict[str, Any]:
    model, columns, y, raw = rows.model, rows.columns, rows.labels, rows.raw
    structured = structured_facts(model, columns, order, y, raw)
    embedded = to_points(model.output_, y, raw)
    return {
        "task": "structured output",
        "target": {"kind": type(model.output_).__name__.removesuffix("Embedding")},
        "scores": structured["scores"],
        "structured": structured,
        "sets": distance_facts(rows.fitted, columns, embedded),
        "dependence": [],
    }


def _of_groups(rows: Rows, order: list[int], labels: Any) -> dict[str, Any]:
    model, columns, target = rows.model, rows.columns, rows.target
    ranking = ranking_facts(model, target, rows.raw, labels)

    return {
        "task": "ranking",
        "target": {"kind": "number", "histogram": histogram(target.y[:, 0])},
        "scores": ranking["scores"],
        "ranking": ranking,
        "dependence": dependence_facts(columns, order, ["score"], model.predict_raw),
    }


def _of_lifetimes(rows: Rows, order: list[int], asides: Asides) -> dict[str, Any]:
    model, columns, target = rows.model, rows.columns, rows.target
    survival = survival_facts(model, columns, target, rows.raw, asides)

    def predict(X: Any) -> Floats:
        return np.asarray(model.predict(X, np.zeros((X.shape[0], rows.raw.shape[1]))))[:, None]

    return {
        "task": "survival times",
        "target": {"kind": "number", "histogram": histogram(target.y[:, 0])},
        "scores": survival["scores"],
        "survival": {**survival, "causes": cause_facts(model, columns, target, asides)},
        "dependence": dependence_facts(columns, order, ["mean"], predict),
    }

"""Collection of all facts of a report in a plain dict, which a template renders."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, shown
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses.registry import gives_probabilities
from hilboost.outputs.distances import to_points
from hilboost.report.about import model_facts
from hilboost.report.asides import Asides
from hilboost.report.classes import class_facts
from hilboost.report.coverage import class_set_facts, distance_facts, interval_facts
from hilboost.report.data import data_facts, histogram
from hilboost.report.figures import class_scores, number_scores, score, with_intervals
from hilboost.report.influence import dependence_facts, importance_facts, mean_loss
from hilboost.report.ranking import ranking_facts
from hilboost.report.regression import quantile_facts, regression_facts
from hilboost.report.structured import explained_scores, structured_facts
from hilboost.report.survival import survival_facts
from hilboost.report.table import Columns, shortened
from hilboost.validation.targets import check_length

FORMAT = 1
_CLASSES_DRAWN = 4
_OF_TASKS = (
    "regression",
    "quantiles",
    "intervals",
    "classes",
    "sets",
    "structured",
    "ranking",
    "survival",
)


def facts(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    positive_class: Any = None,
    groups: Any = None,
    strata: Any = None,
    entry: Any = None,
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
    groups : array-like (n,), optional
        Label of the group of each row of a ranking.
    strata, entry : array-like (n,), optional
        Strata and entry times of survival times, as in ``fit``.

    Returns
    -------
    dict
        JSON-compatible facts: ``format``, ``title``, ``task``, ``model``, ``data``, ``scores``,
        ``importance``, and ``dependence``; and, depending on the task, ``regression`` (a list with
        one entry per output), ``quantiles``, ``intervals``, ``classes``, ``sets``,
        ``structured``, ``ranking`` and ``survival``, which are ``None`` if they do not apply.

    Raises
    ------
    InvalidType
        If ``model`` is not a hilboost estimator.
    InvalidParameter
        If ``positive_class`` is not one of two classes, or the model has no groups or strata.
    InvalidData
        If ``X`` is not a table, or ``y`` or ``groups`` has the wrong number of rows, or an unknown
        class.
    ValueError, TypeError
        If the model rejects the inputs or labels.

    Notes
    -----
    The cost is that of predicting about 200,000 rows, mainly for the importances.
    """
    asides = Asides(groups, strata, entry)
    columns, raw, target = _checked(model, X, y, asides)
    codes = target.y
    positive = _positive(model, positive_class)
    found: dict[str, Any] = {
        "format": FORMAT,
        "title": title or f"{type(model).__name__} on {len(raw)} rows",
        "model": model_facts(model),
        "importance": importance_facts(model, columns, target),
        **dict.fromkeys(_OF_TASKS),
    }
    order = found["importance"]["order"]
    found["data"] = data_facts(columns, order)
    kind = model.fitted_.codec.kind
    if kind == "classes":
        found |= _of_classes(model, columns, order, codes, raw, positive)
    elif kind == "structured":
        found |= _of_structures(model, columns, order, y, raw)
    elif kind == "survival":
        found |= _of_lifetimes(model, columns, order, target, raw, strata)
    elif model.ranks_groups:
        found |= _of_groups(model, columns, order, target, raw, asides.names(len(raw)))
    else:
        found |= _of_numbers(model, columns, order, codes, raw)
    found["warnings"] = _warnings(model, target, raw)
    return _plain(found)


def _checked(model: Any, X: Any, y: Any, asides: Asides) -> tuple[Columns, Floats, Target]:
    """Validate inputs; return the table, raw predictions (n, r), and encoded labels."""
    if not hasattr(model, "report_facts"):
        raise InvalidType(f"a report requires a hilboost estimator; got {type(model).__name__}.")
    check_is_fitted(model)
    kind = model.fitted_.codec.kind
    if model.loss_.couples_rows and not (model.ranks_groups or kind == "survival"):
        raise InvalidType(
            f"reports support losses that couple rows only for rankings and survival times; "
            f"{type(model).__name__} has loss={type(model.loss_).__name__}."
        )
    asides.check(model)
    columns = Columns.of(model, X)
    raw = model.predict_raw(columns.source)
    if y is None:
        raise InvalidData("a report requires the true targets; pass y.")
    codes = model.fitted_.encode_target(asides.labels(model, y), len(raw))
    check_length(codes, len(raw))
    if kind == "numbers" and np.isnan(codes).all(axis=0).any():
        nowhere = int(np.isnan(codes).all(axis=0).argmax())
        raise InvalidData(
            f"target {nowhere} of y is missing in every row; pass rows in which it is known."
        )
    return asides.arranged(model, columns, raw, Target(codes))


def scores(
    model: Any, X: Any, y: Any, *, groups: Any = None, strata: Any = None, entry: Any = None
) -> list[dict[str, Any]]:
    """Compute the scores only, at the cost of one prediction.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or data frame (n, d)
    y : array-like (n,)
    groups, strata, entry : array-like (n,), optional
        Of rankings and survival times; see :func:`facts`.

    Returns
    -------
    list of dict
        ``key``, ``name``, ``value``, ``guess`` (the baseline's score), ``better``, and ``says``
        (a description).  With several outputs, the scores of the first.

    Raises
    ------
    InvalidType, InvalidData, ValueError, TypeError
        Same as :func:`facts`.
    """
    asides = Asides(groups, strata, entry)
    columns, raw, target = _checked(model, X, y, asides)
    codes, kind = target.y, model.fitted_.codec.kind
    if kind == "structured":
        return explained_scores(model, X, y)
    if kind == "survival":
        listed = survival_facts(model, columns, target, raw, strata)["scores"]
    elif model.ranks_groups:
        listed = ranking_facts(model, target, raw, asides.names(len(raw)))["scores"]
    elif kind == "classes":
        numbers = codes[:, 0].astype(np.intp)
        proba = _probabilities(model, raw)
        guess = _class_guess(model, raw, numbers)
        listed = class_scores(numbers, proba, guess, gives_probabilities(model.loss_))
    else:
        listed = _number_scores(model, codes, raw)
    plain: list[dict[str, Any]] = _plain(listed)
    return plain


def _number_scores(model: Any, y: Floats, raw: Floats) -> list[dict[str, Any]]:
    """Compute scores of the first output, or of the quantile nearest to the median."""
    predicted, guess, k = _means(model, raw)
    known = ~np.isnan(y[:, 0])
    found = number_scores(y[known, 0], predicted[known, k], float(guess[k]))
    if _quantile_levels(model.loss_):
        pinball = mean_loss(model, Target(y), raw)
        says = "mean pinball loss, summed over all quantiles"
        found.insert(0, score("pinball loss", float(pinball), None, "lower", says))
    return found


def _means(model: Any, raw: Floats) -> tuple[Floats, Floats, int]:
    """Return predictions (n, c), baseline predictions (c,), and the main output column."""
    predicted = np.asarray(model.loss_.inverse_link(raw))
    guess = _guess(model, raw)
    guess = predicted.mean(axis=0) if guess is None else guess
    levels = _quantile_levels(model.loss_)
    if not levels:
        return predicted, guess, 0
    return predicted, guess, int(np.argmin(np.abs(np.asarray(levels) - 0.5)))


def _quantile_levels(loss: Loss) -> tuple[float, ...]:
    """Levels of the predicted quantiles; none for other predictions."""
    return () if loss.link is None else loss.link.levels


def _class_guess(model: Any, raw: Floats, numbers: Any) -> Floats:
    guess = _guess(model, raw)
    if guess is not None:
        return guess
    return np.bincount(numbers, minlength=len(model.classes_)) / len(raw)


def _positive(model: Any, label: Any) -> int:
    """Index of the class that the user chose."""
    if label is None:
        return 1
    if model.fitted_.codec.n_classes != 2:
        raise InvalidParameter("positive_class requires a model of two classes; omit it.")
    known = model.classes_.tolist()
    if label not in known:
        raise InvalidParameter(
            f"positive_class={shown(label)} is not a class of the model; set it to {known[0]!r} or "
            f"{known[1]!r}."
        )
    return int(known.index(label))


def _of_classes(
    model: Any, columns: Columns, order: list[int], codes: Floats, raw: Floats, positive: int
) -> dict[str, Any]:
    names = [shortened(label, 30) for label in model.classes_]
    proba = _probabilities(model, raw)
    numbers = codes[:, 0].astype(np.intp)
    guess = _class_guess(model, raw, numbers)
    stated = gives_probabilities(model.loss_)
    of_classes = class_facts(
        columns, order, model.classes_, numbers, proba, guess, stated, positive
    )
    counts = np.bincount(numbers, minlength=len(names))
    drawn = (
        [positive]
        if len(names) == 2
        else np.argsort(-counts, kind="stable")[:_CLASSES_DRAWN].tolist()
    )

    def measured(rows: Any) -> list[dict[str, Any]]:
        return class_scores(numbers[rows], proba[rows], guess, stated, positive)

    def probabilities(X: Any) -> Floats:
        return _probabilities(model, model.predict_raw(X))[:, drawn]

    return {
        "task": "classification",
        "target": {"kind": "class", "levels": _levels(names, counts)},
        "scores": with_intervals(of_classes["scores"], len(raw), measured),
        "classes": of_classes,
        "sets": class_set_facts(model, columns.source, numbers),
        "dependence": dependence_facts(columns, order, [names[k] for k in drawn], probabilities),
    }


def _levels(names: list[str], counts: Any) -> list[dict[str, Any]]:
    return [{"level": name, "count": int(counts[k])} for k, name in enumerate(names)]


def _probabilities(model: Any, raw: Floats) -> Floats:
    """Predict probabilities, clipped to [0, 1] because of custom losses; else scores."""
    predicted: Floats = model.loss_.inverse_link(raw)
    return np.clip(predicted, 0.0, 1.0) if gives_probabilities(model.loss_) else predicted


def _guess(model: Any, raw: Floats) -> Floats | None:
    """Predict with the baseline, the model without stages, (c,)."""
    if not model.is_additive:
        return None
    initial_raw = model.model_.initial_raw[None]
    return np.asarray(model.loss_.inverse_link(initial_raw))[0]


def _of_numbers(
    model: Any, columns: Columns, order: list[int], y: Floats, raw: Floats
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "task": "regression",
        "target": {"kind": "number", "histogram": histogram(y[~np.isnan(y[:, 0]), 0])},
    }
    predicted, guess, first = _means(model, raw)
    levels = _quantile_levels(model.loss_)
    codes = y
    found["scores"] = with_intervals(
        _number_scores(model, y, raw),
        len(raw),
        lambda rows: _number_scores(model, codes[rows], raw[rows]),
    )
    found["intervals"] = interval_facts(model, columns.source, y)
    if levels:
        found["task"] = "quantile regression"
        found["quantiles"] = quantile_facts(columns, order, y[:, 0], predicted, levels)
        names = [f"quantile {level:g}" for level in levels]
        y, mean, guess = y[:, :1], predicted[:, [first]], guess[[first]]
        found["of"] = names[first]
    else:
        mean = predicted
        names = [f"output {k}" for k in range(predicted.shape[1])] if len(guess) > 1 else ["mean"]
    found["regression"] = regression_facts(columns, order, y, mean, guess)

    def predict(X: Any) -> Floats:
        return np.asarray(model.loss_.inverse_link(model.predict_raw(X)))[:, :_CLASSES_DRAWN]

    found["dependence"] = dependence_facts(columns, order, names[:_CLASSES_DRAWN], predict)
    return found


def _of_structures(
    model: Any, columns: Columns, order: list[int], y: Any, raw: Floats
) -> dict[str, Any]:
    structured = structured_facts(model, columns, order, y, raw)
    embedded = to_points(model.output_, y, raw)
    return {
        "task": "structured output",
        "target": {"kind": type(model.output_).__name__.removesuffix("Embedding")},
        "scores": structured["scores"],
        "structured": structured,
        "sets": distance_facts(model, embedded),
        "dependence": [],
    }


def _of_groups(
    model: Any, columns: Columns, order: list[int], target: Target, raw: Floats, labels: Any
) -> dict[str, Any]:
    ranking = ranking_facts(model, target, raw, labels)

    def predict(X: Any) -> Floats:
        return np.asarray(model.predict_raw(X))

    return {
        "task": "ranking",
        "target": {"kind": "number", "histogram": histogram(target.y[:, 0])},
        "scores": ranking["scores"],
        "ranking": ranking,
        "dependence": dependence_facts(columns, order, ["score"], predict),
    }


def _of_lifetimes(
    model: Any, columns: Columns, order: list[int], target: Target, raw: Floats, strata: Any
) -> dict[str, Any]:
    survival = survival_facts(model, columns, target, raw, strata)

    def predict(X: Any) -> Floats:
        return np.asarray(model.predict(X))[:, None]

    return {
        "task": "survival times",
        "target": {"kind": "number", "histogram": histogram(target.y[:, 0])},
        "scores": survival["scores"],
        "survival": survival,
        "dependence": dependence_facts(columns, order, ["mean"], predict),
    }


def _warnings(model: Any, target: Target, raw: Floats) -> list[str]:
    """Collect warnings about the reliability of the report."""
    found = []
    if len(raw) < 30:
        found.append(f"Only {len(raw)} rows: the results are unreliable.")
    history = model.fitted_.history
    if history is not None and len(raw) > 1:
        kept = min(int(model.n_estimators_), len(history.train) - 1)
        mean = mean_loss(model, target, raw)
        if np.isclose(mean, history.train[kept], rtol=1e-7, atol=0):
            found.append(
                "The loss on these rows equals the training loss, so they are most likely the "
                "training data and the results are too good. Use held-out data instead."
            )
    return found


def _plain(value: Any) -> Any:
    """Convert to JSON-compatible values; non-finite numbers become ``None``."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

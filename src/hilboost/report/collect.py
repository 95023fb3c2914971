"""All facts of a report: a plain dict, from which a template makes a page."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidType
from hilboost.report.about import model_facts
from hilboost.report.classes import class_facts
from hilboost.report.data import data_facts, histogram
from hilboost.report.figures import class_scores, number_scores, score
from hilboost.report.influence import dependence_facts, importance_facts, loss_of_rows
from hilboost.report.regression import interval_facts, quantile_facts, regression_facts
from hilboost.report.structured import structured_facts
from hilboost.report.table import Columns, shortened
from hilboost.validation.targets import check_length

FORMAT = 1
_CLASSES_DRAWN = 4


def facts(model: Any, X: Any, y: Any, *, title: str | None = None) -> dict[str, Any]:
    """What there is to say about a model on some rows.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or data frame (n, d)
        Rows, best such as the model was not fitted to.
    y : array-like (n,), (n, c), or sequence of n labels
        What is true of them; of several targets, NaN where one is missing.
    title : str, optional

    Returns
    -------
    dict
        As JSON takes it: ``format``, ``title``, ``task``, ``model``, ``data``, ``scores``,
        ``importance``, ``dependence`` and what there is of ``regression`` (a list, one an output),
        ``quantiles``, ``intervals``, ``classes``, ``structured``; else ``None``.

    Raises
    ------
    InvalidType
        ``model`` is no estimator of hilboost.
    InvalidData
        ``X`` is no table; ``y`` has another number of rows, or a class the model does not know.
    ValueError, TypeError
        Inputs or labels that the model refuses; the message says which.

    Notes
    -----
    Cost: predictions for about 200,000 rows, most of them to find the importances.
    """
    columns, raw, codes = _checked(model, X, y)
    found: dict[str, Any] = {
        "format": FORMAT,
        "title": title or f"{type(model).__name__} on {len(raw)} rows",
        "model": model_facts(model),
        "importance": importance_facts(model, columns, codes),
        **dict.fromkeys(("regression", "quantiles", "intervals", "classes", "structured")),
    }
    order = found["importance"]["order"]
    found["data"] = data_facts(columns, order)
    kind = model.fitted_.codec.kind
    if kind == "classes":
        found |= _of_classes(model, columns, order, codes, raw)
    elif kind == "structured":
        found |= _of_structures(model, columns, order, y, raw)
    else:
        found |= _of_numbers(model, columns, order, codes, raw)
    found["warnings"] = _warnings(model, codes, raw)
    return _plain(found)


def _checked(model: Any, X: Any, y: Any) -> tuple[Columns, Floats, Floats]:
    """The table, what the model says of it in link space (n, r), and encoded labels (n, c)."""
    if not hasattr(model, "report_facts"):
        raise InvalidType(
            f"a report is about an estimator of hilboost; got {type(model).__name__}."
        )
    check_is_fitted(model)
    columns = Columns.of(model, X)
    raw = model.predict_raw(columns.source)
    if y is None:
        raise InvalidData("a report compares with what is true: give y.")
    codes = model.fitted_.encode_target(y, len(raw))
    check_length(codes, len(raw))
    if model.fitted_.codec.kind == "numbers" and np.isnan(codes).all(axis=0).any():
        nowhere = int(np.isnan(codes).all(axis=0).argmax())
        raise InvalidData(
            f"target {nowhere} of y is missing in every row; give rows in which it is known."
        )
    return columns, raw, codes


def scores(model: Any, X: Any, y: Any) -> list[dict[str, Any]]:
    """Figures of merit alone, at the cost of one prediction.

    Parameters
    ----------
    model : estimator of numbers or classes
        Fitted.
    X : array-like or data frame (n, d)
    y : array-like (n,)

    Returns
    -------
    list of dict
        ``key``, ``name``, ``value``, ``guess`` (without inputs), ``better``, ``says``; of several
        outputs, those of the first.

    Raises
    ------
    InvalidType, InvalidData, ValueError, TypeError
        As :func:`facts`.
    """
    _, raw, codes = _checked(model, X, y)
    if model.fitted_.codec.kind == "structured":
        says = "part of the variance in the output space that is explained; 1 is best"
        return [score("explained", model.score(X, y), 0.0, "higher", says)]
    if model.fitted_.codec.kind == "classes":
        numbers = codes[:, 0].astype(np.intp)
        proba = _probabilities(model, raw)
        listed = class_scores(numbers, proba, _class_guess(model, raw, numbers))
    else:
        listed = _number_scores(model, codes, raw)
    plain: list[dict[str, Any]] = _plain(listed)
    return plain


def _number_scores(model: Any, y: Floats, raw: Floats) -> list[dict[str, Any]]:
    """Of the first output; of quantiles, those of the one nearest to the median, and all losses."""
    predicted, guess, k = _means(model, raw)
    known = ~np.isnan(y[:, 0])
    found = number_scores(y[known, 0], predicted[known, k], float(guess[k]))
    if _quantile_levels(model.loss_):
        pinball = loss_of_rows(model, y, raw).mean()
        says = "mean pinball loss, summed over the quantiles"
        found.insert(0, score("pinball loss", float(pinball), None, "lower", says))
    return found


def _means(model: Any, raw: Floats) -> tuple[Floats, Floats, int]:
    """Predictions (n, c), those without any stage (c,), and the column to look at first."""
    predicted = np.asarray(model.loss_.inverse_link(raw))
    guess = _guess(model, raw)
    guess = predicted.mean(axis=0) if guess is None else guess
    levels = _quantile_levels(model.loss_)
    if not levels:
        return predicted, guess, 0
    return predicted, guess, int(np.argmin(np.abs(np.asarray(levels) - 0.5)))


def _quantile_levels(loss: Any) -> tuple[float, ...]:
    """Levels of the predicted quantiles; none for other predictions."""
    link = getattr(loss, "link", None)
    return () if link is None else link.levels


def _class_guess(model: Any, raw: Floats, numbers: Any) -> Floats:
    guess = _guess(model, raw)
    if guess is not None:
        return guess
    return np.bincount(numbers, minlength=len(model.classes_)) / len(raw)


def _of_classes(
    model: Any, columns: Columns, order: list[int], codes: Floats, raw: Floats
) -> dict[str, Any]:
    names = [shortened(label, 30) for label in model.classes_]
    proba = _probabilities(model, raw)
    numbers = codes[:, 0].astype(np.intp)
    guess = _class_guess(model, raw, numbers)
    of_classes = class_facts(columns, order, model.classes_, numbers, proba, guess)
    counts = np.bincount(numbers, minlength=len(names))
    drawn = [1] if len(names) == 2 else np.argsort(-counts, kind="stable")[:_CLASSES_DRAWN].tolist()

    def probabilities(X: Any) -> Floats:
        return _probabilities(model, model.predict_raw(X))[:, drawn]

    return {
        "task": "classification",
        "target": {"kind": "class", "levels": _levels(names, counts)},
        "scores": of_classes["scores"],
        "classes": of_classes,
        "dependence": dependence_facts(columns, order, [names[k] for k in drawn], probabilities),
    }


def _levels(names: list[str], counts: Any) -> list[dict[str, Any]]:
    return [{"level": name, "count": int(counts[k])} for k, name in enumerate(names)]


def _probabilities(model: Any, raw: Floats) -> Floats:
    """Of a loss of the user's own, what its ``inverse_link`` gives, put into [0, 1]."""
    return np.clip(model.loss_.inverse_link(raw), 0.0, 1.0)


def _guess(model: Any, raw: Floats) -> Floats | None:
    """What the model would predict without any stage, (c,)."""
    if not hasattr(model, "model_"):
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
    found["scores"] = _number_scores(model, y, raw)
    if levels:
        found["task"] = "quantile regression"
        found["quantiles"] = quantile_facts(columns, order, y[:, 0], predicted, levels)
        names = [f"quantile {level:g}" for level in levels]
        y, mean, guess = y[:, :1], predicted[:, [first]], guess[[first]]
        found["of"] = names[first]
    else:
        mean = predicted
        names = [f"output {k}" for k in range(predicted.shape[1])] if len(guess) > 1 else ["mean"]
        found["intervals"] = interval_facts(model, columns.source, y)
    found["regression"] = regression_facts(columns, order, y, mean, guess)

    def predict(X: Any) -> Floats:
        return np.asarray(model.loss_.inverse_link(model.predict_raw(X)))[:, :_CLASSES_DRAWN]

    found["dependence"] = dependence_facts(columns, order, names[:_CLASSES_DRAWN], predict)
    return found


def _of_structures(
    model: Any, columns: Columns, order: list[int], y: Any, raw: Floats
) -> dict[str, Any]:
    structured = structured_facts(model, columns, order, y, raw)
    return {
        "task": "structured output",
        "target": {"kind": type(model.output_).__name__.removesuffix("Embedding")},
        "scores": structured["scores"],
        "structured": structured,
        "dependence": [],
    }


def _warnings(model: Any, codes: Floats, raw: Floats) -> list[str]:
    """What a reader should know before he believes the figures."""
    found = []
    if len(raw) < 30:
        found.append(f"Only {len(raw)} rows: the figures say little.")
    history = getattr(model, "history_", None)
    if history is not None and len(raw) > 1:
        kept = min(int(model.n_estimators_), len(history.train) - 1)
        mean = float(loss_of_rows(model, codes, raw).mean())
        if np.isclose(mean, history.train[kept], rtol=1e-7, atol=0):
            found.append(
                "The loss on these rows is that of the training: they are most likely the rows "
                "the model was fitted to, so that the figures are too good. Use other rows."
            )
    return found


def _plain(value: Any) -> Any:
    """The same as JSON takes it: numbers that are not finite become ``None``."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

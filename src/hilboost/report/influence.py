"""Feature importances, partial dependence, and Shapley values of some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.inspection import permutation_importance

from hilboost.boosting.units import in_units
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses.masked import with_missing_targets
from hilboost.model.fitted import FittedModel
from hilboost.report.table import Columns, shortened, value_text

_MOST_ROWS = 1000
_ROWS_PREDICTED = 200_000
_DEPENDENCE_ROWS = 200
_GRID = 24
_COLUMNS_DRAWN = 6
_BARS = 20


def draw_rows(n: int, most: int) -> NDArray[np.intp]:
    """Sample at most ``most`` row indices, ascending, with a fixed seed."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def draw_units(target: Target, most: int) -> NDArray[np.intp]:
    """Sample about ``most`` rows, ascending, with a fixed seed; whole groups if there are any."""
    n = len(target.y)
    if target.groups is None or n <= most:
        return draw_rows(n, most)
    units = draw_rows(target.n_units, max(1, round(target.n_units * most / n)))
    drawn = np.zeros(target.n_units, dtype=np.bool_)
    drawn[units] = True
    return np.flatnonzero(target.of_units(drawn))


def loss_of_rows(fitted: FittedModel, target: Target, raw: Floats) -> Floats:
    """Compute the training loss of each row, (n,), for encoded targets and ``raw``.

    Several targets are measured in their own units, as in the fit.
    """
    loss: Loss = with_missing_targets(fitted.loss, [target])
    start = fitted.model.initial_raw
    several = fitted.resolved is not None and target.y.shape[1] > 1
    units = loss.units(target) if several else None
    if units is not None:
        loss, target = units.loss, in_units(units, target)
        raw, start = units.raw_in_fit(raw), units.raw_in_fit(start)
    if loss.adaptive:
        # Use the loss parameter from before the first stage.
        loss = loss.adapted(target, target.starting_raw(start))
    return np.asarray(loss.value(target, raw))


def mean_loss(fitted: FittedModel, target: Target, raw: Floats) -> float:
    """Mean training loss of the rows, or of the groups of a ranking."""
    values = loss_of_rows(fitted, target, raw)
    if target.groups is not None:
        return float(values.sum() / target.n_units)
    return float(np.average(values, weights=target.weight))


def importance_facts(model: Any, columns: Columns, target: Target) -> dict[str, Any]:
    """Compute permutation importances, and gain importances of trees."""
    d = len(columns.names)
    repeats = 5 if d <= 30 else 2 if d <= 100 else 1
    rows = draw_units(target, min(_MOST_ROWS, max(50, _ROWS_PREDICTED // (d * repeats))))
    sample, drawn = columns.rows(rows), target.rows(rows)

    source = sample.source
    is_array = not sample.is_frame
    # Permute row numbers: scikit-learn refuses arrays with infinite values.
    table = np.tile(np.arange(len(rows))[:, None], d) if is_array else source

    def minus_loss(_: object, X: Any, y: Floats) -> float:
        values = np.take_along_axis(source, X, axis=0) if is_array else X
        return -mean_loss(model.fitted_, drawn, drawn.with_offset(model.predict_raw(values)))

    found = permutation_importance(
        model, table, drawn.y, scoring=minus_loss, n_repeats=repeats, random_state=0
    )
    gain = _gain(model)
    mean, spread = found.importances_mean, found.importances_std
    # Sort by permutation importance on these rows; ties by gain in training.
    order = np.lexsort((np.zeros(d) if gain is None else -gain, -mean))
    base = -minus_loss(None, table, drawn.y)
    return {
        "n_rows": len(rows),
        "n_repeats": repeats,
        "loss": base,
        "has_gain": gain is not None,
        "order": order.tolist(),
        "of_all": mean.tolist(),
        "bars": [
            {
                "name": columns.names[j],
                "permutation": float(mean[j]),
                "spread": float(spread[j]),
                "gain": None if gain is None else float(gain[j]),
            }
            for j in order[:_BARS]
        ],
    }


def _gain(model: Any) -> Floats | None:
    if not (model.is_tabular and model.fitted_.learner.capabilities.resumable):
        return None
    return np.asarray(model.feature_importances_)


def dependence_facts(
    columns: Columns,
    order: list[int],  # column indices, the most important first
    names: list[str],  # names of the outputs of ``predict``
    predict: Callable[[Any], Floats],  # maps a table to predictions (n, len(names))
) -> list[dict[str, Any]]:
    """Compute the partial dependence: means and quantiles of predictions at each grid value."""
    sample = columns.rows(draw_rows(columns.n_rows, _DEPENDENCE_ROWS))
    found = []
    for j in order:
        grid = _grid(columns, j)
        if len(grid["rows"]) < 2:
            continue
        at = np.stack([predict(sample.with_value(j, columns, row)) for row in grid["rows"]])
        low, high = _quantiles(at, [0.1, 0.9], sample.weights)
        mean = np.average(at, axis=1, weights=sample.weights)
        lines = {"mean": mean.T, "low": low.T, "high": high.T}
        curves = [
            {"name": name} | {what: line[k].tolist() for what, line in lines.items()}
            for k, name in enumerate(names)
        ]
        found.append({"column": columns.names[j], **grid["facts"], "curves": curves})
        if len(found) == _COLUMNS_DRAWN:
            break
    return found


def _quantiles(values: Floats, levels: list[float], weights: Floats) -> Floats:
    """Compute quantiles of values (g, n, r) over the rows n, (levels, g, r)."""
    if (weights == weights[0]).all():
        return np.quantile(values, levels, axis=1)
    return np.quantile(values, levels, axis=1, weights=weights, method="inverted_cdf")


def _grid(columns: Columns, number: int) -> dict[str, Any]:
    """Choose grid values of a column, and rows that contain them."""
    values = columns.values(number)
    if values.dtype == object:
        present = np.array([str(v) for v in values if v is not None], dtype=str)
        levels, counts = np.unique(present, return_counts=True)
        shown = levels[np.argsort(-counts, kind="stable")][:12]
        text = np.array([None if v is None else str(v) for v in values], dtype=object)
        rows = [int(np.flatnonzero(text == level)[0]) for level in shown]
        return {"rows": rows, "facts": {"kind": "category", "grid": shown.tolist()}}
    present = values[np.isfinite(values)]
    if len(present) == 0:
        return {"rows": [], "facts": {}}
    low = np.quantile(present, 0.01, method="lower")
    high = np.quantile(present, 0.99, method="higher")
    inside = np.unique(present[(present >= low) & (present <= high)])
    # Use the data values nearest to an equidistant grid.
    steps = np.linspace(inside[0], inside[-1], _GRID)
    at = np.clip(np.searchsorted(inside, steps), 1, max(len(inside) - 1, 1))
    if len(inside) > 1:
        nearer = steps - inside[at - 1] < inside[at] - steps
        inside = np.unique(inside[np.where(nearer, at - 1, at)])
    rows = [int(np.flatnonzero(values == v)[0]) for v in inside]
    deciles = np.quantile(present, np.linspace(0.1, 0.9, 9)).tolist()
    facts = {"kind": columns.kind(number), "grid": inside.tolist(), "deciles": deciles}
    return {"rows": rows, "facts": facts}


_ROWS, _FEWEST_ROWS = 200, 20
_BACKGROUND = 100
_ORDERS = 8
_ROWS_EXPLAINED = 100_000  # for stages whose values are estimated
_COLUMNS = 10
_SHADES = 5


def contribution_facts(
    model: Any, columns: Columns, positive: int, target: str | None
) -> dict[str, Any] | None:
    """Compute Shapley values of one raw prediction of some rows, if the model is a sum of stages.

    Each value has a ``shade`` from 0 for small values of the column to 4 for large ones; it is -1
    for categories and missing values.
    """
    codec = model.fitted_.codec
    if not model.is_additive or columns.n_rows < _FEWEST_ROWS or codec.kind == "structured":
        return None
    if codec.kind == "survival" and len(model.model_.initial_raw) > 1:
        return None  # several hazards
    d = len(columns.names)
    n_rows = min(_ROWS, max(_FEWEST_ROWS, _ROWS_EXPLAINED // (2 * _ORDERS * (d + 1))))
    rows = draw_rows(columns.n_rows, n_rows)
    sample = columns.rows(rows)
    background = columns.rows(draw_rows(columns.n_rows, _BACKGROUND))
    try:
        found = model.shap_values(sample.source, background.source, n_orders=_ORDERS)
    except IncompatibleParts:
        return None
    values, output = _one_output(model.fitted_, found.values, positive)
    output = output if target is None else target
    size = np.average(np.abs(values), axis=0, weights=sample.weights)
    most = np.argsort(-size, kind="stable")[:_COLUMNS]
    errors = found.standard_errors
    return {
        "n_rows": len(rows),
        "n_background": background.n_rows,
        "output": output,
        "estimated": errors is not None and bool(np.any(errors > 0)),
        "columns": [
            {
                "name": columns.names[j],
                "mean_size": float(size[j]),
                "values": values[:, j].tolist(),
                "shade": _shades(sample.values(j)).tolist(),
                "texts": [_text(value, sample.kind(j)) for value in sample.values(j)],
            }
            for j in most
            if size[j] > 0
        ],
    }


def _one_output(fitted: FittedModel, values: Floats, positive: int) -> tuple[Floats, str]:
    """Choose one output of values (n, d) or (n, d, r); return the values and a name."""
    codec, link = fitted.codec, fitted.loss.link
    if codec.kind == "classes" and len(fitted.classes) == 2 and values.ndim == 2:
        sign = 1.0 if positive == 1 else -1.0
        return sign * values, f"the raw score of class {shortened(fitted.classes[positive], 30)}"
    if values.ndim == 2:
        return values, "the raw prediction"
    if codec.kind == "classes":
        chosen = positive if len(fitted.classes) == 2 else 0
        return values[:, :, chosen], f"the raw score of class {shortened(fitted.classes[chosen])}"
    if link is not None and link.levels:
        chosen = int(np.argmin(np.abs(np.asarray(link.levels) - 0.5)))
        return values[:, :, chosen], f"quantile {link.levels[chosen]:g}"
    return values[:, :, 0], "output 0"


def _shades(values: NDArray[Any]) -> NDArray[np.intp]:
    """Fifths of the present numbers; -1 for categories and missing values."""
    if values.dtype == object:
        return np.full(len(values), -1)
    present = np.sort(values[~np.isnan(values)])
    if not len(present) or present[0] == present[-1]:
        return np.full(len(values), -1)
    rank = np.searchsorted(present, values, "left") + np.searchsorted(present, values, "right")
    shades = np.minimum(_SHADES * rank // (2 * len(present)), _SHADES - 1)
    return np.where(np.isnan(values), -1, shades)


def _text(value: Any, kind: str) -> str:
    if value is None or value != value:
        return "missing"
    is_number = isinstance(value, float | np.floating)
    return value_text(float(value), kind) if is_number else shortened(value, 20)

"""Shapley values of some rows: how much each column contributes to the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.model.fitted import FittedModel
from hilboost.report.influence import draw_rows
from hilboost.report.table import Columns, shortened, value_text

_ROWS, _FEWEST_ROWS = 200, 20
_BACKGROUND = 100
_ORDERS = 8
_ROWS_PREDICTED = 100_000  # for stages whose values are estimated
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
    several_hazards = codec.kind == "survival" and len(model.model_.initial_raw) > 1
    if (
        codec.kind == "structured"
        or several_hazards
        or not model.is_additive
        or columns.n_rows < _FEWEST_ROWS
    ):
        return None
    d = len(columns.names)
    n_rows = min(_ROWS, max(_FEWEST_ROWS, _ROWS_PREDICTED // (2 * _ORDERS * (d + 1))))
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


def _text(value: object, kind: str) -> str:
    if value is None or value != value:
        return "missing"
    return (
        value_text(float(value), kind)
        if isinstance(value, float | np.floating)
        else shortened(value, 20)
    )

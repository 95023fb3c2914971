"""Differences between the rows of a report and the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, counted
from hilboost.report.influence import draw_rows
from hilboost.report.table import Columns, shortened, wide_enough
from hilboost.tables.blocks import as_table

_MOST_ROWS = 20_000
_BINS = 16
_LEVELS = 8
_OUTPUTS = 4
_DRAWN = 5
_LEVEL = 0.01  # of all tests together


def drift_facts(model: Any, columns: Columns, training: Columns, raw: Floats) -> dict[str, Any]:
    """Compare columns and predictions with the training rows, by descending distance."""
    if len(columns.names) != len(training.names):
        raise InvalidData(
            f"X_train has {counted(len(training.names), 'column')}, but X has "
            f"{len(columns.names)}; pass rows of the training data with the columns of X."
        )
    before = training.rows(draw_rows(training.n_rows, _MOST_ROWS))
    now_rows = draw_rows(columns.n_rows, _MOST_ROWS)
    now = columns.rows(now_rows)
    compared = [
        _column(columns.names[j], before.values(j), now.values(j), columns.kind(j))
        for j in range(len(columns.names))
    ]
    limit = _LEVEL / len(compared)
    for one in compared:
        one["differs"] = one["p_value"] < limit
    compared.sort(key=lambda one: (not one["differs"], -one["distance"]))
    for one in compared[_DRAWN:]:
        del one["chart"]
    outputs = min(raw.shape[1], _OUTPUTS)
    names = ["raw prediction"] if outputs == 1 else [f"raw prediction {k}" for k in range(outputs)]
    raw_before = model.predict_raw(before.source)
    return {
        "n_rows": training.n_rows,
        "in_both": int(np.isin(_row_hashes(model, columns), _row_hashes(model, training)).sum()),
        "columns": compared,
        "predictions": [
            _column(name, raw_before[:, k], raw[now_rows, k]) for k, name in enumerate(names)
        ],
    }


def _column(
    name: str, before: NDArray[Any], now: NDArray[Any], kind: str = "number"
) -> dict[str, Any]:
    """Compare the values of a column, as returned by ``Columns.values``."""
    if before.dtype == object or now.dtype == object:
        return {"name": name, **_levels(_texts(before), _texts(now))}
    missing = [float(np.isnan(values).mean()) for values in (before, now)]
    before, now = before[~np.isnan(before)], now[~np.isnan(now)]
    found = {"name": name, "kind": kind, "missing": missing, "new": None}
    if not (len(before) and len(now)):
        return found | {"distance": 0.0, "p_value": 1.0, "chart": None}
    test = ks_2samp(before, now, method="asymp")
    outside = float(((now < before.min()) | (now > before.max())).mean())
    ends = np.concatenate([before, now])
    ends = ends[np.isfinite(ends)]
    low, high = np.quantile(ends, [0.001, 0.999]) if len(ends) else (0.0, 1.0)
    low, high = wide_enough(low, high, _BINS)
    edges = np.linspace(low, high, _BINS + 1)
    inside = [np.clip(v, low, high) for v in (before, now)]
    shares = [(np.histogram(v, edges)[0] / len(v)).tolist() for v in inside]
    return found | {
        "distance": float(test.statistic),
        "p_value": float(test.pvalue),
        "new": outside,
        "chart": {"edges": edges.tolist(), "shares": shares},
    }


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Levels as text; missing values are an empty text, which shortened levels never are."""
    texts = ("" if v is None or v != v else shortened(v) or "''" for v in values)
    return np.array(list(texts), dtype=str)


def _levels(before: NDArray[Any], now: NDArray[Any]) -> dict[str, Any]:
    levels, codes = np.unique(np.concatenate([before, now]), return_inverse=True)
    parts = codes[: len(before)], codes[len(before) :]
    table = np.stack([np.bincount(part, minlength=len(levels)) for part in parts])
    shares = table / table.sum(axis=1, keepdims=True)
    most = np.argsort(-shares.sum(axis=0), kind="stable")[:_LEVELS]
    missing = shares[:, levels == ""].sum(axis=1)
    shown = np.where(levels == "", "missing", levels)
    return {
        "kind": "category",
        "distance": float(0.5 * np.abs(shares[0] - shares[1]).sum()),
        "p_value": float(chi2_contingency(table).pvalue) if len(levels) > 1 else 1.0,
        "missing": missing.tolist(),
        "new": float(shares[1, table[0] == 0].sum()),
        "chart": {"levels": shown[most].tolist(), "shares": shares[:, most].tolist()},
    }


def _row_hashes(model: Any, columns: Columns) -> NDArray[np.uint64]:
    """Hash each row as the model sees it, (n,)."""
    hashes: NDArray[np.uint64] = as_table(model._checked(columns.source)).row_hashes()
    return hashes

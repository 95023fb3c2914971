"""Facts about the data of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.report.table import Columns, bins_of, shortened

_HISTOGRAM_BINS = 16
_LEVELS_SHOWN = 5
_COLUMNS_SHOWN = 60


def data_facts(columns: Columns, order: Sequence[int]) -> dict[str, Any]:
    """Collect the number of rows, missing values, and ranges of the columns.

    ``order``: column indices, the most important first.  Only the first 60 are described.
    """
    shown = sorted(order[:_COLUMNS_SHOWN])
    described = [_column(columns.names[j], columns.values(j)) for j in shown]
    return {
        "n_rows": columns.n_rows,
        "n_columns": len(columns.names),
        "n_missing": int(sum(_n_missing(columns.values(j)) for j in range(len(columns.names)))),
        "columns": described,
    }


def _n_missing(values: NDArray[Any]) -> int:
    if values.dtype == object:
        return sum(value is None for value in values)
    return int(np.isnan(values).sum())


def _column(name: str, values: NDArray[Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "missing": _n_missing(values)}
    if values.dtype == object:
        present = [shortened(value) for value in values if value is not None]
        levels, counts = np.unique(np.array(present, dtype=str), return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_LEVELS_SHOWN]
        facts |= {"kind": "category", "distinct": len(levels)}
        facts["levels"] = [{"level": str(levels[k]), "count": int(counts[k])} for k in most]
        return facts
    present = values[np.isfinite(values)]
    facts |= {"kind": "number", "distinct": len(np.unique(present))}
    if len(present):
        five = np.quantile(present, [0, 0.25, 0.5, 0.75, 1])
        facts |= dict(zip(("minimum", "q1", "median", "q3", "maximum"), five.tolist(), strict=True))
        facts["histogram"] = histogram(present)
    return facts


def histogram(values: Floats, n_bins: int = _HISTOGRAM_BINS) -> dict[str, Any]:
    """Compute a histogram; the outermost 0.1 % on either side fall into the end bins."""
    low, high = np.quantile(values, [0.001, 0.999])
    if not high > low:
        low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(values, low, high), bins=n_bins, range=(low, high))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def means_by_column(
    columns: Columns, order: Sequence[int], series: dict[str, Floats], n_columns: int = 6
) -> list[dict[str, Any]]:
    """Compute the means of some series in bins of the most important columns.

    ``order``: column indices, the most important first. ``series``: dict of name to (n,) float64.
    ``n_columns``: maximum number of columns; constant columns are skipped.
    """
    found = []
    for j in order:
        bins = bins_of(columns.values(j))
        if len(bins) < 2:
            continue
        means = means_by_bin(bins, series, columns.weights)
        found.append({"name": columns.names[j], "bins": means})
        if len(found) == n_columns:
            break
    return found


def means_by_bin(bins: Any, series: dict[str, Floats], weights: Floats) -> list[dict[str, Any]]:
    """Compute the number of rows and the weighted means of each bin."""
    return [
        {
            "label": one.label,
            "count": len(one.rows),
            **{
                name: float(np.average(values[one.rows], weights=weights[one.rows]))
                for name, values in series.items()
            },
        }
        for one in bins
    ]


def rows_shown(columns: Columns, rows: NDArray[Any], order: Sequence[int]) -> dict[str, Any]:
    """Collect the values of some rows in the five most important columns."""
    chosen = list(order[:5])
    table = [[_plain(columns.values(j)[row]) for j in chosen] for row in rows.tolist()]
    return {
        "columns": [columns.names[j] for j in chosen],
        "numbers": columns.numbers[rows].tolist(),
        "rows": table,
    }


def _plain(value: object) -> Any:
    if value is None or value != value:
        return None
    return float(value) if isinstance(value, float | np.floating) else shortened(value)

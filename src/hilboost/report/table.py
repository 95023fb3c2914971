"""The table of a report: access to its columns, bins, and facts about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.labels import is_pandas
from hilboost.tables.arrays import without_mask
from hilboost.tables.columns import is_missing_value
from hilboost.tables.number_text import are_days, day_text
from hilboost.tables.sparse import check_sparse, is_sparse

N_BINS = 8
_HISTOGRAM_BINS = 16
_LEVELS_SHOWN = 5
_COLUMNS_SHOWN = 60
_LABEL_LENGTH = 40


@dataclass(frozen=True, eq=False)
class Columns:
    """A table with access to single columns."""

    source: Any  # (n, d) array or pandas.DataFrame: input of ``predict``
    names: list[str]
    weights: Floats  # (n,) float64: positive weights of the rows
    numbers: NDArray[np.intp]  # (n,) int: numbers of the rows in the table that the user passed

    @classmethod
    def of(cls, X: Any, names: Sequence[str] | None) -> Columns:
        """Convert ``X`` to a table; other frames become pandas frames, and sparse ones dense."""
        if hasattr(X, "collect") and not is_pandas(X):
            X = X.collect()
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if is_pandas(X):
            return cls._unweighted(X, [str(name) for name in X.columns])
        if is_sparse(X):
            check_sparse(X)
            X = X.toarray()
        X = np.asarray(without_mask(X))
        if X.ndim != 2 or len(X) == 0:
            raise InvalidData(
                f"X must be a table (n, d) with at least one row; got shape {X.shape}."
            )
        if names is None or len(names) != X.shape[1]:
            names = [f"column {number}" for number in range(X.shape[1])]
        return cls._unweighted(X, list(names))

    @classmethod
    def _unweighted(cls, source: Any, names: list[str]) -> Columns:
        return cls(source, names, np.ones(len(source)), np.arange(len(source)))

    def weighted(self, weights: Floats | None) -> Columns:
        """Set the weights (n,); ``None`` means one for each row."""
        return self if weights is None else replace(self, weights=weights)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.source)

    @property
    def is_frame(self) -> bool:
        """Whether the table is a pandas frame, and not an array."""
        return is_pandas(self.source)

    def raw(self, number: int) -> Any:
        """Return a column as stored in the table."""
        return self.source.iloc[:, number] if self.is_frame else self.source[:, number]

    def values(self, number: int) -> NDArray[Any]:
        """Return a column, (n,): float64 with NaN, or objects with ``None``, for missing values."""
        column = self.raw(number)
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iufb" and getattr(column.dtype, "name", "") != "category":
            if self.is_frame:
                return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
            return np.asarray(column, dtype=np.float64)
        objects = np.asarray(column, dtype=object)
        return np.array([None if is_missing_value(v) else v for v in objects], dtype=object)

    def kind(self, number: int) -> str:
        """Return the kind of a column: category, number, or date (days since 1970)."""
        if self.values(number).dtype == object:
            return "category"
        return "date" if are_days(self.names[number], self.names) else "number"

    def rows(self, index: NDArray[np.intp]) -> Columns:
        """Select rows by index."""
        source = self.source.iloc[index] if is_pandas(self.source) else self.source[index]
        return Columns(source, self.names, self.weights[index], self.numbers[index])

    def mean(self, values: NDArray[Any]) -> float:
        """Compute the weighted mean of values (n,)."""
        return float(np.average(values, weights=self.weights))

    def with_value(self, number: int, other: Columns, row: int) -> Any:
        """Set one column to the value from a row of another table, and return the new source."""
        if not is_pandas(self.source):
            table = self.source.copy()
            table[:, number] = other.source[row, number]
            return table
        frame = self.source.copy(deep=False)
        # Take the value from the column, which keeps its dtype and levels.
        column = other.raw(number).iloc[np.full(self.n_rows, row)]
        frame.isetitem(number, column.set_axis(frame.index))
        return frame


Bins = list[tuple[str, NDArray[np.intp]]]
"""Labels, and rows with similar values in a column, at least one each."""


def bins_of(values: NDArray[Any], n_bins: int = N_BINS, kind: str = "number") -> Bins:
    """Divide a column into bins at quantiles, or by frequent levels; missing values come last."""
    if values.dtype == object:
        missing = np.array([value is None for value in values])
        bins = _levels(values, missing, n_bins)
    else:
        missing = np.isnan(values)
        bins = _intervals(values, missing, n_bins, kind)
    if missing.any():
        bins.append(("missing", np.flatnonzero(missing)))
    return bins


def _levels(values: NDArray[Any], missing: NDArray[np.bool_], n_bins: int) -> Bins:
    names = np.array([shortened(value) for value in values], dtype=object)
    levels, counts = np.unique(names[~missing].astype(str), return_counts=True)
    frequent = levels[np.argsort(-counts, kind="stable")]
    shown = frequent if len(frequent) <= n_bins else frequent[: n_bins - 1]
    bins = [(str(level), np.flatnonzero((names == level) & ~missing)) for level in shown]
    rest = ~missing & ~np.isin(names.astype(str), shown)
    if rest.any():
        bins.append((f"{len(frequent) - len(shown)} other levels", np.flatnonzero(rest)))
    return bins


def _intervals(values: NDArray[Any], missing: NDArray[np.bool_], n_bins: int, kind: str) -> Bins:
    present = values[~missing]
    distinct = np.unique(present)
    if len(distinct) <= n_bins:
        return [(value_text(v, kind), np.flatnonzero(values == v)) for v in distinct]
    inner = np.quantile(present, np.linspace(0, 1, n_bins + 1)[1:-1], method="lower")
    cuts = np.unique(inner)
    places = np.where(missing, -1, np.searchsorted(cuts, values, side="left"))
    bins = []
    for place in range(len(cuts) + 1):
        rows = np.flatnonzero(places == place)
        if len(rows):
            low, high = values[rows].min(), values[rows].max()
            label = value_text(low, kind, 3)
            bins.append((label if low == high else f"{label} … {value_text(high, kind, 3)}", rows))
    return bins


def number_text(value: float, digits: int = 4) -> str:
    """Format a number with few digits and thousands separators."""
    value = float(value)
    if not np.isfinite(value):
        return "–"
    size = abs(value)
    if 1e4 <= size < 1e9:
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")
    text = f"{value:.0f}" if 10**digits <= size < 1e4 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def value_text(value: float, kind: str, digits: int = 4) -> str:
    """Format a number, or a day since 1970 as a date if the kind is ``"date"``."""
    return (day_text(value) if kind == "date" else None) or number_text(value, digits)


def shortened(value: object, length: int = _LABEL_LENGTH) -> str:
    """Convert any value to text, truncated to ``length``."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def data_facts(columns: Columns, order: Sequence[int]) -> dict[str, Any]:
    """Collect the number of rows, missing values, and ranges of the most important columns."""
    shown = sorted(order[:_COLUMNS_SHOWN])
    described = [_column_facts(columns.names[j], columns.values(j), columns.kind(j)) for j in shown]
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


def _column_facts(name: str, values: NDArray[Any], kind: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "kind": kind, "missing": _n_missing(values)}
    if values.dtype == object:
        present = [shortened(value) for value in values if value is not None]
        levels, counts = np.unique(np.array(present, dtype=str), return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_LEVELS_SHOWN]
        facts["distinct"] = len(levels)
        facts["levels"] = [{"level": str(levels[k]), "count": int(counts[k])} for k in most]
        return facts
    present = values[np.isfinite(values)]
    facts["distinct"] = len(np.unique(present))
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
    low, high = wide_enough(low, high, n_bins)
    counts, edges = np.histogram(np.clip(values, low, high), bins=n_bins, range=(low, high))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def wide_enough(low: float, high: float, n_bins: int) -> tuple[float, float]:
    """Widen a range so that the edges of its bins are different numbers."""
    if not high > low:
        low, high = low - 0.5, high + 0.5
    least = n_bins * float(np.spacing(max(-low, high)))
    return (low, high) if high - low >= least else (low - least, high + least)


def histogram_of_shares(values: Floats, weights: Floats | None = None) -> dict[str, Any]:
    """Compute a histogram of values between 0 and 1."""
    counts, edges = np.histogram(values, bins=20, range=(0, 1), weights=weights)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def thinned(values: Any, most: int) -> list[Any]:
    """Choose at most ``most`` values, evenly spread."""
    flat = np.ravel(values)
    at = np.unique(np.linspace(0, len(flat) - 1, min(len(flat), most)).astype(int))
    return flat[at].tolist()


def means_by_column(
    columns: Columns, order: Sequence[int], series: dict[str, Floats], n_columns: int = 6
) -> list[dict[str, Any]]:
    """Compute the means of some series in bins of the most important columns that vary."""
    found = []
    for j in order:
        bins = bins_of(columns.values(j), kind=columns.kind(j))
        if len(bins) < 2:
            continue
        means = means_by_bin(bins, series, columns.weights)
        found.append({"name": columns.names[j], "bins": means})
        if len(found) == n_columns:
            break
    return found


def means_by_bin(bins: Bins, series: dict[str, Floats], weights: Floats) -> list[dict[str, Any]]:
    """Compute the number of rows and the weighted means of each bin."""

    def means(rows: NDArray[np.intp]) -> dict[str, float]:
        averages = partial(np.average, weights=weights[rows])
        return {name: float(averages(values[rows])) for name, values in series.items()}

    return [{"label": label, "count": len(rows), **means(rows)} for label, rows in bins]


def rows_shown(columns: Columns, rows: NDArray[Any], order: Sequence[int]) -> dict[str, Any]:
    """Collect the values of some rows in the five most important columns."""
    chosen = list(order[:5])
    kinds = [columns.kind(j) for j in chosen]
    table = [
        [_plain(columns.values(j)[row], kind) for j, kind in zip(chosen, kinds, strict=True)]
        for row in rows.tolist()
    ]
    names, numbers = [columns.names[j] for j in chosen], columns.numbers[rows].tolist()
    return {"columns": names, "numbers": numbers, "rows": table}


def _plain(value: Any, kind: str) -> Any:
    if value is None or value != value:
        return None
    if kind == "date":
        return value_text(value, kind)
    return float(value) if isinstance(value, float | np.floating) else shortened(value)

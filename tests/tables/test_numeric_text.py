"""Columns of text in which all or nearly all values are numbers."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import PLAIN

import hilboost.stream
from hilboost import BoostingRegressor
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.tables.number_text import form_of

MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 2, "learner": "tree"})
N = 400


def column(words, n=N, seed=0):
    texts = [f"{value:.1f}" for value in np.random.default_rng(seed).normal(size=n)]
    texts[7 : 7 + len(words)] = words
    return texts


def object_array(values):
    return np.array(values, dtype=object)[:, None]


TABLES = {
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "objects": lambda values: pd.DataFrame({"a": values}, dtype=object),
    "polars": lambda values: pl.DataFrame({"a": values}),
    "arrow": lambda values: pa.table({"a": pa.chunked_array([values[:9], values[9:]])}),
    "array": object_array,
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_few_words_are_told(kind):
    table = TABLES[kind](column(["oops", "n/a", "oops"]))
    told = r"column .* is numeric except for 3 of its 400 values \('oops' in row 7\), so that"
    with pytest.warns(DataWarning, match=told):
        MODEL.fit(table, np.arange(N))
    BoostingRegressor(**MODEL.get_params() | {"categorical_features": [0]}).fit(table, np.arange(N))


@given(
    st.lists(st.sampled_from(["oops", "gone", "lost", "odd", "1;5"]), max_size=6),
    st.integers(0, 4),
    st.integers(100, 700),
)
def test_few_words_are_told(words, n_missing, n):
    """Less than 1 % of the values, or up to three different words."""
    values = column(words, n)
    values[50 : 50 + n_missing] = [None] * n_missing
    table = pa.table({"a": values, "y": np.arange(n, dtype=float)})
    wanted = 0 < len(words) < 0.01 * (n - n_missing) or 0 < len(set(words)) <= 3
    for fit in (
        lambda: MODEL.fit(table.select(["a"]), np.arange(n)),
        lambda: hilboost.stream.fit(MODEL, iter(table.to_batches(30)), target="y"),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", DataWarning)
            fit()
        told = [str(one.message) for one in found if "is numeric except" in str(one.message)]
        assert len(told) == wanted
        if wanted:
            assert f"{len(words)} of its {n - n_missing} values ('{words[0]}' in row 7)" in told[0]


TOLD = "is text in which all values are numbers, so that it is categorical; convert it, for"


def told_in(fit):
    """Warnings about columns of numbers."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DataWarning)
        fit()
    return [str(one.message) for one in found]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("values", [["1", "2.5", "-3e2", None], column([])[:4]])
def test_text_of_numbers_is_told(kind, values):
    table = TABLES[kind](values * 100)
    (told,) = told_in(lambda: MODEL.fit(table, np.arange(400)))
    assert TOLD in told
    named = BoostingRegressor(**MODEL.get_params() | {"categorical_features": [0]})
    assert not told_in(lambda: named.fit(table, np.arange(400)))


def test_text_of_numbers_on_disk_is_told():
    table = pa.table({"a": ["1", "2.5"] * 100, "y": np.arange(200.0)})
    (told,) = told_in(lambda: hilboost.stream.fit(MODEL, iter(table.to_batches(30)), target="y"))
    assert TOLD in told
    coded = table.set_column(0, "a", table["a"].dictionary_encode())
    assert not told_in(lambda: hilboost.stream.fit(MODEL, iter(coded.to_batches(30)), target="y"))


def test_an_array_of_numbers_and_words_is_text():
    """NumPy turns the numbers of such an array into text."""
    rows = np.array([[k % 7, 0.5 * k, "even" if k % 2 else "odd"] for k in range(60)])
    (told,) = told_in(lambda: MODEL.fit(rows, np.arange(60)))
    assert told.startswith("columns 0, 1 are text in which all values are numbers, so that they")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["1", "2"] * 50, dtype="category"),
        pl.Series(["1", "2"] * 50, dtype=pl.Categorical),
        pa.array(["1", "2"] * 50).dictionary_encode(),
        ["007", "010"] * 50,
        ["12_34", "56_78"] * 50,
        ["1", "two"] * 50,
    ],
)
def test_codes_and_declared_categories_are_silent(values):
    table = pl.DataFrame({"a": values}) if isinstance(values, pl.Series) else None
    if table is None:
        arrow = isinstance(values, pa.DictionaryArray)
        table = pa.table({"a": values}) if arrow else pd.DataFrame({"a": values})
    assert not told_in(lambda: MODEL.fit(table, np.arange(100)))


def days(form):
    return pd.date_range("2021-12-01", periods=100).strftime(form).tolist()


TEXTS = {
    "thousands": (["1,234,567.5", "6,471", "12"], "numbers with separators, such as '1,234,567.5'"),
    "some thousands": (["12", "6,471"], "numbers with separators, such as '6,471'"),
    "decimal commas": (["22,3", "1.234,5", "-7,0"], "numbers with separators, such as '-7,0'"),
    "spaces": (["1\u202f200", "950,5"], r"numbers with separators, such as '1\u202f200'"),
    "apostrophes": (["1'200", "950"], 'numbers with separators, such as "1\'200"'),
    "points": (["2.501", "950", "0"], "numbers with separators, such as '2.501'"),
    "dots": (["1.234.567", "950"], "numbers with separators, such as '1.234.567'"),
    "percent": (["22.3%", "5 %"], "numbers with units, such as '22.3%'"),
    "euros": (["12 €", "1,5 €"], "numbers with units, such as '1,5 €'"),
    "dollars": (["$5", "$ 6.50"], r"numbers with units, such as '$ 6.50'"),
    "rooms": ([f"{k} rooms" for k in range(10, 20)], "numbers with units, such as '10 rooms'"),
    "codes": ([f"EUR {k}.10" for k in range(10)], "numbers with units, such as 'EUR 0.10'"),
    "negative": (
        [*map(str, range(9)), *[f"({k}.8)" for k in range(20)]],
        "numbers with marks, such as '(0.8)'",
    ),
    "bounds": (
        [*map(str, range(20)), *[f"<{k}" for k in range(84, 99)]],
        "numbers with marks, such as '<84'",
    ),
    "clock": ([f"{k}:{k + 10}" for k in range(1, 23)], "times, such as '10:20'"),
    "durations": ([f"1:{k}:03" for k in range(10, 40)], "times, such as '1:10:03'"),
    "days": (days("%d.%m.%Y"), "dates, such as '01.01.2022'"),
    "ISO days": (days("%Y-%m-%d"), "dates, such as '2021-12-01'"),
    "named days": (days("%d-%b-%Y"), "dates, such as '01-Dec-2021'"),
    "months": (["2022-01", "2021-12"], "dates, such as '2021-12'"),
    "times": (days("%m/%d/%Y %H:%M"), "dates, such as '01/01/2022 00:00'"),
}


@pytest.mark.parametrize(
    ("kind", "text"), [*product(["pandas"], TEXTS), *product([*TABLES][1:], ["decimal commas"])]
)
def test_other_ways_to_write_numbers_are_told(kind, text):
    values, told = TEXTS[text]
    table = TABLES[kind](([*values, None] * 400)[:400])
    (message,) = told_in(lambda: MODEL.fit(table, np.arange(400)))
    assert f" is text in which all values are {told}, so that it is categorical; " in message
    steps = {"dates": "pandas.to_datetime", "times": "pandas.to_timedelta"}
    step = steps.get(told.split(",")[0], "pandas.to_numeric")
    assert (
        f"for instance with {step}, or mark it as categorical with .astype('category')." in message
    )
    named = BoostingRegressor(**MODEL.get_params() | {"categorical_features": [0]})
    assert not told_in(lambda: named.fit(table, np.arange(400)))


def test_few_numbers_with_commas_are_no_words():
    """To read them as missing, as words, would lose the largest values."""
    (told,) = told_in(lambda: MODEL.fit(pd.DataFrame({"a": column(["6,471"])}), np.arange(N)))
    assert "numbers with separators, such as '6,471'" in told


def test_each_form_is_told_once():
    columns = {name: (values * 400)[:400] for name, (values, _) in TEXTS.items()}
    frame = pd.DataFrame(columns)
    told = told_in(lambda: MODEL.fit(frame, np.arange(400)))
    assert [one.split(" text in ")[0] for one in told] == [
        "columns 'thousands', 'some thousands', 'decimal commas', 'spaces', 'apostrophes', "
        "'points', 'dots' are",
        "columns 'percent', 'euros', 'dollars', 'rooms', 'codes' are",
        "columns 'negative', 'bounds' are",
        "columns 'days', 'ISO days', 'named days', 'months', 'times' are",
        "columns 'clock', 'durations' are",
    ]
    assert not told_in(lambda: MODEL.fit(frame.astype("category"), np.arange(400)))
    batches = pa.table(columns | {"y": np.arange(400.0)}).to_batches(30)
    assert told == told_in(lambda: hilboost.stream.fit(MODEL, iter(batches), target="y"))


NUMBERS = np.random.default_rng(1).integers(1_000, 200_000, N)
OTHER_FORMS = {
    "numbers with separators": [f"{value:,}" for value in NUMBERS],
    "numbers with units": [f"{value / 2000:.1f}%" for value in NUMBERS],
    "dates": pd.date_range("2021-12-01", periods=N).strftime("%Y-%m-%d").tolist(),
}


@pytest.mark.parametrize(
    ("word", "n_words"),
    [("unknown", 1), ("unknown", 8), ("unknown", 120), ("", 8), ("-", 120), ("n/a", 1)],
)
@pytest.mark.parametrize("form", OTHER_FORMS)
def test_words_among_other_forms_are_told(form, word, n_words):
    values = list(OTHER_FORMS[form])
    values[7 : 7 + n_words] = [word] * n_words
    table = pa.table({"a": values, "y": np.arange(float(N))})
    for fit in (
        lambda: MODEL.fit(table.select(["a"]), np.arange(N)),
        lambda: hilboost.stream.fit(MODEL, iter(table.to_batches(30)), target="y"),
    ):
        (told,) = told_in(fit)
        expected = f"contains {form} except for {n_words} of its 400 values ('{word}' in row 7), so"
        assert expected in told
        assert "(..., errors='coerce'), or mark it as categorical with .ast" in told


@pytest.mark.parametrize(
    "words", [["unknown", "missing", "?", "tbd"] * 7, ["--"] * 240, ["N/A", " - "] * 150]
)
def test_placeholders_are_told_in_any_number(words):
    (told,) = told_in(lambda: MODEL.fit(pd.DataFrame({"a": column(words)}), np.arange(N)))
    assert f"is numeric except for {len(words)} of its 400 values ('{words[0]}' in row 7)" in told


def test_dates_that_all_differ_are_told_once():
    frame = pd.DataFrame({"day": days("%Y-%m-%d")})
    (told,) = told_in(lambda: MODEL.fit(frame, np.arange(100)))
    assert "all values are dates" in told


@pytest.mark.parametrize(
    "values",
    [
        ["A-12", "B-7"],
        ["1,2,3", "2,5"],  # answers of several choices
        ["12a", "3b"],
        ["3 rooms", "4 rooms"],
        [f"{k} {unit}" for k in range(10) for unit in ("kg", "g")],
        ["10.0.1", "1.2.33"],  # versions
        ["20-45-67", "40-47-84"],
        ["May", "June"],
        ["March 5", "May 1"],
        ["4711-05", "4711-06"],
        ["2020-2021", "2021-2022"],
        ["12:30", "13:45"],
        ["<5%", "5%"],
        ["<18", "18-64", ">64"],
        ["(1)", "(2)", "3"],
        [f"Route {k}" for k in range(5)],
        ["6,471", "none"],
        [*map(str, range(20)), "none"],  # levels of a scale
        [*map(str, range(30)), "x", "y", "z", "none"],
        [*map(str, range(1000, 1090)), "0123"],  # postal codes
        ["030 123 456", "040 123 457"],
    ],
)
def test_ordinary_categories_are_silent(values):
    frame = pd.DataFrame({"a": (values * 100)[:100]})
    assert not told_in(lambda: MODEL.fit(frame, np.arange(100)))


@pytest.mark.parametrize("text", ["8,351.11", "8351,11"])
def test_targets_with_commas(text):
    with pytest.raises(InvalidData, match="remove thousands separators, and write decimal points"):
        MODEL.fit(np.arange(9.0)[:, None], [text] * 9)
    with pytest.raises(InvalidData, match="use BoostingClassifier for classes"):
        MODEL.fit(np.arange(9.0)[:, None], ["high"] * 9)


SIGNS = ["-", "- ", "−", "−\u00a0", "–"]
MONEY = st.sampled_from(["$", "€", "£", "US$", "A$", "₹", "EUR ", "CHF "])
SIGNED = {
    "sign before the currency": lambda money, sign, n: f"{sign}{money}{n}",
    "sign after the currency": lambda money, sign, n: f"{money}{sign}{n}",
    "parentheses": lambda money, sign, n: f"({money}{n})",
    "parentheses after the currency": lambda money, sign, n: f"{money}({n})",
    "sign at the end": lambda money, sign, n: f"{money}{n}-",
}
SUFFIXED = {
    "sign": lambda money, sign, n: f"{sign}{n} {money}",
    "sign in the middle": lambda money, sign, n: f"{n}-{money}",
    "parentheses": lambda money, sign, n: f"({n} {money})",
    "parentheses before the currency": lambda money, sign, n: f"({n}) {money}",
}
MARKED = {
    "parentheses": lambda sign, n: f"({n})",
    "sign": lambda sign, n: f"{sign}{n}",
    "sign at the end": lambda sign, n: f"{n}-",
}
AMOUNTS = st.lists(st.integers(-(10**6), 10**6), min_size=30, max_size=60, unique=True).filter(
    lambda amounts: min(amounts) < 0 < max(amounts)
)


def spelled(negative, positive, amounts):
    numbers = [(value, f"{abs(value) / 100:.2f}") for value in amounts]
    return [(negative if value < 0 else positive)(text) for value, text in numbers]


@given(st.data(), AMOUNTS, MONEY, st.sampled_from(SIGNS), st.sampled_from(["", "k", "M", " bn"]))
def test_negative_amounts_are_numbers(data, amounts, money, sign, factor):
    """Some or all amounts are in thousands or millions."""
    ways, positive = data.draw(
        st.sampled_from(
            [
                (SIGNED, lambda n: f"{money}{n}{factor}"),
                (SUFFIXED, lambda n: f"{n} {money.strip()}"),
                (dict.fromkeys(["percent"], lambda money, sign, n: f"{sign}{n}%"), "{} %".format),
            ]
        )
    )
    way = ways[data.draw(st.sampled_from(sorted(ways)))]
    texts = spelled(lambda n: way(money.strip(), sign, n), positive, amounts)
    assert form_of((text, 1) for text in texts).name == "numbers with units", texts
    (told,) = told_in(lambda: MODEL.fit(pd.DataFrame({"a": texts * 2}), np.arange(2 * len(texts))))
    assert "all values are numbers with units, such as" in told


@given(AMOUNTS, st.sampled_from(sorted(MARKED)), st.sampled_from(SIGNS[1:]))
def test_negative_numbers_are_numbers_with_marks(amounts, way, sign):
    texts = spelled(lambda n: MARKED[way](sign, n), str, amounts)
    assert form_of((text, 1) for text in texts).name == "numbers with marks", texts


@given(AMOUNTS, st.permutations(["k", "M", "K", "B"]))
def test_thousands_and_millions_are_numbers_with_units(amounts, factors):
    texts = [f"{value / 10:.1f}{factors[k % 3]}" for k, value in enumerate(amounts)]
    for others in ([], ["12", "950"]):
        counts = dict.fromkeys([*texts, *others], 1)
        assert form_of(counts.items()).name == "numbers with units", texts


CODES = {
    "A-12": lambda k: f"{'ABCD'[k % 4]}-{k}",
    "12-": lambda k: f"{k}-",
    "3-5": lambda k: f"{k}-{k + 2}",
    "3.5-4.5": lambda k: f"{k}.5-{k + 1}.5",
    "$3-$5": lambda k: f"${k}-${k + 2}",
    "$3-5": lambda k: f"${k}-{k + 2}",
    "phone": lambda k: f"+49 30 {k:06d}",
    "phone with dashes": lambda k: f"555-{k:04d}",
    "phone with parentheses": lambda k: f"(030) {k:06d}",
    "seat": lambda k: f"{k}{'ABCDEFKM'[k % 8]}",
    "size": lambda k: ["S", "M", "L", "2M", "3M", "XL", "XXL"][k % 7],
    "size in months": lambda k: f"{k % 8}M",
    "hashed": lambda k: f"({'abc'[k % 3]}{k})",
    "list": lambda k: f"{k})",
    "version": lambda k: f"{k}.1-rc",
    "R500": lambda k: f"R{k}",
    "currency pair": lambda k: ["EUR-USD", "USD-CHF"][k % 2],
}


@given(st.sampled_from(sorted(CODES)), st.lists(st.integers(1, 9999), min_size=30, max_size=60))
def test_codes_and_ranges_are_no_numbers(kind, numbers):
    assert form_of((CODES[kind](k), 1) for k in numbers) is None

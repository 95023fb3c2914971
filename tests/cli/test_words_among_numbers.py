"""Columns of numbers in which a few words are missing values that nobody declared."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import passed, refused, run

N = 400


@pytest.fixture
def frame(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=N), "town": rng.choice(["Ghent", "Mons"], N)})
    return frame.assign(price=100.0 * frame["size"] + rng.normal(size=N))


FIT = "--target", "price", "--out", "model", "--n-estimators", 3, "--set", "learner=tree"


def written(frame, kind="csv", name="table"):
    if kind == "csv":
        frame.to_csv(f"{name}.csv", index=False)
    else:
        frame.to_parquet(f"{name}.parquet")
    return f"{name}.{kind}"


def with_words(frame, words, column="size"):
    """Put words into a column, from data row 8 on."""
    texts = frame[column].astype(str)
    texts[7 : 7 + len(words)] = words
    return frame.assign(**{column: texts})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_few_words_are_an_error_with_a_remedy(frame, kind):
    table = written(with_words(frame, ["oops", "lost", "oops"]), kind)
    message = (
        "error: 3 of the 400 values of column 'size' ('oops' in data row 8) are not numbers; read "
        "the text as missing with --missing 'oops' or --coerce, or name the column in --set "
        "categorical_features."
    )
    assert refused("fit", table, *FIT) == message
    assert refused("fit", table, *FIT, "--set", 'categorical_features=["town"]') == message
    passed("fit", table, *FIT, "--set", 'categorical_features=["size"]')
    values = frame["size"].where(~frame.index.isin([7, 8, 9]))
    known = written(frame.assign(size=values), kind, "known")
    passed("fit", known, *FIT)
    expected = passed("predict", "model", known).stdout
    for options in (["--missing", "oops", "--missing", "lost"], ["--coerce"]):
        fitted = passed("fit", table, *FIT, *options)
        assert passed("predict", "model", table, *options).stdout == expected
        passed("fit", known, *FIT, *options, "--valid", table)
        passed("evaluate", "model", table, *options, "--metric", "r2")
    assert "reading 3 of the 400 values of 'size' as missing, such as 'oops'" in fitted.stderr
    passed("report", "model", table, "--coerce", "--out", "report.html")
    message = refused("predict", "model", table)
    assert "contains text now ('oops' in data row 8); read it with --missing, --coerce" in message


@pytest.mark.parametrize("given", ['missing = "oops"', "coerce = true"])
def test_words_among_the_numbers_of_the_target(frame, folder, given):
    table = written(with_words(frame, ["oops"], "price"))
    message = refused("fit", table, *FIT)
    assert "target 'price' is text of numbers with 400 different values in 400 rows" in message
    assert "or add --task classification" in message
    message = refused("fit", table, *FIT, "--task", "regression")
    assert "('oops' in data row 8), but must contain numbers; read text as missing" in message
    (folder / "fit.toml").write_text(given)
    fitted = passed("fit", table, *FIT, "--config", "fit.toml", "--drop-missing-target")
    assert "dropped 1 of 400 rows" in fitted.stderr
    assert "regression, because" in fitted.stderr


WORDS = st.text(st.characters(codec="ascii", categories=["Lu", "Ll"]), min_size=1, max_size=9)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@given(st.lists(WORDS.map("x{}".format), min_size=1, max_size=8), st.integers(100, 900))
def test_the_limit_is_one_percent(tmp_path_factory, words, n):
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(n)
    frame = pd.DataFrame({"size": rng.normal(size=n)}).assign(price=rng.normal(size=n))
    with_words(frame, words).to_csv(folder / "table.csv", index=False)
    done = run("fit", folder / "table.csv", "--target", "price", "--out", folder / "model")
    if len(words) < 0.01 * n:
        assert f"('{words[0]}' in data row 8) are not numbers; read the text as m" in done.stderr
    else:
        assert done.exit_code == 0
        told = len(set(words)) <= 3
        assert ("numeric except for" in done.stderr) == told
        assert told == ("; read it with --coerce, or name it in --set categ" in done.stderr)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_are_those_of_the_file(frame, kind):
    """Rows without a target, which are dropped, count as well; the index of a table does not."""
    texts = frame.assign(size=frame["size"].astype(str), start=1.0, event="1")
    texts.loc[:9, "price"] = np.nan
    for column, value, options, told in (
        ("size", "oops", [], "1 of the 390 values of column 'size' ('oops' in data row 101)"),
        ("start", None, ["--offset", "start"], "--offset must be finite; data row 101 has nan"),
        ("start", None, ["--weights", "start"], "--weights contains NaN in data row 101"),
        ("event", None, ["--event", "event"], "the event of data row 101 of y"),
    ):
        spoiled = texts.astype({"event": float}).set_index(np.arange(N) + 7)
        spoiled.loc[107, column] = value
        message = refused("fit", written(spoiled, kind), *FIT, "--drop-missing-target", *options)
        assert told in message
    passed("fit", written(texts.loc[10:, ["size", "price"]].astype(float)), *FIT)
    texts.loc[100, "size"] = "oops"
    table = written(texts, kind)
    done = refused("evaluate", "model", table, "--drop-missing-target", "--target=price")
    assert "('oops' in data row 101)" in done


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            [f"EUR {k}.10" for k in range(N)],
            "all values are numbers with units, such as 'EUR 0.10'",
        ),
        ([f"{k}.5" if k % 3 else f"({k})" for k in range(N)], "numbers with marks, such as '(0)'"),
        ([f"{k // 60}:{k % 60:02d}" for k in range(N)], "all values are times, such as '0:00'"),
        ([f"{k},5" for k in range(N)], "; read it with --thousands or --decimal, or name it in"),
        ([str(k) if k % 5 > 2 else "--" for k in range(N)], "except for 240 of its 400 values"),
    ],
)
def test_notes_are_the_warnings_of_the_library(frame, texts, told):
    table = written(frame.assign(size=texts))
    note = passed("fit", table, *FIT).stderr
    assert told in note
    assert "or name it in --set categorical_features." in note
    assert "pandas" not in note


SPELLINGS = {
    "units": lambda x: f"{'-' * (x < 0)}${abs(x):.2f}",
    "marks": lambda x: f"({-x:.2f})" if x < 0 else f"{x:.2f}",
    "separators": lambda x: f"{10_000 + 1000 * x:,.0f}",
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_numbers_as_text_are_no_classes(frame, kind):
    texts = frame.assign(price=frame["price"].map(SPELLINGS[kind]))
    ways = [(written(texts), []), (written(texts, "parquet"), ["--stream"])]
    ways += [("table.csv", ["--task", "classification"])] if kind == "separators" else []
    for table, options in ways:
        message = refused("fit", table, *FIT, *options)
        assert f"target 'price' is text of numbers with {kind}" in message
    message = refused("fit", "table.csv", *FIT, "--task", "regression")
    assert "the target contains text or other objects" in message


@pytest.mark.parametrize(("kind", "options"), [("csv", []), ("parquet", ["--stream"])])
def test_a_target_of_names_requires_the_task(frame, kind, options):
    names = [f"item {chr(97 + k)}" for k in range(26)] + list("pqrst")
    table = written(frame[:60].assign(price=(names * 2)[:60]), kind)
    message = refused("fit", table, *FIT, *options)
    assert "target 'price' is text with 31 different values in 60 rows ('item a' in d" in message
    assert "or add --task classification if these are classes." in message
    passed("fit", table, *FIT, *options, "--task", "classification")
    passed("fit", written(frame[:60].assign(price=names[1:] * 2), kind), *FIT, *options)

"""Columns of numbers in which a few words are missing values that nobody declared."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import passed, run

from hilboost.cli.dialect import Dialect
from hilboost.cli.number_text import numbers_as_text, read_as_told
from hilboost.tables.number_text import form_of

N = 400


@pytest.fixture
def frame(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=N), "town": rng.choice(["Ghent", "Mons"], N)})
    return frame.assign(price=100.0 * frame["size"] + rng.normal(size=N))


def fit(table, *options, out="model"):
    given = "--target", "price", "--out", out, "--n-estimators", 3, "--set", "learner=tree"
    return run("fit", table, *given, *options)


def written(frame, kind, name="table"):
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


def without(frame, n_words, column="size"):
    values = frame[column].astype(str).astype(float)
    values[7 : 7 + n_words] = np.nan
    return frame.assign(**{column: values})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_few_words_are_an_error_with_a_remedy(frame, kind):
    table = written(with_words(frame, ["oops", "lost", "oops"]), kind)
    refused = fit(table)
    refused_in_fit = refused.stderr
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == (
        "error: Column 'size' is text because 3 of its 400 values ('oops' in data row 8) are not "
        'numbers; read the text as missing with --missing "oops" --missing "lost" or --coerce, or '
        "name it in --set categorical_features."
    )
    assert fit(written(without(frame, 3), kind, "known"), out="known").exit_code == 0
    expected = run("predict", "known", f"known.{kind}").stdout
    for options in (["--missing", "oops", "--missing", "lost"], ["--coerce"]):
        fitted = fit(table, *options)
        assert fitted.exit_code == 0, fitted.stderr
        assert run("predict", "model", f"known.{kind}").stdout == expected
        assert run("predict", "model", table, *options).stdout == expected
        passed("evaluate", "model", table, *options, "--metric", "r2")
        held = fit(f"known.{kind}", "--valid", table, *options, out="other")
        assert held.exit_code == 0, held.stderr
    passed("report", "model", table, "--coerce", "--out", "report.html")
    assert "reading 3 of the 400 values of 'size' as missing, such as 'oops'" in fitted.stderr
    refused = run("predict", "model", table)
    assert 'missing with --missing "oops" --missing "lost" or --coerce' in refused.stderr
    assert fit(table, "--set", 'categorical_features=["size"]').exit_code == 0
    assert fit(table, "--set", 'categorical_features=["town"]').stderr == refused_in_fit


def test_words_among_the_numbers_of_the_target(frame):
    table = written(with_words(frame, ["oops"], "price"), "csv")
    refused = fit(table)
    assert refused.exit_code == 1
    assert "The target 'price' is text because 1 of its 400 values ('oops'" in refused.stderr
    assert "or add --task classification" in refused.stderr
    fitted = fit(table, "--missing", "oops", "--drop-missing-target")
    assert "dropped 1 of 400 rows" in fitted.stderr
    assert "regression, because" in fitted.stderr


def test_options_of_a_file(frame, tmp_path):
    table = written(with_words(frame, ["oops"]), "csv")
    given = f'table = "{table}"\ntarget = "price"\nout = "model"\nn-estimators = 2\n'
    for option in ('missing = "oops"', "coerce = true"):
        (tmp_path / "fit.toml").write_text(given + option)
        passed("fit", "--config", "fit.toml")


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
        assert "is treated as categorical because" in done.stderr


def test_the_remedy_names_up_to_three_words(frame):
    for words, remedy in (
        (
            ["lost", "oops", "gone"],
            '--missing "lost" --missing "oops" --missing "gone" or --coerce',
        ),
        (["a", "b", "b"], '--missing "a" --missing "b" or --coerce'),
    ):
        assert (
            f"missing with {remedy}, or name it"
            in fit(written(with_words(frame, words), "csv")).stderr
        )
    assert fit(written(frame, "csv")).exit_code == 0
    table = written(with_words(frame, list("abcd")), "csv", "new")
    told = run("predict", "model", table).stderr
    assert 'missing with --missing "a" --missing "b" --missing "c" …, or --coerce.' in told


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_are_those_of_the_file(frame, kind):
    """Rows without a target, which are dropped, count as well; the index of a table does not."""
    texts = frame.assign(size=frame["size"].astype(str), start="1", event="1")
    texts["area"] = [f"{k} km" for k in range(N)]
    texts.loc[:9, "price"] = np.nan
    for column, value, options, told in (
        ("size", "oops", [], "1 of its 390 values ('oops' in data row 101)"),
        (
            "area",
            "unknown",
            ["--coerce"],
            "1 of its 390 values ('unknown' in data row 101) are not numbers",
        ),
        ("start", None, ["--offset", "start"], "is empty in data row 101"),
        ("start", "2a", ["--offset", "start"], "data row 101 contains '2a'"),
        ("event", None, ["--event", "event"], "is empty in data row 101"),
    ):
        spoiled = texts.set_index(np.arange(N) + 7)
        spoiled.loc[107, column] = value
        done = fit(written(spoiled, kind), "--drop-missing-target", *options)
        assert told in done.stderr
    numbers = texts.loc[10:, ["size", "price"]].astype(float)
    assert fit(written(numbers, "csv")).exit_code == 0
    texts.loc[100, "size"] = "oops"
    done = run("evaluate", "model", written(texts, kind), "--drop-missing-target", "--target=price")
    assert "('oops' in data row 101)" in done.stderr


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([f"EUR {k}.10" for k in range(N)], "its numbers have units ('EUR 0.10' in data row 1)"),
        ([f"{k}.5" if k % 3 else f"({k})" for k in range(N)], "have marks ('(0)' in data row 1)"),
        ([f"<{k}" if k % 9 == 1 else str(k) for k in range(N)], "have marks ('<1' in data row 2)"),
        ([f"{k // 60}:{k % 60:02d}" for k in range(N)], "values are times ('0:00' in data row 1)"),
        ([str(k) if k % 5 > 2 else "--" for k in range(N)], "240 of its 400 values ('--' in"),
    ],
)
def test_notes_agree_with_warnings_in_python(texts, told):
    assert form_of((text, 1) for text in texts) is not None
    ((name, sentence),) = numbers_as_text(pd.DataFrame({"size": texts}))
    assert name == "size"
    assert told in sentence


def test_placeholders_in_most_rows_are_read_as_missing():
    frame = pd.DataFrame({"size": [str(k) if k % 5 > 2 else "--" for k in range(N)]})
    read = read_as_told(frame, (), Dialect(coerce=True))["size"]
    assert read.isna().sum() == 240
    assert read[398] == 398


SPELLINGS = {
    "-$5.10": lambda x: f"{'-' * (x < 0)}${abs(x):.2f}",
    "$-5.10": lambda x: f"${x:.2f}",
    "($5.10)": lambda x: f"(${-x:.2f})" if x < 0 else f"${x:.2f}",
    "(5.10)": lambda x: f"({-x:.2f})" if x < 0 else f"{x:.2f}",
    "5.10-": lambda x: f"{abs(x):.2f}{'-' * (x < 0)}",
    "−5.10": lambda x: f"{x:.2f}".replace("-", "−"),
    "- 5.10": lambda x: f"{x:.2f}".replace("-", "- "),
    "1.2M": lambda x: f"{x:.2f}{'M' if x > 0 else 'k'}",
    "$7.0K": lambda x: f"${abs(x):.2f}{'M' if x > 0 else 'K'}",
    "US$7.03": lambda x: f"{'-' * (x < 0)}US${abs(x):.2f}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_numbers_as_text_are_no_classes(frame, spelling):
    texts = frame.assign(price=frame["price"].map(SPELLINGS[spelling]))
    ways = [(written(texts, "csv"), []), ("table.csv", ["--task", "regression"])]
    if spelling == "-$5.10":
        ways += [(written(texts, "parquet"), []), ("table.parquet", ["--stream"])]
    for table, options in ways:
        refused = fit(table, *options)
        assert refused.exit_code == 1
        said = "unit" if SPELLINGS[spelling](1.0)[-1] in "MK" or "$" in spelling else "mark"
        assert said in refused.stderr.splitlines()[-1], refused.stderr
        assert "--missing" not in refused.stderr
    as_feature = texts.assign(size=texts["price"], price=frame["price"])
    told = fit(written(as_feature, "csv"))
    assert told.exit_code == 0
    assert "column 'size' is treated as categorical because its numbers have" in told.stderr


@pytest.mark.parametrize(("kind", "options"), [("csv", []), ("parquet", ["--stream"])])
def test_a_target_of_names_requires_the_task(frame, kind, options):
    names = [f"item {chr(97 + k)}" for k in range(26)] + list("pqrst")
    table = written(frame[:60].assign(price=(names * 2)[:60]), kind)
    refused = fit(table, *options)
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == (
        "error: The target 'price' is text with 31 different values in 60 rows; choose another "
        "target, convert it to numbers, or add --task classification if these are classes."
    )
    assert fit(table, *options, "--task", "classification").exit_code == 0
    halves = written(frame[:60].assign(price=names[1:] * 2), kind)
    assert fit(halves, *options).exit_code == 0

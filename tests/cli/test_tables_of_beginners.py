"""Tables as beginners have them: other separators and formats, numbers that came as text."""

import gzip
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import passed, run

import hilboost
from hilboost import BoostingRegressor
from hilboost.cli.dates import date_columns, expanded
from hilboost.model.summary import summary

N = 80


@pytest.fixture
def frame(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.integers(1, 60, N), "town": rng.choice(["Ghent", "Mons"], N)})
    frame["price"] = 100.0 * frame["size"] + rng.normal(size=N)
    frame.to_csv("good.csv", index=False)
    return frame


TREES = ("--n-estimators", 3, "--set", "learner=tree")


def fit(table, *options, out="model"):
    return run("fit", table, "--target", "price", "--out", out, *TREES, *options)


def notes(result):
    """All notes but those on the task, and on tables that are validated on themselves."""
    assert result.exit_code == 0, result.output
    known = "note: regression", "note: 100% of the 80 rows of the validation data"
    return [line for line in result.stderr.splitlines() if not line.startswith(known)]


# Forms of CSV files


@pytest.mark.parametrize(("mark", "named"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_other_separators_are_detected(frame, mark, named):
    frame.to_csv("other.csv", index=False, sep=mark)
    fitted = fit("other.csv")
    assert notes(fitted) == [
        f"note: reading 'other.csv' as fields separated by {named} "
        "(see --sep, --decimal, --encoding)."
    ]
    fit("good.csv", out="same")
    assert run("predict", "model", "other.csv").stdout == run("predict", "same", "good.csv").stdout
    assert not notes(fit("other.csv", "--sep", mark, out="given"))


def test_decimal_commas_are_detected(frame):
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",")
    assert "separated by ';', with decimal commas" in notes(fit("comma.csv"))[0]
    for table in ("comma.csv", "good.csv"):
        scored = run("evaluate", "model", table, "--target", "price", "--json")
        assert '"rows": 80' in scored.stdout
    assert not notes(fit("comma.csv", "--sep", ";", "--decimal", ",", out="given"))
    assert run("predict", "given", "good.csv").stdout == run("predict", "model", "comma.csv").stdout


@pytest.mark.slow
def test_encodings(frame):
    frame["town"] = frame["town"].replace("Mons", "Liège")
    for name in ("cp1252", "utf-8", "utf-8-sig", "utf-16"):
        frame.to_csv(f"{name}.csv", index=False, encoding=name)
    assert "in the encoding cp1252, because it is not UTF-8" in notes(fit("cp1252.csv"))[0]
    assert not notes(fit("utf-8.csv", out="same"))
    for name in ("utf-8", "utf-8-sig"):
        predicted = run("predict", "model", f"{name}.csv")
        assert predicted.stdout == run("predict", "same", "cp1252.csv").stdout
    assert not notes(fit("utf-16.csv", "--encoding", "utf-16", out="given"))
    refused = fit("cp1252.csv", "--encoding", "utf-8", out="none")
    assert "'cp1252.csv' is not text in the encoding utf-8; choose it with" in refused.stderr
    passed("report", "model", "cp1252.csv", "--target", "price", "--out", "report.html")


def test_columns_without_a_name_are_ignored(frame):
    frame.set_index(frame["size"] % 7).to_csv("index.csv", index_label="")
    told = "note: ignoring column 1, which has no name; name it if it is a feature."
    assert notes(fit("index.csv")) == [told]
    fit("good.csv", out="same")
    assert run("predict", "model", "index.csv").stdout == run("predict", "same", "good.csv").stdout


# Targets


def test_rows_without_target(frame):
    frame.loc[[3, 5], "price"] = np.nan
    frame.to_csv("holes.csv", index=False)
    refused = fit("holes.csv")
    assert refused.exit_code == 1
    assert "drop these rows with --drop-missing-target" in refused.stderr
    told = notes(fit("holes.csv", "--drop-missing-target"))
    assert told == ["note: dropped 2 of 80 rows, which have no target."]


def test_a_target_with_decimal_commas_is_refused(frame):
    frame["price"] = frame["price"].map(lambda x: f"{x:.2f}".replace(".", ","))
    frame.to_csv("text.csv", index=False)
    assert "'price' is text of numbers with separators" in fit("text.csv").stderr
    assert not notes(fit("text.csv", "--decimal", ","))


GROUPED = {"comma": (",", "."), "dot": (".", ","), "space": (" ", ","), "apostrophe": ("'", ".")}


@pytest.mark.parametrize(("mark", "kind"), [*product(GROUPED, ["csv"]), ("comma", "parquet")])
def test_thousands_separators(frame, mark, kind):
    """Dates with dots remain dates, and text remains text."""
    thousands, decimal = GROUPED[mark]
    frame[["size", "price"]] *= 100.0
    frame = frame.assign(day="01.02.2024", town=frame["town"].replace("Mons", "1,234 Mons"))
    swap = str.maketrans(",.", thousands + decimal)
    written = frame.assign(
        size=[f"{value:,.1f}".translate(swap) for value in frame["size"]],
        price=[f"{value:,.2f}".translate(swap) for value in frame["price"]],
    )
    for name, table in (("plain", frame.round({"size": 1, "price": 2})), ("grouped", written)):
        if kind == "csv":
            table.to_csv(f"{name}.csv", index=False)
        else:
            table.to_parquet(f"{name}.parquet")
    fitted = notes(fit(f"plain.{kind}", "--valid", f"plain.{kind}", out="plain"))
    options = "--thousands", thousands
    assert fitted[0] == notes(fit(f"grouped.{kind}", *options, "--valid", f"grouped.{kind}"))[-1]
    expected = run("predict", "plain", f"plain.{kind}").stdout
    assert expected
    assert run("predict", "model", f"plain.{kind}").stdout == expected
    assert run("predict", "model", f"grouped.{kind}", *options).stdout == expected
    wanted = passed("evaluate", "plain", f"plain.{kind}", "--target", "price", "--json")
    options = *options, "--target", "price"
    scored = run("evaluate", "model", f"grouped.{kind}", *options, "--json")
    assert scored.stdout == wanted.stdout.replace('"plain"', '"model"')
    if mark == "comma":
        passed("report", "model", f"grouped.{kind}", *options, "--out", "report.html")


def test_numbers_with_commas_have_a_remedy(frame):
    """In a feature, in a target, and where the model expects numbers."""
    frame.astype({"size": str}).assign(size="6,471").to_csv("new.csv", index=False)
    (told,) = notes(fit("new.csv"))
    assert "; read it with --thousands or --decimal, or name it in --set categorical_feat" in told
    fit("good.csv")
    refused = run("predict", "model", "new.csv")
    assert "now ('6,471' in data row 1); read it with --missing, --coerce, --th" in refused.stderr
    assert run("predict", "model", "new.csv", "--thousands", ",").exit_code == 0
    frame.assign(price="8,351.11").to_csv("target.csv", index=False)
    refused = fit("target.csv", "--task", "regression")
    assert "but must contain numbers; pass --thousands or --decimal." in refused.stderr


def test_very_many_classes_are_told(frame):
    frame["price"] = [f"class {i // 2 if i < 60 else 0}" for i in range(N)]
    frame.loc[:50, "price"] = [f"own {i}" for i in range(51)]
    frame.to_csv("many.csv", index=False)
    told = notes(fit("many.csv", "--task", "classification"))
    assert any("classes in 80 rows, which takes long" in line for line in told)


# Dates


def test_columns_of_dates():
    dates = pd.DataFrame(
        {
            "iso": ["2024-02-29", None, "2023-12-31"],
            "time": ["2024-02-29T06:30", "2024-01-01 00:00", "2023-12-31 12:00"],
            "stamp": pd.to_datetime(["2024-02-29", "2024-01-01", "2023-12-31"]),
            "word": ["a-b-c", "2024-01-01", "1"],
            "number": [20240229, 20240101, 20231232],
        }
    )
    assert date_columns(dates) == ["iso", "time", "stamp"]
    found = expanded(dates, ["iso", "time", "stamp"])
    assert found["iso: days"].tolist()[0] == 19782
    assert np.isnan(found["iso: month"][1])
    assert found["time: hour"].tolist() == [6.5, 0, 12]
    assert found["stamp: weekday"].tolist() == [3, 0, 6]
    assert [name for name in found if ":" not in name] == ["word", "number"]


@pytest.mark.parametrize(
    ("texts", "order", "months"),
    [
        (["01.09.2023", "05.04.2021 10:30"], None, [9, 4]),  # dots: the day comes first
        (["13/04/2021", "05/09/2021"], None, [4, 9]),  # the values show it
        (["05/09/2021", "04/13/2021"], None, [5, 4]),
        (["05/09/2021", "04/08/2021"], "dmy", [9, 8]),
        (["05/09/2021", "04/08/2021"], "mdy", [5, 4]),
        (["05-Apr-2021", "2021-09-01", "2021-10"], None, [4, 9, 10]),
        (["2021-09-01", "13/04/2021"], None, [9, 4]),
        (["2021/05/09", "2021/13/04"], None, None),
        (["13/04/2021", "04/13/2021"], None, None),
        (["1.2.3", "10.0.1"], None, None),
    ],
)
def test_orders_of_dates(texts, order, months):
    frame = pd.DataFrame({"day": texts})
    if months is None:
        assert not date_columns(frame)
    else:
        assert date_columns(frame) == ["day"]
        assert expanded(frame, ["day"], order)["day: month"].tolist() == months


def test_dates_whose_order_is_not_clear(frame):
    day = pd.date_range("2024-01-01", periods=N, freq="D")
    frame["price"] = day.month + 0.5
    frame.assign(day=day.strftime("%d/%m/%Y")).to_csv("dates.csv", index=False)
    assert fit("dates.csv", "--dates", "expand").exit_code == 0
    start = frame.assign(day="05/04/2024").drop(columns="price")
    start.loc[3, "day"] = "unknown"
    start.to_csv("new.csv", index=False)
    assert (
        "such as 05/04/2024, may have the day or the month"
        in run("predict", "model", "new.csv").stderr
    )
    known = run("predict", "model", "new.csv", "--date-order", "dmy")
    assert "1 value of 'day', such as 'unknown', are no dates" in known.stderr
    text = start.assign(day="2024-04-05")
    text.loc[3, "day"] = ""
    text.to_csv("iso.csv", index=False)
    assert known.stdout == run("predict", "model", "iso.csv").stdout
    assert "no column contains dates" in fit("good.csv", "--dates", "expand", out="same").stderr
    frame.loc[40, "price"] = np.nan
    frame.assign(day="13/04/2024").to_csv("gap.csv", index=False)
    frame.assign(day=["13/04/2024", "04/13/2024"] * 40).to_csv("both.csv", index=False)
    assert "or drop these rows with --drop-m" in run("evaluate", "model", "gap.csv").stderr
    scored = run("evaluate", "model", "gap.csv", "--drop-missing-target", "--metric", "mae")
    assert "dropped 1 of 80 rows" in scored.stderr
    assert scored.exit_code == 0
    both = run("evaluate", "model", "both.csv", "--drop-missing-target")
    assert "with the day first and dates with the month first" in both.stderr


# Warnings and help


@pytest.mark.filterwarnings("default")
def test_warnings_are_notes_without_paths(frame, monkeypatch):
    def warn(*_, **__):
        warnings.warn("something\nodd", RuntimeWarning, stacklevel=1)
        raise ValueError("stop")

    monkeypatch.setattr(BoostingRegressor, "fit", warn)
    result = fit("good.csv")
    assert "note: something odd\n" in result.stderr
    assert ".py" not in result.stderr


def test_help_keeps_text_in_square_brackets():
    assert "table [set]" in " ".join(run("fit", "--help", env={"COLUMNS": "300"}).stdout.split())


def test_compressed_tables_are_known_by_their_first_bytes(frame, tmp_path):
    assert fit("good.csv").exit_code == 0
    packed = gzip.compress((tmp_path / "good.csv").read_bytes())
    (tmp_path / "packed.csv").write_bytes(packed)
    expected = run("predict", "model", "good.csv").stdout
    assert run("predict", "model", "packed.csv").stdout == expected
    assert run("predict", "model", "-", input=packed).stdout == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_read_once(frame, tmp_path):
    assert fit("good.csv").exit_code == 0
    expected = run("predict", "model", "good.csv").stdout
    content = (tmp_path / "good.csv").read_bytes()
    os.mkfifo("pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert run("predict", "model", "pipe").stdout == expected
    writer.join(timeout=10)


@pytest.mark.parametrize("word", ["unknown", "n.a."])
def test_words_among_dates(frame, word):
    texts = pd.date_range("2021-12-01", periods=N).strftime("%Y-%m-%d").tolist()
    texts[5] = word
    frame.assign(day=texts).to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv"))
    assert f"contains dates except for 1 of its 80 values ('{word}' in data row 6)" in told
    assert "use --dates expand, and --missing for other words" in told
    assert "ignoring 'day', which contains dates" in notes(fit("train.csv", "--missing", word))[0]


@pytest.mark.parametrize("decimals", [2, 1])
def test_dots_between_thousands_are_detected(frame, decimals):
    """Where commas are decimal marks; and what is read so is told."""
    swap = str.maketrans(",.", ".,")
    frame[["size", "price"]] *= 100.0
    frame.assign(
        size=[f"{value:,.0f}".translate(swap) for value in frame["size"]],
        price=[f"{value:,.{decimals}f}".translate(swap) for value in frame["price"]],
    ).to_csv("german.csv", index=False, sep=";")
    frame.round({"size": 0, "price": decimals}).to_csv("plain.csv", index=False)
    (told,) = notes(fit("german.csv", out="german"))
    assert "with decimal commas, with dots between thousands (see --sep, --decimal, --th" in told
    fit("plain.csv")
    expected = run("predict", "model", "plain.csv").stdout
    assert run("predict", "german", "german.csv").stdout == expected


def test_marks_that_may_separate_thousands_are_told(frame):
    frame["price"] = frame["price"].astype(int)
    sizes = [950, *range(1000, 1000 + len(frame) - 1)]
    for mark, options in ((".", ()), (",", ("--decimal", ","))):
        texts = [f"{size:,}".replace(",", mark) for size in sizes]
        frame.assign(size=texts).to_csv("train.csv", index=False)
        told = notes(fit("train.csv", *options))
        expected = f"'1{mark}000' in column 'size' is read as 1; pass --thousands {mark} if it"
        assert f"note: {expected} means 1000." in told
        assert not notes(fit("train.csv", "--thousands", mark))
    frame.assign(size=[1.5, *(size / 1000 for size in sizes[1:])]).to_csv("train.csv", index=False)
    assert not notes(fit("train.csv"))


@pytest.mark.parametrize("options", [(), ("--decimal", ",")])
def test_words_among_numbers_of_another_locale(frame, options):
    """The remedy is about the words; numbers are read by what is detected or given."""
    swap = str.maketrans(",.", ".,")
    frame[["size", "price"]] *= 100.0
    german = frame.assign(
        size=[f"{value:,.0f}".translate(swap) for value in frame["size"]],
        price=[f"{value:,.2f}".translate(swap) for value in frame["price"]],
    )
    german.to_csv("german.csv", index=False, sep=";")
    assert fit("german.csv", *options).exit_code == 0
    expected = run("predict", "model", "german.csv", *options).stdout
    german.loc[4, "size"] = "unknown"
    german.to_csv("words.csv", index=False, sep=";")
    told = notes(fit("words.csv", *options, out="other"))[-1]
    assert "'size' is numeric except for 1 of its 80 values ('unknown' in data row 5)" in told
    refused = run("predict", "model", "words.csv", *options)
    assert "('unknown' in data row 5); read it with --missing, --coerce" in refused.stderr
    found = run("predict", "model", "words.csv", *options, "--missing", "unknown").stdout
    assert found.splitlines()[:5] == expected.splitlines()[:5]
    german.loc[4, ["size", "price"]] = "1.000", "unknown"
    german.to_csv("target.csv", index=False, sep=";")
    refused = fit("target.csv", *options, "--task", "regression")
    assert "('unknown' in data row 5), but must contain numbers; read text" in refused.stderr
    assert "is text of numbers with 80 different values" in fit("target.csv", *options).stderr


def test_dots_alone_are_told(frame):
    """A model of numbers in the thousands may be given a file in which only dots are left."""
    fit("good.csv")
    rows = "size;town\n8.500;Ghent\n"
    Path("new.csv").write_text(rows)
    told = notes(run("predict", "model", "new.csv"))
    expected = "'8.500' in column 'size' is read as 8.5; pass --thousands . if it means 8500."
    assert any(expected in one for one in told)
    Path("new.csv").write_text(rows + "12.5;Mons\n")
    assert not any("is read as" in one for one in notes(run("predict", "model", "new.csv")))


def test_predictions_in_parquet_and_to_standard_output(frame):
    fit("good.csv")
    expected = run("predict", "model", "good.csv").stdout
    assert run("predict", "model", "good.csv", "--out", "-").stdout == expected
    assert run("predict", "model", "good.csv", "--out", "found.parquet").exit_code == 0
    assert pd.read_parquet("found.parquet").to_csv(index=False) == expected


def test_numbers_with_separators_are_not_read_as_missing(frame):
    texts = [f"{size:,}" for size in range(960, 960 + len(frame))]
    frame.assign(size=[*texts[:-1], "oops"]).to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv", "--coerce", "--thousands", ","))
    assert "reading 1 of the 80 values of 'size' as missing, such as 'oops' in data row 80." in told
    frame.assign(size=[*texts[:50], "oops", *texts[:29]]).to_csv("train.csv", index=False)
    refused = fit("train.csv", "--coerce")
    assert refused.exit_code == 1
    told = "--coerce would read numbers such as '1,000' in data row 41 of column 'size' as missing"
    assert told in refused.stderr


def test_an_unknown_metric_loses_no_model(frame):
    refused = fit("good.csv", "--valid", "good.csv", "--metric", "rsme")
    assert "--metric='rsme' is not known" in refused.stderr
    assert run("predict", "model", "good.csv").exit_code == 0


def test_numbers_that_are_text(frame):
    """In Parquet files: --coerce reads them, but not codes."""
    codes = [f"{k:03d}" for k in range(len(frame))]
    frame.assign(size=frame["size"].astype(str), code=codes).to_parquet("text.parquet")
    told = notes(fit("text.parquet"))[0]
    assert "'size' is text in which all values are numbers, so that" in told
    assert "; read it with --coerce, or name it in --set categorical_features." in told
    assert not any("'size'" in one for one in notes(fit("text.parquet", "--coerce")))
    frame.assign(price=frame["price"].astype(str)).to_parquet("target.parquet")
    assert "The target 'price' is text of numbers" in fit("target.parquet").stderr
    assert "regression, because" in fit("target.parquet", "--coerce").stderr


def test_nothing_is_told_of_other_columns(frame):
    frame["code"] = np.where(frame.index % 8 == 0, "12", frame["town"])
    frame["open"] = np.where(frame.index % 3 == 0, "true", "false")
    frame.loc[::7, ["code", "open"]] = None
    frame.to_csv("train.csv", index=False)
    assert notes(fit("train.csv")) == []


def test_warnings_about_the_data_are_notes(frame):
    frame["id"] = [f"h{number}" for number in range(N)]
    frame.to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv"))
    assert told.startswith("note: column 'id' is text with a different value in each of 80 rows.")


def test_columns_without_any_known_level_are_told(frame):
    assert fit("good.csv").exit_code == 0
    frame["town"] = np.arange(N)
    frame.to_csv("new.csv", index=False)
    result = passed("predict", "model", "new.csv")
    assert "no value of column 'town' occurred in fit" in result.stderr
    assert "now contains '0'" in result.stderr
    frame["town"] = ["unknown", *["Mons"] * (N - 1)]
    frame.to_csv("new.csv", index=False)
    assert "unknown" not in run("predict", "model", "new.csv").stderr
    frame.loc[: N // 10, "town"] = "unknown"
    frame.to_csv("new.csv", index=False)
    for command in (["predict"], ["evaluate", "--target", "price"]):
        note = run(command[0], "model", "new.csv", *command[1:]).stderr
        assert "'unknown' in column 'town' did not occur in fit" in note
        assert "add --missing 'unknown'" in note


def test_the_same_command_gives_the_same_model(frame):
    found = []
    for options in [], [], ["--set", "random_state=1"]:
        assert fit("good.csv", "--set", "subsample=0.5", *options).exit_code == 0
        found.append(run("predict", "model", "good.csv").stdout)
    assert found[0] == found[1] != found[2]


def test_the_last_line_of_a_fit_says_what_the_model_is(frame):
    said = fit("good.csv").stdout
    assert "Fitted on 80 rows" in said
    assert ", half the mean squared error): " in said
    assert f"): {summary(hilboost.load('model').fitted_)}. Saved the model" in said


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ((), r"note: .* exclude the column with --ignore, or convert it to numbers\.$"),
        (
            ("--set", "eval_metric=rmse", "--set", "early_stopping=false"),
            "; add --valid TABLE, pass --set early_stopping=true, or pass --set eval_metric=none",
        ),
        (
            ("--set", "learner=kernel", "--set", "monotonic_cst=[1,0,0,0]"),
            "pass --set learner=tree, or --set monotonic_cst=none",
        ),
        (
            ("--weights", "uneven"),
            "--weights is so uneven that .* or pass --set min_samples_leaf=VALUE",
        ),
    ],
)
def test_remedies_of_the_library_are_options(options, remedy, frame):
    uneven = np.where(np.arange(len(frame)) == 0, 1e4, 0.5)
    names = [f"customer {k}" for k in range(len(frame))]
    frame.assign(id=names, uneven=uneven).to_csv("t.csv", index=False)
    fast = ("--n-estimators", 2, "--out", "model")
    done = run("fit", "t.csv", "--target", "price", *fast, *options)
    assert re.search(remedy, done.stderr, re.MULTILINE), done.stderr


# Codes, names, rows, and interrupts


def test_leading_zeros_are_told(frame):
    frame["zip"] = [f"{k % 9:05d}" if k % 7 else "" for k in range(N)]
    frame["flag"], frame["share"] = "0", "0.5"
    frame.to_csv("codes.csv", index=False)
    assert notes(fit("codes.csv")) == [
        "note: reading '00001' in data row 2 of 'zip' as the number 1; if these are codes, fit "
        "with --set categorical_features=['zip']."
    ]
    named = fit("codes.csv", "--set", "categorical_features=['zip']", out="coded")
    predicted = run("predict", "coded", "codes.csv")
    for result in named, predicted, fit("codes.csv", "--ignore", "zip"):
        assert result.exit_code == 0, result.stderr
        assert "codes" not in result.stderr.replace("codes.csv", "")
    assert len(hilboost.load("coded").fitted_.schema.columns[2].levels) == 9


def test_codes_that_mean_missing_values_are_no_numbers(frame):
    frame["zip"] = [f"{k % 9:05d}" if k % 7 else "00000" for k in range(N)]
    frame.to_csv("codes.csv", index=False)
    (note,) = notes(fit("codes.csv", "--missing", "00000"))
    assert note.startswith("note: reading '00001' in data row 2 of 'zip' as the number 1; if")


def test_rows_may_end_with_a_separator(frame):
    header, *rows = frame.to_csv(index=False).splitlines()
    Path("rows.csv").write_text("\n".join([header, *(f"{row}," for row in rows)]))
    frame.to_csv("table.csv", index=False)
    assert fit("rows.csv").exit_code == fit("table.csv", out="same").exit_code == 0
    assert Path("model").read_bytes() == Path("same").read_bytes()


def test_names_with_spaces_at_the_ends_are_told(frame):
    frame.rename(columns={"town": " town ", "size": "the size"}).to_csv("padded.csv", index=False)
    assert notes(fit("padded.csv")) == [
        "note: the names ' town ' begin or end with spaces, which are part of them."
    ]


def test_rows_count_from_one(frame):
    weights = [1.0, 2.0, np.inf] + [1.0] * (N - 3)
    frame.assign(w=weights).to_csv("weights.csv", index=False)
    refused = fit("weights.csv", "--weights", "w")
    assert "error: --weights contains infinity in data row 3; use finite" in refused.stderr
    frame.assign(price=[1.0, 0.0] + [1.0] * (N - 2)).to_csv("zero.csv", index=False)
    refused = fit("zero.csv", "--loss", "gamma", "--task", "regression")
    assert "requires positive targets; data row 2 has 0" in refused.stderr


@pytest.mark.slow
def test_an_interrupted_fit_says_that_no_model_is_saved(frame):
    command = [
        sys.executable,
        *["-m", "hilboost", "fit", "good.csv", "--target", "price", "--out", "model"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(hilboost.__file__).parent.parent)}
    with subprocess.Popen(
        [*command, "--set", "learner=tree", "--n-estimators", "10000000"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # A shell starts programs in the background with SIGINT ignored, which they inherit.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()  # the task: the fit is about to start
        process.send_signal(signal.SIGINT)
        try:
            said += process.communicate(timeout=120)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert "error: interrupted; an incomplete model or file is not saved." in said
    assert not Path("model").exists()

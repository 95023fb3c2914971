"""What commands refuse, with one line on standard error that says what to do."""

import gzip
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import passed, run

N = 60


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table as CSV and Parquet, models of its price, ranks and times, and a text file."""
    folder = tmp_path_factory.mktemp("tables")
    rng, k = np.random.default_rng(0), np.arange(N)
    frame = pd.DataFrame(rng.normal(size=(N, 3)).round(3), columns=["a", "b", "price"])
    frame = frame.assign(kind=np.where(k % 3, "great", "small"), grade=k % 4, query=k // 6)
    frame = frame.assign(hours=1 + k / 7, failed=k % 2, gap=np.where(k == 3, np.nan, 1), seven=7)
    frame = frame.assign(day="soon", claims=k % 5, names=[f"item {one}" for one in k])
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    (folder / "empty").touch()
    few = "--ignore names --n-estimators 2 --set learner=tree --set early_stopping=false"
    for target, option in (
        ("price", ""),
        ("grade", "--group query"),
        ("hours", "--event failed"),
        ("kind", "--loss hinge"),
    ):
        words = f"fit {folder}/t.csv --target {target} {option} {few} --out {folder}/{target}"
        passed(*shlex.split(words))
    return folder


@pytest.fixture
def in_tables(tables, monkeypatch):
    monkeypatch.chdir(tables)


def told(words):
    """The exit code, and the only line beside notes."""
    result = run(*shlex.split(words))
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.output
    assert lines[0].startswith("error: ")
    return result.exit_code, lines[0]


DATA = [
    # names of columns
    ("--target Prize", "no column 'Prize' for --target; similar names are 'price'"),
    ("--target Price", "write 'price': names must match exactly."),
    ("--target zzz", "the columns are 'a', 'b', 'price'"),
    ("--target a,pri", "no column 'pri' for --target; similar names are 'price'"),
    ("--target a,a", "names a column twice"),
    ("--target price --ignore kinds", "no column 'kinds' for --ignore; similar names are 'kind'"),
    ("--target hours --event fail", "no column 'fail' for --event"),
    ("--target price --group-rows price", "--target and --group-rows are both 'price'"),
    ("--target price --time query --group-rows query", "are both 'query'"),
    ("--target a --sep ;", "so check --sep"),
    # marks and encodings
    ("--target price --sep ab", "--sep must be a single character; got 'ab'"),
    ("--target price --decimal ''", "--decimal must be a single character"),
    ("--target price --sep , --decimal ,", "--sep and --decimal are both ','"),
    ("--target price --thousands ...", "--thousands must be a single character"),
    ("--target price --thousands x", "--thousands must be a mark, such as a comma; got 'x'"),
    ("--target price --decimal . --thousands .", "--decimal and --thousands are both '.'"),
    ("--target price --encoding klingon", "--encoding klingon is not known; use a name such as"),
    ("--target price --encoding utf-16", "not text in the encoding utf-16"),
    ("--target price --decimal ,", "and no decimal commas; leave out --decimal ,."),
    # losses and parameters
    ("--target price --loss poisson", "poisson loss requires zero or positive"),
    ("--target price --loss hubber", "Did you mean 'huber'"),
    ("--target price --loss log_loss", "but must contain classes. Use a loss of regression"),
    ("--target price --loss cox", "loss='cox' requires --event COLUMN"),
    ("--target price --loss lambdarank", "loss='lambdarank' requires --group COLUMN"),
    ("--target hours --event failed --loss normal", "loss='normal'"),
    ("--target price --n-estimators 0", "n_estimators"),
    ("--target price --time-budget 0", "'time_budget' parameter of BoostingRegressor must be"),
    ("--target price --set max_dept=3", "no parameter 'max_dept'; did you mean 'max_depth'"),
    ("--target price --set reg_lambda=3", "'reg_lambda'; pass --set l2_regularization=VALUE"),
    ("--target price --set max_depth", "--set requires name=value"),
    ("--target price --set tol=1 --set tol=2", "--set sets 'tol' twice"),
    ("--target price --loss huber --set loss=l2", "by its own option and by --set"),
    ("--target price --set max_depth=deep", "'max_depth' parameter"),
    # tasks and what belongs to them
    ("--target kind --task regression", "('small' in data row 1), but must contain numbers; read"),
    ("--target kind --loss huber", "--drop-missing-target, or choose another target or --task."),
    ("--target names", "is text with 60 different values in 60 rows ('item 0' in data row 1)"),
    ("--target hours --event gap", "event of data row 4 of y ('event'), nan, is missing"),
    ("--target hours --event seven", "events of several causes require --loss discrete_hazard"),
    ("--target hours --event query", "events of several causes require --loss discrete_hazard."),
    ("--target hours --event kind", "a column of --event or --target contains text"),
    ("--target hours --event kind", "write 1 where it happened, and 0 in censored rows"),
    ("--target price --threads 0", "--threads 0 has no meaning; leave it out, or use -1 for"),
    ("--target failed --event hours", "events and times of y seem to be exchanged"),
    ("--target failed --event hours --loss discrete_hazard", "seem to be exchanged"),
    ("--target hours --event failed --time a", "BoostingSurvival.fit has no argument 'time'"),
    ("--target price --time day", "numbers or dates, but data row 1 contains 'soon'"),
    ("--target price --time a --group-rows query", "groups and time were both passed"),
    ("--target price --weights gap", "--weights contains NaN in data row 4"),
    ("--target price --weights kind", "--weights must contain numbers; data row 1 has 'small'"),
    ("--target price --offset gap", "--offset must be finite; data row 4 has nan"),
    ("--target price --offset kind", "--offset must contain numbers; data row 1 has 'small'"),
    ("--target price --offset a --family kernel", "Regressor.fit has no argument 'offset'"),
    ("--target claims --offset a", "--offset has one column; remove it, or add --loss poisson"),
    ("--target gap", "missing in 1 of 60 rows (first in data row 4; NA, None"),
]
USAGE = [
    ("--target price --metric mae", "--metric requires validation data; add --valid TABLE."),
    ("--target price -q 0.5", "--quantile requires --loss quantile"),
    ("--target a,b --task classification", "only regression supports"),
    ("--target grade --task ranking", "--task ranking requires --group COLUMN."),
    ("--target price --task regression --group query", "--group requires --task ranking"),
    ("--target hours --event failed --group query", "--group and --event cannot be combined"),
    ("--target grade --group query --group-rows seven", "remove --group-rows"),
    ("--target hours --event failed --family kernel", "--set learner=kernel"),
    ("--target hours --event failed --valid t.csv --metric ibs", "--set eval_metric"),
    ("--target a --target b", "--target was given 2 times; give it once, with several columns"),
    *(
        (f"--target a --{name} a --{name} b", f"--{name} was given 2 times")
        for name in ("weights", "offset", "group")
    ),
]
LARGE = [
    ("--stream --dask tcp://x:1", "exclude each other"),
    ("--stream --family kernel", "--family kernel is not supported"),
    ("--dask tcp://x:1 --time-budget 3", "--time-budget is not supported"),
    ("--stream --group query", "--group is not supported"),
    ("--dask tcp://x:1 --event failed", "--event is not supported"),
    ("--stream --drop-missing-target", "--drop-missing-target is not supported"),
    ("--stream --dates expand", "--dates expand is not supported"),
    ("--stream --missing unknown", "--missing is not supported with --stream"),
    ("--stream --thousands ,", "--thousands is not supported with --stream"),
    ("--dask tcp://x:1 --coerce", "--coerce is not supported with --dask"),
]
OTHERS = [
    (1, "fit t.csv --target price --out nowhere/m", "no folder 'nowhere'"),
    (1, "fit t.csv --target price --out .", "it is a folder"),
    (1, "fit t.csv --target price --out t.csv", "would overwrite an input"),
    (1, "predict t.csv t.csv", "not a hilboost model file"),
    (1, "predict price t.csv --proba", "--proba is not supported by a BoostingRegressor that"),
    (1, "predict grade t.csv --proba", "--proba is not supported by a BoostingRanker that was"),
    (1, "predict kind t.csv --proba", "fitted with loss='hinge'; remove --proba."),
    (1, "predict hours t.csv --coverage 0.9", "--coverage is not supported by a BoostingSurv"),
    (1, "predict price t.csv --coverage 0.9", "fit without --valid to 40 rows or more with"),
    (1, "predict price t.csv --keep ID", "no column 'ID' for --keep"),
    (1, "evaluate price t.csv --target prize", "similar names are 'price'"),
    (1, "evaluate price t.csv --target a", "uses the column 'a' as a feature, so that it cannot"),
    (1, "evaluate price t.csv --target price --metric rmsse", "Did you mean 'rmse'"),
    (1, "evaluate grade t.csv --target grade", "groups of the rows; add --group COLUMN."),
    (1, "evaluate grade t.csv --target grade --group query --metric auc", "metric of classes"),
    (1, "evaluate grade t.csv --target grade --group query --metric ndcg@0", "at least 1, or No"),
    (1, "evaluate hours t.csv --target hours --event a", "causes are numbered from 1 on"),
    (1, "report price t.csv --target price --times 1 --out r", "only supported by survival models"),
    (1, "report price t.csv --target price --out x/r.html", "no folder"),
    (1, "report price t.csv --target price --out price", "would overwrite"),
    (2, "evaluate price t.csv", "ambiguous; specify it with --target"),
    (2, "evaluate price t.csv --target a,b", "predicts 1 target; name their columns"),
    (2, "evaluate price t.csv --target a --target b", "with several columns as FIRST,SECOND"),
    (2, "predict price t.csv --spreadsheet-safe --no-spreadsheet-safe", "was given 2 times"),
    (2, "report price t.csv --target price --versus price --out r", "with different names"),
    (2, "fit --target price --out m", "requires a TABLE"),
    (2, "fit t.csv --out m", "requires --target"),
    (2, "fit t.csv --target price", "requires --out"),
    (2, "fit t.parquet --target a,b --out m --stream", "several columns is not supported with --s"),
    (1, "fit t.csv --target a --out m --stream", "is neither: write it as Parquet, as with pandas"),
    (1, "fit t.csv --target a --out m --dask tcp://x:1", "or remove --dask."),
    (1, "fit t.parquet --target claims --offset a --out m --stream", "has one column; remove it"),
    (1, "fit t.parquet --target gap --out m --stream", "contains NaN in data row 4"),
]
CASES = [
    *((1, f"fit t.csv --out m {words}", message) for words, message in DATA),
    *((2, f"fit t.csv --out m {words}", message) for words, message in USAGE),
    *((2, f"fit t.parquet --out m --target a {words}", message) for words, message in LARGE),
    *OTHERS,
]


@pytest.mark.usefixtures("in_tables")
@pytest.mark.parametrize(("code", "words", "message"), CASES)
def test_refusals(code, words, message):
    found, line = told(words)
    assert message in line
    assert found == code
    assert not Path("m").exists()


CONTENTS = [
    (b"", "is empty"),
    (b"\n\n", "is empty"),
    (b"a,y\n", "has a header but no rows"),
    (b"a,y\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    (b"a,y\n1,2,3\n4,5,6\n", "more fields than its header"),
    (b"a,a,y\n1,2,3\n", "has two columns named 'a'"),
    (b"y\n1\n", "No feature column is left; add one"),
    (b"a,y\n1,2\n3,\n", "is missing in 1 of 2 rows (first in data row 2"),
    (b"gr\x81e,y\n1,2\n", "is not text in the encoding cp1252; choose it with --encoding"),
    (b'[{"a": 1, "y": 2}]', "is JSON; save the table as CSV in UTF-8"),
    (b"PK\x03\x04" + bytes(99), "is an Excel workbook"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1" + bytes(99), "is an Excel workbook"),
    (b"\x28\xb5\x2f\xfd" + bytes(99), "is a Zstandard archive; unpack it"),
    (b"PAR1" + bytes(99), "is a Parquet file"),
    ("y,size".encode("utf-16"), "is UTF-16 text; use --encoding utf-16"),
    (gzip.compress(b"a,y\n1,2\n", mtime=0)[:-9], "is not a complete compressed file"),
]


@pytest.mark.parametrize(("content", "message"), CONTENTS)
def test_files_that_are_no_table(folder, content, message):
    Path("t.csv").write_bytes(content)
    code, line = told("fit t.csv --target y --out model")
    assert message in line
    assert code == 1
    assert not Path("model").exists()

"""`hilboost reproduce`: the claims, and the pages about them."""

import json
import shutil
from math import atan, pi, sqrt
from pathlib import Path

import pytest
from reproductions.claims import Value, function_of, read_claims
from reproductions.command import verdict
from reproductions.pages import write_figure, write_page
from typer.testing import CliRunner

from hilboost.cli import app as commands
from hilboost.cli.app import app

FOLDER = Path(__file__).parents[2] / "reproductions"
CLAIMS = {claim.key: claim for claim in read_claims(FOLDER)}


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_claims_of_all_sources_are_there():
    assert {claim.source for claim in CLAIMS.values()} == {"SY2006", "G2007", "LZ2016", "LAD"}
    assert len(CLAIMS) == len(list(FOLDER.glob("*/*.toml")))
    for claim in CLAIMS.values():
        assert claim.path.parent.name == claim.key.partition("-")[0]
        assert len({value.name for value in claim.values}) == len(claim.values)


@pytest.mark.parametrize("key", CLAIMS)
def test_functions_of_claims_are_there(key):
    source = (CLAIMS[key].path.parent / "measure.py").read_text(encoding="utf-8")
    assert f"def {CLAIMS[key].function}(runs: int, recorded: Path | None)" in source


@pytest.mark.parametrize("key", CLAIMS)
def test_committed_pages_are_of_the_claims(key, tmp_path):
    folder = CLAIMS[key].path.parent / "results"
    facts = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
    values = CLAIMS[key].values
    assert [(v["name"], v["published"]) for v in facts["values"]] == [
        (v.name, v.published) for v in values
    ]
    for value, found in zip(values, facts["values"], strict=True):
        assert found["verdict"] == verdict(value, found["measured"])
        assert not (value.missing and found["measured"] is not None)
    write_page(facts, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (folder / f"{key}.md").read_text()
    assert (folder / f"{key}.svg").is_file()
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"]({folder.parent.name}/results/{key}.md)" in table


def test_list():
    result = run("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(CLAIMS)
    assert run().stdout == result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("key", ["lz2016-losses", "lad-algorithm3"])
def test_exact_claims_are_reproduced(key, tmp_path):
    claim = CLAIMS[key]
    result = run(key, "--runs", "1", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / f"{key}.json").read_text(encoding="utf-8"))
    assert {value["verdict"] for value in facts["values"]} == {"reproduced"}
    assert (tmp_path / f"{key}.md").read_text(encoding="utf-8").startswith(f"# {claim.source}")
    assert "<svg" in (tmp_path / f"{key}.svg").read_text(encoding="utf-8")


def test_recorded_results_are_taken(tmp_path):
    kept = {"set": "kin40k", "rows": None, "date": "2026-01-01", "machine": "m", "versions": {}}
    error = {
        ("hilboost-sy2006", "150 stages"): (0.018, 0.02, 0.019),
        ("hilboost-sparse", "680 basis"): (0.03, 0.025, 0.031),
    }
    records = [
        {**kept, "method": method, "setting": setting, "split": split, "nmse": nmse}
        for (method, setting), runs in error.items()
        for split, nmse in enumerate(runs)
    ]
    del records[2]  # a split without its pair is left out
    (tmp_path / "kernels.json").write_text(json.dumps({"records": records}))
    with function_of(CLAIMS["sy2006-table3"]) as function:
        found = function(runs=10, recorded=tmp_path)
    assert found["values"]["kin40k, boosted / single"] == pytest.approx([0.6, 0.8])
    assert found["recorded"] == "2026-01-01"
    (tests,) = found["tables"]
    ((title, mean, t, corrected, ranks, splits),) = tests["rows"]
    assert (title, mean, splits) == ("single - boosted", "0.0085", "2")
    # Differences of .012 and .005: t = .0085 / .0035, p = 2 atan(1 / t) / π with one degree.
    p_values = [2 * atan(1 / (17 / 7 / root)) / pi for root in (1, sqrt(1 + 2 / 9))]
    assert [t, corrected, ranks] == [f"{p:.3f}" for p in (*p_values, 0.5)]


def test_times_and_stages_where_errors_are_equal(tmp_path):
    kept = {"set": "kin40k", "split": 0, "date": "2026-01-01", "machine": "m", "versions": {}}
    path = [[1, 3.0, 0.4], [2, 4.0, 0.2], [8, 10.0, 0.05], [9, 11.0, 0.04]]
    records = [
        {**kept, "method": "boosted", "nmse": 0.04, "path": path},
        {**kept, "method": "single, 680 basis vectors", "nmse": 0.1, "cpu_s": 20.0},
    ]
    (tmp_path / "kernel_paths.json").write_text(json.dumps({"records": records}))
    with function_of(CLAIMS["sy2006-table4"]) as function:
        found = function(runs=10, recorded=tmp_path)
    # Half-way between two points of the ensemble, on logarithmic scales; 2 s for the kernel.
    assert found["values"]["kin40k, stages"] == pytest.approx([4.0])
    seconds = (4.0 * 10.0) ** 0.5
    assert found["values"]["kin40k, seconds single / boosted"] == pytest.approx([20 / seconds])
    assert f"the ratio is {18 / (seconds - 2):.4g}." in found["notes"][2]


@pytest.mark.parametrize(
    ("value", "measured", "expected"),
    [
        (Value("", 2.0, 0.5), 2.5, "reproduced"),
        (Value("", 2.0, 0.5), 2.6, "differs"),
        (Value("", 2.0, 0.5, better="lower"), 1.0, "better than published"),
        (Value("", 2.0, 0.5, better="higher"), 1.0, "differs"),
        (Value("", 2.0, 0.5), None, "not measured: not run yet"),
        (Value("", 2.0, 0.5, missing="no data"), None, "not measured: no data"),
    ],
)
def test_verdicts(value, measured, expected):
    assert verdict(value, measured) == expected


def refused(*arguments, code=1):
    result = run(*arguments)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    return line


def test_an_unknown_key_names_the_nearest():
    assert "KEY='sy2006-table33' is not known. Did you mean 'sy2006-table3'" in refused(
        "sy2006-table33"
    )


def test_outside_of_a_clone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "__file__", str(tmp_path / "app.py"))
    for arguments, what in ((["reproduce", "--list"], "The claims are"), (["demo"], "The demo is")):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 1
        assert result.stderr == (
            f"error: {what} not part of the installed package: run this command in a clone of the "
            "repository.\n"
        )


def test_runs_and_records_exclude_each_other(tmp_path):
    message = refused("lad-algorithm3", "--runs", "1", "--recorded", "x", code=2)
    assert "use only one of them" in message


@pytest.mark.parametrize("key", ["sy2006-table3", "sy2006-table4", "g2007-friedman1"])
def test_results_that_were_not_recorded(key, tmp_path):
    assert "does not exist; omit --recorded" in refused(key, "--recorded", str(tmp_path))
    name = {"sy2006-table3": "kernels.json", "sy2006-table4": "kernel_paths.json"}
    name = name.get(key, "structured.json")
    (tmp_path / name).write_text('{"records": []}')
    assert "runs; omit --recorded" in refused(key, "--recorded", str(tmp_path))


def test_tables_of_a_page(tmp_path):
    facts = json.loads((FOLDER / "lad" / "results" / "lad-algorithm3.json").read_text())
    table = {"title": "Tests", "text": "Of pairs.", "header": ["a", "b"], "rows": [["t", "0.1"]]}
    write_page({**facts, "tables": [table]}, tmp_path / "page.md")
    lines = "## Tests\n\nOf pairs.\n\n| a | b |\n|---|---:|\n| t | 0.1 |\n\n"
    assert lines in (tmp_path / "page.md").read_text(encoding="utf-8")


def clone_with(tmp_path, monkeypatch, text):
    (tmp_path / "benchmarks").mkdir()
    shutil.copytree(FOLDER / "lad", tmp_path / "reproductions" / "lad")
    (tmp_path / "reproductions" / "lad" / "algorithm3.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_a_damaged_claim_file(tmp_path, monkeypatch):
    clone_with(tmp_path, monkeypatch, "key = 'x'\nvalues = [{name = 'a'}]")
    assert "algorithm3.toml is not a valid claim file" in refused("--list")


@pytest.mark.slow
def test_a_value_that_the_claim_does_not_know(tmp_path, monkeypatch):
    text = (FOLDER / "lad" / "algorithm3.toml").read_text(encoding="utf-8")
    clone_with(tmp_path, monkeypatch, text.replace("line 1:", "line 0:"))
    shutil.copytree(FOLDER.parent / "tests", tmp_path / "tests")
    assert "does not contain the measured value 'line 1: |E_0 − median(y)|'" in refused(
        "lad-algorithm3", "--runs", "1"
    )


def test_a_figure_of_nothing_measured(tmp_path):
    value = {"name": "a", "published": 1.0, "published_deviation": None, "measured": None}
    facts = {"values": [{**value, "measured_deviation": None}], "curves": {}, "key": "k"}
    write_figure(facts, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")

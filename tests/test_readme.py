"""The code of the README runs and prints what the README says."""

import re
from pathlib import Path

import pytest

from hilboost import BoostingClassifier, BoostingRegressor

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(OUTPUT,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_of_the_readme(number, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README.md, block {number}", "exec"), {})
    assert capsys.readouterr().out == (OUTPUT if number == 0 else "")


DOCS = Path(__file__).parent.parent / "docs"
CODE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
GOES_ON = (
    "index.md",
    "howto/",
    "distributions.md",
    "ranking.md",
    "survival.md",
    "recipes/imbalanced.md",
    "recipes/insurance.md",
    "recipes/time_series.md",
)
"""Pages to be read from the top: their code goes on from block to block."""

SLOW = {"distributions.md", "index.md", "large.md", "survival.md"}


def code_of_the_pages():
    for name, text in PAGES.items():
        blocks = CODE.findall(text)
        marks = [pytest.mark.slow] if name in SLOW else []
        if name.startswith(GOES_ON):
            yield pytest.param(name, blocks, id=name, marks=marks)
        else:
            for i, block in enumerate(blocks):
                yield pytest.param(name, [block], id=f"{name}-{i}", marks=marks)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:shap")
@pytest.mark.parametrize(("name", "blocks"), list(code_of_the_pages()))
def test_code_of_the_pages(name, blocks, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for package in ("xgboost", "shap", "skops", "optuna"):  # of no extra that tests have
        if any(re.search(rf"^(import|from) {package}\b", code, re.MULTILINE) for code, _ in blocks):
            pytest.importorskip(package)
    scope = {}
    for code, printed in blocks:
        exec(compile(code, f"docs/{name}", "exec"), scope)
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("name", PAGES)
def test_no_output_of_the_pages_is_missing(name):
    text = PAGES[name]
    assert all(output.strip() for output in re.findall(r"```text\n(.*?)```", text, re.DOTALL))
    assert not re.findall(r"^[A-Z]+$", text, re.MULTILINE)  # a place where a table is to come


def test_names_beside_those_of_the_peers_are_parameters():
    known = {*BoostingRegressor().get_params(), *BoostingClassifier().get_params()}
    table = PAGES["peers.md"].split("|---|---|---|---|---|")[1].split("\n\n")[0]
    cells = [row.split("|")[1] for row in table.strip().splitlines()]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == known


def test_the_readme_has_exactly_two_commands():
    commands = re.findall(r"^python -m pip install .*$", README, re.MULTILINE)
    assert commands == [
        "python -m pip install '.[cli,report]' && hilboost demo",
        "python -m pip install '.[test]' && pytest",
    ]

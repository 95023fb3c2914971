"""The code of the README runs and prints what the README says."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(OUTPUT,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_of_the_readme(number, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README.md, block {number}", "exec"), {})
    assert capsys.readouterr().out == (OUTPUT if number == 0 else "")


DOCS = Path(__file__).parent.parent / "docs"
GUIDES = {
    "kernels.md": "KernelBoostingRegressor",
    "outputs.md": None,
    "reports.md": "BoostingRegressor",
    "running.md": "BoostingRegressor",
}


def blocks_of_guides():
    for name, expected in GUIDES.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
            yield pytest.param(name, code, expected, id=f"{name}-{number}")


@pytest.mark.parametrize(("name", "code", "expected"), list(blocks_of_guides()))
def test_code_of_the_guides(name, code, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(compile(code, f"docs/{name}", "exec"), scope)
    if expected is not None:
        assert type(scope["model"]).__name__ == expected


@pytest.mark.parametrize("name", GUIDES)
def test_no_output_of_the_guides_is_missing(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    assert all(output.strip() for output in re.findall(r"```text\n(.*?)```", text, re.DOTALL))
    assert not re.findall(r"^[A-Z]+$", text, re.MULTILINE)  # a place where a table is to come


def test_the_readme_has_exactly_two_commands():
    commands = re.findall(r"^python -m pip install .*$", README, re.MULTILINE)
    assert commands == [
        "python -m pip install . && hilboost demo",
        "python -m pip install '.[test]' && pytest",
    ]

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


GUIDE = (Path(__file__).parent.parent / "docs" / "kernels.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
def test_code_of_the_guide_to_kernels(code):
    exec(compile(code, "docs/kernels.md", "exec"), {})


def test_the_readme_has_exactly_two_commands():
    commands = re.findall(r"^python -m pip install .*$", README, re.MULTILINE)
    assert commands == [
        "python -m pip install . && hilboost demo",
        "python -m pip install '.[test]' && pytest",
    ]

"""Links that lead out of ``docs`` lead to something that the site has."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    return runpy.run_path(str(ROOT / "docs" / "tools" / "hooks.py"))


def test_files_outside_of_docs_are_in_the_site(hooks):
    known = set(hooks["besides"]())
    absent = []
    for page in PAGES:
        for target in hooks["LINK"].findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target.partition("#")[0]).resolve()
            if path.is_file() and not path.is_relative_to(ROOT / "docs"):
                name = path.relative_to(ROOT).as_posix()
                absent += [] if name in known else [f"{page.name}: {name}"]
    assert not absent

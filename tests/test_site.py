"""Links that lead out of ``docs`` lead to something that the site has."""

import pkgutil
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


def test_pages_list_members_that_their_modules_have():
    listed = {}
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for part in page.read_text(encoding="utf-8").split("\n::: ")[1:]:
            place, *lines = part.splitlines()
            members = {line.strip()[2:] for line in lines if line.startswith("        - ")}
            listed.setdefault(place, set()).update(members)
    assert listed
    for place, members in listed.items():
        assert members <= set(dir(pkgutil.resolve_name(place))), place

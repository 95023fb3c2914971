"""The page on the coverage of the sources names files and tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "reproductions" / "coverage.md"
COLUMNS = ["row", "content", "implemented in", "shown by"]


def rows():
    """(source, cells) of all rows of the tables."""
    source, found = "", []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            source = line[3:]
        if line.startswith("| "):
            found.append((source, [cell.strip() for cell in line.strip("|").split(" | ")]))
    return [(source, cells) for source, cells in found if cells != COLUMNS]


ROWS = rows()


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_source_has_rows():
    assert list(dict.fromkeys(source for source, _ in ROWS)) == ["SY2006", "G2007", "LZ2016", "LAD"]
    assert all(len(cells) == 4 and all(cells) for _, cells in ROWS)
    assert len({(source, *cells[:2]) for source, cells in ROWS}) == len(ROWS)


def test_every_equation_has_a_row():
    for source, last in {"SY2006": 27, "G2007": 13, "LAD": 10}.items():
        named = set()
        for _, cells in (row for row in ROWS if row[0] == source):
            for first, end in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cells[0]):
                named |= set(range(int(first), int(end or first) + 1))
        assert named == set(range(1, last + 1))


@pytest.mark.parametrize(("source", "cells"), ROWS, ids=lambda part: str(part)[:40])
def test_files_and_tests_of_a_row_exist(source, cells):
    implemented, shown = (re.findall(r"`([^`]+)`", cell) for cell in cells[2:])
    assert implemented
    assert shown
    for path in implemented:
        assert path.startswith(("src/hilboost/", "benchmarks/"))
        assert (ROOT / path).is_file()
    for name in shown:
        path, _, test = name.partition("::")
        pages = ("reproductions/", "benchmarks/results/")
        assert path.startswith("tests/") if test else path.startswith(pages)
        assert (ROOT / path).is_file()
        assert not test or test in functions_of(path)


def test_every_page_of_a_reproduction_has_a_row():
    pages = {path.name for path in PAGE.parent.glob("*/results/*.md")}
    text = " ".join(cells[3] for _, cells in ROWS)
    assert pages == set(re.findall(r"reproductions/\w+/results/([\w-]+\.md)", text))

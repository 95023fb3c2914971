"""Phrases of the library that the command line writes with options."""

import ast
import re
from pathlib import Path

import pytest

import hilboost
from hilboost.cli.errors import PHRASES

VALUES = ("BoostingRanker", "BoostingSurvival", "BoostingClassifier", "2 columns")


def text_of(node, value):
    """The text of a string with a value in the place of others, of two alternatives the first."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value.body, value) if isinstance(node.value, ast.IfExp) else value
    return "".join(text_of(part, value) for part in getattr(node, "values", ()))


@pytest.fixture(scope="module")
def sentences():
    found = []
    for path in Path(hilboost.__file__).parent.rglob("*.py"):
        if "cli" not in path.parts:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            strings = [one for one in nodes if isinstance(one, ast.Constant | ast.JoinedStr)]
            found += [text_of(one, value) for one in strings for value in VALUES]
    return "\n".join(found).replace("{them}", "them").replace("{}", "name")


@pytest.mark.parametrize("phrase", PHRASES)
def test_the_library_has_every_phrase(phrase, sentences):
    assert re.search(phrase, sentences)

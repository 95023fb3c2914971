"""Parts document in the reference what they can declare; the pages list nothing else."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

from hilboost import Loss
from hilboost.core.base_model import BaseModel
from hilboost.core.capabilities import Capabilities
from hilboost.core.learner import Learner
from hilboost.core.loss_declarations import LossDeclarations

PAGES = Path(__file__).parent.parent / "docs" / "howto"


def listed(page, number):
    """Names in the first column of a table among the declarations of a page."""
    (section,) = re.findall(r"^## Declarations\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for first in firsts for name in re.findall(r"`(\w+(?:\(\))?)`", first)]


@pytest.mark.parametrize(
    ("part", "page", "number"),
    [(Loss, "loss.md", 0), (Capabilities, "learner.md", 0), (BaseModel, "learner.md", 1)],
)
def test_pages_list_declarations_once(part, page, number):
    names = listed((PAGES / page).read_text(encoding="utf-8"), number)
    assert len(set(names)) == len(names) > 0
    for name in names:
        assert callable(getattr(part, name.removesuffix("()"))) == name.endswith("()")


def test_capabilities_are_documented():
    attributes = NumpyDocString(inspect.getdoc(Capabilities))["Attributes"]
    names = [name for one in attributes for name in one.name.split(", ")]
    assert sorted(names) == sorted(field.name for field in fields(Capabilities))


@pytest.mark.parametrize("part", [LossDeclarations, Learner, BaseModel])
def test_class_attributes_are_documented(part):
    after = re.findall(r"^    \w+: .*\n(.*)", inspect.getsource(part), re.MULTILINE)
    assert {line[:7] for line in after} == {'    """'}

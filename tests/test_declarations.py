"""The pages on custom parts list what parts can declare, and nothing else."""

import re
from pathlib import Path

import pytest

from hilboost import Loss
from hilboost.core.base_model import BaseModel
from hilboost.core.capabilities import Capabilities
from hilboost.core.learner import Learner

PAGES = Path(__file__).parent.parent / "docs" / "howto"


def listed(page, number):
    """Names in the first column of a table among the declarations of a page."""
    (section,) = re.findall(r"^## Declarations\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for first in firsts for name in re.findall(r"`(\w+(?:\(\))?)`", first)]


def attributes(part):
    """Public attributes and properties of a base class, without its methods."""
    return {
        name
        for base in part.__mro__[:-1]
        for name, value in vars(base).items()
        if not name.startswith("_") and not callable(value) and not isinstance(value, classmethod)
    }


@pytest.mark.parametrize(
    ("part", "page", "number"),
    [
        (Loss, "loss.md", 0),
        (Capabilities, "learner.md", 0),
        (Learner, "learner.md", 1),
        (BaseModel, "learner.md", 2),
    ],
)
def test_all_declarations_are_listed(part, page, number):
    names = listed((PAGES / page).read_text(encoding="utf-8"), number)
    assert len(set(names)) == len(names)
    assert {name for name in names if not name.endswith("()")} == attributes(part)
    assert all(callable(getattr(part, name[:-2])) for name in names if name.endswith("()"))

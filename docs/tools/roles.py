"""Convert reStructuredText cross-references in docstrings to code spans."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|meth|func|attr|mod):`(~?)([\w.]+)`")


def as_code(match: re.Match[str]) -> str:
    """Return a code span; with a leading tilde, only of the last component."""
    tilde, name = match.groups()
    return f"`{name.rsplit('.', 1)[-1] if tilde else name}`"


class Roles(griffe.Extension):
    """Rewrite docstrings when they are loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Process the docstring of a class, function, module or attribute."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(as_code, obj.docstring.value)

    def on_alias_instance(self, *, alias: griffe.Alias, node: Any = None, **_: Any) -> None:
        """Show names that a package imports as themselves: lists of them are made at run time."""
        names = getattr(node, "names", ())
        if any(one.asname == one.name == alias.name for one in names):
            alias.public = True

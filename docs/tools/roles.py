"""Cross references of docstrings, as reStructuredText has them, become code in the pages."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|meth|func|attr|mod):`(~?)([\w.]+)`")


def as_code(match: re.Match[str]) -> str:
    """The name alone where the reference starts with a tilde."""
    tilde, name = match.groups()
    return f"`{name.rsplit('.', 1)[-1] if tilde else name}`"


class Roles(griffe.Extension):
    """Rewrites docstrings as they are read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """A class, function, module or attribute was read."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(as_code, obj.docstring.value)

"""Names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(
    package: str, homes: Mapping[str, str], find: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    ``package``: its name. ``homes``: for each public name, the module of the package that defines
    it. ``find``: returns the value of another name, or ``None``.
    """

    def find_name(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        found = None if find is None else find(name)
        if found is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return found

    return find_name

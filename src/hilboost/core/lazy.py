"""Names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(
    package: str, homes: Mapping[str, str], find: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping from str to str
        For each public name, the module of the package that defines it.
    find : callable, optional
        Returns the value of another name, or ``None``.

    Returns
    -------
    callable
    """

    def find_name(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        found = None if find is None else find(name)
        if found is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return found

    return find_name

"""Discovery of classes in the modules of a package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import isabstract
from pkgutil import walk_packages
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def classes_in(package: str, base: type[T]) -> Iterator[type[T]]:
    """Find the concrete subclasses of ``base`` defined in a package or its subpackages.

    ``package``: name, such as ``"hilboost.losses"``.  Its modules are imported once.

    Yields type: ordered by module name and, within a module, by definition.
    """
    for module in modules_in(package):
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, base)
                and value.__module__ == module.__name__
                and not isabstract(value)
            ):
                yield value


@cache
def modules_in(package: str) -> tuple[ModuleType, ...]:
    """Import all modules of a package and its subpackages, ordered by name."""
    root = import_module(package)
    found = walk_packages(root.__path__, f"{package}.")
    return tuple(import_module(module.name) for module in sorted(found, key=lambda m: m.name))

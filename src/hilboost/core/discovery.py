"""Names and classes of packages, which are imported on first use, and tables of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from operator import itemgetter
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar


def by_word(texts: Mapping[str, str]) -> dict[str, str]:
    """Map each word of the texts to the key of its text."""
    return {word: key for key, text in texts.items() for word in text.split()}


@contextmanager
def without_collections() -> Iterator[None]:
    """Look for garbage among new objects once, at the end: most of what is loaded stays."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
            gc.collect(1)  # moves them to the oldest generation


def names_of(
    package: str, modules: Mapping[str, str], find: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``find`` returns other values, or ``None``."""
    homes = by_word(modules)

    def find_name(name: str) -> Any:
        with without_collections():
            if name in homes:
                return getattr(import_module(f"{package}.{homes[name]}"), name)
            found = None if find is None else find(name)
        if found is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return found

    return find_name


T = TypeVar("T")


def classes_in(package: str, base: type[T]) -> Iterator[type[T]]:
    """Find the concrete subclasses of ``base`` that the modules of a package define, in order."""
    from inspect import isabstract  # not for every import of the library

    from hilboost.core.plain_values import is_class

    for module in modules_in(package):
        for value in vars(module).values():
            named_here = is_class(value, base) and value.__module__ == module.__name__
            if named_here and not isabstract(value):
                yield value


def class_in(package: str) -> Callable[[str], type | None]:
    """Return the function that finds a concrete class of a package by its name."""

    def find(name: str) -> type | None:
        # Skip submodules: looking for classes imports them, and they may import each other.
        found = classes_in(package, object) if name[:1].isupper() else ()
        return next((one for one in found if one.__name__ == name), None)

    return find


@cache
def modules_in(package: str) -> tuple[ModuleType, ...]:
    """Import all modules of a package and its subpackages, ordered by name."""
    from pkgutil import walk_packages

    root = import_module(package)
    found = walk_packages(root.__path__, f"{package}.")
    return tuple(import_module(module.name) for module in sorted(found, key=lambda m: m.name))


def by_name(named: Iterable[tuple[str | None, T]], what: str) -> Mapping[str, T]:
    """Collect values by their names, without those named ``None``; refuse equal names."""
    found: dict[str, T] = {}
    for name, value in named:
        if name in found:
            raise RuntimeError(f"two {what} {name!r}; rename one.")
        if name is not None:
            found[name] = value
    return MappingProxyType(found)


def by_short_name(classes: Iterable[type[T]], what: str) -> Mapping[str, Callable[[], T]]:
    """Functions that create parts with default parameters, by the short names of their classes."""
    declared = [(one, *own) for one in classes for own in vars(one).get("short_names", {}).items()]
    named = [(name, partial(one, **parameters)) for one, name, parameters in declared]
    return by_name(sorted(named, key=itemgetter(0)), what)


class LazyMapping(Mapping[str, T]):
    """The mapping that a function returns, which is called on first use."""

    def __init__(self, read: Callable[[], Mapping[str, T]]) -> None:
        self._read = read

    def __getitem__(self, name: str) -> T:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

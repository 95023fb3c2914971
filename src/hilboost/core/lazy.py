"""Names of a package that are imported on first use."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hilboost.core.words import by_word


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

"""Modules of a clone of the repository: ``hilboost reproduce`` and ``hilboost demo``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hilboost.cli.errors import CliError

_FOLDER = "reproductions"


def find_clone(what: str, needed: str) -> Path:
    """Find the clone above the working directory, or that of the package, with what is needed."""
    starts = [Path.cwd(), Path(__file__).resolve().parent]
    for start in starts:
        for parent in (start, *start.parents):
            if any((parent / _FOLDER).glob("*/*.toml")) and (parent / needed).exists():
                return parent
    raise CliError(
        f"{what} not part of the installed package: run this command in a clone of the repository."
    )


def module_of(folder: Path, name: str) -> ModuleType:
    """Import a module from a folder of a clone."""
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))

"""``hilboost reproduce``, whose code is in the folder ``reproductions`` of a clone."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hilboost.cli.errors import CliError

_FOLDER = "reproductions"


def find_folder() -> Path:
    """Find the folder of the claims, above the working directory or in the package's clone."""
    starts = [Path.cwd(), Path(__file__).resolve().parent]
    for start in starts:
        for parent in (start, *start.parents):
            if any((parent / _FOLDER).glob("*/*.toml")) and (parent / "benchmarks").is_dir():
                return parent / _FOLDER
    raise CliError(
        "The claims are not part of the installed package: run 'hilboost reproduce' in a clone of "
        "the repository."
    )


def reproductions(folder: Path) -> ModuleType:
    """Import the module that measures the claims of a clone and writes their pages."""
    sys.path.insert(0, str(folder.parent))
    try:
        return import_module(f"{_FOLDER}.command")
    finally:
        sys.path.remove(str(folder.parent))

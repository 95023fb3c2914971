"""Packages that only some exports need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hilboost.core.errors import MissingPackage


def required(package: str, purpose: str) -> Any:
    """An optional package, imported.

    Parameters
    ----------
    package : str
        Its name, to import and to install.
    purpose : str
        What needs it.

    Raises
    ------
    MissingPackage
        It is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f"{purpose} needs the package {package}: pip install {package}"
        ) from error

"""Optional packages that some exports need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hilboost.core.errors import MissingPackage


def required(package: str, purpose: str) -> Any:
    """Import an optional package.

    Parameters
    ----------
    package : str
        Name of the package, for import and installation.
    purpose : str
        The feature that needs the package.

    Raises
    ------
    MissingPackage
        The package is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f"{purpose} needs the package {package}: pip install {package}"
        ) from error

"""Import of optional packages."""

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
        The feature that requires the package.

    Raises
    ------
    MissingPackage
        The package is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f"{purpose} requires the package {package}; install it with `pip install {package}`."
        ) from error

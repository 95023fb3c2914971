"""Import of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hilboost.core.errors import MissingPackage

# Extras of pyproject.toml that install a package
EXTRAS = {
    "distributed": "dask",
    "jinja2": "report",
    "matplotlib": "report",
    "numba_cuda": "cuda",
    "onnx": "export",
    "pandas": "pandas",
    "pyarrow": "stream",
    "rich": "cli",
    "shap": "shap",
    "sksurv": "survival",
    "treelite": "treelite",
    "typer": "cli",
}

DISTRIBUTIONS = {"numba_cuda": "numba-cuda", "sksurv": "scikit-survival"}
"""Names by which packages are installed, if these are others."""


def required(module: str, purpose: str) -> Any:
    """Import a module of one of the optional packages of ``EXTRAS``, which ``purpose`` requires."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        name = DISTRIBUTIONS.get(package, package)
        raise MissingPackage(
            f"{purpose} requires the package {name}; install it with "
            f"`pip install 'hilboost[{EXTRAS[package]}]'`."
        ) from error

"""Kernels: similarity functions of rows, their algebra, blocked Gram matrices, and fitting.

Each built-in kernel declares its names in its own class, and :mod:`hilboost.kernels.registry`
finds it.  The imports below make the names visible to type checkers.
"""

from typing import Any

from hilboost.kernels.adapters import CallableKernel, Precomputed, SklearnKernel
from hilboost.kernels.algebra import Constant, OnColumns, Product, Scaled, Sum
from hilboost.kernels.base import Kernel
from hilboost.kernels.categorical import Delta, Hamming
from hilboost.kernels.description import from_description, to_description
from hilboost.kernels.dot_product import Cosine, Linear, Polynomial, Tanimoto
from hilboost.kernels.mapped import Mapped
from hilboost.kernels.registry import KERNEL_NAMES, as_kernel, as_kernels
from hilboost.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern,
    RationalQuadratic,
    Stationary,
)

__all__ = [
    "KERNEL_NAMES",
    "CallableKernel",
    "Constant",
    "Cosine",
    "Delta",
    "Gaussian",
    "Hamming",
    "Kernel",
    "Laplace",
    "Linear",
    "Mapped",
    "Matern",
    "OnColumns",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SklearnKernel",
    "Stationary",
    "Sum",
    "Tanimoto",
    "as_kernel",
    "as_kernels",
    "from_description",
    "to_description",
]


def __getattr__(name: str) -> Any:
    """Look up kernels of the package that are not imported above."""
    from hilboost.kernels.registry import kernel_classes

    # Skip submodules: the registry imports them, and they may import each other.
    if name[:1].isupper():
        for kernel in kernel_classes().values():
            if kernel.__name__ == name:
                return kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

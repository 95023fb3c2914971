"""Kernels: similarity functions of rows, their algebra, blocked Gram matrices, and fitting.

Each built-in kernel declares its names in its own class, and :mod:`hilboost.kernels.registry`
finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import class_in, names_of

if TYPE_CHECKING:
    from hilboost.kernels.adapters import CallableKernel, Precomputed, SklearnKernel
    from hilboost.kernels.additive import Additive
    from hilboost.kernels.algebra import Constant, OnColumns, Product, Scaled, Sum
    from hilboost.kernels.base import Kernel
    from hilboost.kernels.categorical import Delta, Hamming
    from hilboost.kernels.description import from_description, to_description
    from hilboost.kernels.dot_product import Cosine, Linear, Polynomial, Tanimoto
    from hilboost.kernels.manhattan import ManhattanLaplace
    from hilboost.kernels.mapped import Mapped
    from hilboost.kernels.registry import KERNEL_NAMES, as_kernel, as_kernels
    from hilboost.kernels.stationary import Gaussian, Laplace, Matern, RationalQuadratic, Stationary

# Imported on first use: trees do not need them.
_MODULES = {
    "adapters": "CallableKernel Precomputed SklearnKernel",
    "additive": "Additive",
    "algebra": "Constant OnColumns Product Scaled Sum",
    "base": "Kernel",
    "categorical": "Delta Hamming",
    "description": "from_description to_description",
    "dot_product": "Cosine Linear Polynomial Tanimoto",
    "manhattan": "ManhattanLaplace",
    "mapped": "Mapped",
    "registry": "KERNEL_NAMES as_kernel as_kernels",
    "stationary": "Gaussian Laplace Matern RationalQuadratic Stationary",
}

__all__ = [
    "KERNEL_NAMES",
    "Additive",
    "CallableKernel",
    "Constant",
    "Cosine",
    "Delta",
    "Gaussian",
    "Hamming",
    "Kernel",
    "Laplace",
    "Linear",
    "ManhattanLaplace",
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

__getattr__ = names_of(__name__, _MODULES, class_in(__name__))

"""Kernels: similarity functions of rows, their algebra, blocked Gram matrices, and fitting.

Each built-in kernel declares its names in its own class, and :mod:`hilboost.kernels.registry`
finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import by_word, class_in, names_of

if TYPE_CHECKING:
    from hilboost.kernels.adapters import CallableKernel as CallableKernel
    from hilboost.kernels.adapters import Precomputed as Precomputed
    from hilboost.kernels.adapters import SklearnKernel as SklearnKernel
    from hilboost.kernels.additive import Additive as Additive
    from hilboost.kernels.algebra import Constant as Constant
    from hilboost.kernels.algebra import OnColumns as OnColumns
    from hilboost.kernels.algebra import Product as Product
    from hilboost.kernels.algebra import Scaled as Scaled
    from hilboost.kernels.algebra import Sum as Sum
    from hilboost.kernels.base import Kernel as Kernel
    from hilboost.kernels.categorical import Delta as Delta
    from hilboost.kernels.categorical import Hamming as Hamming
    from hilboost.kernels.description import from_description as from_description
    from hilboost.kernels.description import to_description as to_description
    from hilboost.kernels.dot_product import Cosine as Cosine
    from hilboost.kernels.dot_product import Linear as Linear
    from hilboost.kernels.dot_product import Polynomial as Polynomial
    from hilboost.kernels.dot_product import Tanimoto as Tanimoto
    from hilboost.kernels.manhattan import ManhattanLaplace as ManhattanLaplace
    from hilboost.kernels.mapped import Mapped as Mapped
    from hilboost.kernels.registry import KERNEL_NAMES as KERNEL_NAMES
    from hilboost.kernels.registry import as_kernel as as_kernel
    from hilboost.kernels.registry import as_kernels as as_kernels
    from hilboost.kernels.stationary import Gaussian as Gaussian
    from hilboost.kernels.stationary import Laplace as Laplace
    from hilboost.kernels.stationary import Matern as Matern
    from hilboost.kernels.stationary import RationalQuadratic as RationalQuadratic
    from hilboost.kernels.stationary import Stationary as Stationary

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

__all__ = sorted(by_word(_MODULES))

__getattr__ = names_of(__name__, _MODULES, class_in(__name__))

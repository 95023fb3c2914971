"""Kernels by name, and from whatever may stand for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from hilboost.core.errors import InvalidType, unknown_name
from hilboost.kernels.adapters import CallableKernel, SklearnKernel
from hilboost.kernels.base import Kernel
from hilboost.kernels.categorical import Delta, Hamming
from hilboost.kernels.dot_product import Cosine, Linear, Polynomial, Tanimoto
from hilboost.kernels.stationary import Gaussian, Laplace, Matern, RationalQuadratic

KERNEL_NAMES: Mapping[str, Callable[[], Kernel]] = MappingProxyType(
    {
        "cosine": Cosine,
        "delta": Delta,
        "gaussian": Gaussian,
        "hamming": Hamming,
        "laplace": Laplace,
        "linear": Linear,
        "matern12": partial(Matern, nu=0.5),
        "matern32": partial(Matern, nu=1.5),
        "matern52": partial(Matern, nu=2.5),
        "polynomial": Polynomial,
        "rational_quadratic": RationalQuadratic,
        "tanimoto": Tanimoto,
    }
)
"""Names that :func:`as_kernel` and the parameter ``kernel`` of estimators take.

A name stands for a function without arguments that makes the kernel with its default
hyperparameters: length scales of one, for instance, in units of the columns.
"""


def as_kernel(spec: Any) -> Kernel:
    """The kernel that an argument stands for.

    Parameters
    ----------
    spec : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        A name is one of ``KERNEL_NAMES``; a callable is ``function(A, B) -> (a, b)`` array.

    Returns
    -------
    Kernel

    Raises
    ------
    InvalidParameter
        Nobody knows the name.
    InvalidType
        It is something else.
    """
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, str):
        if spec not in KERNEL_NAMES:
            raise unknown_name("kernel", spec, KERNEL_NAMES)
        return KERNEL_NAMES[spec]()
    if isinstance(spec, type):
        raise InvalidType(f"kernel={spec.__name__} is a class; write {spec.__name__}().")
    from sklearn.gaussian_process.kernels import Kernel as Theirs

    if isinstance(spec, Theirs):
        return SklearnKernel(spec)
    if callable(spec):
        return CallableKernel(spec)
    raise InvalidType(
        "kernel must be a kernel, a name, a scikit-learn kernel or a function of two blocks of "
        f"rows; got {type(spec).__name__}."
    )

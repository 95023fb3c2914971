"""Kernels by name, and conversion of arguments to kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any

from hilboost.core.discovery import LazyMapping, by_name, by_short_name, classes_in
from hilboost.core.errors import InvalidParameter, InvalidType, refuse_class, unknown_name
from hilboost.core.plain_values import is_auto
from hilboost.kernels.adapters import CallableKernel, SklearnKernel
from hilboost.kernels.base import Kernel

# Names in other libraries that resemble no name here.
_ELSEWHERE = MappingProxyType(
    {
        "rbf": "gaussian",
        "squared_exponential": "gaussian",
        "exponential": "laplace",
        "laplacian": "manhattan_laplace",
    }
)


@cache
def kernel_classes() -> Mapping[str, type[Kernel]]:
    """Kernels that declare a name for model files, by this name."""
    kernels = classes_in("hilboost.kernels", Kernel)  # type: ignore[type-abstract]
    named = ((vars(kernel).get("file_name"), kernel) for kernel in kernels)
    return by_name(named, "kernels have the file_name")


@cache
def kernel_names() -> Mapping[str, Callable[[], Kernel]]:
    """Names of kernels, and functions that create them with default hyperparameters.

    Length scales are one, in units of the columns.
    """
    return by_short_name(kernel_classes().values(), "kernels have the name")


KERNEL_NAMES: Mapping[str, Callable[[], Kernel]] = LazyMapping(kernel_names)
"""Maps each name to a function that creates the kernel with default hyperparameters."""


def as_kernel(spec: object) -> Kernel:
    """Convert an argument to a kernel.

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
        The name is unknown.
    InvalidType
        The argument is of another type.
    """
    found: Kernel = kernel_or_name(spec)
    return found


def kernel_or_name(spec: object, *others: str) -> Any:
    """Convert an argument to a kernel, except for ``others``, which are valid names, too."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, str):
        if spec in others:
            return spec
        if spec == "precomputed":
            raise InvalidParameter(
                "kernel='precomputed' does not contain the matrix; pass kernel="
                "hilboost.kernels.Precomputed(gram), and the row numbers of gram as X, "
                "numpy.arange(len(gram)).reshape(-1, 1)."
            )
        if spec not in KERNEL_NAMES:
            raise unknown_name("kernel", spec, (*KERNEL_NAMES, *others), same_kernel(spec))
        return KERNEL_NAMES[spec]()
    refuse_class("kernel", spec)
    if isinstance(spec, list | tuple):
        raise InvalidType(
            f"kernel must be one kernel here; got a list of {len(spec)}. Combine them with + or *, "
            "or use KernelBoostingRegressor or KernelBoostingClassifier, which choose from a list "
            "in every stage."
        )
    from sklearn.gaussian_process.kernels import Kernel as Theirs

    if isinstance(spec, Theirs):
        return SklearnKernel(spec)
    if callable(spec):
        return CallableKernel(spec)
    raise InvalidType(
        "kernel must be a kernel, a name, a scikit-learn kernel or a function of two blocks of "
        f"rows; got {type(spec).__name__}."
    )


def same_kernel(name: str) -> str | None:
    """Return the name of the kernel that other libraries call by this name, or a similar one."""
    near = get_close_matches(name.lower(), _ELSEWHERE, n=1, cutoff=0.8)
    return _ELSEWHERE[near[0]] if near else None


def as_kernels(specs: Sequence[Any]) -> tuple[Kernel, ...]:
    """Convert a list of arguments to kernels.

    Parameters
    ----------
    specs : list or tuple
        Arguments of :func:`as_kernel`.

    Returns
    -------
    tuple of Kernel

    Raises
    ------
    InvalidParameter
        The list is empty, or a name in it is unknown.
    InvalidType
        An entry is of another type.
    """
    if not specs:
        raise InvalidParameter("kernel is an empty list; list at least one kernel.")
    found = []
    for k, spec in enumerate(specs):
        if is_auto(spec):
            raise InvalidParameter(
                f"entry {k} of kernel is 'auto', which chooses a kernel of all columns; list "
                "kernels, or set kernel='auto' for all stages."
            )
        try:
            found.append(as_kernel(spec))
        except (InvalidParameter, InvalidType) as error:
            raise type(error)(f"entry {k} of kernel: {error}") from None
    return tuple(found)

"""Registry of output spaces, and conversion of arguments to output spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from hilboost.core.discovery import LazyMapping, by_short_name, classes_in
from hilboost.core.errors import InvalidType, refuse_class, unknown_name
from hilboost.core.output_space import OutputSpace
from hilboost.kernels import KERNEL_NAMES, Kernel
from hilboost.kernels.registry import same_kernel
from hilboost.outputs.kernel_output import KernelOutput

_SAME = {**dict.fromkeys(("image", "images", "vector", "curve"), "linear"), "sets": "label_set"}


@cache
def output_names() -> Mapping[str, Callable[[], OutputSpace]]:
    """Names of all output spaces, and functions that create them with default parameters."""
    spaces = classes_in("hilboost.outputs", OutputSpace)  # type: ignore[type-abstract]
    return by_short_name(spaces, "output spaces have the name")


OUTPUT_NAMES: Mapping[str, Callable[[], OutputSpace]] = LazyMapping(output_names)
"""Maps each name to a function that creates the output space with default parameters."""


def as_output(spec: object) -> OutputSpace:
    """Convert an argument to an output space.

    Parameters
    ----------
    spec : OutputSpace, str, Kernel, scikit-learn kernel or callable
        A string is a name in ``OUTPUT_NAMES`` or the name of a kernel.  A kernel or callable is
        used as the output kernel; see :class:`KernelOutput`.

    Returns
    -------
    OutputSpace

    Raises
    ------
    InvalidParameter
        The name is unknown.
    InvalidType
        ``spec`` has an unsupported type.
    """
    if isinstance(spec, OutputSpace):
        return spec
    if isinstance(spec, str):
        if spec in OUTPUT_NAMES:
            return OUTPUT_NAMES[spec]()
        if spec in KERNEL_NAMES:
            return KernelOutput(spec)
        same = _SAME.get(spec.lower()) or same_kernel(spec)
        raise unknown_name("output", spec, {*OUTPUT_NAMES, *KERNEL_NAMES}, same)
    refuse_class("output", spec)
    if isinstance(spec, Kernel) or callable(spec):
        return KernelOutput(spec)
    raise InvalidType(
        "output must be an output space, a name, a kernel or a function of two lists of labels; "
        f"got {type(spec).__name__}."
    )

"""Output spaces by name, and from whatever may stand for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from hilboost.core.errors import InvalidType, unknown_name
from hilboost.core.output_space import OutputSpace
from hilboost.kernels import KERNEL_NAMES, Kernel
from hilboost.outputs.compositions import Compositions
from hilboost.outputs.distributions import Distributions
from hilboost.outputs.kernel_output import KernelOutput
from hilboost.outputs.label_sets import LabelSets
from hilboost.outputs.precomputed import PrecomputedOutput
from hilboost.outputs.rankings import Rankings
from hilboost.outputs.spd_matrices import PositiveMatrices
from hilboost.outputs.strings import Strings
from hilboost.outputs.vectors import Vectors

OUTPUT_NAMES: Mapping[str, Callable[[], OutputSpace]] = MappingProxyType(
    {
        "composition": Compositions,
        "distribution": Distributions,
        "gaussian": partial(KernelOutput, "gaussian"),
        "label_set": LabelSets,
        "linear": Vectors,
        "positive_matrix": PositiveMatrices,
        "precomputed": PrecomputedOutput,
        "ranking": Rankings,
        "string": Strings,
    }
)
"""What makes the output space of a name, with its default parameters."""


def as_output(spec: Any) -> OutputSpace:
    """The output space that an argument stands for.

    Parameters
    ----------
    spec : OutputSpace, str, Kernel, scikit-learn kernel or callable
        A name is one of ``OUTPUT_NAMES`` or of the kernels' names; a kernel or a callable is the
        output kernel, as in :class:`KernelOutput`.

    Returns
    -------
    OutputSpace

    Raises
    ------
    InvalidParameter
        Nobody knows the name.
    InvalidType
        It is something else.
    """
    if isinstance(spec, OutputSpace):
        return spec
    if isinstance(spec, str):
        if spec in OUTPUT_NAMES:
            return OUTPUT_NAMES[spec]()
        if spec in KERNEL_NAMES:
            return KernelOutput(spec)
        raise unknown_name("output", spec, {*OUTPUT_NAMES, *KERNEL_NAMES})
    if isinstance(spec, type):
        raise InvalidType(f"output={spec.__name__} is a class; write {spec.__name__}().")
    if isinstance(spec, Kernel) or callable(spec):
        return KernelOutput(spec)
    raise InvalidType(
        "output must be an output space, a name, a kernel or a function of two lists of labels; "
        f"got {type(spec).__name__}."
    )

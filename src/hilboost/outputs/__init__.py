"""Output spaces, which embed labels of any type in a Hilbert space and decode its points.

Each built-in space declares its names in its own class, and :mod:`hilboost.outputs.registry` finds
it.  The imports below make the names visible to type checkers.
"""

from typing import Any

from hilboost.outputs.compositions import Compositions
from hilboost.outputs.distributions import Distributions
from hilboost.outputs.graphs import Graphs
from hilboost.outputs.hierarchies import Hierarchy
from hilboost.outputs.kernel_output import KernelOutput
from hilboost.outputs.label_sets import LabelSets
from hilboost.outputs.precomputed import PrecomputedOutput
from hilboost.outputs.preimage import Candidates, decode
from hilboost.outputs.rankings import Rankings
from hilboost.outputs.registry import OUTPUT_NAMES, as_output
from hilboost.outputs.spd_matrices import PositiveMatrices
from hilboost.outputs.strings import Strings
from hilboost.outputs.vectors import Vectors

__all__ = [
    "OUTPUT_NAMES",
    "Candidates",
    "Compositions",
    "Distributions",
    "Graphs",
    "Hierarchy",
    "KernelOutput",
    "LabelSets",
    "PositiveMatrices",
    "PrecomputedOutput",
    "Rankings",
    "Strings",
    "Vectors",
    "as_output",
    "decode",
]


def __getattr__(name: str) -> Any:
    """Look up output spaces of the package that are not imported above."""
    from hilboost.core.discovery import classes_in
    from hilboost.core.output_space import OutputSpace

    # Skip submodules: the registry imports them, and they may import each other.
    if name[:1].isupper():
        for space in classes_in(__name__, OutputSpace):  # type: ignore[type-abstract]
            if space.__name__ == name:
                return space
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

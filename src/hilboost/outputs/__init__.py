"""Output spaces, which embed labels of any type in a Hilbert space and decode its points.

Each built-in space declares its names in its own class, and :mod:`hilboost.outputs.registry` finds
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import class_in, names_of

if TYPE_CHECKING:
    from hilboost.outputs.compositions import Compositions
    from hilboost.outputs.distributions import Distributions
    from hilboost.outputs.exact_embedding import ExactEmbedding
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

# Imported on first use: models of numbers and classes do not need them.
_MODULES = {
    "compositions": "Compositions",
    "distributions": "Distributions",
    "exact_embedding": "ExactEmbedding",
    "graphs": "Graphs",
    "hierarchies": "Hierarchy",
    "kernel_output": "KernelOutput",
    "label_sets": "LabelSets",
    "precomputed": "PrecomputedOutput",
    "preimage": "Candidates decode",
    "rankings": "Rankings",
    "registry": "OUTPUT_NAMES as_output",
    "spd_matrices": "PositiveMatrices",
    "strings": "Strings",
    "vectors": "Vectors",
}

__all__ = [
    "OUTPUT_NAMES",
    "Candidates",
    "Compositions",
    "Distributions",
    "ExactEmbedding",
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

__getattr__ = names_of(__name__, _MODULES, class_in(__name__))

"""Output spaces, which embed labels of any type in a Hilbert space and decode its points.

Each built-in space declares its names in its own class, and :mod:`hilboost.outputs.registry` finds
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import by_word, class_in, names_of

if TYPE_CHECKING:
    from hilboost.outputs.compositions import Compositions as Compositions
    from hilboost.outputs.distributions import Distributions as Distributions
    from hilboost.outputs.exact_embedding import ExactEmbedding as ExactEmbedding
    from hilboost.outputs.graphs import Graphs as Graphs
    from hilboost.outputs.hierarchies import Hierarchy as Hierarchy
    from hilboost.outputs.kernel_output import KernelOutput as KernelOutput
    from hilboost.outputs.label_sets import LabelSets as LabelSets
    from hilboost.outputs.precomputed import PrecomputedOutput as PrecomputedOutput
    from hilboost.outputs.preimage import Candidates as Candidates
    from hilboost.outputs.preimage import decode as decode
    from hilboost.outputs.rankings import Rankings as Rankings
    from hilboost.outputs.registry import OUTPUT_NAMES as OUTPUT_NAMES
    from hilboost.outputs.registry import as_output as as_output
    from hilboost.outputs.spd_matrices import PositiveMatrices as PositiveMatrices
    from hilboost.outputs.strings import Strings as Strings
    from hilboost.outputs.vectors import Vectors as Vectors

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

__all__ = sorted(by_word(_MODULES))

__getattr__ = names_of(__name__, _MODULES, class_in(__name__))

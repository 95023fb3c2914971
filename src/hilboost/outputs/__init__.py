"""Output spaces: labels of any kind as points of a Hilbert space, and back."""

from hilboost.outputs.compositions import Compositions
from hilboost.outputs.distributions import Distributions
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

"""Rules: how far to go along a proposed stage."""

from hilboost.rules.leaves import ReestimateCells
from hilboost.rules.line_search import LineSearch
from hilboost.rules.penalised_search import PenalisedLineSearch
from hilboost.rules.shrinkage import Shrinkage

__all__ = ["LineSearch", "PenalisedLineSearch", "ReestimateCells", "Shrinkage"]

"""Rules that set the step length and leaf values of a proposed stage."""

from hilboost.rules.leaves import ReestimateLeaves
from hilboost.rules.line_search import LineSearch, PenalizedLineSearch, SearchByTerm, Shrinkage

__all__ = ["LineSearch", "PenalizedLineSearch", "ReestimateLeaves", "SearchByTerm", "Shrinkage"]

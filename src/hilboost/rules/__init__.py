"""Rules that set the step length and leaf values of a proposed stage."""

from hilboost.rules.leaves import ReestimateLeaves
from hilboost.rules.line_search import LineSearch, SearchByTerm, Shrinkage
from hilboost.rules.penalized_line_search import PenalizedLineSearch

__all__ = ["LineSearch", "PenalizedLineSearch", "ReestimateLeaves", "SearchByTerm", "Shrinkage"]

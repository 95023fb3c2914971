"""Rules that set the step length and leaf values of a proposed stage."""

from hilboost.rules.leaves import ReestimateLeaves
from hilboost.rules.line_search import LineSearch
from hilboost.rules.penalized_line_search import PenalizedLineSearch
from hilboost.rules.search_by_term import SearchByTerm
from hilboost.rules.shrinkage import Shrinkage

__all__ = ["LineSearch", "PenalizedLineSearch", "ReestimateLeaves", "SearchByTerm", "Shrinkage"]

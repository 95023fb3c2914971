"""Model reports: facts about a model on some rows as a plain dict, rendered as one HTML page.

The usual entry point is ``model.report(X, y, "report.html")``.
"""

from hilboost.report.collect import facts, scores
from hilboost.report.page import compare, render, report

__all__ = ["compare", "facts", "render", "report", "scores"]

"""Reports: facts about a model on some rows as a plain dict, then one HTML page.

``model.report(X, y, "report.html")`` is all that is usually needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.report.page import Report

__all__ = ["facts", "render", "report", "scores"]


def facts(model: Any, X: Any, y: Any, *, title: str | None = None) -> dict[str, Any]:
    """Facts about a fitted model on some rows; see :func:`hilboost.report.collect.facts`."""
    from hilboost.report.collect import facts

    return facts(model, X, y, title=title)


def scores(model: Any, X: Any, y: Any) -> list[dict[str, Any]]:
    """Figures of merit alone; see :func:`hilboost.report.collect.scores`."""
    from hilboost.report.collect import scores

    return scores(model, X, y)


def render(facts: dict[str, Any]) -> str:
    """The HTML page of these facts; see :func:`hilboost.report.page.render`."""
    from hilboost.report.page import render

    return render(facts)


def report(
    model: Any, X: Any, y: Any, path: str | Path | None = None, *, title: str | None = None
) -> Report:
    """The page about a fitted model on some rows.

    Parameters
    ----------
    model : estimator
    X : array-like or data frame (n, d)
    y : what the estimator takes for n rows
    path : str or Path, optional
        Where to write it.
    title : str, optional

    Returns
    -------
    Report
    """
    from hilboost.report.page import Report

    found = facts(model, X, y, title=title)
    page = Report(found, render(found))
    return page if path is None else page.save(path)

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
    """Facts about a fitted model on some rows, as JSON takes them.

    Parameters
    ----------
    model : estimator
    X : array-like or data frame (n, d)
    y : array-like (n,), (n, c), or sequence of n labels
    title : str, optional

    Returns
    -------
    dict
        As :func:`hilboost.report.collect.facts` says.
    """
    from hilboost.report.collect import facts

    return facts(model, X, y, title=title)


def scores(model: Any, X: Any, y: Any) -> list[dict[str, Any]]:
    """Figures of merit alone, at the cost of one prediction.

    Parameters
    ----------
    model : estimator
    X : array-like or data frame (n, d)
    y : array-like (n,), (n, c), or sequence of n labels

    Returns
    -------
    list of dict
        As :func:`hilboost.report.collect.scores` says.
    """
    from hilboost.report.collect import scores

    return scores(model, X, y)


def render(facts: dict[str, Any]) -> str:
    """The page of some facts.

    Parameters
    ----------
    facts : dict
        From :func:`facts`, or from JSON.

    Returns
    -------
    str
        HTML with its styles and pictures inside.
    """
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
    y : array-like (n,), (n, c), or sequence of n labels
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

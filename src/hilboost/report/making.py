"""Reports as objects: the facts about one or several models, and the page that displays them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hilboost.report.collect import facts
from hilboost.report.comparison import comparison_facts
from hilboost.report.page import Report, page_packages, render


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    positive_class: Any = None,
    sample_weight: Any = None,
    X_train: Any = None,
    groups: Any = None,
    strata: Any = None,
    entry: Any = None,
    offset: Any = None,
) -> Report:
    """Make a report of a fitted model on some rows.

    Parameters
    ----------
    model : estimator
    X : array-like or data frame (n, d)
    y : array-like (n,), (n, c), or sequence of n labels
    path : str or Path, optional
        Output file.
    title : str, optional
    positive_class : label, optional
        The class, of two, that calibration, curves and thresholds are about; by default the second.
    sample_weight : array-like (n,), optional
        Weights of the rows.
    X_train : array-like or data frame (m, d), optional
        Rows of the training data, with which the rows of ``X`` are compared.
    groups, strata, entry : array-like (n,), optional
        Groups of rankings, and strata and entry times of survival times, as in ``fit``.
    offset : array-like (n,) or (n, r), optional
        Known part of the predictions, as in ``fit``.

    Returns
    -------
    Report

    Raises
    ------
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    page_packages()  # before the facts, which take time
    more = {"groups": groups, "strata": strata, "entry": entry, "offset": offset}
    more |= {"sample_weight": sample_weight, "X_train": X_train}
    found = facts(model, X, y, title=title, positive_class=positive_class, **more)
    page = Report(found, render(found))
    return page if path is None else page.save(path)


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    positive_class: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
) -> Report:
    """Compare several fitted models on the same rows, in one page.

    Parameters
    ----------
    models : mapping of str to estimator
        2 to 8 models of the same target.
    X : array-like or data frame (n, d)
        Rows that no model was fitted to.
    y : array-like (n,), (n, c), or sequence of n labels
    path : str or Path, optional
        Output file.
    title : str, optional
    positive_class : label, optional
        The class, of two, that calibration and curves are about; by default the second.
    sample_weight : array-like (n,), optional
        Weights of the rows.
    offset : array-like (n,) or (n, r), optional
        Known part of the predictions of all models.

    Returns
    -------
    Report
        Scores with confidence intervals of their differences, curves, errors by column, and the
        rows on which the predictions differ most.

    Raises
    ------
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    page_packages()
    found = comparison_facts(
        *(models, X, y),
        title=title,
        positive_class=positive_class,
        sample_weight=sample_weight,
        offset=offset,
    )
    page = Report(found, render(found))
    return page if path is None else page.save(path)

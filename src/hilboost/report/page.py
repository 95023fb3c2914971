"""Reports on one or several models: their facts, rendered as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from hilboost.core.dtypes import PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, shown
from hilboost.core.packages import required
from hilboost.core.plain_values import is_number, is_path
from hilboost.persistence.atomic import atomic_path
from hilboost.report.collect import facts
from hilboost.report.comparison import comparison_facts
from hilboost.report.table import number_text, value_text


@dataclass(frozen=True)
class Report:
    """A report page and the facts it was rendered from.

    Notebooks display the page.
    """

    facts: dict[str, Any]  # JSON-compatible facts
    html: str  # the HTML page
    path: Path | None = None  # the file it was saved to

    def save(self, path: str | Path) -> Report:  # the same report with ``path`` set
        """Write the page; an existing file is replaced atomically."""
        path = Path(path)
        if path.is_dir():
            raise InvalidParameter(f"path='{path}' is a folder; use the path of a file.")
        if not path.parent.is_dir():
            raise InvalidParameter(
                f"there is no folder '{path.parent}' for the report; create it first."
            )
        with atomic_path(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        return Report(self.facts, self.html, path)

    def _repr_html_(self) -> str:
        source = html.escape(self.html, quote=True)
        style = "width:100%;height:80vh;border:1px solid #8888"
        return f'<iframe title="Report" style="{style}" srcdoc="{source}"></iframe>'

    def __repr__(self) -> str:
        where = "" if self.path is None else f", in '{self.path}'"
        return f"<Report: {self.facts['title']}, {len(self.html) // 1000} kB{where}>"


def page_packages() -> None:
    """Require jinja2 and matplotlib."""
    required("matplotlib", "a report")
    required("jinja2", "a report")


def render(facts: dict[str, Any]) -> str:
    """Render the facts of a report or of a comparison as a page.

    Parameters
    ----------
    facts : dict
        From :func:`hilboost.report.facts` or :func:`hilboost.report.compare`.

    Returns
    -------
    str
        Self-contained HTML without network access.  Its only script sorts tables and shows the
        values of charts next to the pointer; the page is complete without it.

    Raises
    ------
    InvalidType
        The facts must be a dict.
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    if type(facts) is not dict:
        raise InvalidType(
            "render requires the facts of a report, as in render(facts(model, X, y)); got "
            f"{shown(facts)}."
        )
    page_packages()
    import markupsafe

    from hilboost.report import charts

    filters = {
        "num": _number,
        "brief": lambda value: number_text(value, 2),
        "percent": lambda value: "–" if value is None else f"{100 * value:.1f}\u00a0%",
        "difference": lambda value: ("+" if value > 0 else "") + number_text(value, 2),
        "extract": lambda key, mapping: mapping[key],
        "plain": number_text,
        "value": value_text,
    }
    charts.TEMPLATES.filters |= filters
    folder = files("hilboost.report") / "templates"
    script = (folder / "report.js").read_text(encoding="utf-8")
    # The page's policy permits this script and no other, by its hash.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    name = "comparison.html" if "models" in facts else "report.html"
    page = charts.TEMPLATES.get_template(name).render(
        f={"ranking": None, "survival": None} | facts,  # absent from facts of earlier versions
        charts=charts,
        script=markupsafe.Markup(script),
        script_hash=digest,
    )
    # Levels and labels may contain lone surrogates, which cannot be written to a file.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: object) -> str:
    """Format a number; return text unchanged."""
    if value is None:
        return "–"
    return number_text(value) if is_number(value) else str(value)


def report(
    model: Any, X: object, y: object, path: str | Path | None = None, **options: Any
) -> Report:
    """Make a report of a fitted model on some rows.

    Parameters
    ----------
    model : estimator
    X : array-like or data frame (n, d)
    y : array-like (n,), (n, c), or sequence of n labels
    path : str or Path, optional
        Output file.
    **options
        Further parameters of :func:`facts`.

    Returns
    -------
    Report

    Raises
    ------
    InvalidData
        ``X`` is a path.
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    if is_path(X):
        raise InvalidData(f"X is the path '{X}', which comes after the rows: report(X, y, path).")
    page_packages()  # before the facts, which take time
    return _page(facts(model, X, y, **options), path)


def compare(
    models: Mapping[str, Any],
    X: object,
    y: object,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    positive_class: object = None,
    sample_weight: PerRow = None,
    offset: PerRow = None,
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
    return _page(found, path)


def _page(found: dict[str, Any], path: str | Path | None) -> Report:
    page = Report(found, render(found))
    return page if path is None else page.save(path)

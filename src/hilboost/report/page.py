"""Rendering of facts as one self-contained HTML file."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilboost.core.errors import InvalidParameter
from hilboost.core.packages import required
from hilboost.persistence.atomic import atomic_path


@dataclass(frozen=True)
class Report:
    """A report page and the facts it was rendered from.

    Notebooks display the page.

    Attributes
    ----------
    facts : dict
        JSON-compatible facts.
    html : str
        The HTML page.
    path : Path or None
        The file it was saved to.
    """

    facts: dict[str, Any]
    html: str
    path: Path | None = None

    def save(self, path: str | Path) -> Report:
        """Write the page; an existing file is replaced atomically.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Report
            The same report with ``path`` set.

        Raises
        ------
        InvalidParameter
            If ``path`` is a folder, or its folder does not exist.
        OSError
            If the file cannot be written.
        """
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


def page_packages() -> Any:
    """Return jinja2, if it and matplotlib are installed.

    Raises
    ------
    MissingPackage
    """
    required("matplotlib", "a report")
    return required("jinja2", "a report")


def render(facts: dict[str, Any]) -> str:
    """Render the facts of :func:`hilboost.report.facts` as a page.

    Parameters
    ----------
    facts : dict

    Returns
    -------
    str
        Self-contained HTML without scripts or network access.

    Raises
    ------
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    jinja2 = page_packages()
    from hilboost.report import charts
    from hilboost.report.table import number_text

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hilboost.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["num"] = _number
    environment.filters["brief"] = lambda value: number_text(value, 2)
    environment.filters["percent"] = _percent
    environment.filters["plain"] = number_text
    page = environment.get_template("report.html").render(f=facts, charts=charts)
    # Levels and labels may contain lone surrogates, which cannot be written to a file.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: Any) -> str:
    """Format a number; return text unchanged."""
    from hilboost.report.table import number_text

    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number_text(value)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"

"""From facts to one HTML file, which needs nothing outside itself."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilboost.core.errors import InvalidParameter
from hilboost.persistence.atomic import atomic_path


@dataclass(frozen=True)
class Report:
    """A page about a model, and the facts it was made from.

    In a notebook it shows itself.

    Attributes
    ----------
    facts : dict
        As JSON takes it.
    html : str
        The whole page.
    path : Path or None
        Where it was written.
    """

    facts: dict[str, Any]
    html: str
    path: Path | None = None

    def save(self, path: str | Path) -> Report:
        """Write the page; a file of this name is replaced in one step.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Report
            The same one, with its ``path``.

        Raises
        ------
        InvalidParameter
            ``path`` is a folder, or in one that does not exist.
        OSError
            The file cannot be written.
        """
        path = Path(path)
        if path.is_dir():
            raise InvalidParameter(f"path='{path}' is a folder; give the name of a file in it.")
        if not path.parent.is_dir():
            raise InvalidParameter(f"there is no folder '{path.parent}' for the report; make it.")
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


def render(facts: dict[str, Any]) -> str:
    """The page of :func:`hilboost.report.facts`.

    Parameters
    ----------
    facts : dict

    Returns
    -------
    str
        HTML with its styles and pictures inside; no script, nothing from the network.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from hilboost.report import charts
    from hilboost.report.table import number_text

    environment = Environment(
        loader=PackageLoader("hilboost.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["num"] = _number
    environment.filters["brief"] = lambda value: number_text(value, 2)
    environment.filters["percent"] = _percent
    environment.filters["plain"] = number_text
    page = environment.get_template("report.html").render(f=facts, charts=charts)
    # Levels and labels may hold lone surrogates, which no file takes.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: Any) -> str:
    """A number for people, and words as they are."""
    from hilboost.report.table import number_text

    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number_text(value)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"

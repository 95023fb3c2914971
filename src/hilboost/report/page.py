"""Rendering of facts as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from hilboost.core.errors import InvalidParameter
from hilboost.core.packages import required
from hilboost.persistence.atomic import atomic_path


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


def page_packages() -> Any:
    """Return jinja2, if it and matplotlib are installed."""
    required("matplotlib", "a report")
    return required("jinja2", "a report")


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
    MissingPackage
        The packages of the extra ``report`` are not installed.
    """
    jinja2 = page_packages()
    import markupsafe

    from hilboost.report import charts
    from hilboost.report.swarm import swarm
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
    environment.filters["difference"] = _difference
    environment.filters["extract"] = lambda key, mapping: mapping[key]
    environment.filters["plain"] = number_text
    script = _script()
    name = "comparison.html" if "models" in facts else "report.html"
    page = environment.get_template(name).render(
        f={"ranking": None, "survival": None} | facts,  # absent from facts of earlier versions
        charts=charts,
        swarm=swarm,
        script=markupsafe.Markup(script),
        script_hash=_hash(script),
    )
    # Levels and labels may contain lone surrogates, which cannot be written to a file.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _script() -> str:
    """Read the script of the page."""
    folder = files("hilboost.report") / "templates"
    return (folder / "report.js").read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Hash a script, by which the page's policy permits this one and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _number(value: Any) -> str:
    """Format a number; return text unchanged."""
    from hilboost.report.table import number_text

    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number_text(value)


def _difference(value: float) -> str:
    """Format a number with its sign."""
    from hilboost.report.table import number_text

    return ("+" if value > 0 else "") + number_text(value, 2)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}\u00a0%"

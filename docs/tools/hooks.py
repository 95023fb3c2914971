"""MkDocs hooks: include pages and images from outside ``docs``.

Some files of the repository (CONTRIBUTING.md, CHANGELOG.md, the examples, results of the
benchmarks) are not in ``docs``.  The site includes copies of them, and links from ``docs`` to these
files lead to the copies.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "reproductions/README.md": "reproductions/overview.md",
}
BESIDES = (
    "benchmarks/results/*.md",
    "benchmarks/results/*.png",
    "examples/*.py",
    "reproductions/*/results/*.*",
)
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and images from outside ``docs``."""
    for name in besides():
        files.append(File.generated(config, site_name(name), abs_src_path=str(ROOT / name)))
    return files


def besides() -> list[str]:
    """Return the files outside ``docs``, by their paths in the repository."""
    found = {path.relative_to(ROOT).as_posix() for glob in BESIDES for path in ROOT.glob(glob)}
    return [*PAGES, *sorted(found)]


def site_name(name: str) -> str:
    """Return the path in the site of a file of the repository."""
    return PAGES.get(name, name.removeprefix("docs/"))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Convert links between files of the repository to links between pages of the site."""
    source = Path(page.file.abs_src_path).relative_to(ROOT)
    here = PurePosixPath(page.file.src_uri).parent

    def moved(match: re.Match[str]) -> str:
        target, hash_, anchor = match[1].partition("#")
        path = (ROOT / source.parent / target).resolve()
        if not target or not path.is_file():
            return match[0]
        there = PurePosixPath(site_name(path.relative_to(ROOT).as_posix()))
        ups = "../" * len(here.parts)
        return f"]({ups}{there}{hash_}{anchor}"

    return LINK.sub(moved, markdown)

"""Draw the pictures of the gallery: ``python docs/tools/gallery.py [NAME ...]``."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
EXAMPLE = re.compile(
    r"```python\n(.*?)```\n\n!\[[^\]]*\]\((images/gallery/(\w+)\.png)\)", re.DOTALL
)
KEY = "Source"


def examples() -> dict[str, tuple[str, Path]]:
    """Return the code and the picture of each example."""
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    return {name: (code, DOCS / path) for code, path, name in EXAMPLE.findall(page)}


def digest(code: str) -> str:
    """Return what a picture remembers of the code that drew it."""
    return hashlib.sha256(code.encode()).hexdigest()


def draw(code: str, path: Path) -> None:
    """Run an example, and save its figure."""
    import matplotlib

    matplotlib.use("Agg")
    scope: dict[str, Any] = {}
    exec(compile(code, path.stem, "exec"), scope)
    scope["figure"].savefig(path, dpi=110, metadata={KEY: digest(code), "Software": None})


def main() -> None:
    """Draw the named pictures, or all."""
    found = examples()
    for name in sys.argv[1:] or found:
        draw(*found[name])


if __name__ == "__main__":
    main()

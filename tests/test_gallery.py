"""The pictures of the gallery were drawn by the code beside them."""

import runpy
from pathlib import Path

import pytest

GALLERY = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "tools" / "gallery.py"))
EXAMPLES = GALLERY["examples"]()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_picture_belongs_to_the_code(name):
    code, path = EXAMPLES[name]
    content = path.read_bytes()
    written = content.partition(GALLERY["KEY"].encode() + b"\x00")[2][:64]
    assert written.decode() == GALLERY["digest"](code)


def test_there_is_a_picture_for_each_example():
    page = (Path(__file__).parent.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == page.count("```python") == page.count("\n## ")

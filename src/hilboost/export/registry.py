"""Export formats, which each module declares in ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hilboost.core.discovery import by_name, modules_in


@cache
def export_formats() -> Mapping[str, Callable[..., Any]]:
    """Return the functions ``export(model, path)`` by the names of their formats."""
    exports = (vars(module).get("FORMATS", {}) for module in modules_in("hilboost.export"))
    return by_name(
        (one for formats in exports for one in formats.items()), "exports have the format"
    )


def export_function(name: str) -> Callable[..., Any] | None:
    """Return an export function by its own name, such as ``"to_onnx"``."""
    return next((f for f in export_formats().values() if f.__name__ == name), None)

"""Export formats, which each module declares in ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from hilboost.core.discovery import modules_in


@cache
def export_formats() -> Mapping[str, Callable[..., Any]]:
    """Return the functions ``export(model, path)`` by the names of their formats."""
    found: dict[str, Callable[..., Any]] = {}
    for module in modules_in("hilboost.export"):
        for name, export in vars(module).get("FORMATS", {}).items():
            if name in found:
                raise RuntimeError(f"two exports have the format {name!r}; rename one.")
            found[name] = export
    return MappingProxyType(found)


def export_function(name: str) -> Callable[..., Any] | None:
    """Return an export function by its own name, such as ``"to_onnx"``."""
    return next((f for f in export_formats().values() if f.__name__ == name), None)

"""Export of models to other formats, tables and plots.

Each module declares its formats in ``FORMATS``, and :mod:`hilboost.export.registry` finds it.  The
imports below make the names visible to type checkers.
"""

from typing import Any

from hilboost.export.onnx_model import to_onnx
from hilboost.export.plots import plot_kernels, plot_tree
from hilboost.export.tables import tree_table
from hilboost.export.treelite_model import to_treelite
from hilboost.export.xgboost_json import to_xgboost_json

__all__ = ["plot_kernels", "plot_tree", "to_onnx", "to_treelite", "to_xgboost_json", "tree_table"]


def __getattr__(name: str) -> Any:
    """Look up exports of the package that are not imported above."""
    from hilboost.export.registry import export_function

    # Skip submodules: the registry imports them, and they may import each other.
    if name.startswith("to_") and (found := export_function(name)) is not None:
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

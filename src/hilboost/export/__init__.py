"""Models for other programs, and for the eye."""

from hilboost.export.onnx_model import to_onnx
from hilboost.export.plots import plot_tree
from hilboost.export.tables import tree_table
from hilboost.export.xgboost_json import to_xgboost_json

__all__ = ["plot_tree", "to_onnx", "to_xgboost_json", "tree_table"]

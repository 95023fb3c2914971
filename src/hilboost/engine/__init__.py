"""The tree engine: histogram trees, grown on binned columns, and their predictions.

Other packages import the names below, and no module of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import names_of

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS, SET_WORDS
    from hilboost.engine.ops.cpu.criterion import leaf_values
    from hilboost.engine.ops.cpu.leaves import add_leaf_values
    from hilboost.engine.ops.cpu.shapley import (
        MOST_PLAYERS,
        GaussRules,
        LeafPaths,
        TreeGame,
        add_interactions,
        add_values,
        leaf_paths,
    )
    from hilboost.engine.settings import MonotonicOrder, TreeSettings, VectorSettings
    from hilboost.engine.stage import RequestedStages, fit_stages
    from hilboost.engine.table import add_trees_on_bins
    from hilboost.engine.tree import Forest, Tree, flat_trees
    from hilboost.engine.tree_data import TreeData, prepare_trees
    from hilboost.engine.vector import prepare_vector_trees

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_MODULES = {
    "ops.cpu.category_splits": "MAX_LEVELS SET_WORDS",
    "ops.cpu.criterion": "leaf_values",
    "ops.cpu.leaves": "add_leaf_values",
    "ops.cpu.shapley": """
        GaussRules LeafPaths MOST_PLAYERS TreeGame add_interactions add_values leaf_paths
    """,
    "settings": "MonotonicOrder TreeSettings VectorSettings",
    "stage": "RequestedStages fit_stages",
    "table": "add_trees_on_bins",
    "tree": "Forest Tree flat_trees",
    "tree_data": "TreeData prepare_trees",
    "vector": "prepare_vector_trees",
}

__all__ = [
    "MAX_LEVELS",
    "MOST_PLAYERS",
    "SET_WORDS",
    "Forest",
    "GaussRules",
    "LeafPaths",
    "MonotonicOrder",
    "RequestedStages",
    "Tree",
    "TreeData",
    "TreeGame",
    "TreeSettings",
    "VectorSettings",
    "add_interactions",
    "add_leaf_values",
    "add_trees_on_bins",
    "add_values",
    "fit_stages",
    "flat_trees",
    "leaf_paths",
    "leaf_values",
    "prepare_trees",
    "prepare_vector_trees",
]

__getattr__ = names_of(__name__, _MODULES)

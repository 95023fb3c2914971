"""The tree engine: histogram trees, grown on binned columns, and their predictions.

Other packages import the names below, and no module of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import by_word, names_of

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS as MAX_LEVELS
    from hilboost.engine.ops.cpu.category_splits import SET_WORDS as SET_WORDS
    from hilboost.engine.ops.cpu.criterion import criterion_of as criterion_of
    from hilboost.engine.ops.cpu.criterion import leaf_values as leaf_values
    from hilboost.engine.ops.cpu.leaves import add_leaf_values as add_leaf_values
    from hilboost.engine.ops.cpu.shapley import MOST_PLAYERS as MOST_PLAYERS
    from hilboost.engine.ops.cpu.shapley import GaussRules as GaussRules
    from hilboost.engine.ops.cpu.shapley import LeafPaths as LeafPaths
    from hilboost.engine.ops.cpu.shapley import TreeGame as TreeGame
    from hilboost.engine.ops.cpu.shapley import add_interactions as add_interactions
    from hilboost.engine.ops.cpu.shapley import add_values as add_values
    from hilboost.engine.ops.cpu.shapley import leaf_paths as leaf_paths
    from hilboost.engine.settings import MonotonicOrder as MonotonicOrder
    from hilboost.engine.settings import TreeSettings as TreeSettings
    from hilboost.engine.settings import VectorSettings as VectorSettings
    from hilboost.engine.stage import RequestedStages as RequestedStages
    from hilboost.engine.stage import fit_stages as fit_stages
    from hilboost.engine.table import add_trees_on_bins as add_trees_on_bins
    from hilboost.engine.tree import Forest as Forest
    from hilboost.engine.tree import Tree as Tree
    from hilboost.engine.tree import flat_trees as flat_trees
    from hilboost.engine.tree_data import TreeData as TreeData
    from hilboost.engine.tree_data import prepare_trees as prepare_trees
    from hilboost.engine.vector import prepare_vector_trees as prepare_vector_trees

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_MODULES = {
    "ops.cpu.category_splits": "MAX_LEVELS SET_WORDS",
    "ops.cpu.criterion": "criterion_of leaf_values",
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

__all__ = sorted(by_word(_MODULES))

__getattr__ = names_of(__name__, _MODULES)

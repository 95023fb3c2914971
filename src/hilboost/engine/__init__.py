"""The tree engine: histogram trees, grown on binned columns, and their predictions.

Other packages import the names below, and no module of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.lazy import names_of

if TYPE_CHECKING:
    from hilboost.engine.binned_outputs import add_trees_on_bins
    from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS, SET_WORDS
    from hilboost.engine.ops.cpu.leaf_paths import LeafPaths, leaf_paths, node_counts
    from hilboost.engine.ops.cpu.leaves import add_leaf_values
    from hilboost.engine.ops.cpu.shapley import (
        MOST_PLAYERS,
        add_interactions,
        add_interventional,
        add_path_dependent,
    )
    from hilboost.engine.series import fit_stages
    from hilboost.engine.settings import TreeSettings, VectorSettings
    from hilboost.engine.stage import fit_trees
    from hilboost.engine.tree import Forest, Tree, flat_trees
    from hilboost.engine.tree_data import TreeData, prepare_trees
    from hilboost.engine.vector import VectorTreeData, fit_vector_tree, prepare_vector_trees

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_HOMES = {
    "MAX_LEVELS": "ops.cpu.category_splits",
    "SET_WORDS": "ops.cpu.category_splits",
    "MOST_PLAYERS": "ops.cpu.shapley",
    "Forest": "tree",
    "LeafPaths": "ops.cpu.leaf_paths",
    "Tree": "tree",
    "TreeData": "tree_data",
    "TreeSettings": "settings",
    "VectorSettings": "settings",
    "VectorTreeData": "vector",
    "add_interactions": "ops.cpu.shapley",
    "add_interventional": "ops.cpu.shapley",
    "add_path_dependent": "ops.cpu.shapley",
    "flat_trees": "tree",
    "leaf_paths": "ops.cpu.leaf_paths",
    "node_counts": "ops.cpu.leaf_paths",
    "add_leaf_values": "ops.cpu.leaves",
    "add_trees_on_bins": "binned_outputs",
    "fit_stages": "series",
    "fit_trees": "stage",
    "fit_vector_tree": "vector",
    "prepare_trees": "tree_data",
    "prepare_vector_trees": "vector",
}

__all__ = [
    "MAX_LEVELS",
    "MOST_PLAYERS",
    "SET_WORDS",
    "Forest",
    "LeafPaths",
    "Tree",
    "TreeData",
    "TreeSettings",
    "VectorSettings",
    "VectorTreeData",
    "add_interactions",
    "add_interventional",
    "add_leaf_values",
    "add_path_dependent",
    "add_trees_on_bins",
    "fit_stages",
    "fit_trees",
    "fit_vector_tree",
    "flat_trees",
    "leaf_paths",
    "node_counts",
    "prepare_trees",
    "prepare_vector_trees",
]

__getattr__ = names_of(__name__, _HOMES)

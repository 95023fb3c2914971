"""Trees with vector leaves for many outputs, grown by exact squared error (OK3 of G2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.capabilities import Capabilities, SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.engine import Tree, TreeData, VectorSettings, fit_stages, prepare_vector_trees


@dataclass(frozen=True)
class VectorTreeLearner(VectorSettings, Learner):
    """Learner of one tree per stage for all outputs, with squared error on the negative gradients.

    If the outputs are points in the feature space of an output kernel, these are output kernel
    trees (OK3) or, with random cuts, output kernel extra-trees (OK3-et).

    Notes
    -----
    A split on categories sends a subset of the levels to the left child.  Missing values are a
    level.  With random cuts, the subset is drawn: each one except the empty and the whole set of
    the levels of the node has the same probability.  Otherwise, it is the best of all subsets if
    the node has at most ten levels.  With more levels, these are sorted along the first principal
    component of their mean gradients, and it is the best cut of this order.  For one output this
    is also the best of all subsets (Fisher 1958).  Levels without rows in the node, and unknown
    ones, go to the child with the larger weight.

    Cost O(n d r log J) per stage for J splits.  With ``max_features``, ``d`` is that fraction of
    the columns; with ``sketch``, its columns replace the ``r`` outputs, plus O(n r) for the leaves.
    The hessian is not used.  A category column with ``l`` levels costs O(l² r) more per node.
    """

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "vector_tree"
    capabilities = Capabilities(
        base_model=Tree,
        layout="C",
        constant_on_leaves=True,
        takes_missing_values=True,
        takes_categories=True,
        encodes_categories=True,
        resumable=True,
        prepare_among_workers=prepare_vector_trees,
        splits=lambda trees: SplitSettings(
            categorical=trees.categorical, min_samples_leaf=trees.min_samples_leaf
        ),
    )

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner with these category columns; it supports no constraints."""
        return replace(self, categorical=splits.categorical)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> TreeData:
        """Bin the table."""
        return prepare_vector_trees(self, X, weight, seed, n_threads)

    def close(self, data: TreeData) -> None:
        """Stop the threads."""
        data.close()

    def fit(
        self, data: TreeData, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one tree."""
        (tree,), (leaves,) = fit_stages(self, data, gradients, sample, [lambda: rng])
        columns = slice(0, gradients.negative_gradient.shape[1])
        return [FittedTerm(Term.of(tree, columns), leaves=leaves)]

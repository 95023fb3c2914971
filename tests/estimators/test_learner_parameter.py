"""What the parameter ``learner`` of the estimators for tables may be, and what goes with it."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tests.reloaded import reloaded

from hilboost import BoostingRegressor, KernelBoostingRegressor
from hilboost.core.capabilities import Capabilities
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import Learner
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.nested import NestedLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.tree import TreeLearner, VectorTreeLearner

TREES = TreeLearner.capabilities

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(120, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + RNG.standard_t(2, size=120) / 10


@pytest.mark.parametrize("learner", ["kernel", Ridge(), TreeLearner(), VectorTreeLearner()])
@pytest.mark.parametrize("name", ["max_leaf_nodes", "l2_regularization", "max_bins"])
def test_parameters_of_trees_are_refused_with_other_learners(learner, name):
    with pytest.raises(InvalidParameter, match=f"{name} is only supported by the built-in trees"):
        BoostingRegressor(learner=learner, **{name: 7}).fit(X, Y)


@pytest.mark.parametrize("stages", ["full", "sparse", "block"])
def test_a_kernel_machine_as_the_learner_is_one_of_its_stages(stages):
    machine = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, stages=stages)
    model = BoostingRegressor(learner=machine, n_estimators=5, learning_rate=0.5, random_state=0)
    model.fit(X, Y)
    assert model.learner_.name == stages
    assert model.n_estimators_ == 5
    assert model.score(X, Y) > 0.5
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.learner_.name == stages


def test_penalties_without_a_state_cannot_be_continued():
    learner = NestedLearner(SparseLearner(KernelMachineConfig()))
    with pytest.raises(InvalidParameter, match="whose state cannot be kept; set warm_start=False"):
        BoostingRegressor(learner=learner, warm_start=True).fit(X, Y)


@dataclass(frozen=True)
class OwnTrees(Learner):
    """A tree learner of a user's own, which takes part in the adaptation to tables."""

    trees: TreeLearner

    capabilities = Capabilities(
        base_model=TREES.base_model,
        takes_missing_values=True,
        takes_missing_targets=True,
        takes_categories=True,
        encodes_categories=True,
        constant_on_leaves=True,
        newton_steps=True,
        splits=lambda own: TREES.splits(own.trees),
    )

    def for_table(self, splits):
        return replace(self, trees=self.trees.for_table(splits))

    def prepare(self, X, weight, seed, n_threads):
        return self.trees.prepare(X, weight, seed, n_threads)

    def fit(self, data, gradients, sample, rng):
        return self.trees.fit(data, gradients, sample, rng)

    def close(self, data):
        self.trees.close(data)


@pytest.mark.parametrize("n_levels", [4, 40])
@pytest.mark.parametrize(
    "settings",
    [{}, {"monotonic": (1, 0, 0)}, {"groups": ((0, 2), (1,))}, {"symmetric": True}],
    ids=str,
)
def test_trees_of_a_users_own_are_adapted_like_the_built_in_ones(settings, n_levels):
    table = pd.DataFrame(X, columns=["a", "b"])
    table["kind"] = pd.Categorical([f"level {k % n_levels}" for k in range(len(X))])
    Y2 = np.column_stack([Y, Y + X[:, 0]])
    Y2[::3, 1] = np.nan  # so that hessians count targets
    trees = TreeLearner(min_samples_leaf=4, max_leaf_nodes=6, **settings)
    own, expected = (
        BoostingRegressor(learner=learner, n_estimators=5, random_state=0).fit(table, Y2)
        for learner in (OwnTrees(trees), trees)
    )
    np.testing.assert_array_equal(own.predict(table), expected.predict(table))
    assert own.learner_.trees == expected.learner_
    assert own.learner_.trees.min_hessian == 4


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_directions_of_trees_of_a_users_own_do_not_order_categories():
    table = pd.DataFrame({"kind": pd.Categorical(list("wxyz") * 10), "a": np.arange(40.0)})
    model = BoostingRegressor(learner=OwnTrees(TreeLearner(monotonic=(1, 0))))
    with pytest.raises(InvalidParameter, match="not supported for column 'kind'"):
        model.fit(table, np.arange(40.0))

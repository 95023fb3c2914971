"""Re-estimated leaves: from the rows that a stage learned from, and from no others."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.cases import PLAIN

from hilboost import BoostingRegressor
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import draw_with_replacement
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import BaseModel, Stage, Term
from hilboost.core.errors import IncompatibleParts
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.row_sample import RowSample
from hilboost.core.rule import State
from hilboost.core.target import Target
from hilboost.learners.tree import TreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses import AbsoluteError, SquaredError
from hilboost.rules import ReestimateLeaves

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = RNG.standard_t(2, size=(80, 1))
RAW = np.zeros((80, 1))


def stage_of(sample):
    loss, target = AbsoluteError(), Target(Y, sample.weight)
    trees = TreeLearner(max_leaf_nodes=4, min_samples_leaf=5)
    data = trees.prepare(X, sample.weight, 0, 1)
    fitted = tuple(trees.fit(data, loss.gradients(target, RAW), sample, np.random.default_rng(0)))
    stage = Stage(tuple(f.term for f in fitted))
    return stage, State(loss, target, RAW, fitted, sample)


@pytest.mark.parametrize("sampled", [False, True])
def test_cells_become_medians_of_the_rows_learned_from(sampled):
    rows = np.arange(0, 80, 2, dtype=np.uint32) if sampled else None
    stage, state = stage_of(RowSample(rows, None))
    (part,) = ReestimateLeaves()(stage, state).terms
    learned = np.arange(80) if rows is None else rows
    leaves = state.fitted[0].leaves
    for leaf, value in enumerate(part.model.values[:, 0]):
        here = learned[leaves[learned] == leaf]
        assert len(here) >= 5
        assert value == np.median(Y[here])
    np.testing.assert_array_equal(part.model.threshold, stage.terms[0].model.threshold)


def test_weights_of_the_sample_count():
    weight = np.ones(80)
    weight[:40] = 3
    stage, state = stage_of(RowSample(None, weight))
    (part,) = ReestimateLeaves()(stage, state).terms
    leaves = state.fitted[0].leaves
    for leaf, value in enumerate(part.model.values[:, 0]):
        here = np.flatnonzero(leaves == leaf)
        assert value == np.median(np.repeat(Y[here, 0], weight[here].astype(int)))


def test_bootstrap_draws_count_as_often_as_drawn():
    """With every row drawn or not, medians are those of the drawn multiset."""
    settings = PLAIN | {"bootstrap": True, "n_estimators": 1, "learning_rate": 1.0}
    model = BoostingRegressor("absolute_error", **settings).fit(X, Y[:, 0])
    key = key_of(model.fitted_.seed, Purpose.ROWS_OF_STAGE)
    counts = draw_with_replacement(key, 80, 80, ThreadTeam())
    assert counts.max() > 1
    leaves, start = model.apply(X)[:, 0], model.model_.initial_raw[0]
    values = model.model_.stages[0].terms[0].model.values[:, 0]
    for leaf, value in enumerate(values):
        here = leaves == leaf
        residual = np.repeat(Y[here, 0] - start, counts[here])
        assert value == pytest.approx(np.median(residual), rel=1e-12)


def test_a_loss_without_leaf_values_is_refused():
    with pytest.raises(IncompatibleParts, match="SquaredError does not"):
        ReestimateLeaves().check(SquaredError(), TreeLearner())
    stage, state = stage_of(RowSample(None, None))
    state = State(SquaredError(), state.target, RAW, state.fitted, state.sample)
    with pytest.raises(IncompatibleParts, match="SquaredError does not compute leaf values"):
        ReestimateLeaves()(stage, state)


def test_terms_without_leaves_keep_their_outputs():
    class Constant(BaseModel):
        def predict_raw(self, X):
            return np.zeros((len(X), 1))

    part = Term.of(Constant(), slice(0, 1))
    fitted = (FittedTerm(part, outputs=np.zeros((80, 1))),)
    state = State(AbsoluteError(), Target(Y), RAW, fitted, RowSample(None, None))
    assert ReestimateLeaves()(Stage((part,)), state).terms == (part,)


def test_parts_that_go_together_are_accepted():
    assert ReestimateLeaves().check(AbsoluteError(), TreeLearner()) is None
    assert ReestimateLeaves().check(AbsoluteError(), WrappedLearner(Ridge())) is None

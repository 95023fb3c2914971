"""Re-estimated cells: from the rows that a stage learnt from, and from no others."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.cases import PLAIN

from hilboost import BoostingRegressor
from hilboost.core.contracts import BaseModel, Fitted, State
from hilboost.core.errors import IncompatibleParts
from hilboost.core.records import Part, Sample, Stage, Target
from hilboost.learners.tree import TreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses import AbsoluteError, SquaredError
from hilboost.rules import ReestimateCells

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = RNG.standard_t(2, size=(80, 1))
RAW = np.zeros((80, 1))


def stage_of(sample):
    loss, target = AbsoluteError(), Target(Y, sample.weight)
    trees = TreeLearner(max_leaf_nodes=4, min_samples_leaf=5)
    data = trees.prepare(X, sample.weight, 0, 1)
    fitted = tuple(trees.fit(data, loss.gradients(target, RAW), sample, np.random.default_rng(0)))
    stage = Stage(tuple(f.part for f in fitted))
    return stage, State(loss, target, RAW, fitted, sample)


@pytest.mark.parametrize("sampled", [False, True])
def test_cells_become_medians_of_the_rows_learnt_from(sampled):
    rows = np.arange(0, 80, 2, dtype=np.uint32) if sampled else None
    stage, state = stage_of(Sample(rows, None))
    (part,) = ReestimateCells()(stage, state).parts
    learnt = np.arange(80) if rows is None else rows
    cells = state.fitted[0].cells
    for cell, value in enumerate(part.model.values[:, 0]):
        here = learnt[cells[learnt] == cell]
        assert len(here) >= 5
        assert value == np.median(Y[here])
    np.testing.assert_array_equal(part.model.threshold, stage.parts[0].model.threshold)


def test_weights_of_the_sample_count():
    weight = np.ones(80)
    weight[:40] = 3
    stage, state = stage_of(Sample(None, weight))
    (part,) = ReestimateCells()(stage, state).parts
    cells = state.fitted[0].cells
    for cell, value in enumerate(part.model.values[:, 0]):
        here = np.flatnonzero(cells == cell)
        assert value == np.median(np.repeat(Y[here, 0], weight[here].astype(int)))


def test_bootstrap_draws_count_as_often_as_drawn():
    """With every row drawn or not, medians are those of the drawn multiset."""
    settings = PLAIN | {"bootstrap": True, "n_estimators": 1, "learning_rate": 1.0}
    model = BoostingRegressor("absolute_error", **settings).fit(X, Y[:, 0])
    rng = np.random.default_rng((model._fitted_seed, 0, 0))
    counts = np.bincount(rng.integers(80, size=80), minlength=80)
    cells, start = model.apply(X)[:, 0], model.model_.start[0]
    values = model.model_.stages[0].parts[0].model.values[:, 0]
    for cell, value in enumerate(values):
        here = cells == cell
        residual = np.repeat(Y[here, 0] - start, counts[here])
        assert value == pytest.approx(np.median(residual), rel=1e-12)


def test_a_loss_without_cell_values_is_refused():
    with pytest.raises(IncompatibleParts, match="SquaredError has none"):
        ReestimateCells().check(SquaredError(), TreeLearner())
    stage, state = stage_of(Sample(None, None))
    state = State(SquaredError(), state.target, RAW, state.fitted, state.sample)
    with pytest.raises(IncompatibleParts, match="SquaredError has no cell values"):
        ReestimateCells()(stage, state)


def test_a_learner_without_cells_is_refused():
    class Constant(BaseModel):
        def predict_raw(self, X):
            return np.zeros((len(X), 1))

    part = Part.of(Constant(), slice(0, 1))
    fitted = (Fitted(part, outputs=np.zeros((80, 1))),)
    state = State(AbsoluteError(), Target(Y), RAW, fitted, Sample(None, None))
    with pytest.raises(IncompatibleParts, match="Constant has none. Use a tree, or a line search"):
        ReestimateCells()(Stage((part,)), state)


def test_parts_that_go_together_are_accepted():
    assert ReestimateCells().check(AbsoluteError(), TreeLearner()) is None
    assert ReestimateCells().check(AbsoluteError(), WrappedLearner(Ridge())) is None

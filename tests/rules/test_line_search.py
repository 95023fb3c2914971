"""The step length is the minimizer along the stage."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.cases import LOSSES, ids

from hilboost import KernelBoostingRegressor
from hilboost.core.base_model import BaseModel, LeafModel, Stage, Term
from hilboost.core.errors import IncompatibleParts
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.row_sample import RowSample
from hilboost.core.rule import State
from hilboost.core.target import Target
from hilboost.kernels import Linear
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.tree import TreeLearner
from hilboost.losses import Cox
from hilboost.rules import LineSearch, PenalizedLineSearch, Shrinkage

N = 60


class Nothing(BaseModel):
    def predict_raw(self, X):
        raise AssertionError("a rule looks at outputs only")


def draw(case, weighted=False, sampled=False):
    """A state in which the stage is the negative gradient with noise."""
    rng = np.random.default_rng(1)
    loss, target = case.make(), case.target(rng, N, weighted)
    raw = loss.initial_raw(target) + 0.5 * rng.normal(size=(N, case.n_outputs))
    negative = loss.gradients(target, raw).negative_gradient
    noise = rng.normal(size=raw.shape) * np.abs(negative).mean()
    direction = negative * rng.uniform(0.2, 0.6, size=raw.shape) + 0.5 * noise
    rows = np.arange(0, N, 2, dtype=np.uint32) if sampled else None
    return loss, target, raw, direction, RowSample(rows, target.weight)


def search(loss, target, raw, direction, sample):
    part = Term.of(Nothing(), slice(0, raw.shape[1]))
    state = State(loss, target, raw, (FittedTerm(part, outputs=direction),), sample)
    before = raw.copy()
    stage = LineSearch()(Stage((part,)), state)
    np.testing.assert_array_equal(raw, before)
    return stage.terms[0].coefficient


def loss_along(loss, target, raw, direction, sample, column):
    rows = np.arange(N) if sample.rows is None else sample.rows
    weight = None if sample.weight is None else sample.weight[rows]

    def mean(step):
        moved = raw.copy()
        moved[:, column] += step * direction[:, column]
        return np.average(loss.value(target, moved)[rows], weights=weight)

    return mean


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_step_minimizes_the_loss_of_every_output(case, weighted, sampled):
    arguments = draw(case, weighted, sampled)
    steps = search(*arguments)
    assert steps.shape == (case.n_outputs,)
    for column, step in enumerate(steps):
        along = loss_along(*arguments, column)
        best = minimize_scalar(along, bracket=(0, 1), method="brent", options={"xtol": 1e-10})
        assert step > 0
        assert along(step) == pytest.approx(best.fun, rel=1e-9)
        if case.smooth:
            assert step == pytest.approx(best.x, rel=1e-5)


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@pytest.mark.parametrize("factor", [-1, 0])
def test_a_stage_that_does_not_descend_gets_step_zero(case, factor):
    loss, target, raw, direction, sample = draw(case)
    assert (search(loss, target, raw, factor * direction, sample) == 0).all()


def test_a_stage_may_descend_for_one_class_only():
    loss, target, raw, direction, sample = draw(next(c for c in LOSSES if c.id == "log_loss-3"))
    steps = search(loss, target, raw, direction * [1, -1, 1], sample)
    assert (steps > 0).tolist() == [True, False, True]


def test_short_directions_are_followed_far():
    case = LOSSES[0]
    loss, target, raw, direction, sample = draw(case)
    once, far = (search(loss, target, raw, direction * f, sample)[0] for f in (1, 2.0**-12))
    assert far == pytest.approx(2**12 * once, rel=1e-8)


def test_a_constant_that_the_loss_ignores_is_not_followed():
    rng = np.random.default_rng(0)
    y = np.column_stack([np.exp(rng.normal(size=(N, 1))).repeat(2, axis=1), np.zeros((N, 2))])
    target, raw = Target(y), 0.1 * rng.normal(size=(N, 1))
    for constant in (1.0, -1.0, 1e-17):
        direction = np.full((N, 1), constant)
        assert search(Cox(), target, raw, direction, RowSample(None, None)) == 0.0


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("penalized", [False, True])
def test_no_slope_is_evaluated_twice(penalized, size):
    evaluated = []

    class Counted(Cox):
        def gradients(self, target, raw):
            evaluated.append(raw.tobytes())
            return super().gradients(target, raw)

    rng = np.random.default_rng(0)
    y = np.column_stack([np.exp(rng.normal(size=(N, 1))).repeat(2, axis=1), np.zeros((N, 2))])
    target, raw, sample = Target(y), np.zeros((N, 1)), RowSample(None, None)
    negative = Cox().gradients(target, raw).negative_gradient
    direction = size * (negative + 0.1 * rng.normal(size=(N, 1)))
    part = Term.of(Nothing(), slice(0, 1))
    fitted = FittedTerm(part, outputs=direction)
    if penalized:
        descent = float((direction * negative).sum())
        fitted = Descending(part, outputs=direction, curvature=0.1, descent=descent)
    rule = PenalizedLineSearch() if penalized else LineSearch()
    found = rule(Stage((part,)), State(Counted(), target, raw, (fitted,), sample))
    assert len(evaluated) == len(set(evaluated))
    assert found.terms[0].coefficient > 0


def test_an_unbounded_descent_ends():
    case = next(case for case in LOSSES if case.id == "log_loss-2")
    loss, target, raw, _, sample = draw(case)
    sides = 2 * target.y - 1
    steps = search(loss, target, raw, sides, sample)
    assert 1 < steps[0] <= 2**6
    for size in (10.0, 100.0, 700.0, 1e4):  # the slope may be too small to divide by
        for known in (0, 1):  # a row that the step does not move may have nearly all of the loss
            raw, step = size * sides, sides.copy()
            raw[:known], step[:known] = 0, 0
            assert 0 < search(loss, target, raw, step, sample)[0] <= 2**20


def test_cells_are_searched_through_their_values():
    case = LOSSES[0]
    loss, target, raw, _, sample = draw(case)
    X = np.random.default_rng(0).normal(size=(N, 2))
    trees = TreeLearner(max_leaf_nodes=4, min_samples_leaf=1)
    data = trees.prepare(X, None, 0, 1)
    fitted = trees.fit(data, loss.gradients(target, raw), sample, np.random.default_rng(0))
    stage = LineSearch()(Stage((fitted[0].term,)), State(loss, target, raw, tuple(fitted), sample))
    assert isinstance(fitted[0].term.model, LeafModel)
    assert stage.terms[0].coefficient == pytest.approx(1)  # least squares is a Newton step


def test_shrinkage_multiplies_coefficients():
    part = Term(Nothing(), slice(0, 2), np.array([2.0, 3.0]))
    (shrunk,) = Shrinkage(0.1)(Stage((part,)), None).terms
    np.testing.assert_array_equal(shrunk.coefficient, [0.1 * 2, 0.1 * 3])
    assert shrunk.model is part.model


def test_a_penalized_search_refuses_learners_that_do_not_penalize():
    with pytest.raises(IncompatibleParts, match="TreeLearner has none"):
        PenalizedLineSearch().check(LOSSES[0].make(), TreeLearner())


def test_rounding_does_not_reward_long_steps():
    """Weights grow where a kernel of low rank is zero, and its penalty is lost to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y = X @ [1.0, -0.5, 0.7, 0.3, -0.8] + rng.normal(size=500)
    model = KernelBoostingRegressor(
        "absolute_error", kernel=Linear(), regularization=1.0, stages="full", random_state=0
    ).fit(X, y)
    train = model.history_.train
    assert train[-1] <= train.min() + 1e-4

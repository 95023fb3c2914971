"""The choice between several learners, against plain NumPy."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from hilboost import BoostingRegressor
from hilboost.core.base_model import BaseModel, Stage, Term
from hilboost.core.errors import InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.nested import NestedLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.mixed import MixedLearner, Schedule, parts_of_rows
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner
from hilboost.learners.wrapped import WrappedLearner

RNG = np.random.default_rng(0)
N = 100
X = RNG.normal(size=(N, 3))
G = RNG.normal(size=(N, 2))
H = RNG.uniform(0.5, 2, size=(N, 2))
W = RNG.uniform(0.5, 2, size=N)
CONFIG = KernelMachineConfig(kernel=Gaussian(1.0), regularization=0.1)
LEARNERS = (
    TreeLearner(max_leaf_nodes=6, min_samples_leaf=5),
    SparseLearner(CONFIG, n_basis=20),
    RidgeLearner(),
)


@pytest.mark.parametrize("learner", [*LEARNERS, MixedLearner(LEARNERS)])
@pytest.mark.parametrize("n_members", [1, 3])
def test_data_of_members_leave_the_prepared_data_unchanged(learner, n_members):
    """Every member fits what the prepared data fit, although the others have added stages."""

    def first_stage(own):
        terms = learner.fit(own, Gradients(G), RowSample(None, None), np.random.default_rng(0))
        stage = Stage(tuple(one.term for one in terms))
        learner.stage_added(own, stage)
        return np.sum([term.model.predict_raw(X)[0].sum() for term in stage.terms])

    data = learner.prepare(X, None, 0, 1)
    members = learner.for_members(data, n_members, None)
    assert len(members) == n_members
    found = [first_stage(own) for own in members]
    assert found == [first_stage(data)] * n_members
    for own in (data, *members):
        learner.close(own)


@dataclass(frozen=True)
class Fixed(BaseModel):
    column: int
    factor: float

    def predict_raw(self, table):
        return np.column_stack([self.factor * table[:, self.column]] * 2)


@dataclass(frozen=True)
class FixedLearner(Learner):
    """Proposes a multiple of a column, and counts how often."""

    column: int
    asked: list
    factor: float = 1.0
    newton: bool = False

    def prepare(self, table, weight, seed, n_threads):
        return table

    def fit(self, data, gradients, sample, rng):
        self.asked.append(sample)
        model = Fixed(self.column, self.factor)
        outputs = model.predict_raw(data)
        return [FittedTerm(Term.of(model, slice(0, 2)), outputs=outputs, newton=self.newton)]


def mix(learners):
    return MixedLearner(tuple(learners), tuple(f"l{k}" for k in range(len(learners))))


def proposal(learner, gradients, sample, table=X, weight=None):
    data = learner.prepare(table, weight, 0, 1)
    try:
        return learner.fit(data, gradients, sample, np.random.default_rng(0)), data
    finally:
        learner.close(data)


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("hessian", [None, H])
@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("seed", range(3))
def test_the_winner_lowers_the_quadratic_model_most_on_rows_apart(newton, hessian, weight, seed):
    rng = np.random.default_rng(seed)
    negative = rng.normal(size=(N, 2)) + X[:, [seed % 3]] / 3
    apart = np.sort(rng.choice(N, 30, replace=False)).astype(np.uint32)
    rows = np.setdiff1d(np.arange(N), apart).astype(np.uint32)
    factors = [0.3, 1.0, 2.0]
    learner = mix([FixedLearner(k, [], f, newton) for k, f in enumerate(factors)])
    sample = RowSample(rows, weight, apart)
    (won,), _ = proposal(learner, Gradients(negative, hessian), sample, weight=weight)
    w = np.ones(N) if weight is None else weight
    h = np.ones((N, 2)) if hessian is None else hessian
    found = []
    for k, factor in enumerate(factors):
        f = factor * X[apart][:, [k, k]]
        slope = (w[apart, None] * negative[apart] * f).sum()
        curvature = (w[apart, None] * h[apart] * f * f).sum()
        lengths = np.linspace(0, 1 if newton else 20, 200_001)
        best = (lengths * slope - lengths**2 * curvature / 2).max()
        back = (lengths * -slope - lengths**2 * curvature / 2).max()
        found.append(best if slope > 0 else -back)
    assert won.term.learner == int(np.argmax(found))


def test_proposals_learn_from_other_rows_than_those_that_compare_them():
    asked = []
    learner = mix([FixedLearner(0, asked), FixedLearner(1, asked)])
    data = learner.prepare(X, None, 0, 1)
    for stage in range(5):
        learner.fit(data, Gradients(G), RowSample(None, None), np.random.default_rng(0))
        held = np.flatnonzero(parts_of_rows(X) == stage)
        assert 5 < len(held) < 40
        np.testing.assert_array_equal(asked[-1].rows, np.setdiff1d(np.arange(N), held))


def test_equal_rows_are_compared_together():
    rows = RNG.integers(N, size=300)
    parts = parts_of_rows(X[rows])
    np.testing.assert_array_equal(parts, parts_of_rows(X)[rows])
    assert set(parts_of_rows(RNG.normal(size=(500, 2)))) == set(range(5))


def test_without_rows_to_leave_out_the_penalty_counts():
    learner = mix([FullLearner(CONFIG), RidgeLearner()])
    assert not learner.capabilities.takes_samples
    assert not learner.capabilities.works_on_folds
    (won,), data = proposal(learner, Gradients(G), RowSample(None, None))
    alone = FullLearner(CONFIG)
    (machine,), _ = proposal(alone, Gradients(G), RowSample(None, None))
    (line,), _ = proposal(RidgeLearner(), Gradients(G), RowSample(None, None))
    found = []
    for one in (machine, line):
        slope, curvature = one.penalty
        slope = (G * one.outputs).sum() - slope
        curvature += (one.outputs**2).sum()
        found.append(
            min(1, slope / curvature) * (slope - min(1, slope / curvature) * curvature / 2)
        )
    assert won.term.learner == int(np.argmax(found))


@pytest.mark.parametrize("k", range(3))
def test_one_learner_alone_is_itself_bit_for_bit(k):
    sample = RowSample(None, W)
    alone, _ = proposal(LEARNERS[k], Gradients(G, H), sample, weight=W)
    mixed, _ = proposal(mix([LEARNERS[k]]), Gradients(G, H), sample, weight=W)
    for one, other in zip(alone, mixed, strict=True):
        np.testing.assert_array_equal(
            one.term.model.predict_raw(X), other.term.model.predict_raw(X)
        )
        assert other.term.learner == 0


def test_capabilities_are_the_meet():
    trees, machine, line = LEARNERS
    assert mix([trees, line]).capabilities.takes_missing_values
    assert not mix(LEARNERS).capabilities.takes_missing_values
    assert mix([trees, line]).capabilities.takes_categories
    assert not mix(LEARNERS).capabilities.takes_categories
    assert mix([trees, trees]).capabilities.takes_sparse
    assert not mix([trees, line]).capabilities.takes_sparse
    assert mix([trees, trees]).capabilities.constant_on_leaves
    assert not mix([trees, line]).capabilities.constant_on_leaves
    assert mix([machine, machine]).capabilities.penalizes
    assert not mix([machine, line]).capabilities.penalizes
    assert mix(LEARNERS).capabilities.continues
    nested = NestedLearner(SparseLearner(CONFIG))
    assert not mix([trees, nested]).capabilities.continues
    assert mix(LEARNERS).capabilities.in_checkpoints
    assert not mix([line, WrappedLearner(KNeighborsRegressor())]).capabilities.in_checkpoints


def test_the_schedule_asks_only_learners_that_may_win():
    asked = []
    gains = {0: lambda t: 0.9**t, 1: lambda t: 0.05, 2: lambda t: 1e-9}
    schedule, winners = Schedule.of(3), []
    for t in range(60):

        def ask(k, t=t):
            asked.append((t, k))
            return gains[k](t)

        winners.append(schedule.winner(ask))
    # The first one wins until its gain falls below that of the second one.
    last = next(t for t in range(60) if 0.9**t < 0.05)
    assert winners == [0] * last + [1] * (60 - last)
    assert [t for t, k in asked if k == 2] == [0, 2, 6, 14, 30]
    assert sum(k == 0 for _, k in asked) < last + 8


def test_the_first_of_equal_learners_wins():
    assert Schedule.of(3).winner(lambda k: 1.0) == 0
    assert Schedule.of(3).winner(lambda k: -1.0) == 0


@pytest.mark.parametrize(
    ("learners", "names", "message"),
    [
        ((), (), "requires at least one learner"),
        ((LEARNERS[0], LEARNERS[2]), ("a", "a"), "names must be different; got a, a"),
        ((mix(LEARNERS), LEARNERS[0]), ("a", "b"), "cannot contain another MixedLearner"),
    ],
)
def test_bad_lists(learners, names, message):
    with pytest.raises(InvalidParameter, match=message):
        MixedLearner(learners, names)


def test_the_names_of_learners_are_a_capability():
    assert MixedLearner(LEARNERS[:2]).capabilities.learner_names == ("learner 1", "learner 2")
    assert mix(LEARNERS).capabilities.learner_names == ("l0", "l1", "l2")
    assert LEARNERS[0].capabilities.learner_names == ()


def test_learners_hear_of_the_stages_of_others():
    heard = []

    class Hearing(RidgeLearner):
        def stage_added(self, data, stage):
            heard.append(stage)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + (X[:, 1] > 0)
    learner = MixedLearner((TreeLearner(min_samples_leaf=5), Hearing()))
    model = BoostingRegressor(learner=learner, n_estimators=8, early_stopping=False).fit(X, y)
    by_trees = model.learners_.counts["learner 1"]
    assert 0 < by_trees < 8
    added = [None if s.terms[0].learner == 0 else s for s in model.model_.stages]
    assert [stage is None for stage in heard] == [stage is None for stage in added]

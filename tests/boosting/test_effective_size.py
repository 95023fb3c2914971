"""How many rows weighted data count as."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting.effective_size import WeightScale, row_weight, row_weight_with_classes
from hilboost.core.target import Target
from hilboost.reductions.sums import total_weight

factors = st.sampled_from([2.0**-40, 1e-9, 0.37, 1.0, 3.1, 2.0**30, 1e12])


def kish(weight):
    """``sum w² / sum w``, exactly."""
    weight = [Fraction(w) for w in weight]
    return float(sum(w * w for w in weight) / sum(weight))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_whole_weights_count_repeated_rows(weight):
    y = np.zeros((len(weight), 1))
    assert row_weight(Target(y, np.array(weight, dtype=float))) == 1
    assert row_weight(Target(y)) == 1


@given(st.integers(0, 10**6), st.integers(2, 300), factors)
def test_other_weights_are_proportions_in_any_unit(seed, n, factor):
    weight = np.random.default_rng(seed).uniform(0.1, 3, n) * factor
    target = Target(np.zeros((n, 1)), weight)
    found = row_weight(target)
    assert found == pytest.approx(kish(weight), rel=1e-12)
    divided = WeightScale(divisor=found).divided(target)
    assert total_weight(divided) == pytest.approx(weight.sum() / found, rel=1e-9)


@given(st.integers(1, 300), factors.filter(lambda factor: factor != 1))
def test_equal_weights_that_are_not_whole_count_as_none(n, factor):
    target = Target(np.zeros((n, 1)), np.full(n, 0.3 * factor))
    assert WeightScale(divisor=row_weight(target)).divided(target).weight is None


@given(st.integers(0, 10**6), st.sampled_from(["none", "whole", "real"]))
def test_weights_of_classes_do_not_change_the_number_of_rows(seed, kind):
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=100) < 0.2).astype(float)
    own = {"none": None, "whole": rng.integers(1, 5, 100) * 1.0, "real": rng.uniform(0.1, 3, 100)}
    weight = own[kind]
    target = Target(y[:, None], np.where(y == 1, 3.7, 0.2) * (1.0 if weight is None else weight))
    n_rows = total_weight(target) / row_weight_with_classes(target, weight)
    plain = Target(y[:, None], weight)
    assert n_rows == pytest.approx(total_weight(plain) / row_weight(plain), rel=1e-9)


def test_equal_rows_are_not_one_row():
    """Half of the rows are equal, and weights differ; the signal is in the other half."""
    rng = np.random.default_rng(0)
    X = np.where(np.arange(2000)[:, None] % 2, rng.normal(size=(2000, 3)), 0.0)
    y = (X[:, 0] + 0.5 * rng.normal(size=2000) > 0).astype(int)
    weight = rng.uniform(0.5, 1.5, 2000)
    model = BoostingClassifier(learner="tree", n_estimators=5).fit(X, y, sample_weight=weight)
    assert model.resolved_.min_samples_leaf < 2
    assert model.score(X[1::2], y[1::2]) > 0.8


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("n_rows", [4, 39, 400])
def test_early_stopping_needs_rows_and_not_only_weights(n_rows):
    """A few rows of large weights cannot be held out; they have the leaves of few rows."""
    X = np.arange(n_rows) % 4 * 1.0
    model = BoostingRegressor(learner="tree", n_estimators=2)
    model.fit(X[:, None], X, sample_weight=np.full(n_rows, 250))
    assert model.resolved_.early_stopping == (n_rows == 400)
    assert model.resolved_.min_samples_leaf == (1 if n_rows == 400 else 7)

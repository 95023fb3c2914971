import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import conformal as naive

from hilboost.core.errors import DataWarning, IncompatibleParts
from hilboost.losses import BinomialLogLoss, MultinomialLogLoss, Poisson, Quantile, SquaredError
from hilboost.losses.hinge import SquaredHinge
from hilboost.model import scores

RNG = np.random.default_rng(0)


def test_an_absolute_error_in_units_of_the_scale():
    y, raw = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2))
    ends = scores.interval_ends(SquaredError(), raw, 2)
    np.testing.assert_array_equal(scores.interval_scores(y, *ends), np.abs(y - raw))
    scale = np.arange(6.0)
    found = scores.interval_scores(y, *ends, scale)
    np.testing.assert_array_equal(found[1:], np.abs(y - raw)[1:] / scale[1:, None])
    assert (found[0] > 1e300).all()


def test_predictions_are_compared_and_not_their_logarithms():
    raw = np.array([[0.0], [1.0]])
    low, high = scores.interval_ends(Poisson(), raw, 1)
    np.testing.assert_allclose(low, np.exp(raw))
    assert low is high


def test_pairs_of_quantile_levels_from_the_outside_to_the_inside():
    loss, raw = Quantile([0.95, 0.25, 0.5, 0.05, 0.75]), np.array([[5.0, 2, 3, 1, 4]])
    low, high = scores.interval_ends(loss, raw, 1)
    np.testing.assert_array_equal([low[0], high[0]], [[1, 2], [5, 4]])
    assert scores.n_columns(loss, 1) == 2
    assert [scores.nearest_pair(loss, c) for c in (0.99, 0.9, 0.5)] == [0, 0, 1]
    with pytest.warns(DataWarning, match=r"the levels 0\.45 and 0\.55 as well"):
        assert scores.nearest_pair(loss, 0.1) == 1
    # 2 lies 1 above the lowest and 0 above the second lowest quantile
    np.testing.assert_array_equal(scores.interval_scores(np.array([[2.0]]), low, high), [[-1, 0]])


def test_one_quantile_level_is_a_prediction_like_any_other():
    loss, raw = Quantile(0.9), np.array([[1.0]])
    assert scores.levels_of(loss) == ()
    assert scores.n_columns(loss, 1) == 1
    np.testing.assert_array_equal(scores.interval_ends(loss, raw, 1), [raw, raw])


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=3, max_size=7))
def test_adaptive_scores_equal_their_twin(logits):
    loss, raw = MultinomialLogLoss(len(logits)), np.array([logits])
    expected = naive.adaptive_scores(loss.inverse_link(raw)[0])
    found = scores.class_scores(loss, raw, len(logits))
    np.testing.assert_allclose(found, [expected], atol=1e-14)
    assert found.min() == 0
    order = np.random.default_rng(0).permutation(len(logits))
    moved = scores.class_scores(loss, raw[:, order], len(logits))
    np.testing.assert_allclose(moved, found[:, order], atol=1e-14)


def test_two_classes():
    raw = np.array([[2.0], [-1.0], [0.0]])
    p = BinomialLogLoss().inverse_link(raw)
    expected = [[p[0, 1], 0], [0, p[1, 0]], [0, 0]]
    np.testing.assert_allclose(scores.class_scores(BinomialLogLoss(), raw, 2), expected)


def test_without_probabilities_the_gap_to_the_highest_score():
    raw = np.array([[1.0, -1.0, 3.0]])
    np.testing.assert_array_equal(scores.class_scores(SquaredHinge(3), raw, 3), [[2, 4, 0]])


def test_losses_that_predict_something_else():
    class Spread(SquaredError):
        def inverse_link(self, raw):
            return np.hstack([raw, raw])

    with pytest.raises(IncompatibleParts, match=r"shape \(4, 2\) for 4 rows with 1 targets"):
        scores.interval_ends(Spread(), np.zeros((4, 1)), 1)
    with pytest.raises(IncompatibleParts, match="one probability per class"):
        scores.class_scores(SquaredError(), np.zeros((4, 1)), 2)

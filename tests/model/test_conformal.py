import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference import conformal as naive

from hilboost.core.base_model import Stage, Term
from hilboost.core.distribution import check_coverage
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.learners.wrapped import LinearModel
from hilboost.model import AdditiveModel, mean_of
from hilboost.model.additive import members_of
from hilboost.model.conformal import Calibration

coverages = st.floats(0.01, 0.99)
lists = st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), min_size=1, max_size=40)


def calibrated(scores, **parts):
    scores = np.asarray(scores, dtype=np.float64)
    return Calibration(scores[:, None] if scores.ndim == 1 else scores, **parts)


def test_is_the_order_statistic_of_split_conformal():
    calibration = calibrated(np.arange(1.0, 20.0))  # 19 rows: 90 % is the 18th
    assert calibration.threshold(0.9) == 18.0
    assert calibrated(np.arange(19.0, 0.0, -1)).threshold(0.5) == 10.0


def test_too_few_rows_for_the_coverage_say_how_many():
    with pytest.raises(InvalidData, match="requires at least 9 calibration rows; got 8"):
        calibrated(np.ones(8)).threshold(0.9)
    assert calibrated(np.ones(9)).threshold(0.9) == 1


@given(scores=lists, coverage=coverages)
def test_threshold_equals_its_twin(scores, coverage):
    expected = naive.threshold(scores, coverage)
    if np.isfinite(expected):
        assert calibrated(scores).threshold(coverage) == expected
    else:
        with pytest.raises(InvalidData):
            calibrated(scores).threshold(coverage)


@given(scores=st.lists(st.integers(-50, 50), min_size=2, max_size=30), coverage=coverages)
def test_exchangeable_rows_are_covered_exactly(scores, coverage):
    """Each of n + 1 rows is left out in turn: with distinct scores, exactly a known share fits."""
    n = len(scores) - 1
    assume(np.ceil((n + 1) * coverage - 1e-9) <= n)
    inside = [
        scores[i] <= calibrated(scores[:i] + scores[i + 1 :]).threshold(coverage)
        for i in range(n + 1)
    ]
    assert np.mean(inside) >= coverage - 1e-9
    if len(set(scores)) == n + 1:
        assert np.isclose(np.mean(inside), np.ceil((n + 1) * coverage - 1e-9) / (n + 1))


@given(data=st.data(), scores=lists, coverage=coverages)
def test_integer_weights_count_repeated_rows(data, scores, coverage):
    n = len(scores)
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), dtype=float)
    repeated = np.repeat(scores, weight.astype(int))
    expected = naive.threshold(repeated, coverage)
    assume(np.isfinite(expected))
    assert calibrated(scores, weight=weight).threshold(coverage) == expected


@given(scores=lists, coverage=coverages, seed=st.integers(0, 9))
def test_neither_order_nor_unit_matters(scores, coverage, seed):
    assume(np.isfinite(naive.threshold(scores, coverage)))
    scores = np.array(scores)
    plain = calibrated(scores).threshold(coverage)
    assert calibrated(np.random.default_rng(seed).permutation(scores)).threshold(coverage) == plain
    assert calibrated(8 * scores).threshold(coverage) == 8 * plain


def test_missing_scores_are_left_out_column_by_column():
    scores = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 4.0], [np.nan, 6.0]])
    calibration = calibrated(scores)
    assert calibration.threshold(0.5) == 2
    assert calibration.threshold(0.5, 1) == 5


@st.composite
def ensembles(draw):
    n_members, n = draw(st.integers(2, 4)), draw(st.integers(9, 40))
    folds = draw(st.permutations([i % n_members for i in range(n)]))
    number = st.floats(-10, 10)
    scores = draw(st.lists(number, min_size=n, max_size=n))
    anchors = draw(st.lists(number, min_size=n_members, max_size=n_members))
    widths = draw(st.lists(st.floats(0, 3), min_size=n_members, max_size=n_members))
    return np.array(folds), scores, np.array(anchors), np.array(widths)


@pytest.mark.slow
@settings(max_examples=200)
@given(case=ensembles(), coverage=st.floats(0.05, 0.89))
def test_ends_of_ensembles_equal_their_twin(case, coverage):
    folds, scores, low, width = case
    calibration = calibrated(scores, folds=folds)
    lower, upper = naive.cv_plus_interval(low, low + width, scores, folds, coverage)
    found = calibration.upper_ends((low + width)[:, None], coverage)
    np.testing.assert_allclose(found, [upper], rtol=1e-12, atol=1e-12)
    found = -calibration.upper_ends(-low[:, None], coverage)
    np.testing.assert_allclose(found, [lower], rtol=1e-12, atol=1e-12)


@given(case=ensembles(), coverage=st.floats(0.05, 0.89), data=st.data())
def test_weighted_ends_of_ensembles_count_repeated_rows(case, coverage, data):
    folds, scores, anchors, _ = case
    n = len(scores)
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    plain = calibrated(np.repeat(scores, weight), folds=np.repeat(folds, weight))
    weighted = calibrated(scores, folds=folds, weight=weight.astype(float))
    np.testing.assert_array_equal(
        weighted.upper_ends(anchors[:, None], coverage),
        plain.upper_ends(anchors[:, None], coverage),
    )


@given(case=ensembles(), coverage=st.floats(0.05, 0.89), data=st.data())
def test_sets_of_ensembles_equal_their_twin(case, coverage, data):
    folds, scores, anchors, _ = case
    scores = np.round(scores)  # with ties
    K = len(anchors)
    new = np.array(
        data.draw(
            st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=K, max_size=K)
        ),
        dtype=float,
    )
    found = calibrated(scores, folds=folds).accepted(new[:, None], coverage)
    expected = naive.cross_conformal_set(new, scores, folds, coverage)
    assert set(np.flatnonzero(found[0]).tolist()) == expected


@given(scores=lists, coverage=coverages)
def test_without_folds_a_set_is_what_lies_below_the_threshold(scores, coverage):
    assume(np.isfinite(naive.threshold(scores, coverage)))
    calibration = calibrated(scores)
    new = np.array([[*scores, -1.0, 7.0]])
    expected = new <= calibration.threshold(coverage)
    np.testing.assert_array_equal(calibration.accepted([new], coverage), expected)


def test_groups_have_their_own_thresholds():
    groups = np.array([0, 1, 0, 1, 0, 1])
    calibration = calibrated(
        [1.0, 10, 2, 20, 3, 30], groups=groups, group_names=np.array(["a", "b"])
    )
    numbers = calibration.group_numbers(np.array(["b", "a", "b"]))
    np.testing.assert_array_equal(calibration.thresholds(0.5, numbers), [20, 2, 20])
    with pytest.raises(InvalidData, match="got 3 of group 'a'"):
        calibration.threshold(0.9, group=0)
    with pytest.raises(InvalidData, match="row 1 of groups is 'c'.*known are 'a', 'b'"):
        calibration.group_numbers(np.array(["a", "c"]))


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan, None, "0.9"])
def test_coverages_that_are_refused(coverage):
    with pytest.raises(InvalidParameter, match="coverage must be between 0 and 1"):
        check_coverage(coverage)


def test_a_tiny_coverage_is_the_smallest_score():
    assert calibrated([3.0, 1.0, 2.0]).threshold(1e-12) == 1


def test_members_of_a_mean():
    def model(seed):
        rng = np.random.default_rng(seed)
        stages = []
        for _ in range(4):
            columns = [LinearModel(((rng.normal(size=2), 0.5),)) for _ in range(3)]
            terms = [Term.of(column, slice(k, k + 1)) for k, column in enumerate(columns)]
            stages.append(Stage(tuple(terms)))
        return AdditiveModel(np.ones(3), tuple(stages))

    models = [model(seed) for seed in range(4)]
    X = np.random.default_rng(0).normal(size=(5, 2))
    for one, other in zip(models, members_of(mean_of(models), 4), strict=True):
        np.testing.assert_array_equal(other.predict_raw(X), one.predict_raw(X))


def test_pickles_hold_nothing_that_is_computed_again():
    calibration = calibrated(np.arange(100.0))
    before = len(pickle.dumps(calibration))
    calibration.threshold(0.5)
    content = pickle.dumps(calibration)
    assert len(content) == before
    assert pickle.loads(content).threshold(0.5) == calibration.threshold(0.5)

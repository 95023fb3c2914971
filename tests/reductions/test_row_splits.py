"""Rows are held out by groups, by time, or by the splits of a user."""

import numpy as np
import pytest

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.core.dependence import HELD, LEARNED, Dependence
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.reductions.row_splits import parts, splits, splits_of_members

_KEY = key_of(0, Purpose.FOLDS)


def _members(target, n_folds, fraction=0.1):
    found = splits_of_members(_KEY, np.zeros(target.n_units), n_folds, fraction, target)
    return [(len(learned), len(held)) for learned, held in found]


def _splits(target, n_folds, fraction=0.1):
    return splits(_KEY, np.zeros(target.n_units), n_folds, fraction, target)


@pytest.mark.parametrize("n_folds", [1, 4])
def test_groups_are_held_out_as_a_whole(n_folds):
    groups = np.random.default_rng(0).integers(0, 25, 600)
    target = Target(np.zeros((600, 1)), dependence=Dependence(groups=groups))
    found = _splits(target, n_folds)
    for learned, held in found:
        assert not set(groups[learned]) & set(groups[held])
        assert len(learned) + len(held) == 600
    if n_folds > 1:
        held = np.concatenate([split.held for split in found])
        assert np.array_equal(np.sort(held), np.arange(600))
        assert max(len(split.held) for split in found) < 180


def test_folds_of_groups_are_few_and_balanced():
    groups = np.repeat(np.arange(3), [500, 50, 50])
    target = Target(np.zeros((600, 1)), dependence=Dependence(groups=groups))
    assert len(_members(target, 5)) == 3
    assert _members(target, 1) == []
    assert len(_splits(target, 1)[0].held) == 50  # a group of the size that is wanted
    assert sorted(len(held) for _, held in _splits(target, 2)) == [100, 500]


@pytest.mark.parametrize("n_folds", [1, 4])
def test_the_latest_rows_are_held_out(n_folds):
    times = np.random.default_rng(0).integers(0, 100, 1000)
    target = Target(np.zeros((1000, 1)), dependence=Dependence(times=times, gap=3))
    found = _splits(target, n_folds)
    assert len(found) == n_folds
    assert _members(target, n_folds)[n_folds:] == [(1000, 0)]
    for learned, held in found:
        assert times[learned].max() < times[held].min() - 3
    assert times[found[-1].held].max() == times.max()
    before = [split.held for split in found]
    assert all(times[a].max() < times[b].min() for a, b in zip(before, before[1:], strict=False))


def test_rows_of_the_same_time_stay_together():
    times = np.repeat([0, 1, 2], [10, 10, 80])
    target = Target(np.zeros((100, 1)), dependence=Dependence(times=times))
    assert _members(target, 4) == [(20, 80), (100, 0)]
    ((learned, held),) = _splits(target, 1)
    assert np.array_equal(held, np.arange(20, 100))
    assert np.array_equal(learned, np.arange(20))


def test_a_gap_must_leave_rows():
    target = Target(np.zeros((50, 1)), dependence=Dependence(times=np.arange(50), gap=60))
    with pytest.raises(InvalidParameter, match="validation_gap leaves out all rows before"):
        _splits(target, 1)


def test_groups_of_a_ranking_are_as_late_as_their_latest_row():
    groups, times = np.repeat(np.arange(10), 5), np.arange(50.0)
    times[0] = 100
    target = Target(np.zeros((50, 1)), groups=groups, dependence=Dependence(times=times))
    ((_, held),) = _splits(target, 1)
    assert np.array_equal(held, np.arange(5))


def test_splits_of_the_user_are_taken_as_they_are():
    roles = np.array([[LEARNED, LEARNED], [HELD, LEARNED], [0, HELD]], dtype=np.int8)
    target = Target(np.zeros((3, 1)), dependence=Dependence(roles=roles))
    assert _members(target, 7) == [(1, 1), (2, 1), (3, 0)]
    assert [[a.tolist() for a in split] for split in _splits(target, 7)] == [
        [[0], [1]],
        [[0, 1], [2]],
    ]


def test_parts_for_cross_fitting():
    groups, times = np.arange(60) % 12, np.arange(60)[::-1] // 3
    of_groups = parts(_KEY, 4, Target(np.zeros((60, 1)), dependence=Dependence(groups=groups)))
    assert all(len(set(of_groups[groups == g])) == 1 for g in range(12))
    assert np.array_equal(np.bincount(of_groups), [15] * 4)
    of_times = parts(_KEY, 4, Target(np.zeros((60, 1)), dependence=Dependence(times=times)))
    assert (np.diff(of_times) <= 0).all()
    assert set(of_times) == set(range(4))
    at_random = parts(_KEY, 4, Target(np.zeros((60, 1))))
    assert np.array_equal(np.bincount(at_random), [15] * 4)


def test_a_record_follows_its_rows():
    given = Dependence(groups=np.arange(4), times=np.arange(4) * 2.0, gap=1.0)
    target = Target(np.zeros((4, 1)), dependence=given).rows(np.array([3, 1]))
    assert target.dependence.groups.tolist() == [3, 1]
    assert target.dependence.times.tolist() == [6, 2]
    joint = target.dependence.followed_by(given.rows(np.array([0])))
    assert (joint.groups.tolist(), joint.gap, joint.roles) == ([3, 1, 0], 1.0, None)

"""What ranking losses keep between their calls with a target changes no bit."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest

from hilboost.core.target import Target
from hilboost.losses import (
    CrossEntropyNDCG,
    LambdaMAP,
    LambdaMRR,
    LambdaRank,
    PairwiseLogistic,
    YetiRank,
)

LOSSES = [LambdaRank(3), YetiRank(3), LambdaMAP(3), LambdaMRR(3), CrossEntropyNDCG()]
LOSSES = [*(loss.drawn(np.uint64(5)) for loss in LOSSES), PairwiseLogistic()]


def new_target():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), rng.integers(1, 70, size=30))
    y = rng.integers(4, size=(len(groups), 1)).astype(float)
    return Target(y, groups=groups)


def computed(loss, target, raw):
    found = loss.gradients(target, raw)
    return np.c_[loss.value(target, raw), found.negative_gradient, found.hessian]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.ranker_name)
def test_earlier_calls_change_no_bit(loss):
    target, rng = new_target(), np.random.default_rng(1)
    raws = [rng.integers(-9, 9, size=(len(target.y), 1)) / 7 for _ in range(12)]
    expected = [computed(loss, new_target(), raw) for raw in raws]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda raw: computed(loss, target, raw), raws))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.ranker_name)
def test_a_long_group_of_ties_has_no_history_and_no_order_of_rows(loss):
    rng, n = np.random.default_rng(0), 2500
    y, raw = rng.integers(3, size=(n, 1)).astype(float), rng.integers(4, size=(n, 1)) / 3
    shuffled = rng.permutation(n)
    known, fresh, moved = (
        Target(labels, groups=np.zeros(n, np.int64)) for labels in (y, y, y[shuffled])
    )
    computed(loss, known, rng.normal(size=(n, 1)))
    expected = computed(loss, fresh, raw)
    np.testing.assert_array_equal(computed(loss, known, raw), expected)
    np.testing.assert_array_equal(computed(loss, moved, raw[shuffled]), expected[shuffled])


def test_blocks_and_parts_are_selected_once():
    target = new_target()
    rows, index = slice(0, int(target.starts[3])), np.arange(target.starts[2])
    assert target.block(rows) is target.block(rows)
    assert target.block(slice(0, len(target.y))) is target
    assert target.part(index) is target.part(index)
    np.testing.assert_array_equal(target.part(index).y, target.y[index])


def test_copies_of_a_target_select_their_own_parts():
    target = new_target()
    index = np.arange(target.starts[2])
    part = target.part(index)
    target.block(slice(0, int(target.starts[3])))
    target.memory["a loss"] = [part]
    for copied in (copy.copy(target), pickle.loads(pickle.dumps(target))):
        assert vars(copied).keys() == {field.name for field in fields(target)}
        np.testing.assert_array_equal(copied.part(index).y, part.y)
    # The number of an array object may be that of another one which no longer exists.
    target._parts[id(index)] = index.copy(), target
    np.testing.assert_array_equal(target.part(index).y, part.y)

"""Rows that a stage learns from."""

import numpy as np
import pytest

from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.sampling import RowSampling, StageKey
from hilboost.core.target import Target

TEAM = ThreadTeam()
N = 1000
Y = np.zeros((N, 1))
POOLS = [None, np.arange(0, N, 3, dtype=np.uint32)]
pools = pytest.mark.parametrize("pool", POOLS, ids=["all", "some"])


def rng(seed=0):
    return np.random.default_rng(seed)


@pools
@pytest.mark.parametrize("fraction", [0.0001, 0.3, 0.5, 0.999])
def test_a_part_is_drawn_without_replacement(pool, fraction):
    sample = RowSampling(fraction).draw(Target(Y), pool, StageKey(0, 0), TEAM)
    size = N if pool is None else len(pool)
    assert len(sample.rows) == max(1, round(fraction * size))
    assert sample.rows.dtype == np.uint32
    assert (np.diff(sample.rows.astype(int)) > 0).all()
    assert sample.weight is None
    if pool is not None:
        assert np.isin(sample.rows, pool).all()


@pools
def test_all_rows_are_no_draw(pool):
    weight = rng().uniform(size=N)
    sample = RowSampling(1.0).draw(Target(Y, weight), pool, StageKey(0, 0), TEAM)
    assert sample.rows is pool
    assert sample.weight is weight


@pools
@pytest.mark.parametrize("fraction", [0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_counts_multiplicities(pool, fraction, weighted):
    weight = rng(1).uniform(0.5, 2, size=N) if weighted else None
    sample = RowSampling(fraction, bootstrap=True).draw(
        Target(Y, weight), pool, StageKey(0, 0), TEAM
    )
    size = N if pool is None else len(pool)
    counts = sample.weight if weight is None else sample.weight / weight
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-12)
    assert counts.sum() == pytest.approx(round(fraction * size))
    np.testing.assert_array_equal(np.flatnonzero(counts > 0.5), sample.rows)
    assert counts.max() > 1
    if fraction == 1:  # about 1 - 1/e of the rows
        assert len(sample.rows) / size == pytest.approx(0.632, abs=0.06)
    if pool is not None:
        assert np.isin(sample.rows, pool).all()


@pytest.mark.parametrize("bootstrap", [False, True])
def test_every_row_is_equally_likely(bootstrap):
    drawn = np.zeros(50)
    sampling = RowSampling(0.3, bootstrap)
    for seed in range(2000):
        sample = sampling.draw(Target(np.zeros((50, 1))), None, StageKey(seed, 0), TEAM)
        drawn[sample.rows] += 1 if sample.weight is None else sample.weight[sample.rows]
    assert np.abs(drawn / 2000 - 0.3).max() < 0.06


@pools
@pytest.mark.parametrize("bootstrap", [False, True])
def test_samples_depend_on_the_turn_alone(pool, bootstrap):
    sampling = RowSampling(0.4, bootstrap)
    with ThreadTeam(2) as team:
        again = sampling.draw(Target(Y), pool, StageKey(3, 5, 1), team)
    sample = sampling.draw(Target(Y), pool, StageKey(3, 5, 1), TEAM)
    np.testing.assert_array_equal(again.rows, sample.rows)
    for other in (StageKey(4, 5, 1), StageKey(3, 6, 1), StageKey(3, 5, 2)):
        rows = sampling.draw(Target(Y), pool, other, TEAM).rows
        assert not np.array_equal(rows, sample.rows)


@pytest.mark.parametrize(
    "turn", [StageKey(0, 0), StageKey(2**32 - 1, 7, 3), StageKey(2**70 + 5, 2**32, 1)]
)
def test_the_generator_is_that_of_the_seed_stage_and_member(turn):
    expected = np.random.default_rng((turn.seed, turn.stage, turn.member))
    assert turn.generator().integers(2**62) == expected.integers(2**62)

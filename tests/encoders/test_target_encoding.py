"""Target encoding: means of levels, and that no row's own target is among them."""

import numpy as np
import pytest

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import assign_folds
from hilboost.core.target import Target
from hilboost.encoders.encoding import Encoder, kept_levels, known_numbers
from hilboost.encoders.target_encoding import N_PARTS, LevelKeys, TargetEncoding


def draw(seed, n=200):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [5, 9, 30], size=(n, 3)).astype(float)
    codes[rng.uniform(size=codes.shape) < 0.1] = np.nan
    return codes, rng.normal(size=(n, 2)), rng.uniform(0.5, 2, size=n)


def learn(codes, y, weight, rows, groups=((0,), (0, 2)), strength=2.0, seed=3):
    sizes = (5, 9, 30)
    target = Target(y, weight)
    sources = [LevelKeys.of(codes, g, tuple(sizes[k] for k in g), target) for g in groups]
    numbers = [source.numbers(codes) for source in sources]
    key = key_of(seed, Purpose.PARTS_OF_ENCODING)
    return TargetEncoding.learn(sources, numbers, target, rows, strength, key)


def same(a, b):
    return all(x == y or (np.isnan(x) and np.isnan(y)) for x, y in zip(a, b, strict=True))


def naive(codes, y, w, rows, columns, x, prior, strength):
    """Mean over rows with the same levels as ``x``."""
    alike = [i for i in rows if same(codes[i, list(columns)], x[list(columns)])]
    top = sum(w[i] * y[i] for i in alike) + strength * prior
    return top / (sum(w[i] for i in alike) + strength)


def encode(statistics, codes):
    return statistics.encode([source.numbers(codes) for source in statistics.sources])


@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_the_other_parts_or_of_all_rows_learned_from(seed):
    codes, y, w = draw(seed)
    rows = np.arange(0, 150, dtype=np.uint32)
    statistics, encoded = learn(codes, y, w, rows)
    prior = np.average(y[:150], axis=0, weights=w[:150])
    key = key_of(3, Purpose.PARTS_OF_ENCODING)
    parts = assign_folds(key, np.zeros(150), N_PARTS)
    assert np.bincount(parts).tolist() == [15] * N_PARTS
    for i in range(0, 200, 7):
        known = [j for j in range(150) if i >= 150 or parts[j] != parts[i]]
        expected = [naive(codes, y, w, known, c, codes[i], prior, 2.0) for c in ((0,), (0, 2))]
        np.testing.assert_allclose(encoded[i], np.concatenate(expected), rtol=1e-12)
    np.testing.assert_array_equal(encode(statistics, codes[150:]), encoded[150:])


def test_a_whole_weight_stands_for_equal_rows():
    codes, y = np.arange(5.0)[:, None], np.random.default_rng(0).normal(size=(5, 1))
    _, weighted = learn(codes, y, np.full(5, 60.0), None, ((0,),))
    rows = np.repeat(np.arange(5), 60)
    _, repeated = learn(codes[rows], y[rows], None, None, ((0,),))
    means = repeated.reshape(5, 60).mean(axis=1)
    np.testing.assert_allclose(weighted[:, 0], means, rtol=0.01)
    _, alone = learn(codes, y, np.full(5, 60.5), None, ((0,),))
    np.testing.assert_allclose(alone, y.mean())


def test_held_out_targets_have_no_part():
    codes, y, w = draw(0)
    rows = np.flatnonzero(np.arange(200) % 4).astype(np.uint32)
    other = y.copy()
    other[::4] = 1e6
    for a, b in zip(learn(codes, y, w, rows)[1], learn(codes, other, w, rows)[1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_rows_own_target_moves_its_encoding_by_the_prior_alone():
    codes, y, _ = draw(1)
    other = y.copy()
    other[17] += 50
    before, after = learn(codes, y, None, None)[1][17], learn(codes, other, None, None)[1][17]
    moved = np.tile(50 / 200, 4)  # the prior's move, and no more than that
    assert (np.abs(after - before) <= moved + 1e-12).all()


def test_unknown_levels_have_the_prior_and_missing_is_a_level():
    codes, y, w = draw(2)
    statistics, _ = learn(codes, y, w, None, groups=((0,),))
    unseen, missing = encode(statistics, np.array([[-1.0, 0, 0], [np.nan, 0, 0]]))
    np.testing.assert_allclose(unseen, np.average(y, axis=0, weights=w))
    prior = np.average(y, axis=0, weights=w)
    expected = naive(codes, y, w, range(200), (0,), np.array([np.nan]), prior, 2.0)
    np.testing.assert_allclose(missing, expected)


def test_the_most_frequent_levels_keep_a_code_of_their_own():
    codes = np.repeat([0.0, 1, 2, 3, 4, np.nan, -1], [3, 1, 5, 1, 3, 9, 9])
    np.testing.assert_array_equal(kept_levels(codes, 5, 3, Target(codes)), [0, 2, 1, 2, 2])
    np.testing.assert_array_equal(kept_levels(codes, 5, 5, Target(codes)), np.arange(5))
    heavy = np.where(codes == 3, 100.0, 1.0)
    np.testing.assert_array_equal(kept_levels(codes, 5, 3, Target(codes, heavy)), [2, 2, 0, 1, 2])


@pytest.mark.parametrize("n_targets", [1, 8, 9, 100])
def test_more_than_eight_targets_are_encoded_by_eight_components(n_targets):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (60, 2)).astype(float)
    y = rng.normal(size=(60, n_targets))
    y[:, -1] += 10 * codes[:, 1]
    target = Target(y)
    encoder = Encoder.of(codes, [(0, 3), (1, 3)], target, known_numbers, True)
    encoding, (table,) = encoder.learn(codes, target, [None], 0)
    assert encoder.n_targets == min(n_targets, 8)
    assert table.shape[1] == encoder.width == encoding.full_width
    assert ((0, 1) in encoder.origins) == (n_targets <= 21)
    if n_targets <= 8:
        own = y[codes[:, 0] == 0]
        expected = (own.sum(axis=0) + 3 * y.mean(axis=0)) / (len(own) + 3)
        assert np.allclose(encoding.encode(np.zeros((1, 2)))[0, 2 : 2 + n_targets], expected)
    else:  # the first component is nearly the last target, which depends on the second column
        first = table[
            :, [2 + 8 * k for k, origin in enumerate(encoder.origins[::8]) if origin == (1,)]
        ]
        assert np.abs(np.corrcoef(first[:, 0], y[:, -1])[0, 1]) > 0.95

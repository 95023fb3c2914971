"""Compiled losses and gradients against naive ones: squared errors, log losses of classes."""

import numpy as np
import pytest
from tests.reference import loss_gradients as naive

from hilboost.backends import loss_gradients as compiled

EXTREMES = np.array([0.0, -0.0, 1e-300, 36.0, 300.0, 600.0])


@pytest.mark.parametrize("n", [0, 1, 3, 100])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e140])
def test_add_squares(n, is_first, scale):
    rng = np.random.default_rng(n)
    y, raw, before = scale * rng.normal(size=(3, n))
    results = []
    for module in (compiled, naive):
        value, negative = before.copy(), np.empty(n)
        module.add_squares(y, raw, is_first, value, negative)
        results.append((value, negative))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


def of_two_classes(module, y, raw):
    found = np.empty((3, len(raw)))
    module.logistic(y, raw, *found)
    return found


@pytest.mark.parametrize("n", [0, 1, 100])
def test_logistic(n):
    rng = np.random.default_rng(n)
    y, raw = rng.integers(2, size=n).astype(float), 5 * rng.normal(size=n)
    found, wanted = (of_two_classes(module, y, raw) for module in (compiled, naive))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_all_sizes_of_scores(label):
    """Losses to a few units in the last place, those of scores close to a rounding included."""
    raw = np.concatenate([EXTREMES, -EXTREMES, np.linspace(-40, 40, 10_001)])
    raw = np.concatenate([raw, np.log(2) * (np.arange(-40, 40) + 0.5)])
    found, wanted = (
        of_two_classes(module, np.full(len(raw), label), raw) for module in (compiled, naive)
    )
    np.testing.assert_allclose(found[0], wanted[0], rtol=4e-15)
    np.testing.assert_allclose(found[1:], wanted[1:], rtol=0, atol=4e-16)


def test_the_hessian_follows_from_the_gradient():
    raw = np.concatenate([EXTREMES, -EXTREMES, 9 * np.random.default_rng(0).normal(size=50)])
    value, negative, hessian = of_two_classes(compiled, np.ones(len(raw)), raw)
    size = np.abs(negative)
    np.testing.assert_array_equal(hessian, size * np.maximum(1 - size, 0.1))
    alone = np.empty((2, len(raw)))
    compiled.logistic(np.ones(len(raw)), raw, *alone, None)
    np.testing.assert_array_equal(alone, [value, negative])


def test_a_score_has_the_same_result_wherever_it_is():
    raw = np.random.default_rng(0).normal(size=37) * 9
    whole = of_two_classes(compiled, np.ones(37), raw)
    for i in range(37):
        alone = of_two_classes(compiled, np.ones(1), raw[i : i + 1])
        np.testing.assert_array_equal(alone[:, 0], whole[:, i])


def test_what_is_not_a_number_remains_so_with_two_classes():
    assert np.isnan(of_two_classes(compiled, np.ones(2), np.array([np.nan, 1.0]))[:, 0]).all()


def of_several_classes(module, scores, codes, gap=0):
    """Evaluate rows whose columns lie ``gap`` entries apart in the results."""
    (c, n), (value, totals) = scores.shape, np.empty((2, len(codes)))
    results = np.zeros((2, c * (n + gap)))
    flat = results[:, : max(0, results.shape[1] - gap)] if n else results[:, :0]
    gradients = compiled.FlatGradients(*flat, n + gap)
    module.softmax(c, scores.ravel(), n, codes, value, totals, gradients)
    negative, hessian = results.reshape(2, c, n + gap)
    assert not negative[:, n:].any()
    assert not hessian[:, n:].any()
    return value, negative[:, :n], hessian[:, :n]


@pytest.mark.parametrize("n_classes", [3, 26])
@pytest.mark.parametrize(("n", "scale"), [(0, 1), (1, 1), (100, 3), (1_100, 3), (100, 200)])
def test_softmax(n, scale, n_classes):
    rng = np.random.default_rng(n)
    scores, codes = scale * rng.normal(size=(n_classes, n)), rng.integers(n_classes, size=n)
    for kind, gap in [(np.int64, 0), (np.uint8, 5)]:
        given = scores, codes.astype(kind), gap
        found, wanted = (of_several_classes(module, *given) for module in (compiled, naive))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
        assert (found[2] >= 0).all()


def test_a_row_has_the_same_result_wherever_it_is():
    rng = np.random.default_rng(0)
    scores, codes = 3 * rng.normal(size=(5, 37)), rng.integers(5, size=37)
    whole = of_several_classes(compiled, scores, codes)
    for i in range(37):
        one = slice(i, i + 1)
        alone = of_several_classes(compiled, scores[:, one].copy(), codes[one])
        for part, every in zip(alone, whole, strict=True):
            np.testing.assert_array_equal(part[..., 0], every[..., i])


@pytest.mark.parametrize("c", [0, 1, 2])
def test_what_is_not_a_number_remains_so(c):
    scores = np.zeros((3, 4))
    scores[c, 1] = np.nan
    value = of_several_classes(compiled, scores, np.zeros(4, dtype=np.int64))[0]
    assert np.isnan(value).tolist() == [False, True, False, False]

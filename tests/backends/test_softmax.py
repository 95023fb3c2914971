"""Compiled losses and gradients of several classes against naive ones."""

import numpy as np
import pytest
from tests.reference import loss_gradients as naive

from hilboost.backends import loss_gradients as compiled


def evaluated(module, scores, codes, gap=0):
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
        found, wanted = (evaluated(module, *given) for module in (compiled, naive))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
        assert (found[2] >= 0).all()


def test_a_row_has_the_same_result_wherever_it_is():
    rng = np.random.default_rng(0)
    scores, codes = 3 * rng.normal(size=(5, 37)), rng.integers(5, size=37)
    whole = evaluated(compiled, scores, codes)
    for i in range(37):
        one = slice(i, i + 1)
        alone = evaluated(compiled, scores[:, one].copy(), codes[one])
        for part, every in zip(alone, whole, strict=True):
            np.testing.assert_array_equal(part[..., 0], every[..., i])


@pytest.mark.parametrize("c", [0, 1, 2])
def test_what_is_not_a_number_remains_so(c):
    scores = np.zeros((3, 4))
    scores[c, 1] = np.nan
    value = evaluated(compiled, scores, np.zeros(4, dtype=np.int64))[0]
    assert np.isnan(value).tolist() == [False, True, False, False]

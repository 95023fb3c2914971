"""The compiled loss of pairs against its naive twin."""

import numpy as np
import pytest
from tests.backends.test_ranking import SEEDS, both, draw, order_of
from tests.reference import logistic_pairs as naive

from hilboost.backends import logistic_pairs as compiled


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [1, 2, 99])
def test_pairwise_gradients(seed, most):
    rng, starts, gains, scores = draw(seed, 9)  # many scores are tied
    n, function, modules = len(gains), compiled.pairwise_gradients, (compiled, naive)
    found, expected = [], []
    for with_values in (True, False):
        scratch = order_of(starts, rng), *(np.empty(9) for _ in range(6))
        arguments = gains, scores, starts, most, with_values, scratch
        ours, twin = both(function, *arguments, n_results=3, n=n, modules=modules)
        found += ours[:1] if with_values else ours[1:]
        expected += twin[:1] if with_values else twin[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_of_scores_that_are_far_apart(seed):
    rng, starts, gains, scores = draw(seed, 9)
    scratch = order_of(starts, rng), *(np.empty(9) for _ in range(6))
    arguments = gains, 110 * scores, starts, 99, True, scratch
    function, modules = compiled.pairwise_gradients, (compiled, naive)
    ours, twin = both(function, *arguments, n_results=3, n=len(gains), modules=modules)
    np.testing.assert_allclose(ours[0], twin[0], rtol=1e-12, atol=1e-14)

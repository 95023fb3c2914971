"""The compiled loss of pairs against its naive twin."""

import numpy as np
import pytest
from tests.backends.test_ranking import SEEDS, by_place, draw, gradients_of, rows_of
from tests.reference import logistic_pairs as naive

from hilboost.backends import logistic_pairs as compiled


def both(rows, most, with_values):
    """Values, or gradients and hessians, of both."""
    found = []
    for module in (compiled, naive):
        values, written = np.full(len(rows.gains), np.nan), gradients_of(len(rows.gains))
        ranked = by_place(rows.starts)
        module.pairwise_gradients(rows, most, with_values, ranked, values, written)
        found.append([values] if with_values else [*written])
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [1, 2, 99])
@pytest.mark.parametrize("with_values", [False, True])
def test_pairwise_gradients(seed, most, with_values):
    rng, *drawn = draw(seed, 9)  # many scores are tied
    found = both(rows_of(drawn, rng), most, with_values)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_of_scores_that_are_far_apart(seed):
    rng, starts, gains, scores = draw(seed, 9)
    found = both(rows_of((starts, gains, 110 * scores), rng), 99, True)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-14)

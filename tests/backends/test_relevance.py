"""Compiled metrics of relevant rows against their naive twins and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.backends.test_ranking import SEEDS, draw, rows_of
from tests.reference import relevance as naive

from hilboost.backends import relevance as compiled


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize(
    "functions",
    [
        (compiled.group_average_precision, naive.group_average_precision),
        (compiled.group_reciprocal_rank, naive.group_reciprocal_rank),
    ],
    ids=["average precision", "reciprocal rank"],
)
def test_means_over_groups(seed, k, functions):
    rng, starts, gains, scores = draw(seed)
    rows = rows_of((starts, (gains > 1).astype(float), scores), rng)
    ours, twin = np.empty(len(starts) - 1), np.empty(len(starts) - 1)
    for function, result in zip(functions, (ours, twin), strict=True):
        function(rows, k, result)
    np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision_of_sklearn(seed):
    rng = np.random.default_rng(seed)
    relevant, scores = rng.integers(2, size=40).astype(float), rng.normal(size=40)
    result, rows = np.empty(1), rows_of((np.array([0, 40]), relevant, scores), rng)
    compiled.group_average_precision(rows, 99, result)
    assert result[0] == pytest.approx(average_precision_score(relevant, scores))

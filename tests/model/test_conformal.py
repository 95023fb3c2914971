import numpy as np
import pytest

from hilboost.core.errors import InvalidData
from hilboost.model.conformal import conformal_factor


def test_is_the_order_statistic_of_split_conformal():
    scores = np.arange(1.0, 20.0)[:, None]  # 19 rows: 90 % is the 18th
    assert conformal_factor(scores, 0.9) == [18.0]
    assert conformal_factor(scores[::-1], 0.5) == [10.0]


def test_too_few_rows_for_the_coverage_say_how_many():
    with pytest.raises(InvalidData, match="requires at least 9 calibration rows"):
        conformal_factor(np.ones((8, 1)), 0.9)
    conformal_factor(np.ones((9, 1)), 0.9)


def test_covers_exchangeable_rows_as_promised():
    rng = np.random.default_rng(0)
    covered = [
        rng.standard_cauchy() <= conformal_factor(np.sort(rng.standard_cauchy((49, 1))), 0.8)[0]
        for _ in range(2000)
    ]
    assert abs(np.mean(covered) - 0.8) < 0.03

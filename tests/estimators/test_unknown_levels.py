"""Levels that did not occur in fit are not missing values, in no part of a model."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost import BoostingRegressor


def towns(names):
    return np.array(names, dtype=object)


def drawn(seed, n_towns, share, n=240):
    """A table with a missing town now and then, whose rows have the largest target."""
    rng = np.random.default_rng(seed)
    code = np.where(rng.random(n) < share, -1, rng.integers(n_towns, size=n))
    code[:3] = -1
    names = towns([f"town {k}" for k in range(n_towns)] + [None])
    number = rng.uniform(-2, 2, size=n)
    effects = np.append(rng.normal(size=n_towns) / 2, 6.0)
    y = effects[code] + np.sin(2 * number) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"town": names[code], "number": number}), y


@pytest.mark.parametrize("learner", ["auto", "tree"])
@settings(max_examples=2)
@given(st.integers(0, 10**6), st.sampled_from([2, 5, 40]), st.sampled_from([0.15, 0.3]))
def test_unknown_levels_are_not_missing_values(learner, seed, n_towns, share):
    X, y = drawn(seed, n_towns, share)
    model = BoostingRegressor(learner=learner, random_state=seed, n_jobs=1).fit(X, y)
    number = np.linspace(-1, 1, 9)
    missing, unknown = (
        model.predict(pd.DataFrame({"town": towns([name] * 9), "number": number}))
        for name in (None, "elsewhere")
    )
    is_known = X["town"].notna()
    assert (unknown < missing - 1).all()
    assert np.abs(unknown).mean() < np.abs(y[is_known]).max() + 1

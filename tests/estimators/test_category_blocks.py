"""Trees on categories: many rows at a time give what one row at a time does."""

import numpy as np
import pandas as pd
import pytest

from hilboost import BoostingRegressor


@pytest.mark.parametrize("leaves", [8, 100])
def test_blocks_and_single_rows_agree(leaves):
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame(
        {
            "town": rng.choice([f"t{k}" for k in range(12)], n),
            "kind": rng.choice(["a", "b", "c"], n),
            "size": rng.normal(size=n),
        }
    )
    X = X.mask(rng.random(X.shape) < 0.1)
    y = X["size"].fillna(3.0) * (X["kind"] == "b") + X["town"].str[1:].astype(float).fillna(20) % 5
    options = {"early_stopping": False, "learning_rate": 0.3, "min_samples_leaf": 2}
    model = BoostingRegressor(n_estimators=5, max_leaf_nodes=leaves, random_state=0, **options)
    model.fit(X, y)
    new = X[:100].assign(town=X["town"][:100].where(np.arange(100) % 9 > 0, "new"))
    by_cells = model.model_.stages[0].terms[0].model
    assert len(by_cells.left_sets)  # splits on categories are what this is about
    single = np.concatenate([model.predict(new[i : i + 1]) for i in range(len(new))])
    assert (model.predict(new) == single).all()

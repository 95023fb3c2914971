"""Kernel machines of default fits to tables with text predict in onnxruntime what they do here."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hilboost import BoostingRegressor, KernelBoostingRegressor, to_onnx
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner

CITIES, CONDITIONS = [f"c{k}" for k in range(12)], ["new", "good", "fair", "poor"]
MACHINE = {"learner": MetricKernelLearner(), "n_estimators": 1, "learning_rate": 1.0}


def homes(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "area": rng.lognormal(4.3, 0.4, n),
            "city": rng.choice(CITIES, n),
            "cond": rng.choice(CONDITIONS, n),
            "balcony": rng.uniform(size=n) < 0.4,
            "built": rng.integers(1900, 2024, n).astype(float),
        }
    )


def prices(table, seed):
    """Sums of one effect of each column, some of them zero, with noise."""
    rng = np.random.default_rng(seed)
    of_cities = dict(zip(CITIES, rng.normal(size=len(CITIES)), strict=True))
    of_conditions = dict(zip(CONDITIONS, [0.2, 0.0, -0.1, -0.3], strict=True))
    size, noise = rng.choice([0.0, 5, 20, 60], 6), rng.choice([1, 5, 15])
    area, built = np.log(table["area"]) - 4.3, (table["built"] - 1960) / 40
    price = size[0] * area + size[1] * built + size[5] * built**2 / 3 + size[4] * table["balcony"]
    price += size[2] * table["city"].map(of_cities) + size[3] * table["cond"].map(of_conditions)
    return price.to_numpy() + rng.normal(0, noise, len(table))


def differences(model, table, target):
    """Of the exported model, and of numbers moved by 1e-7 and 1e-5 of their sizes, in spreads."""
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    columns = {}
    for one in session.get_inputs():
        dtype = object if one.type == "tensor(string)" else np.float64
        columns[one.name] = table[[one.name]].to_numpy().astype(dtype)
    numbers = ["area", "built"]
    moved = (table.assign(**table[numbers] * (1 + share)) for share in (1e-7, 1e-5))
    others = [session.run(None, columns)[0], *(model.predict(rows) for rows in moved)]
    return [np.abs(other - model.predict(table)).max() / target.std() for other in others]


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@example(seed=7)  # an additive kernel, whose kernel values are up to 31
def test_kernel_machines_are_smooth_and_the_same_formula(seed):
    table, rows = homes(200, seed), homes(100, seed + 1)
    target = prices(table, seed)
    model = BoostingRegressor(**MACHINE).fit(table, target)
    exported, slight, small = differences(model, rows, target)
    assert exported < 1e-9
    assert slight <= 0.011 * small + 1e-9


@pytest.mark.slow
def test_default_fits():
    """The values of this additive kernel are up to 50, and the weights have a norm of 209."""
    table = homes(400, 1)
    target = prices(table, 1)
    model = BoostingRegressor(random_state=0).fit(table, target)
    assert model.parts_["kernel"].kernel == "additive"
    assert differences(model, homes(200, 2), target)[0] < 1e-9


@pytest.mark.slow
def test_warped_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * [1e-4, 1, 1, 50, 1, 1]
    above = X > [2e-5, -0.3, 0.8, 10, -0.5, 1]
    left, right = above[:, 1] * (2.0 - above[:, 2] * above[:, 5]), above[:, 3] * above[:, 4]
    y = np.where(above[:, 0], left, right)
    model = KernelBoostingRegressor(random_state=0).fit(X[:1600], y[:1600])
    assert model.fitted_.model.stages[0].terms[0].model.inputs.warps
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: 1.5 * X[1600:]})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(1.5 * X[1600:]), atol=1e-9)

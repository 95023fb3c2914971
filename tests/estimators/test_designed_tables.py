"""Tables of a few distinct rows, each observed many times: at least as good as a table lookup."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)

PARTS = ["tree", "kernel"]
OF_TREES = {
    "squared_error": BoostingRegressor,
    "huber": lambda: BoostingRegressor("huber"),
    "absolute_error": lambda: BoostingRegressor("absolute_error"),
    "poisson": lambda: BoostingRegressor("poisson"),
    "gamma": lambda: BoostingRegressor("gamma"),
    "mixture": lambda: BoostingRegressor(learner=PARTS),
    "log_loss": BoostingClassifier,
}
OF_KERNELS = {
    "stages": lambda: BoostingRegressor(learner="kernel"),
    "kernel regression": KernelBoostingRegressor,
    "sparse regression": SparseKernelRidge,
    "kernel classes": KernelBoostingClassifier,
    "kernel log loss": lambda: KernelBoostingClassifier("log_loss"),
    "sparse classes": SparseKernelClassifier,
}
ALL = OF_TREES | OF_KERNELS
WORDS = np.array(["ash", "birch", "cedar", "elm", "fir", "oak", "pine"])
SHRINKAGE = 1.0  # rows of the mean that a lookup adds to each cell
SHARE = max(1, settings.default.max_examples // 8)
LARGEST = 1500  # observations that are repeated


def cells_of(rng, m, kind):
    """Distinct rows (m, d) of a factorial design."""
    sizes = [int(rng.integers(2, 7))]
    while np.prod(sizes) < m:
        sizes.append(int(rng.integers(2, 7)))
    levels = np.array(list(product(*map(range, sizes))))
    levels = levels[rng.permutation(len(levels))[:m]]
    if kind == "numbers":
        return levels.astype(float)
    if kind == "booleans":
        bits = np.arange(int(np.ceil(np.log2(m))))
        return rng.permutation(2 ** len(bits))[:m, None] >> bits & 1 == 1
    columns = levels.T if kind == "mixed" else []
    texts = {f"text {j}": WORDS[column] for j, column in enumerate(levels.T)}
    numbers = {f"number {j}": column * 1.5 for j, column in enumerate(columns) if j % 2}
    return pd.DataFrame(texts | numbers)


def observed(rng, name, truth, cells, noise):
    """Noisy targets of observations of some cells."""
    if name == "poisson":
        return rng.poisson(truth[cells]).astype(float) if noise else truth[cells]
    if name == "gamma":
        return truth[cells] * (rng.gamma(noise**-2, noise**2, len(cells)) if noise else 1.0)
    if truth.dtype.kind == "i":
        flipped = rng.uniform(size=len(cells)) < 0.5 * noise
        return np.where(flipped, rng.integers(truth.max() + 1, size=len(cells)), truth[cells])
    return truth[cells] + noise * rng.normal(size=len(cells))


def truth_of(rng, m, name):
    if "class" in name or "log" in name:
        return rng.permutation(np.arange(m) % min(m, int(rng.integers(2, 4))))
    truth = rng.normal(size=m)
    return np.exp(truth) if name in ("poisson", "gamma") else truth


def indicators(y, k):
    return np.eye(k)[y] if y.dtype.kind == "i" else y[:, None]


def predicted(model, cells, k):
    if not hasattr(model, "classes_"):
        return model.predict(cells)[:, None]
    if hasattr(model, "predict_proba"):
        return model.predict_proba(cells)
    return indicators(model.predict(cells), k)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=SHARE)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(2, 50),
    repeats=st.integers(10, 10_000),
    kind=st.sampled_from(["numbers", "booleans", "text", "mixed"]),
    noise=st.sampled_from([0.0, 0.3, 1.0]),
    weighted=st.booleans(),
)
def test_as_good_as_a_table_lookup(name, seed, m, repeats, kind, noise, weighted):
    rng = np.random.default_rng(seed)
    truth = truth_of(rng, m, name)
    most = repeats if weighted and not noise else max(10, min(repeats, LARGEST // m))
    counts = 10 + rng.poisson(most - 10, m) if most > 10 else np.full(m, 10)
    exact = weighted and not noise
    cells = np.arange(m) if exact else rng.permutation(np.repeat(np.arange(m), counts))
    y, weight = observed(rng, name, truth, cells, noise), None
    if exact:
        weight = counts
    elif weighted and truth.dtype.kind == "i":  # the noise of classes repeats rows
        (cells, y), weight = np.unique([cells, y], axis=1, return_counts=True)
    X = cells_of(rng, m, kind)
    rows = X.iloc[cells] if isinstance(X, pd.DataFrame) else X[cells]
    model = ALL[name]().fit(rows, y, sample_weight=weight)
    k = int(truth.max()) + 1
    w, Y = np.ones(len(y)) if weight is None else weight, indicators(y, k)
    mass = np.bincount(cells, w, m)
    means = np.column_stack([np.bincount(cells, w * one, m) for one in Y.T]) / mass[:, None]
    mean = np.average(Y, axis=0, weights=w)
    lookup = mean + (means - mean) * (mass / (mass + SHRINKAGE))[:, None]
    goal = means if noise else indicators(truth, k)
    share = mass / mass.sum()
    found, best = (share @ ((one - goal) ** 2).sum(1) for one in (predicted(model, X, k), lookup))
    spread = float(np.average(((Y - mean) ** 2).sum(1), weights=w))
    unexplained = float(np.average(((Y - means[cells]) ** 2).sum(1), weights=w))
    assert found <= best + 0.01 * spread + 2 * unexplained * m / mass.sum()


def _hours():
    times = np.arange(4321.0)
    hour, day = times % 24, times // 24 % 7
    return np.column_stack([hour, day]), np.sin(hour / 4) + 2 * (day > 4) + hour * (day == 2) / 9


def _factorial():
    X = np.array(list(product(range(3), range(4), range(2))) * 10, dtype=float)
    return X, X[:, 0] + 2 * X[:, 1] * X[:, 2]


def _and():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 250)
    return X, (X[:, 0] & X[:, 1]).astype(float)


DESIGNS = {
    "five values": lambda: (np.arange(2000.0)[:, None] % 5, np.arange(2000.0) % 5),
    "factorial": _factorial,
    "and": _and,
    "hours": _hours,
    "text": lambda: (pd.DataFrame({"c": list("abcdef") * 50}), np.array([1, 7, 2, 9, 3, 4.0] * 50)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_without_noise_are_learned(name):
    X, y = DESIGNS[name]()
    assert BoostingRegressor(learner="tree").fit(X, y).score(X, y) > 0.995


def test_a_text_column_without_early_stopping():
    X, y = DESIGNS["text"]()
    model = BoostingRegressor(min_samples_leaf=1, l2_regularization=0, early_stopping=False)
    assert model.fit(X, y).score(X, y) > 0.995


def test_most_observations_of_a_kernel_machine_have_equals():
    X, y = _and()
    model = KernelBoostingRegressor()
    repeated = model.fit(X, y).predict(X[:4])
    np.testing.assert_allclose(repeated, y[:4], atol=0.01)
    weighted = model.fit(X[:4], y[:4], sample_weight=[250] * 4).predict(X[:4])
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)

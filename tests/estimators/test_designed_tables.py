"""Tables of a few distinct rows, each observed many times: at least as good as a table lookup."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, r2_score
from tests.table_estimators import ALL, GROUP, LEVELS, fitted, predicted

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor

WORDS = np.array(["ash", "birch", "cedar", "elm", "fir", "oak", "pine"])
SHRINKAGE = 1.0  # rows of the mean that a lookup adds to each cell
SHARE = max(1, settings.default.max_examples // 8)
SOME, FEW, MANY = 800, 300, 20_000  # rows of a table, repetitions included
ROWS = dict.fromkeys(["squared_error", "poisson", "gamma"], MANY)
ROWS |= dict.fromkeys(["kernel classes", "sparse classes", "convex", "stacked", "experts"], FEW)
LEAVES_OF_TIMES = 16
GRADES = 4


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


def truth_of(rng, m, kind):
    """What is true of each cell: a number (m,), a class (m,), or two numbers (m, 2)."""
    if kind in ("classes", "labels", "grades"):
        n_classes = GRADES if kind == "grades" else int(rng.integers(2, 4))
        return rng.permutation(np.arange(m) % min(m, n_classes))
    truth = rng.normal(size=(m, 2) if kind == "vectors" else m)
    return np.exp(truth) if kind in ("counts", "positive", "times") else truth


def observed(rng, kind, truth, noise):
    """Noisy targets of observations (n, ...) with a truth."""
    n = len(truth)
    if truth.dtype.kind == "i":
        flipped = rng.uniform(size=n) < 0.5 * noise
        return np.where(flipped, rng.integers(truth.max() + 1, size=n), truth)
    if not noise:
        return truth
    if kind == "counts":
        return rng.poisson(truth).astype(float)
    if kind == "positive":
        return truth * rng.gamma(noise**-2, noise**2, n)
    if kind == "times":
        return truth * rng.exponential(size=n) ** noise
    return truth + noise * rng.normal(size=truth.shape)


@dataclass
class Observations:
    """Targets of observations of some cells, and losses of predictions for the cells."""

    kind: str
    m: int
    cells: Any  # (n,)
    y: Any  # (n, ...)
    weight: Any = None  # (n,) or None

    @property
    def w(self):
        """Weights in rows: whole numbers count them, and others are proportions."""
        if self.weight is None:
            return np.ones(len(self.y))
        is_whole = (self.weight == np.round(self.weight)).all()
        return self.weight * (1 if is_whole else self.weight.sum() / (self.weight**2).sum())

    @property
    def mass(self):
        """Number of observations of each cell (m,)."""
        return np.bincount(self.cells, self.w, self.m)

    @property
    def columns(self):
        """Targets (n, k), of which a lookup takes means."""
        if self.kind in ("classes", "labels"):
            return np.eye(self.y.max() + 1)[self.y]
        return self.y.reshape(len(self.y), -1)

    def constant(self, rows):
        """The best constant (k,) for some rows."""
        levels = {"medians": [0.5], "quantiles": LEVELS}.get(self.kind)
        if levels is None:
            return np.average(self.columns[rows], axis=0, weights=self.w[rows])
        return np.quantile(self.y[rows], levels, method="inverted_cdf", weights=self.w[rows])

    def loss(self, values):
        """Mean loss of predictions for the cells (m, k)."""
        predicted = values[self.cells]
        if self.kind == "grades":
            y, scores = (part.reshape(-1, GROUP) for part in (2.0**self.y - 1, predicted))
            return 1 - ndcg_score(y, scores, sample_weight=self.w[::GROUP])
        if self.kind == "times":
            return self._discordant(predicted[:, 0])
        if self.kind in ("medians", "quantiles"):
            error = self.y[:, None] - predicted
            levels = LEVELS if self.kind == "quantiles" else 0.5
            losses = np.maximum(levels * error, (levels - 1) * error).sum(axis=1)
        elif self.kind == "labels":
            losses = predicted.argmax(axis=1) != self.y
        else:
            losses = ((self.columns - predicted) ** 2).sum(axis=1)
        return float(np.average(losses, weights=self.w))

    def _discordant(self, times):
        """Share of pairs whose predicted times (n,) are in the wrong order."""
        w = self.w[:, None] * self.w * (self.y[:, None] < self.y)
        wrong = (times[:, None] > times) + 0.5 * (times[:, None] == times)
        return float((w * wrong).sum() / w.sum())


def drawn(rng, kind, m, repeats, noise, weights, most_rows=SOME):
    """Observations of m cells: repeated rows, whole weights instead, or fractions."""
    truth = truth_of(rng, m, kind)
    # Where no rows can be held out, a hundred stages do not sort more times than trees have leaves.
    sorts = kind != "times" or m <= LEAVES_OF_TIMES
    exact = weights == "whole" and not noise and kind != "grades" and sorts
    most = repeats if exact else max(GROUP, min(repeats, most_rows // m))
    counts = 10 + rng.poisson(most - 10, m) if most > 10 else np.full(m, 10)
    if exact:
        return Observations(kind, m, np.arange(m), observed(rng, kind, truth, 0.0), counts)
    if weights == "fractions":
        counts[0] = counts[1:].sum()  # half of the rows are equal
    cells = rng.permutation(np.repeat(np.arange(m), counts))
    if kind == "grades":
        cells = cells[: len(cells) // GROUP * GROUP]
    y, weight = observed(rng, kind, truth[cells], noise), None
    if weights == "whole" and kind in ("classes", "labels"):  # the noise of classes repeats rows
        (cells, y), weight = np.unique([cells, y], axis=1, return_counts=True)
    if weights == "fractions":
        n_units = len(y) // GROUP if kind == "grades" else len(y)
        weight = np.repeat(rng.uniform(0.5, 1.5, n_units), len(y) // n_units)
    return Observations(kind, m, cells, y, weight)


def limit(seen):
    """The loss of a table lookup, 1 % of that of a constant, and what noise explains."""
    constant = seen.constant(np.full(len(seen.y), True))
    best = np.array([seen.constant(seen.cells == cell) for cell in range(seen.m)])
    mass = seen.mass[:, None]
    lookup = constant + (best - constant) * (mass / (mass + SHRINKAGE))
    spread = seen.loss(np.tile(constant, (seen.m, 1)))
    unexplained = seen.loss(best) * seen.m / mass.sum()
    return seen.loss(lookup) + 0.01 * spread + 2 * unexplained


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("name", ALL)
@settings(max_examples=SHARE)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(2, 50),
    repeats=st.integers(10, 10_000),
    kind=st.sampled_from(["numbers", "booleans", "text", "mixed"]),
    noise=st.sampled_from([0.0, 0.3, 1.0]),
    weights=st.sampled_from(["none", "whole", "fractions"]),
)
def test_as_good_as_a_table_lookup(name, seed, m, repeats, kind, noise, weights):
    rng = np.random.default_rng(seed)
    most_rows = ROWS.get(name, SOME)
    if ALL[name][0] in ("medians", "quantiles"):
        # Trees are fitted to signs, which do not tell a cell with large residuals from one with
        # small ones: where these are in one leaf, its median is that of the heavier cell.
        # LightGBM, XGBoost and scikit-learn end at the same losses, up to 16 times the limit.
        noise = max(noise, 0.3)
    if ALL[name][0] == "labels":
        noise = min(noise, 0.3)  # AdaBoost learns flipped labels, too (Dietterich 2000)
    seen = drawn(rng, ALL[name][0], m, repeats, noise, weights, most_rows)
    X = cells_of(rng, m, kind)
    rows = X.iloc[seen.cells] if isinstance(X, pd.DataFrame) else X[seen.cells]
    assert seen.loss(predicted(name, fitted(name, rows, seen.y, seen.weight), X)) <= limit(seen)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "weights"), [("absolute_error", "fractions"), ("ranker", "none")])
def test_leaves_are_as_small_as_cells(name, weights):
    """A median, or the order of groups, needs leaves of many rows only where these differ."""
    rng = np.random.default_rng(0)
    seen = drawn(rng, ALL[name][0], 24, 11, 0.0, weights)
    X = cells_of(rng, 24, "numbers")
    found = predicted(name, fitted(name, X[seen.cells], seen.y, seen.weight), X)
    assert seen.loss(found) <= limit(seen)


@pytest.mark.slow
def test_ordered_pairs_of_a_ranking_are_not_penalized():
    """Their hessians are far below one a row, so that the usual penalty would stop the descent."""
    rng = np.random.default_rng(130138)
    seen = drawn(rng, "grades", 33, 9744, 0.0, "fractions")
    X = cells_of(rng, 33, "mixed")
    found = predicted("ranker", fitted("ranker", X.iloc[seen.cells], seen.y, seen.weight), X)
    assert seen.loss(found) <= limit(seen)


@pytest.mark.parametrize(
    ("counts", "least"), [([5] * 80, 5), ([4] + [5] * 80, 20), ([1] * 400, 20)]
)
@pytest.mark.parametrize("unit", [None, 1, 0.1])
def test_leaves_of_designed_tables(counts, least, unit):
    x = np.repeat(np.arange(len(counts)), counts)
    weight = None if unit is None else np.full(len(x), unit)
    model = BoostingRegressor("absolute_error", n_estimators=1, random_state=0)
    resolved = model.fit(x[:, None], x % 7, weight).resolved_
    np.testing.assert_allclose(resolved.min_samples_leaf, least * (unit or 1))


def _hours():
    times = np.arange(2017.0)
    hour, day = times % 24, times // 24 % 7
    return np.column_stack([hour, day]), np.sin(hour) * np.cos(2 * day)


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("name", DESIGNS)
def test_designs_without_noise_are_learned(name):
    X, y = DESIGNS[name]()
    assert BoostingRegressor(learner="tree", validation="random").fit(X, y).score(X, y) > 0.995


@pytest.mark.parametrize("kind", ["numbers", "text"])
@pytest.mark.parametrize(("columns", "repeats"), [((0, 1), 24), ((1, 2), 10), ((0, 1, 2), 24)])
def test_parities_of_balanced_columns(repeats, columns, kind):
    """No split of all rows gains anything, and neither does one of the rows of a column's level."""
    cells = np.array(list(product(range(2), repeat=max(columns) + 1)))
    truth = cells[:, columns].sum(axis=1) % 2
    X = cells if kind == "numbers" else pd.DataFrame(WORDS[cells])
    rows = np.tile(np.arange(len(cells)), repeats)
    repeated = X.iloc[rows] if kind == "text" else X[rows]
    for observed, picked, weight in [(repeated, rows, None), (X, ..., [repeats] * len(cells))]:
        y = truth[picked]
        numbers = BoostingRegressor(random_state=0).fit(observed, 0.6 * y + 0.1, weight)
        assert numbers.score(X, 0.6 * truth + 0.1) > 0.995
        classes = BoostingClassifier(random_state=0).fit(observed, y, weight)
        np.testing.assert_array_equal(classes.predict(X), truth)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_which_rows_are_drawn_for_a_parity():
    cells = np.array(list(product(range(2), repeat=2)) * 250)
    hidden = cells.sum(axis=1) % 2
    model = BoostingRegressor(early_stopping=False, random_state=0)
    assert model.fit(cells, hidden).score(cells, hidden) > 0.995
    assert model.resolved_.subsample == 0.9
    beside = np.column_stack([hidden, cells[:, 0]])
    assert r2_score(beside, model.fit(cells, beside).predict(cells)) > 0.995
    for y in (cells[:, 0], hidden + 1e-6 * cells[:, 0], np.ones(1000)):
        assert model.fit(cells, y).resolved_.subsample == 1
    assert model.fit(np.ones((1000, 2)), hidden).resolved_.subsample == 1
    assert model.set_params(subsample=1.0).fit(cells, hidden).resolved_.subsample == 1
    kernel = BoostingRegressor(early_stopping=False, learner="kernel", random_state=0)
    assert kernel.fit(cells[:400], hidden[:400]).resolved_.subsample == 1


def test_most_observations_of_a_kernel_machine_have_equals():
    X, y = (part[:400] for part in _and())
    model = KernelBoostingRegressor()
    repeated = model.fit(X, y).predict(X[:4])
    np.testing.assert_allclose(repeated, y[:4], atol=0.01)
    weighted = model.fit(X[:4], y[:4], sample_weight=[100] * 4).predict(X[:4])
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@pytest.mark.parametrize(
    "name", ["kernel regression", "sparse regression", "kernel log loss", "stages", "votes"]
)
def test_fractions_of_a_block_of_equal_rows_in_any_unit(name):
    rng = np.random.default_rng(0)
    seen = drawn(rng, ALL[name][0], 12, 10, 0.0, "fractions")
    X = cells_of(rng, 12, "text")
    one, other = (
        predicted(name, fitted(name, X.iloc[seen.cells], seen.y, unit * seen.weight), X)
        for unit in (1.0, 2.0**-10)
    )
    assert seen.loss(one) <= limit(seen)
    np.testing.assert_allclose(other, one, atol=1e-6)

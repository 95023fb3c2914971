"""Tables, predicted distributions of the rivals, and scores of ``distributions.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import tables

TRAIN, TEST = 3_000, 1_500
SIMULATED = TRAIN + TEST
LEVELS = (np.arange(500) + 0.5) / 500
SMALLEST = 1e-300  # of probabilities
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Data:
    kind: str
    read: Callable[[], Any]
    set_aside: bool = False


def _uniform(seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(SIMULATED, 8)), rng


def spread_of_one() -> Rows:
    """Normal: mean ``sin(2 pi x0) + x1``, standard deviation ``exp(3 x2 - 2.5)``."""
    X, rng = _uniform(1)
    mean = np.sin(2 * np.pi * X[:, 0]) + X[:, 1]
    return X, mean + np.exp(3 * X[:, 2] - 2.5) * rng.standard_normal(len(X))


def spread_of_two() -> Rows:
    """Normal: Friedman's first function, deviation 0.5 to 4 by an interaction of two columns."""
    X, rng = _uniform(2)
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    mean += 10 * X[:, 3] + 5 * X[:, 4]
    spread = 0.5 + 3.5 * ((X[:, 5] > 0.5) == (X[:, 0] > 0.5))
    return X, mean + spread * rng.standard_normal(len(X))


def overdispersed() -> Rows:
    """Negative binomial: mean ``exp(1 + sin(2 pi x0) + x1)``, of size ``exp(3 x2 - 1)``."""
    X, rng = _uniform(3)
    mean, size = np.exp(1 + np.sin(2 * np.pi * X[:, 0]) + X[:, 1]), np.exp(3 * X[:, 2] - 1)
    return X, rng.negative_binomial(size, size / (size + mean)).astype(float)


def many_zeros() -> Rows:
    """Poisson of mean ``exp(1.5 x0 + x1)``; zero with probability ``expit(4 x2 - 2)``."""
    X, rng = _uniform(4)
    y = rng.poisson(np.exp(1.5 * X[:, 0] + X[:, 1]))
    return X, np.where(rng.uniform(size=len(X)) < 1 / (1 + np.exp(2 - 4 * X[:, 2])), 0.0, y)


TABLES = {
    "abalone": Data("positive", tables.TABLES["abalone"]),
    "overdispersed": Data("count", overdispersed),
    "house_16h": Data("heavy tails", tables.TABLES["house_16h"]),
    "spread_of_one": Data("heteroscedastic", spread_of_one),
    "california": Data("positive", tables.TABLES["california_housing"]),
    "diamonds": Data("positive", tables.TABLES["diamonds"]),
    "kin8nm": Data("plain", tables.TABLES["kin8nm"]),
    "solar flares": Data("count", tables.TABLES["sf2"], set_aside=True),
    "many_zeros": Data("many zeros", many_zeros, set_aside=True),
    "flights": Data("heavy tails", tables.TABLES["flights"], set_aside=True),
    "spread_of_two": Data("heteroscedastic", spread_of_two, set_aside=True),
    "cpu_act": Data("plain", tables.TABLES["cpu_act"], set_aside=True),
}
"""No distribution was chosen by the tables that are set aside, but their scores were seen."""

COUNTS = ("count", "many zeros")


def split(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and targets, then those of the test."""
    X, y, *_ = TABLES[name].read()
    first, second = rows_of_split(len(X), seed)
    return X[first], y[first], X[second], y[second]


def rows_of_split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the training rows, and of those of the test."""
    order, train = np.random.default_rng(seed).permutation(n), min(TRAIN, 3 * n // 4)
    return order[:train], order[train : train + TEST]


class OfScipy:
    """A frozen distribution of ``scipy.stats`` for each row, or any object with its functions."""

    def __init__(self, frozen: Any, discrete: bool = False) -> None:
        self.frozen, self.discrete = frozen, discrete

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return self.frozen.cdf(y)

    def log_score(self, y: np.ndarray) -> np.ndarray:
        found = self.frozen.logpmf(y) if self.discrete else self.frozen.logpdf(y)
        return -np.maximum(found, np.log(SMALLEST))

    def crps(self, y: np.ndarray) -> np.ndarray:
        if self.discrete:
            below, last = 0.0, int(y.max()) + 1
            while last < 10_000 and np.min(self.cdf(np.full_like(y, last))) < 1 - 1e-9:
                last *= 2
            for count in range(last):
                below += (self.cdf(np.full_like(y, count)) - (y <= count)) ** 2
            return np.asarray(below)
        return pinball(y, np.stack([self.frozen.ppf(level) for level in LEVELS]), LEVELS)


class Zeros:
    """Zeros with a probability beside a Poisson distribution."""

    def __init__(self, rate: np.ndarray, gate: np.ndarray) -> None:
        self.poisson, self.gate = stats.poisson(rate), gate

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < 0, 0.0, self.gate + (1 - self.gate) * self.poisson.cdf(y))

    def logpmf(self, y: np.ndarray) -> np.ndarray:
        chance = (1 - self.gate) * self.poisson.pmf(y) + self.gate * (y == 0)
        return np.log(np.maximum(chance, SMALLEST))


class Quantiles:
    """Quantiles (k, n) of levels (k,), with straight lines between them and no density."""

    log_score, discrete = None, False

    def __init__(self, levels: np.ndarray, quantiles: np.ndarray) -> None:
        self.levels, self.quantiles = levels, np.sort(quantiles, axis=0)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        columns = zip(y, self.quantiles.T, strict=True)
        return np.array([np.interp(one, ends, self.levels, 0.0, 1.0) for one, ends in columns])

    def crps(self, y: np.ndarray) -> np.ndarray:
        return pinball(y, self.quantiles, self.levels)


def pinball(y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Twice the mean pinball loss: the CRPS of these equally likely values."""
    below = (y < quantiles) - levels[:, None]
    return 2 * np.mean(below * (quantiles - y), axis=0)


def distance_of_mean(levels: list[np.ndarray]) -> float:
    """Largest deviation of the mean distribution function of some samples from a uniform one."""
    grid = np.linspace(0, 1, 201)
    below = [np.searchsorted(np.sort(one), grid, "right") / len(one) for one in levels]
    return float(np.abs(np.mean(below, axis=0) - grid).max())


def bound_of_mean(n: int, splits: int, draws: int = 1_000) -> float:
    """What this distance exceeds by chance in 5 % of draws of uniform levels of ``n`` rows."""
    rng, tests = np.random.default_rng(0), [rows_of_split(n, seed)[1] for seed in range(splits)]
    uniform = rng.uniform(size=(draws, n))
    found = [distance_of_mean([one[rows] for rows in tests]) for one in uniform]
    return float(np.quantile(found, 0.95))


def scores(found: Any, y: np.ndarray, counts: bool) -> dict[str, Any]:
    """CRPS and log score of each row, and its place in the predicted distribution."""
    rng = np.random.default_rng(0)
    step = 1.0 if found.discrete else 0.5 * counts
    low, high = found.cdf(y - step), found.cdf(y if found.discrete else y + step)
    log_score = found.log_score and found.log_score(y)
    if log_score is not None and counts and not found.discrete:
        chance = high - low  # far out, differences of numbers near 1 are inexact
        log_score = np.where(chance > 1e-9, -np.log(np.maximum(chance, SMALLEST)), log_score)
    return {
        "crps": found.crps(y),
        "log_score": log_score,
        "pit": low + rng.uniform(size=len(y)) * (high - low),
    }

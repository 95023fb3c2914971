"""Common sizes, settings, and timing of the fits of ``hilboost demo``."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

__all__ = [
    "COMMON",
    "LEARNING_RATE",
    "LOSSES",
    "OURS",
    "SEED",
    "DemoSize",
    "Floats",
    "one_thread",
    "timed",
]

Floats = NDArray[np.float64]
Fitted = TypeVar("Fitted")

SEED = 0
LOSSES = ("squared_error", "absolute_error", "huber", "quantile")

# Both libraries use the same settings, for a fair comparison.
LEARNING_RATE = 0.1
COMMON: dict[str, Any] = {
    "learning_rate": LEARNING_RATE,
    "early_stopping": False,
    "random_state": SEED,
}
# scikit-learn's defaults, instead of hilboost's automatic choices.
OURS: dict[str, Any] = {
    "l2_regularization": 0.0,
    "max_features": 1.0,
    "subsample": 1.0,
    "n_jobs": 1,
}


@dataclass(frozen=True)
class DemoSize:
    """Size of the demo."""

    digits_rounds: int = 100
    regression_rounds: int = 100
    curve_rounds: int = 100
    friedman_rows: int = 1000
    image_rounds: int = 60
    image_rows: int = 800
    smooth_rows: int = 400

    @classmethod
    def quick(cls) -> "DemoSize":
        """Return a small size for a first look and for tests."""
        return cls(
            digits_rounds=10,
            regression_rounds=20,
            curve_rounds=30,
            friedman_rows=300,
            image_rounds=5,
            image_rows=200,
            smooth_rows=200,
        )

    @property
    def total_rounds(self) -> int:
        """Total number of rounds of both libraries, for the progress bar."""
        tables = 2 * len(LOSSES) * self.regression_rounds
        return 2 * (self.digits_rounds + tables) + len(LOSSES) * self.curve_rounds


def one_thread() -> AbstractContextManager[Any]:
    """Limit scikit-learn to one thread, like hilboost with ``n_jobs=1``.

    Data this small does not benefit from more threads.  On busy machines, more threads cost
    minutes, because OpenMP threads spin while they wait.
    """
    return threadpool_limits(limits=1)


def timed(work: Callable[[], Fitted]) -> tuple[Fitted, float]:
    """Run a function; return its result and the elapsed seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start

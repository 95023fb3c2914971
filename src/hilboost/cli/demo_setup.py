"""Common sizes, settings, and timing of the fits of ``hilboost demo``."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
Fitted = TypeVar("Fitted")

SEED = 0
LOSSES = ("squared_error", "absolute_error", "huber", "quantile")


@dataclass(frozen=True)
class DemoSize:
    """Size of the demo."""

    digits_rows: int = 1797
    curve_rounds: int = 100
    friedman_rows: int = 1200
    image_rounds: int = 60
    image_rows: int = 800
    smooth_rows: int = 400

    @classmethod
    def quick(cls) -> "DemoSize":
        """Return a small size for a first look and for tests."""
        return cls(
            digits_rows=300,
            curve_rounds=30,
            friedman_rows=350,
            image_rounds=5,
            image_rows=200,
            smooth_rows=200,
        )

    @property
    def total_rounds(self) -> int:
        """Number of rounds that the progress bar shows."""
        return len(LOSSES) * self.curve_rounds


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

"""A start value and a sequence of stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from hilboost.core.contracts import Summation
from hilboost.core.records import Floats, Stage


@dataclass(frozen=True)
class AdditiveModel:
    """``F(x) = start + sum over stages of coefficient · model(x)``.

    Attributes
    ----------
    start : (r,) float64
    stages : tuple of Stage
    """

    start: Floats
    stages: tuple[Stage, ...]
    _sums: list[Summation] = field(default_factory=list, repr=False, compare=False)

    def summations(self) -> list[Summation]:
        """The stages in blocks of one model class each, ready to be evaluated."""
        if not self._sums:
            self._sums.extend(_summations(self.stages))
        return self._sums

    def predict_raw(self, X: Floats, n_threads: int = 1) -> Floats:
        """(n, r) for inputs (n, d)."""
        raw = np.empty((len(X), len(self.start)))
        raw[:] = self.start
        for part in self.summations():
            part.add_to(raw, X, n_threads)
        return raw

    def staged_raw(self, X: Floats, n_threads: int = 1) -> Iterator[Floats]:
        """(n, r) after every stage; the array is the same one, changed in place."""
        raw = np.empty((len(X), len(self.start)))
        raw[:] = self.start
        for stage in self.stages:
            for part in _summations((stage,)):
                part.add_to(raw, X, n_threads)
            yield raw

    def __getstate__(self) -> dict[str, object]:
        return {"start": self.start, "stages": self.stages, "_sums": []}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _summations(stages: tuple[Stage, ...]) -> Iterator[Summation]:
    parts = [(part, stage.coefficient[part.columns]) for stage in stages for part in stage.parts]
    for model_class, group in groupby(parts, key=lambda pair: type(pair[0].model)):
        members = list(group)
        yield model_class.sum_of(
            [part.model for part, _ in members],
            [coefficient for _, coefficient in members],
            [part.columns for part, _ in members],
        )

"""Additive models: an initial prediction and a sequence of stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hilboost.core.base_model import BaseModel, Stage, Summation, Term
from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class AdditiveModel:
    """``F(x) = initial_raw + sum over stages of coefficient · model(x)``."""

    initial_raw: Floats  # (r,) float64
    stages: tuple[Stage, ...]
    _sums: list[Summation] = field(default_factory=list, repr=False, compare=False)

    def summations(self) -> list[Summation]:
        """Group the stages into blocks of one model class each, ready for evaluation."""
        if not self._sums:
            # Assign once: two threads may make the first prediction at the same time.
            self._sums[:] = list(_summations(self.stages))
        return self._sums

    @property
    def cost_per_row(self) -> int:
        """Approximate number of operations to predict one row."""
        return max(1, len(self.stages), sum(s.cost_per_row for s in self.summations()))

    @property
    def n_basis(self) -> int:
        """Number of distinct basis vectors of kernel machines."""
        terms = (term for stage in self.stages for term in stage.terms)
        if all(term.model.on_leaves() is not None for term in terms):
            return 0  # trees are many
        return sum(term.n_basis for term in self.summations())

    def predict_raw(self, X: Floats, n_threads: int = 1) -> Floats:
        """Raw predictions (n, r) for inputs (n, d)."""
        raw = np.empty((len(X), len(self.initial_raw)))
        raw[:] = self.initial_raw
        self.add_stages(raw, X, n_threads)
        return raw

    def add_stages(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add the outputs of all stages to ``raw`` (n, r)."""
        for summation in self.summations():
            summation.add_to(raw, X, n_threads)

    def staged_raw(self, X: Floats, n_threads: int = 1) -> Iterator[Floats]:
        """Raw predictions (n, r) after every stage, in one array that is updated in place."""
        raw = np.empty((len(X), len(self.initial_raw)))
        raw[:] = self.initial_raw
        for stage in self.stages:
            for summation in _summations((stage,)):
                summation.add_to(raw, X, n_threads)
            yield raw

    def first(self, n_stages: int) -> AdditiveModel:
        """Return the model of the first stages."""
        return AdditiveModel(self.initial_raw, self.stages[:n_stages])

    def terms_of(self, learner: int) -> tuple[Stage, ...]:
        """Return the terms that one of several learners fitted, without stages that have none."""
        own = (
            tuple(replace(term, learner=None) for term in stage.terms if term.learner == learner)
            for stage in self.stages
        )
        return tuple(Stage(terms) for terms in own if terms)

    def __getstate__(self) -> dict[str, object]:
        return {"initial_raw": self.initial_raw, "stages": self.stages, "_sums": []}


def mean_of(models: Sequence[AdditiveModel]) -> AdditiveModel:
    """Average models with the same number of stages; the result is an additive model."""
    if len(models) == 1:
        return models[0]
    factor = 1 / len(models)
    stages = [
        Stage(tuple(term for stage in together for term in stage.scaled(factor).terms))
        for together in zip(*(model.stages for model in models), strict=True)
    ]
    start = factor * np.sum([model.initial_raw for model in models], axis=0)
    return AdditiveModel(start, tuple(stages))


def members_of(model: AdditiveModel, n_members: int) -> list[AdditiveModel]:
    """Take a mean of models with equally many terms per stage apart again; see :func:`mean_of`."""
    if n_members == 1:
        return [model]
    members = []
    for k in range(n_members):
        stages = []
        for stage in model.stages:
            size = len(stage.terms) // n_members
            stages.append(Stage(stage.terms[k * size : (k + 1) * size]).scaled(float(n_members)))
        members.append(AdditiveModel(model.initial_raw, tuple(stages)))
    return members


def _summations(stages: tuple[Stage, ...]) -> Iterator[Summation]:
    terms = [term for stage in stages for term in stage.terms]
    groups: dict[type[BaseModel], list[Term]] = {}
    for term in terms:
        groups.setdefault(type(term.model), []).append(term)
    for model_class, group in groups.items():
        yield model_class.sum_of(group)

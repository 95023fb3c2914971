"""Several stages that a learner may fit in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class StageRequest:
    """Consecutive stages of one member of an ensemble, and all that they depend on.

    Attributes
    ----------
    loss : str
        Name of the compiled loss, see ``Loss.compiled_name``.
    y : (n, c) array
        Targets.
    weight : (n,) float64 or None
    raw : (n, r) float64
        The outputs before the first stage, in Fortran order; updated.
    rows : (m,) uint32 or None
        The rows to which stages are fitted; ``None`` means all rows.
    n_drawn : int or None
        How many of them each stage draws; ``None`` if it uses all.
    keys : (n_stages,) uint64
        Of the draws of the stages.
    generators : sequence of callables
        For each stage, returns the random numbers of the learner.
    rate : float
        Factor of all outputs.
    number : int
        Of the first stage.
    """

    loss: str
    y: NDArray[Any]
    weight: Floats | None
    raw: Floats
    rows: NDArray[np.uint32] | None
    n_drawn: int | None
    keys: NDArray[np.uint64]
    generators: Sequence[Callable[[], np.random.Generator]]
    rate: float
    number: int = 0

    def first(self, n_stages: int) -> StageRequest:
        """Return only the first stages."""
        keys, generators = self.keys[:n_stages].copy(), self.generators[:n_stages]
        return replace(self, keys=keys, generators=generators)


class FittedStages(NamedTuple):
    """Stages, and the losses after each of them.

    Attributes
    ----------
    stages : list of Stage
        The first stages of the request; more cannot follow if the last loss is not finite.
    losses : (n_stages, 2, 5) int64
        Exact sums of the weighted losses of the rows to which stages are fitted, and of all others;
        see :mod:`hilboost.backends.exact_sums`.
    before : (n, r) float64
        A copy of the outputs before the first stage.
    """

    stages: list[Stage]
    losses: NDArray[np.int64]
    before: Floats

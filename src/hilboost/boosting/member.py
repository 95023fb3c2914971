"""Members of an ensemble: additive models during training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import RAW, Floats
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.model import AdditiveModel


class GradientMemory:
    """Arrays for the gradients of one stage after the other.

    New arrays of large tables would be mapped and cleared by the operating system in every stage.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def like(self, raw: Floats, name: str) -> Floats:
        """Return an array of the shape and layout of ``raw`` (n, r), with arbitrary content."""
        array = self._arrays.get(name)
        if array is None or array.size < raw.size:
            array = self._arrays[name] = np.empty(raw.size, dtype=RAW)
        array = array[: raw.size]
        if raw.flags.f_contiguous:
            return array.reshape(raw.shape[::-1]).T
        return array.reshape(raw.shape)

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._arrays


@dataclass
class EnsembleMember:
    """An additive model during training, and its training rows."""

    initial_raw: Floats  # (r,) float64
    rows: NDArray[np.uint32] | None = None  # (m,) uint32 or None: ``None`` means all rows
    stages: list[Stage] = field(default_factory=list)
    # (n, r) float64: for all rows of the table, including those held out from the member.  Stored
    # column by column (Fortran order): a stage updates whole columns, and sums over classes
    # vectorize. Empty if the stages learn from parts of the rows in turn.
    raw: Floats = field(default_factory=lambda: np.empty((0, 0)))
    data: Any = None  # result of ``for_members`` of the learner
    # shared by the parts of the rows, because one learns at a time
    memory: GradientMemory = field(default_factory=GradientMemory, repr=False)
    # gradients at ``raw``, if they were computed together with the last mean loss
    ahead: Gradients | None = field(default=None, repr=False)
    _visible: tuple[Target, Target] | None = field(default=None, repr=False)

    def model(self) -> AdditiveModel:
        """The additive model of the stages so far."""
        return AdditiveModel(self.initial_raw, tuple(self.stages))

    @cached_property
    def inside(self) -> NDArray[np.bool_] | None:
        """Mask of the member's training rows, (n,), or ``None`` for all."""
        if self.rows is None:
            return None
        mask = np.zeros(len(self.raw), dtype=bool)
        mask[self.rows] = True
        return mask

    def visible(self, target: Target, loss: Loss) -> Target:
        """The target of all rows; the weights of those outside are zero if the loss couples rows.

        Then no row that is held out from the member has an effect on its gradients.
        """
        if self.inside is None or not loss.couples_rows:
            return target
        if self._visible is None or self._visible[0] is not target:
            own = replace(target, weight=np.where(self.inside, target.row_weights, 0.0))
            self._visible = target, own
        return self._visible[1]

    def learned(self, target: Target) -> tuple[Target, Floats]:
        """The target and ``raw`` (m, r) of the member's training rows."""
        if self.rows is None:
            return target, self.raw
        return target.rows(self.rows), self.raw[self.rows]

    @cached_property
    def outside(self) -> NDArray[np.uint32] | None:
        """The other rows, ascending, or ``None`` where there are none."""
        return None if self.inside is None else np.flatnonzero(~self.inside).astype(np.uint32)

"""The contracts between rooms.  A part that keeps one can be exchanged for any other.

Arrays: ``n`` rows, ``d`` columns, ``r`` outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hilboost.core.records import Event, Floats, Gradients, Part, Sample, Stage, Target


class Loss(ABC):
    """A differentiable (or subdifferentiable) loss of encoded labels and ``raw``.

    Each row's value and gradient depend on that row alone; rows are evaluated in blocks, several
    at a time.  A loss with a parameter estimated from all rows is an :class:`AdaptiveLoss`.
    """

    def check(self, target: Target) -> None:
        """Refuse a target this loss cannot take; by default none."""
        return

    @abstractmethod
    def start(self, target: Target) -> Floats:
        """Best constant, (r,): the minimiser of the weighted mean loss."""

    @abstractmethod
    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,), not weighted; ``raw`` is (n, r)."""

    @abstractmethod
    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient (n, r) and hessian diagonal (n, r) or ``None`` for ones."""

    def inverse_link(self, raw: Floats) -> Floats:
        """From link space to the mean, the quantile or the probabilities; (n, r) to (n, r')."""
        return raw


class AdaptiveLoss(Loss):
    """A loss that sets a parameter from all rows at the beginning of every stage."""

    @abstractmethod
    def adapted(self, target: Target, raw: Floats) -> Loss:
        """The loss of this stage."""


class CellLoss(Loss):
    """A loss that knows the best constant to add to ``raw`` in a cell of rows."""

    @abstractmethod
    def cell_values(
        self,
        target: Target,
        raw: Floats,
        cells: NDArray[np.int32],
        n_cells: int,
        columns: slice,
    ) -> Floats:
        """(n_cells, len(columns)) best constants for some columns of ``raw``.

        A row with cell -1 belongs to none; a cell without rows gets 0.
        """


class BaseModel(ABC):
    """A fitted base learner."""

    @abstractmethod
    def predict_raw(self, X: Floats) -> Floats:
        """Outputs (n, r), unshrunk."""

    @classmethod
    def sum_of(cls, parts: Sequence[Part]) -> Summation:
        """What evaluates many parts of this class at once; the default does so one by one."""
        return OneByOne(tuple(parts))


class CellModel(BaseModel):
    """A base model that is constant on cells, such as a tree."""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """(n_cells, r)"""

    @abstractmethod
    def cells(self, X: Floats) -> NDArray[np.int32]:
        """Cell of every row, (n,)."""

    @abstractmethod
    def with_values(self, values: Floats) -> Self:
        """The same cells with other values, (n_cells, r)."""


class CellOrder(ABC):
    """An order that the values of a cell model must keep."""

    @abstractmethod
    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """The values in order that are nearest to ``values`` (n_cells, r) in weighted squares.

        ``weight`` is (n_cells, r), or (n_cells, 1) for all outputs.
        """


class Summation(Protocol):
    """Adds a sum of base models to ``raw``."""

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """``raw[:, columns] += coefficient * model(X)`` for all parts."""


@dataclass(frozen=True)
class OneByOne:
    """The plain sum, part by part."""

    parts: tuple[Part, ...]

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add every model's outputs in turn."""
        for part in self.parts:
            raw[:, part.columns] += part.coefficient * part.model.predict_raw(X)


@dataclass(frozen=True)
class Fitted:
    """What a learner hands back: a part, and what it says on the training rows.

    Exactly one of ``cells`` (n,) and ``outputs`` (n, r) is there; ``cells`` where the model is a
    :class:`CellModel`.  ``order`` is there where its values must keep one: a rule that sets others
    takes the nearest in order.
    """

    part: Part
    cells: NDArray[np.int32] | None = None
    outputs: Floats | None = None
    order: CellOrder | None = None


class Learner(ABC):
    """Fits base models to gradients; sees neither labels nor the loss nor earlier stages."""

    layout: ClassVar[Literal["F", "C"]] = "F"
    """How ``raw`` and gradients lie in memory: by outputs, or by rows for one model of many."""

    @property
    def takes_categories(self) -> bool:
        """Whether columns may hold codes of categories; else these are refused before."""
        return False

    @property
    def takes_sparse(self) -> bool:
        """Whether :meth:`prepare` and the base models take sparse tables; else refused before."""
        return False

    @abstractmethod
    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Any:
        """Whatever the learner wants to compute once from the inputs, (n, d)."""

    @abstractmethod
    def fit(
        self, data: Any, gradients: Gradients, sample: Sample, rng: np.random.Generator
    ) -> list[Fitted]:
        """Base models for all output columns."""

    def settle(self, data: Any, stage: Stage, fitted: tuple[Fitted, ...]) -> None:
        """Hear what became of the last base models: the stage as it was added, rules included.

        For learners that penalise the whole function so far; others need not listen.
        """
        return

    def close(self, data: Any) -> None:
        """Give back what :meth:`prepare` took, such as threads."""
        return


@dataclass(frozen=True)
class State:
    """What a rule may look at: the loss of this stage, the target and ``raw`` before it.

    ``fitted`` are the learner's results in the order of the stage's parts, ``sample`` the rows it
    learnt from.
    """

    loss: Loss
    target: Target
    raw: Floats
    fitted: tuple[Fitted, ...]
    sample: Sample


class Rule(Protocol):
    """How far to go along a proposed stage; a rule never fits."""

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The stage with another coefficient or other values."""

    def check(self, loss: Loss, learner: Learner) -> None:
        """Refuse parts this rule cannot work with, before anything is fitted."""


@runtime_checkable
class Callback(Protocol):
    """Called after every stage; returning ``True`` ends the fit.

    One that is a context manager is entered before the first stage and left after the last one,
    with the error where there was one.
    """

    def __call__(self, event: Event) -> bool | None:
        """Look at the event."""


class OutputSpace(ABC):
    """A kind of labels: what they are, and how they become points of a Hilbert space.

    An object of parameters; what it learns from training labels is an :class:`Embedding`.
    """

    @abstractmethod
    def fit(self, labels: Any) -> Embedding:
        """Check training labels and learn from them what encoding and decoding need.

        Raises
        ------
        InvalidData
            Labels of another kind; the message says which row.
        """

    def take_rows(self, labels: Any, rows: NDArray[np.int64]) -> Any:
        """Some training labels, by their positions: rows of arrays and tables, items of lists.

        A space whose training labels are no rows of their own, such as a Gram matrix, says here
        what :meth:`fit` takes for these rows alone.
        """
        if hasattr(labels, "iloc"):
            return labels.iloc[rows]
        if hasattr(labels, "tocsr"):
            return labels.tocsr()[rows]
        return labels[rows] if hasattr(labels, "shape") else [labels[i] for i in rows]


class Embedding(ABC):
    """Labels as points of ``H = R^r``, and back (the pre-image)."""

    ways: ClassVar[tuple[str, ...]]
    """Names of the ways to decode, the usual one first."""

    @abstractmethod
    def encode(self, labels: Any) -> Floats:
        """Points ``φ(y)`` of labels, (n, r); refuses labels of another kind, naming the row."""

    @abstractmethod
    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Labels for points (n, r) in one of the :attr:`ways`, which ``candidates`` overrule."""

    def encode_training(self, labels: Any) -> Floats:
        """Points of the labels that it was fitted to, where these are known more exactly."""
        return self.encode(labels)

    def norms(self, labels: Any) -> Floats:
        """``k(y, y) = |φ(y)|²``, (n,), with the part of ``H`` that ``encode`` leaves out."""
        codes = self.encode(labels)
        return np.einsum("ij,ij->i", codes, codes)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is asked for."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }


@dataclass(frozen=True)
class Choice:
    """Labels that predictions are chosen from.

    Attributes
    ----------
    labels : sequence
    allowed : sequence of sequences of int, or None
        For every row the numbers of the labels it may take; ``None`` is all.
    """

    labels: Any
    allowed: Sequence[Sequence[int]] | None = None

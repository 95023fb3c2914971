"""The contracts between rooms.  A part that keeps one can be exchanged for any other.

Arrays: ``n`` rows, ``d`` columns, ``r`` outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
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
        """Refuse a target this loss cannot take; by default none.

        Parameters
        ----------
        target : Target

        Raises
        ------
        InvalidData
            The message says which row, and what to do.
        """
        return

    @abstractmethod
    def start(self, target: Target) -> Floats:
        """Best constant, the minimiser of the weighted mean loss.

        Parameters
        ----------
        target : Target
            With weights: this is the only method that must heed them.

        Returns
        -------
        (r,) float64
        """

    @abstractmethod
    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, not weighted.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        (n,) float64
        """

    @abstractmethod
    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient and hessian diagonal, not weighted.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        Gradients
            Both (n, r); ``None`` in place of a hessian of ones.
        """

    def inverse_link(self, raw: Floats) -> Floats:
        """From link space to the mean, the quantile or the probabilities.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        (n, r') float64
        """
        return raw


class AdaptiveLoss(Loss):
    """A loss that sets a parameter from all rows at the beginning of every stage."""

    @abstractmethod
    def adapted(self, target: Target, raw: Floats) -> Loss:
        """The loss of this stage.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
            As it is before the stage.

        Returns
        -------
        Loss
        """


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
        """Best constants to add to some columns of ``raw``.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
        cells : (n,) int32
            Cell of every row; -1 is none.
        n_cells : int
        columns : slice
            Those of ``raw`` that are wanted.

        Returns
        -------
        (n_cells, len(columns)) float64
            0 for a cell without rows.
        """


class BaseModel(ABC):
    """A fitted base learner."""

    @abstractmethod
    def predict_raw(self, X: Floats) -> Floats:
        """Outputs, unshrunk.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n, r) float64
        """

    @classmethod
    def sum_of(cls, parts: Sequence[Part]) -> Summation:
        """What evaluates many parts of this class at once; the default does so one by one.

        Parameters
        ----------
        parts : sequence of Part

        Returns
        -------
        Summation
        """
        return OneByOne(tuple(parts))


class CellModel(BaseModel):
    """A base model that is constant on cells, such as a tree."""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """(n_cells, r)"""

    @abstractmethod
    def cells(self, X: Floats) -> NDArray[np.int32]:
        """Cell of every row.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n,) int32
        """

    @abstractmethod
    def with_values(self, values: Floats) -> Self:
        """The same cells with other values.

        Parameters
        ----------
        values : (n_cells, r) float64

        Returns
        -------
        CellModel
        """


class CellOrder(ABC):
    """An order that the values of a cell model must keep."""

    @abstractmethod
    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """The values in order that are nearest in weighted squares.

        Parameters
        ----------
        values : (n_cells, r) float64
        weight : (n_cells, r) float64, or (n_cells, 1) for all outputs

        Returns
        -------
        (n_cells, r) float64
        """


class Summation(Protocol):
    """Adds a sum of base models to ``raw``."""

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """``raw[:, columns] += coefficient * model(X)`` for all parts.

        Parameters
        ----------
        raw : (n, r) float64
            Changed in place.
        X : (n, d) float64
        n_threads : int
        """


@dataclass(frozen=True)
class OneByOne:
    """The plain sum, part by part.

    Attributes
    ----------
    parts : tuple of Part
    """

    parts: tuple[Part, ...]

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add every model's outputs in turn.

        Parameters
        ----------
        raw : (n, r) float64
            Changed in place.
        X : (n, d) float64
        n_threads : int
        """
        for part in self.parts:
            raw[:, part.columns] += part.coefficient * part.model.predict_raw(X)


@dataclass(frozen=True)
class Fitted:
    """What a learner hands back: a part, and what it says on the training rows.

    Exactly one of ``cells`` and ``outputs`` is there.

    Attributes
    ----------
    part : Part
    cells : (n,) int32 or None
        Where the model is a :class:`CellModel`.
    outputs : (n, r) float64 or None
        Of other models.
    order : CellOrder or None
        Where the values must keep one: a rule that sets others takes the nearest in order.
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
        """Whatever the learner wants to compute once from the inputs.

        Parameters
        ----------
        X : (n, d) float64
        weight : (n,) float64 or None
        seed : int
        n_threads : int
            Most threads to use, here and later.

        Returns
        -------
        object
            ``data`` of the other methods.

        Raises
        ------
        InvalidData
            Inputs or weights that the learner cannot take.
        """

    @abstractmethod
    def fit(
        self, data: Any, gradients: Gradients, sample: Sample, rng: np.random.Generator
    ) -> list[Fitted]:
        """Base models for all output columns.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        gradients : Gradients
            Of all n rows.
        sample : Sample
            The rows to learn from.
        rng : numpy.random.Generator
            The only source of chance.

        Returns
        -------
        list of Fitted
        """

    def settle(self, data: Any, stage: Stage, fitted: tuple[Fitted, ...]) -> None:
        """Hear what became of the last base models: the stage as it was added, rules included.

        For learners that penalise the whole function so far; others need not listen.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        stage : Stage
        fitted : tuple of Fitted
        """
        return

    def close(self, data: Any) -> None:
        """Give back what :meth:`prepare` took, such as threads.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        """
        return


@dataclass(frozen=True)
class State:
    """What a rule may look at.

    Attributes
    ----------
    loss : Loss
        Of this stage.
    target : Target
    raw : (n, r) float64
        Before the stage.
    fitted : tuple of Fitted
        The learner's results, in the order of the stage's parts.
    sample : Sample
        The rows it learnt from.
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
        """Refuse parts this rule cannot work with, before anything is fitted.

        Parameters
        ----------
        loss : Loss
        learner : Learner

        Raises
        ------
        IncompatibleParts
        """


@runtime_checkable
class Callback(Protocol):
    """Called after every stage; returning ``True`` ends the fit.

    One that is a context manager is entered before the first stage and left after the last one,
    with the error where there was one.
    """

    def __call__(self, event: Event) -> bool | None:
        """Look at the event."""

"""Frozen records that rooms hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hilboost.core.contracts import BaseModel

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """What is to be predicted, and how much each row counts.

    Attributes
    ----------
    y : (n, c) float64
        Encoded labels: the values themselves, or class codes (c = 1).
    weight : (n,) float64 or None
        Sample weights; ``None`` is one for every row.
    """

    y: Floats
    weight: Floats | None = None

    def rows(self, index: Any) -> Target:
        """The target of some rows.

        Parameters
        ----------
        index : slice or index array

        Returns
        -------
        Target
        """
        return Target(self.y[index], None if self.weight is None else self.weight[index])

    def total_weight(self) -> float:
        """Sum of the weights.

        Returns
        -------
        float
        """
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


@dataclass(frozen=True)
class Gradients:
    """First and second derivatives of the loss by ``raw``, not weighted.

    Attributes
    ----------
    negative : (n, r) float64
        The *negative* gradient: the direction of descent.
    hessian : (n, r) float64 or None
        Diagonal of the hessian, or a bound on it; ``None`` is one everywhere.
    bound : float or None
        A number that bounds the whole hessian matrix of any row at any ``raw`` (Böhning 1992);
        ``None`` where there is none but the entries of ``hessian``.
    """

    negative: Floats
    hessian: Floats | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Part:
    """One base model, the output columns it adds to, and how far to go along it.

    Attributes
    ----------
    model : BaseModel
        Unshrunk.
    columns : slice
        Columns of ``raw`` that the model's outputs stand for.
    coefficient : (n_columns,) float64
        Factor of every such column; the rules set it.
    """

    model: BaseModel
    columns: slice
    coefficient: Floats

    @classmethod
    def of(cls, model: BaseModel, columns: slice) -> Part:
        """With coefficients of one.

        Parameters
        ----------
        model : BaseModel
        columns : slice

        Returns
        -------
        Part
        """
        return cls(model, columns, np.ones(columns.stop - columns.start))

    def with_model(self, model: BaseModel) -> Part:
        """The same columns and coefficient, another model.

        Parameters
        ----------
        model : BaseModel

        Returns
        -------
        Part
        """
        return replace(self, model=model)


@dataclass(frozen=True)
class Stage:
    """One step of boosting: base models for all output columns.

    Attributes
    ----------
    parts : tuple of Part
    """

    parts: tuple[Part, ...]

    def scaled(self, factor: float | Floats) -> Stage:
        """The same models, their coefficients multiplied.

        Parameters
        ----------
        factor : float or (r,) float64

        Returns
        -------
        Stage
        """
        factors = np.asarray(factor, dtype=np.float64)
        return Stage(
            tuple(
                replace(
                    part,
                    coefficient=part.coefficient
                    * (factors if factors.ndim == 0 else factors[part.columns]),
                )
                for part in self.parts
            )
        )


@dataclass(frozen=True)
class Sample:
    """The rows a stage learns from.

    Attributes
    ----------
    rows : (m,) uint32 or None
        Ascending row numbers; ``None`` is all rows.
    weight : (n,) float64 or None
        Weights of all rows, multiplicities of a bootstrap included.
    """

    rows: NDArray[np.uint32] | None
    weight: Floats | None


@dataclass(frozen=True)
class History:
    """Mean loss after every stage; entry 0 is the start value's.

    Attributes
    ----------
    train : (n_stages + 1,) float64
    validation : (n_stages + 1,) float64 or None
    seconds : (n_stages,) float64 or None
        How long each stage took; NaN of those from an earlier fit, ``None`` where nothing is known.
        Not part of model files.
    """

    train: Floats
    validation: Floats | None
    seconds: Floats | None = None


@dataclass(frozen=True)
class Event:
    """What a callback is told after a stage.

    Attributes
    ----------
    stage : int
        Number of stages so far, from 1.
    n_stages : int
        Number of stages planned.
    train_loss : float
    validation_loss : float or None
    """

    stage: int
    n_stages: int
    train_loss: float
    validation_loss: float | None

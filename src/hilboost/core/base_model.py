"""The contract of a fitted base learner, and the terms and stages that models are sums of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.operators import OperatorGraph


class BaseModel(ABC):
    """A fitted base learner."""

    in_files: ClassVar[bool] = False
    """Whether model files hold it as the name of its class and the parameters of its constructor.

    Base models of the library declare it in their own class.
    """

    @abstractmethod
    def predict_raw(self, X: Floats) -> Floats:
        """Outputs, without shrinkage.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n, r) float64
        """

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Whether it takes so many columns to so many finite outputs, for those that files hold.

        Parameters
        ----------
        n_features : int
        n_outputs : int

        Returns
        -------
        bool
        """
        return True

    def operators(self, graph: OperatorGraph, X: str) -> str | None:
        """Write the outputs as operators of ONNX.

        Parameters
        ----------
        graph : OperatorGraph
        X : str
            Name of the inputs (n, d) in the graph.

        Returns
        -------
        str or None
            Name of the outputs (n, r); ``None``, the default, where they are Python code only.
        """
        return None

    @classmethod
    def sum_of(cls, terms: Sequence[Term]) -> Summation:
        """An object that evaluates many terms of this class together; by default, one by one.

        Parameters
        ----------
        terms : sequence of Term

        Returns
        -------
        Summation
        """
        return TermByTerm(tuple(terms))


class LeafModel(BaseModel):
    """A base model that is constant on leaves, such as a tree."""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """(n_leaves, r)"""

    @abstractmethod
    def leaves(self, X: Floats) -> NDArray[np.int32]:
        """Leaf of every row.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n,) int32
        """

    @abstractmethod
    def with_values(self, values: Floats) -> Self:
        """The same leaves with other values.

        Parameters
        ----------
        values : (n_leaves, r) float64

        Returns
        -------
        LeafModel
        """


AnyModel = TypeVar("AnyModel", bound=BaseModel)


@dataclass(frozen=True)
class Term(Generic[AnyModel]):
    """One base model, the output columns it adds to, and its coefficient.

    Attributes
    ----------
    model : BaseModel
        Without shrinkage.
    columns : slice
        Columns of ``raw`` that the outputs of the model are added to.
    coefficient : (n_columns,) float64
        Factor of every such column; the rules set it.
    """

    model: AnyModel
    columns: slice
    coefficient: Floats

    @classmethod
    def of(cls, model: AnyModel, columns: slice) -> Term[AnyModel]:
        """A term with coefficients of one.

        Parameters
        ----------
        model : BaseModel
        columns : slice

        Returns
        -------
        Term
        """
        return cls(model, columns, np.ones(columns.stop - columns.start))

    def with_model(self, model: AnyModel) -> Term[AnyModel]:
        """The same columns and coefficient with another model.

        Parameters
        ----------
        model : BaseModel

        Returns
        -------
        Term
        """
        return replace(self, model=model)


@dataclass(frozen=True)
class Stage:
    """One step of boosting: base models for all output columns.

    Attributes
    ----------
    terms : tuple of Term
    """

    terms: tuple[Term, ...]

    def scaled(self, factor: float | Floats) -> Stage:
        """The same models with their coefficients multiplied.

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
                    term,
                    coefficient=term.coefficient
                    * (factors if factors.ndim == 0 else factors[term.columns]),
                )
                for term in self.terms
            )
        )


class Summation(Protocol):
    """Adds a sum of terms to ``raw``."""

    @property
    def cost_per_row(self) -> int:
        """About the number of operations for a row."""

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """``raw[:, columns] += coefficient * model(X)`` for all terms.

        Parameters
        ----------
        raw : (n, r) float64
            Changed in place.
        X : (n, d) float64
        n_threads : int
        """


@dataclass(frozen=True)
class TermByTerm:
    """The plain sum, one term at a time.

    Attributes
    ----------
    terms : tuple of Term
    """

    terms: tuple[Term, ...]

    @property
    def cost_per_row(self) -> int:
        """One for each term."""
        return len(self.terms)

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add the outputs of every model in turn.

        Parameters
        ----------
        raw : (n, r) float64
            Changed in place.
        X : (n, d) float64
        n_threads : int
        """
        for term in self.terms:
            raw[:, term.columns] += term.coefficient * term.model.predict_raw(X)

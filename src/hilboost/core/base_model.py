"""Interface of base models, and the terms and stages that an additive model consists of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.operators import OperatorGraph


class BaseModel(ABC):
    """Base class of fitted base learners."""

    in_files: ClassVar[bool] = False
    """Whether model files store the class name and the constructor arguments.

    Only for built-in base models.  Each class has to declare it; it is not inherited.
    """

    family: ClassVar[Literal["trees", "expansions"] | None] = None
    """Group of base models that model files and exports write together.

    ``None`` if each base model is written separately.
    """

    @abstractmethod
    def predict_raw(self, X: Floats) -> Floats:
        """Compute the outputs, without shrinkage.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n, r) float64
        """

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Return whether the model maps this number of columns to this number of finite outputs.

        Used to validate base models loaded from files.

        Parameters
        ----------
        n_features : int
            Number of input columns d.
        n_outputs : int
            Number of output columns r.

        Returns
        -------
        bool
        """
        return True

    def on_leaves(self) -> LeafModel | None:
        """Return the model itself if it is constant on leaves, otherwise ``None``.

        Returns
        -------
        LeafModel or None
        """
        return None

    def column_effects(self, X: Floats) -> Floats | None:
        """Return what each column adds to the outputs, if they are sums over the columns.

        Used for Shapley values.  Constants are left out.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n, d, r) float64, or None
            ``None`` by default: the outputs are not sums over the columns.
        """
        return None

    def placed(self, columns: NDArray[np.intp], width: int, shared: dict[int, Any]) -> BaseModel:
        """Return the same model for a wider table.

        Parameters
        ----------
        columns : (d,) intp
            Positions of the present columns in the wider table.
        width : int
            Number of columns of the wider table.
        shared : dict
            Converted objects by the id of the original, so that objects shared by several models
            remain shared.

        Returns
        -------
        BaseModel

        Raises
        ------
        IncompatibleParts
            By default, because a base model may depend on the columns that it was fitted to.
        """
        raise IncompatibleParts(
            "the members of an ensemble have target-encoded columns of their own, but "
            f"{type(self).__name__} supports only the columns that it was fitted to; set "
            "cv_folds=1 or target_encoding=False."
        )

    def for_files(self) -> BaseModel:
        """Return the base model to store in model files; by default, the model itself.

        Returns
        -------
        BaseModel
        """
        return self

    def described(self) -> str:
        """Return the name of the model in messages.

        Returns
        -------
        str
        """
        return type(self).__name__

    def operators(self, graph: OperatorGraph, X: str) -> str | None:
        """Add ONNX operators that compute the outputs.

        Parameters
        ----------
        graph : OperatorGraph
        X : str
            Name of the inputs (n, d) in the graph.

        Returns
        -------
        str or None
            Name of the outputs (n, r); ``None``, the default, if export to ONNX is not supported.
        """
        return None

    @classmethod
    def sum_of(cls, terms: Sequence[Term]) -> Summation:
        """Return an object that evaluates many terms of this class; by default, one by one.

        Parameters
        ----------
        terms : sequence of Term

        Returns
        -------
        Summation
        """
        return TermByTerm(tuple(terms))


class LeafModel(BaseModel):
    """Base class of base models that are constant on leaves, such as trees."""

    def on_leaves(self) -> Self:
        """Return the model itself."""
        return self

    @property
    @abstractmethod
    def values(self) -> Floats:
        """Values of the leaves, (n_leaves, r) float64."""

    @abstractmethod
    def leaves(self, X: Floats) -> NDArray[np.int32]:
        """Return the leaf number of each row.

        Parameters
        ----------
        X : (n, d) float64

        Returns
        -------
        (n,) int32
        """

    @abstractmethod
    def with_values(self, values: Floats) -> Self:
        """Return a copy with other leaf values.

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
    """A base model, the output columns to which it contributes, and its coefficients.

    Attributes
    ----------
    model : BaseModel
        The base model, without shrinkage.
    columns : slice
        Columns of ``raw`` to which the outputs of the model are added.
    coefficient : (n_columns,) float64
        Factor of each of these columns, set by the rules.
    learner : int or None
        Index of the learner that fitted the model; ``None`` if there is only one learner.
    """

    model: AnyModel
    columns: slice
    coefficient: Floats
    learner: int | None = None

    @classmethod
    def of(cls, model: AnyModel, columns: slice) -> Term[AnyModel]:
        """Create a term with coefficients of one.

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
        """Return a copy with another base model.

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
    """A boosting stage: terms that together cover all output columns.

    Attributes
    ----------
    terms : tuple of Term
    """

    terms: tuple[Term, ...]

    def scaled(self, factor: float | Floats, learner: int | None = None) -> Stage:
        """Return a copy with scaled coefficients.

        Parameters
        ----------
        factor : float or (r,) float64
            Factor of all output columns, or of each.
        learner : int or None
            Index of the learner that fitted the terms; ``None`` leaves it as it is.

        Returns
        -------
        Stage
        """
        factors = np.asarray(factor, dtype=np.float64)

        def scaled(term: Term) -> Term:
            own = factors[term.columns] if factors.ndim else factors
            of_learner = term.learner if learner is None else learner
            return Term(term.model, term.columns, term.coefficient * own, of_learner)

        return Stage(tuple(map(scaled, self.terms)))


class Summation(Protocol):
    """Interface of objects that add a sum of terms to ``raw``."""

    @property
    def cost_per_row(self) -> int:
        """Approximate number of operations per row."""

    @property
    def n_basis(self) -> int:
        """Number of distinct basis vectors of kernel machines."""
        return 0

    def leaves(self, X: Floats, n_threads: int) -> NDArray[np.int32]:
        """Leaf of every row in every tree.

        Parameters
        ----------
        X : (n, d) float64
        n_threads : int

        Returns
        -------
        (n, n_trees) int32
            (n, 0), the default, for terms of another family.
        """
        return np.empty((len(X), 0), dtype=np.int32)

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add ``coefficient * model(X)`` to ``raw[:, columns]`` for all terms.

        Parameters
        ----------
        raw : (n, r) float64
            Modified in place.
        X : (n, d) float64
        n_threads : int
            Maximum number of threads.
        """


@dataclass(frozen=True)
class TermByTerm(Summation):
    """Sum that evaluates one term after the other.

    Attributes
    ----------
    terms : tuple of Term
    """

    terms: tuple[Term, ...]

    @property
    def cost_per_row(self) -> int:
        """Number of terms."""
        return len(self.terms)

    def add_to(self, raw: Floats, X: Floats, n_threads: int) -> None:
        """Add the outputs of each term; ``n_threads`` is not used."""
        for term in self.terms:
            raw[:, term.columns] += term.coefficient * term.model.predict_raw(X)

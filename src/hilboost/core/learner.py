"""The contract of a base learner, and what it takes and returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import AnyModel, BaseModel, Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients


@dataclass(frozen=True)
class RowSample:
    """The rows that a stage learns from.

    Attributes
    ----------
    rows : (m,) uint32 or None
        Ascending row numbers; ``None`` is all rows.
    weight : (n,) float64 or None
        Weights of all rows, multiplied by the counts of a bootstrap sample.
    """

    rows: NDArray[np.uint32] | None
    weight: Floats | None


class LeafOrder(ABC):
    """An order that the leaf values of a model must keep."""

    @abstractmethod
    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """The ordered values with the smallest weighted squared distance to the given ones.

        Parameters
        ----------
        values : (n_leaves, r) float64
        weight : (n_leaves, r) float64, or (n_leaves, 1) for all outputs

        Returns
        -------
        (n_leaves, r) float64
        """


@dataclass(frozen=True)
class FittedTerm(Generic[AnyModel]):
    """What a learner returns: a term, and its outputs on the training rows.

    Exactly one of ``leaves`` and ``outputs`` is given.

    Attributes
    ----------
    term : Term
    leaves : (n,) int32 or None
        Leaf of every row, where the model is a :class:`~hilboost.core.base_model.LeafModel`.
    outputs : (n, r) float64 or None
        Outputs of other models.
    order : LeafOrder or None
        An order that the leaf values must keep: a rule that sets other values takes the nearest
        ordered ones.
    """

    term: Term[AnyModel]
    leaves: NDArray[np.int32] | None = None
    outputs: Floats | None = None
    order: LeafOrder | None = None


class Learner(ABC):
    """Fits base models to gradients; sees neither labels nor the loss nor earlier stages.

    The attributes below declare what the learner can do.  Estimators, rules, files, and exports
    read these declarations; nothing asks for the class of a learner.
    """

    in_files: ClassVar[bool] = False
    """Whether model files hold it as the name of its class and its parameters.

    Learners of the library declare it in their own class.
    """

    name: ClassVar[str | None] = None
    """The name that model files and reports use, for the library's own learners."""

    base_model: ClassVar[type[BaseModel] | None] = None
    """The class of all base models, where it is known in advance."""

    layout: ClassVar[Literal["F", "C"]] = "F"
    """Memory layout of ``raw`` and gradients: by outputs, or by rows for one model of many."""

    constant_on_leaves: ClassVar[bool] = False
    """Whether all base models are constant on leaves."""

    min_samples_leaf: float = 0.0
    """Smallest sum of weights in a leaf, for learners that are constant on leaves."""

    takes_missing_values: ClassVar[bool] = False
    """Whether NaN in the inputs is allowed."""

    takes_missing_targets: ClassVar[bool] = False
    """Whether zero gradients mark missing targets, so that some of several may be NaN."""

    newton_steps: ClassVar[bool] = False
    """Whether outputs are Newton steps, whose length needs no search."""

    penalizes: ClassVar[bool] = False
    """Whether stages lower a penalized objective, and tell what they do to the penalty."""

    works_on_folds: ClassVar[bool] = True
    """Whether it can learn from some of the prepared rows, as members of an ensemble do."""

    resumable: ClassVar[bool] = False
    """Whether a fit can go on from its base models alone."""

    encodes_categories: ClassVar[bool] = False
    """Whether it divides the levels of categories, or sees them by target encoding."""

    @property
    def takes_categories(self) -> bool:
        """Whether columns may hold codes of categories."""
        return False

    @property
    def takes_sparse(self) -> bool:
        """Whether :meth:`prepare` and the base models take sparse tables."""
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
        self, data: Any, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit base models for all output columns.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        gradients : Gradients
            Of all n rows.
        sample : RowSample
            The rows to learn from.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        list of FittedTerm
        """

    def stage_added(self, data: Any, stage: Stage, fitted: tuple[FittedTerm, ...]) -> None:
        """Called after the stage has been added, with the coefficients that the rules set.

        For learners that penalize the whole function so far; the default does nothing.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        stage : Stage
        fitted : tuple of FittedTerm
        """
        return

    def converged(self, data: Any) -> bool:
        """Whether further stages would change nothing.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.

        Returns
        -------
        bool
        """
        return False

    def close(self, data: Any) -> None:
        """Release what :meth:`prepare` acquired, such as threads.

        Parameters
        ----------
        data : object
            What :meth:`prepare` returned.
        """
        return

"""The contract of a loss, and the records it exchanges: targets and gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.link import IdentityLink, Link


@dataclass(frozen=True)
class Target:
    """What to predict, and how much each row counts.

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
class TargetUnits:
    """Units in which a fit measures the target: ``y / size`` is learned instead of ``y``.

    Attributes
    ----------
    plain : Loss
        Of targets in their own units.
    loss : Loss
        Of targets in these units.
    size : (c,) float64
        One unit of every column of ``y``.
    shift : (r,) float64 or None
        What to add to ``raw`` in these units to get it in plain units: ``log(size)`` where ``raw``
        is a logarithm.
    factor : float
        What to multiply ``raw`` by where it is not; a power of two.
    value : float
        What to multiply values of ``loss`` by to get those of ``plain``.
    """

    plain: Loss
    loss: Loss
    size: Floats
    shift: Floats | None = None
    factor: float = 1.0
    value: float = 1.0


@dataclass(frozen=True)
class Gradients:
    """First and second derivatives of the loss with respect to ``raw``, without sample weights.

    Attributes
    ----------
    negative_gradient : (n, r) float64
        The *negative* gradient: the direction of descent.
    hessian : (n, r) float64 or None
        Diagonal of the hessian, or a bound on it; ``None`` is one everywhere.
    bound : float or None
        A number that bounds the whole hessian matrix of any row at any ``raw`` (Böhning 1992);
        ``None`` where only the entries of ``hessian`` are known.
    """

    negative_gradient: Floats
    hessian: Floats | None = None
    bound: float | None = None


class Loss(ABC):
    """A differentiable (or subdifferentiable) loss of encoded labels and ``raw``.

    The value and gradient of each row depend on that row alone; rows are evaluated in blocks, and
    several blocks at a time.  A loss with a parameter that is estimated from all rows is an
    :class:`AdaptiveLoss`.

    The attributes below declare what the loss can do.  Learners, rules, files, and exports read
    these declarations; nothing asks for the class of a loss.
    """

    quadratic: ClassVar[bool] = False
    """Whether the loss is half a sum of squares, so that a Newton step is exact."""

    bounded_hessian: ClassVar[bool] = False
    """Whether ``Gradients.bound`` always bounds the hessian, so that a full step never ascends."""

    additive_over_targets: ClassVar[bool] = False
    """Whether the loss is a sum over target columns, so that some of them may be missing."""

    gaussian: ClassVar[bool] = False
    """Whether it stands for Gaussian noise, so that kernel machines have standard deviations."""

    adaptive: ClassVar[bool] = False
    """Whether :meth:`adapted` sets a parameter at the beginning of every stage."""

    has_leaf_values: ClassVar[bool] = False
    """Whether :meth:`leaf_values` knows the best constant to add in a leaf."""

    sharpness: float | None = None
    """Factor of the scores in the probabilities, where :meth:`sharpened` fits one."""

    degree: ClassVar[float | None] = None
    """Degree of homogeneity: ``value(c y, c raw) = c ** degree * value(y, raw)`` for ``c > 0``.

    ``None`` where nothing is known.  A derived class does not inherit it, nor its units.
    """

    regressor_name: ClassVar[str | None] = None
    """The name by which regressors know a loss of the library."""

    classifier_name: ClassVar[str | None] = None
    """The name by which classifiers know a loss of the library."""

    n_classes_range: ClassVar[tuple[int, int | None]] = (1, None)
    """Fewest and most classes that a classifier's loss takes."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """A class does not inherit declarations: it may change the formula they are about.

        It inherits ``link`` together with ``inverse_link``, and neither without the other.
        """
        super().__init_subclass__(**arguments)
        for name in ("quadratic", "bounded_hessian", "additive_over_targets", "gaussian"):
            if name not in vars(cls):
                setattr(cls, name, False)
        for name in ("regressor_name", "classifier_name"):
            if name not in vars(cls):
                setattr(cls, name, None)
        declares, defines = (
            next(place for place, base in enumerate(cls.__mro__) if name in vars(base))
            for name in ("link", "inverse_link")
        )
        if defines < declares:
            cls.link = property(lambda self: None)  # type: ignore[method-assign, assignment]

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """The loss that a regressor makes of ``regressor_name``.

        Parameters
        ----------
        parameters : mapping of str to object
            Of the estimator, such as ``quantile``.

        Returns
        -------
        Loss
        """
        return cls()

    @classmethod
    def for_classifier(cls, n_classes: int) -> Self:
        """The loss that a classifier makes of ``classifier_name``.

        Parameters
        ----------
        n_classes : int

        Returns
        -------
        Loss
        """
        return cls()

    @property
    def link(self) -> Link | None:
        """What ``inverse_link`` computes, as a record that exports can write.

        ``None`` where it is known as Python code only: so it is for a class that overrides
        ``inverse_link`` and does not declare its link.
        """
        return IdentityLink()

    @property
    def of_complete_targets(self) -> Loss:
        """The loss of complete targets: itself, unless it ignores missing ones."""
        return self

    @property
    def hessian_counts_targets(self) -> bool:
        """Whether the hessian is one where a target is known, and zero where it is missing."""
        return False

    def with_sharpness(self, sharpness: float) -> Loss:
        """The loss whose probabilities use a fitted factor of the scores; by default itself.

        Parameters
        ----------
        sharpness : float

        Returns
        -------
        Loss
        """
        return self

    def sharpened(self, target: Target, raw: Floats) -> Loss:
        """The loss with the ``sharpness`` that suits some held-out rows; by default itself.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        Loss
        """
        return self

    @property
    def xgboost_objective(self) -> dict[str, Any] | None:
        """The objective of XGBoost with the same loss and link, as its model files have it.

        ``None`` takes one with the same link.
        """
        return None

    def units(self, target: Target) -> TargetUnits | None:
        """Units in which a fit measures the target, so that its own do not matter.

        Parameters
        ----------
        target : Target
            That the fit learns from.

        Returns
        -------
        TargetUnits or None
            ``None``, the default, keeps those of the target: gradients and hessians then have
            units, and what compares them with constants (``l2_regularization``, ``min_hessian``,
            ``min_gain``) depends on these.

        Raises
        ------
        InvalidData
            The values of the loss exceed the range of float64.
        """
        return None

    def check(self, target: Target) -> None:
        """Refuse a target that this loss cannot take; the default accepts every target.

        Parameters
        ----------
        target : Target

        Raises
        ------
        InvalidData
            The message names the row and says what to do.
        """
        return

    @abstractmethod
    def initial_raw(self, target: Target) -> Floats:
        """Best constant: the minimizer of the weighted mean loss.

        Parameters
        ----------
        target : Target
            With weights.  This is the only method that must use them.

        Returns
        -------
        (r,) float64
        """

    @abstractmethod
    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, without weights.

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
        """Negative gradient and diagonal of the hessian, without weights.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        Gradients
            Both (n, r); ``None`` in place of a hessian of ones.
        """

    def adapted(self, target: Target, raw: Floats) -> Loss:
        """The loss of this stage; by default itself.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
            As it is before the stage.

        Returns
        -------
        Loss
        """
        return self

    def leaf_values(
        self,
        target: Target,
        raw: Floats,
        leaves: NDArray[np.int32],
        n_leaves: int,
        columns: slice,
    ) -> Floats:
        """Best constants to add to some columns of ``raw``, for a :class:`LeafLoss`.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
        leaves : (n,) int32
            Leaf of every row; rows with -1 are ignored.
        n_leaves : int
        columns : slice
            The columns of ``raw`` to add to.

        Returns
        -------
        (n_leaves, len(columns)) float64
            0 for a leaf without rows.

        Raises
        ------
        IncompatibleParts
            It does not know them.
        """
        raise IncompatibleParts(f"{type(self).__name__} has no leaf values.")

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """A loss close to this one whose gradients have a useful hessian; by default itself.

        Learners that penalize fit to its gradients.  A loss with kinks returns a smooth one, whose
        hessian may be that of a parabola above the loss that touches it at ``raw``.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
            As it is before the stage.

        Returns
        -------
        Loss
        """
        return self

    def inverse_link(self, raw: Floats) -> Floats:
        """From link space to the mean, the quantile, or the probabilities.

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

    adaptive = True

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


class LeafLoss(Loss):
    """A loss that knows the best constant to add to ``raw`` in a leaf."""

    has_leaf_values = True

    @abstractmethod
    def leaf_values(
        self,
        target: Target,
        raw: Floats,
        leaves: NDArray[np.int32],
        n_leaves: int,
        columns: slice,
    ) -> Floats:
        """Best constants to add to some columns of ``raw``.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
        leaves : (n,) int32
            Leaf of every row; rows with -1 are ignored.
        n_leaves : int
        columns : slice
            The columns of ``raw`` to add to.

        Returns
        -------
        (n_leaves, len(columns)) float64
            0 for a leaf without rows.
        """

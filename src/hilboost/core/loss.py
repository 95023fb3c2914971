"""Interface of losses, and their units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.gradients import Gradients
from hilboost.core.link import IdentityLink, Link
from hilboost.core.loss_declarations import LossDeclarations
from hilboost.core.records import without_caches
from hilboost.core.target import Target, TargetUnits

if TYPE_CHECKING:
    from hilboost.core.distribution import Distribution


class Loss(LossDeclarations, ABC):
    """Base class of losses: differentiable or subdifferentiable functions of labels and ``raw``.

    The value and gradient of each row depend only on this row.  Rows are evaluated in blocks, and
    several blocks in parallel.  If a parameter of the loss is estimated from all rows, derive from
    :class:`AdaptiveLoss`.  If the loss of a row depends on other rows, derive from
    :class:`~hilboost.core.loss_kinds.GroupLoss`.

    :class:`~hilboost.core.loss_declarations.LossDeclarations` lists its class attributes.
    """

    __getstate__ = without_caches

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Inherit ``link`` only together with ``inverse_link``."""
        super().__init_subclass__(**arguments)
        declares, defines = (
            next(place for place, base in enumerate(cls.__mro__) if name in vars(base))
            for name in ("link", "inverse_link")
        )
        if defines < declares:
            cls.link = property(lambda self: None)  # type: ignore[method-assign, assignment]

    def __repr__(self) -> str:
        """Return the class with the arguments that the loss keeps."""
        kept = vars(self)
        arguments = (
            f"{name}={kept[name]!r}" for name in signature(type(self)).parameters if name in kept
        )
        return f"{type(self).__name__}({', '.join(arguments)})"

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for a regressor, ranker or survival model, by its name or class.

        Parameters
        ----------
        parameters : mapping of str to object
            Parameters of the estimator, such as ``quantile``.

        Returns
        -------
        Loss
        """
        return cls()

    @classmethod
    def for_classifier(cls, n_classes: int) -> Self:
        """Create the loss for a classifier with ``loss=classifier_name``, or with this class.

        Parameters
        ----------
        n_classes : int
            Passed to the class if it has this parameter.

        Returns
        -------
        Loss
        """
        given = {"n_classes": n_classes} if "n_classes" in signature(cls).parameters else {}
        return cls(**given)

    @property
    def link(self) -> Link | None:
        """Record that describes ``inverse_link`` for exports.

        ``None`` if ``inverse_link`` is only known as Python code, as in a class that overrides it
        without declaring its link.
        """
        return IdentityLink()

    @property
    def of_complete_targets(self) -> Loss:
        """Loss for complete targets; the loss itself unless it ignores missing targets."""
        return self

    def with_sharpness(self, sharpness: float) -> Loss:
        """Return the loss with a fitted factor of the scores; by default, the loss itself.

        Parameters
        ----------
        sharpness : float
            Factor of the scores in the probabilities (inverse temperature).

        Returns
        -------
        Loss
        """
        return self

    def sharpened(self, target: Target, raw: Floats) -> Loss:
        """Return the loss with ``sharpness`` fitted to held-out rows; by default, the loss itself.

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
        """XGBoost's objective for this loss and link, in the format of its model files.

        If it is ``None``, the export uses an objective with the same link.
        """
        return None

    def units(self, target: Target) -> TargetUnits | None:
        """Return the internal units of a fit, which make it independent of the target's units.

        Parameters
        ----------
        target : Target
            The training target.

        Returns
        -------
        TargetUnits or None
            ``None`` means original units.  Parameters that are compared with gradients or hessians
            (``l2_regularization``, ``min_hessian``, ``min_gain``) then depend on these units.

        Raises
        ------
        InvalidData
            If values of the loss exceed the range of float64.
        """
        return None

    def check_rows(self, y: Floats) -> None:
        """Raise an error if the target of a single row is not valid; by default, every one is.

        Parameters
        ----------
        y : (n, c) float64
            Some of the rows; with several targets, NaN marks missing ones.

        Raises
        ------
        InvalidData
            The message names the row.  With several workers, it also names the partition.
        """
        return

    def check(self, target: Target) -> None:
        """Raise an error if the target is not valid for this loss; by default, every target is.

        Parameters
        ----------
        target : Target

        Raises
        ------
        InvalidData
            If a target value is invalid.  The message names the row and says what to do.
        """
        return

    @abstractmethod
    def initial_raw(self, target: Target) -> Floats:
        """Return the best constant prediction, which minimizes the weighted mean loss.

        Parameters
        ----------
        target : Target
            Target with weights.  Only this method has to use the weights.

        Returns
        -------
        (r,) float64
        """

    @abstractmethod
    def value(self, target: Target, raw: Floats) -> Floats:
        """Compute the loss of each row, without weights.

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
        """Compute the negative gradient and the diagonal of the hessian, without weights.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64

        Returns
        -------
        Gradients
            Arrays (n, r); the hessian is ``None`` if it is one everywhere.
        """

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Compute :meth:`value` and :meth:`gradients`; by default, by calling both.

        Override it if both have computations in common, and declare ``evaluates_both``.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
        memory : Gradients, optional
            Arrays of the shape of ``raw`` with arbitrary content, for the result: returning others
            costs a copy.

        Returns
        -------
        value : (n,) float64
        gradients : Gradients
        """
        return self.value(target, raw), self.gradients(target, raw)

    def adapted(self, target: Target, raw: Floats) -> Loss:
        """Return the loss for the next stage; by default, the loss itself.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
            Values before the stage.

        Returns
        -------
        Loss
        """
        return self

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Compute the best constants to add to some columns of ``raw`` in each leaf.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
        leaves : (n,) int32
            Leaf number of each row; rows with -1 are ignored.
        n_leaves : int
        columns : slice
            The columns of ``raw``.

        Returns
        -------
        (n_leaves, len(columns)) float64
            0 for leaves without rows.

        Raises
        ------
        IncompatibleParts
            If the loss is no :class:`LeafLoss`.
        """
        raise IncompatibleParts(
            f"{type(self).__name__} does not compute leaf values; derive it from LeafLoss."
        )

    def drawn(self, key: np.uint64) -> Loss:
        """Return the loss with the random numbers of one stage; by default, the loss itself.

        Parameters
        ----------
        key : uint64
            Differs between stages, and between the members of an ensemble.

        Returns
        -------
        Loss
        """
        return self

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Return a similar loss with a useful hessian; by default, the loss itself.

        Kernel machines use its gradients.  A loss with kinks returns a smooth approximation, whose
        hessian may be that of a parabola that lies above the loss and touches it at ``raw``.

        Parameters
        ----------
        target : Target
        raw : (n, r) float64
            Values before the stage.

        Returns
        -------
        Loss
        """
        return self

    def distribution_of(self, raw: Floats) -> Distribution:
        """Convert ``raw`` to the distribution of each row.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        Distribution

        Raises
        ------
        IncompatibleParts
            If the loss does not declare ``has_distribution``.
        """
        raise IncompatibleParts(
            f"{type(self).__name__} predicts no distributions; fit with a loss that does, such as "
            "loss='normal'."
        )

    def inverse_link(self, raw: Floats) -> Floats:
        """Convert ``raw`` to means, quantiles or probabilities.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        (n, r') float64
            Values that ``predict`` or ``predict_proba`` returns.
        """
        return raw

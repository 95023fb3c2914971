"""A fitted step that knows what it does to the penalty."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import FittedTerm
from hilboost.core.loss import Gradients
from hilboost.learners.kernel_machine.expansion import KernelExpansion

Fitted = TypeVar("Fitted", bound=FittedTerm)


@dataclass(frozen=True)
class Descending(FittedTerm):
    """A step, and what the penalized loss does along it besides what the loss does.

    Attributes
    ----------
    slope, curvature : float or (r,) float64
        Of the penalty: a part ``c`` of the step adds ``slope c + ½ curvature c²``.  Numbers stand
        for one length of all outputs, arrays for a length each.
    descent : float or (r,) float64
        How fast the penalized loss falls at the beginning of the step.
    """

    slope: Floats | float = 0.0
    curvature: Floats | float = 0.0
    descent: Floats | float = 0.0

    @classmethod
    def of(
        cls,
        fitted: FittedTerm,
        gradients: Gradients,
        weight: Floats | None,
        lam: float,
        change: Floats,
        function: Floats,
        outputs: Floats,
    ) -> Descending:
        """The step of an expansion, a length an output.

        Parameters
        ----------
        fitted : FittedTerm
        gradients : Gradients
        weight : (n,) float64 or None
        lam : float
        change : (m, r) float64
            Weights of its basis vectors.
        function, outputs : (m, r) float64
            There: the penalized function so far, and the step.
        """
        assert fitted.outputs is not None
        pull = (
            gradients.negative_gradient
            if weight is None
            else gradients.negative_gradient * weight[:, None]
        )
        slope = lam * (change * function).sum(axis=0)
        return cls(
            fitted.term,
            outputs=fitted.outputs,
            slope=slope,
            curvature=lam * (change * outputs).sum(axis=0),
            descent=(pull * fitted.outputs).sum(axis=0) - slope,
        )

    def shortened(self, length: Floats) -> Self:
        """A part of the step, (r,) float64 of every output."""
        step = multiplied(self, length)
        return replace(
            step,
            slope=self.slope * length,
            curvature=self.curvature * length**2,
            descent=self.descent * length,
        )


def multiplied(fitted: Fitted, factor: Floats | float) -> Fitted:
    """An expansion whose weights and outputs are multiplied by a number, or one an output."""
    model = fitted.term.model
    assert isinstance(model, KernelExpansion)
    assert fitted.outputs is not None
    term = fitted.term.with_model(replace(model, weights=model.weights * factor))
    return replace(fitted, term=term, outputs=fitted.outputs * factor)


@dataclass
class Descent:
    """How far the penalized loss has fallen, and whether it still falls.

    Attributes
    ----------
    patience : int
        Stages in a row that hardly lower it, after which it no longer falls.
    least : float
        A stage hardly lowers it by less than this part of the fall so far.
    """

    patience: int
    least: float = 1e-7
    _fall: float = field(default=0.0, init=False)
    _n_flat: int = field(default=0, init=False)

    def has_ended(self, stage: Stage, fitted: Descending) -> bool:
        """Note the stage as it was added."""
        # At the lowest point of a parabola half of what the slope promises has come true.
        (part,) = stage.terms
        fall = 0.5 * float((part.coefficient * fitted.descent).sum())
        self._fall += max(fall, 0.0)
        flat = not fall > self.least * self._fall
        self._n_flat = self._n_flat + 1 if flat else 0
        return self._n_flat >= self.patience

"""Units in which a fit expresses its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hilboost.core.dtypes import Floats

if TYPE_CHECKING:
    from hilboost.core.loss import Loss


@dataclass(frozen=True)
class TargetUnits:
    """Internal units of the target: the model is fitted to ``y / size`` instead of ``y``.

    Attributes
    ----------
    plain : Loss
        The loss for targets in original units.
    loss : Loss
        The loss for targets in internal units.
    size : (c,) float64
        One internal unit, for each column of ``y``.
    shift : (r,) float64 or None
        Term added to ``factor * raw`` to convert it from internal to original units: ``log(size)``
        if ``raw`` is a logarithm.  ``None`` means zero.
    factor : float or (r,) float64
        Factor of ``raw`` in this conversion; a power of two for one target and one output.
    value : float
        Factor that converts values of ``loss`` to values of ``plain``.  With several targets, it is
        one: values remain in internal units, in which all targets count alike.
    constant : float
        Term that is then added to these values.
    location : tuple or None
        Loss of the first output alone, and the function of the target that it is fitted to, if this
        output may be fitted first.
    """

    plain: Loss
    loss: Loss
    size: Floats
    shift: Floats | None = None
    factor: Floats | float = 1.0
    value: float = 1.0
    constant: float = 0.0
    location: tuple[Loss, Callable[[Floats], Floats]] | None = None

    def raw_in_own(self, raw: Floats) -> Floats:
        """Convert predictions (n, r) or (r,) of the fit to original units.

        Parameters
        ----------
        raw : (n, r) or (r,) float64

        Returns
        -------
        (n, r) or (r,) float64
        """
        return raw * self.factor + (0.0 if self.shift is None else self.shift)

    def raw_in_fit(self, raw: Floats) -> Floats:
        """Convert predictions (n, r) or (r,) in original units to units of the fit.

        Parameters
        ----------
        raw : (n, r) or (r,) float64

        Returns
        -------
        (n, r) or (r,) float64
        """
        return (raw if self.shift is None else raw - self.shift) / self.factor

    def loss_in_own(self, loss: Floats | float) -> Floats | float:
        """Convert losses of the fit to original units.

        Parameters
        ----------
        loss : float or float64 array

        Returns
        -------
        float or float64 array
        """
        return self.value * loss + self.constant

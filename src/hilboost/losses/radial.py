"""A loss of the distance between points: ``ℓ(|y - F|)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.geometric_medians import geometric_medians
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import AdaptiveLoss, LeafLoss
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import row_sums
from hilboost.losses._location import RELATIVE_WIDTH, SmoothLoss

Reweight = Callable[[Floats], Floats]
"""From distances (n,) to the weights ``ℓ'(d) / d`` of the parabolas that majorize the loss."""

_TOLERANCE = 1e-10  # of the mean distance: how far the last step went
_MOST_CYCLES = 200


def distances(residual: Floats, outside: Floats | None = None) -> Floats:
    """Compute the lengths of residuals (n, r) with parts ``outside`` (n,) their space, (n,)."""
    square = row_sums(residual * residual)
    return np.sqrt(square if outside is None else square + outside * outside)


def medians_of_leaves(
    residual: Floats,  # (n, r) float64
    # (n,) float64: length of the part of each residual at a right angle to these columns
    outside: Floats,
    weight: Floats | None,  # (n,) float64 or None
    leaves: NDArray[np.int32],  # (n,) int32: rows with -1 are ignored
    n_leaves: int,
) -> Floats:
    """Compute the geometric median of the residuals in every leaf, (n_leaves, r)."""
    points = np.ascontiguousarray(residual, dtype=np.float64)
    if weight is None:
        weight = np.ones(len(points))
    else:
        leaves = np.where(weight > 0, leaves, np.int32(-1))
    return geometric_medians(
        points, outside * outside, weight, leaves, n_leaves, _TOLERANCE, _MOST_CYCLES
    )


def center(points: Floats, outside: Floats, weight: Floats | None, reweight: Reweight) -> Floats:
    """Find the M-estimate of location of points (n, r), (r,), from their geometric median.

    Iteratively reweighted least squares: no step raises the loss.  Where the weights of all points
    vanish, the geometric median stays.
    """
    mass = np.ones(len(points)) if weight is None else weight
    leaves = np.zeros(len(points), dtype=np.int32)
    (found,) = medians_of_leaves(points, outside, weight, leaves, 1)
    for _ in range(_MOST_CYCLES):
        distance = distances(points - found, outside)
        pull = mass * reweight(distance)
        if not pull.sum() > 0:
            break
        step = np.average(points, axis=0, weights=pull) - found
        found = found + step
        if np.linalg.norm(step) <= _TOLERANCE * np.average(distance, weights=mass):
            break
    return found


_TINY = float(np.finfo(np.float64).tiny)


class RadialLoss(AdaptiveLoss, LeafLoss):
    """A loss of one number, taken of the distance ``d = |y - F|`` between points.

    The negative gradient ``ℓ'(d) / d (y - F)`` is a reweighted residual.  If ``ℓ'(d) / d`` does not
    rise, it is the curvature of the parabola that majorizes the loss and touches it at ``F``, in
    all directions alike: Newton steps with it are iteratively reweighted least squares.

    ``loss`` is one of one target that depends on ``|y - F|`` alone and rises with it.  If
    ``outside``, the last column of ``y`` is the distance of a label from the space of ``F``, a part
    of ``d``.

    The start value is the geometric median under absolute error, the M-estimate of location under
    others.  The value of a leaf is the geometric median of its residuals, or one step from there
    (Friedman 2001, Algorithm 4, with lengths instead of absolute values).  With one output and
    nothing outside, both are identical to ``loss`` itself.
    """

    of_distance = True

    def __init__(self, loss: Loss, outside: bool = False) -> None:
        self.loss, self.outside = loss, outside

    def units(self, target: Target) -> TargetUnits | None:
        """Use the units of the loss itself."""
        found = self.loss.units(Target(target.y.ravel()[:, None]))
        if found is None:
            return None
        scaled = RadialLoss(found.loss, self.outside)
        size = np.full(target.y.shape[1], found.factor)
        return replace(found, plain=self, loss=scaled, size=size)

    def adapted(self, target: Target, raw: Floats) -> RadialLoss:
        """Return the loss with the parameter of this stage, estimated from the distances."""
        if not self.loss.adaptive:
            return self
        seen, zeros = _as_target(self._distances(target, raw), target.weight)
        return RadialLoss(self.loss.adapted(seen, zeros), self.outside)

    def initial_raw(self, target: Target) -> Floats:
        """The constant at the smallest mean loss of the distances."""
        points = target.y[:, :-1] if self.outside else target.y
        outside = target.y[:, -1] if self.outside else np.zeros(len(points))
        if points.shape[1] == 1 and not outside.any():
            return self.loss.initial_raw(Target(points, target.weight))
        leaves = np.zeros(len(points), dtype=np.int32)
        median = medians_of_leaves(points, outside, target.weight, leaves, 1)
        loss = self.adapted(target, np.broadcast_to(median, points.shape))
        return center(points, outside, target.weight, loss.reweighted)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return self._values(self._distances(target, raw))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Residuals multiplied by ``ℓ'(d) / d``; the hessian is replaced by one."""
        residual, distance = self._residual(target, raw), self._distances(target, raw)
        # Unit vectors first: with one output they are signs, without rounding.
        direction = residual / np.maximum(distance, _TINY)[:, None]
        return Gradients(self._slopes(distance)[:, None] * direction)

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Smooth the loss around zero and use the curvature of reweighted least squares."""
        if self._is_of_numbers(target, raw):
            return _OfNumbers(self, self.loss.with_curvature(_numbers(target), raw))
        distance = self._distances(target, raw)
        width = RELATIVE_WIDTH * float(np.average(distance, weights=target.weight))
        return _Majorized(self, width if width > 0 else 1.0)

    def inverse_link(self, raw: Floats) -> Floats:
        """Points themselves."""
        return raw

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Take one step from the geometric median, where this lowers the loss.

        Trees of some of the outputs take the lowest point of the parabolas above the loss, which
        are the only sum over outputs there is.
        """
        residual, distance = self._residual(target, raw), self._distances(target, raw)
        weight = target.row_weights
        inside = leaves >= 0
        if columns.stop - columns.start < residual.shape[1]:
            least = RELATIVE_WIDTH * float(np.average(distance, weights=target.weight))
            pull = weight * self.reweighted(np.maximum(distance, least))
            return _means(residual[:, columns], pull, leaves, n_leaves)
        if self._is_of_numbers(target, raw):
            return self.loss.leaf_values(_numbers(target), raw, leaves, n_leaves, columns)
        outside = self._outside(target, raw)
        medians = medians_of_leaves(residual, outside, target.weight, leaves, n_leaves)
        values = self._one_step(residual, outside, weight, leaves, medians)
        moved = distances(residual - values[leaves], outside)
        change = np.where(inside, weight * (self._values(moved) - self._values(distance)), 0.0)
        rise = np.bincount(leaves[inside], weights=change[inside], minlength=n_leaves)
        values[rise > 0] = 0.0
        return values

    def reweighted(self, distance: Floats) -> Floats:
        """Compute ``ℓ'(d) / d``, (n,); 0 where ``d`` is zero."""
        with np.errstate(over="ignore"):
            return np.where(distance > 0, self._slopes(distance) / np.maximum(distance, _TINY), 0.0)

    def _slopes(self, distance: Floats) -> Floats:
        """Compute ``ℓ'(d)``, (n,); refuse a loss that falls with the distance."""
        slope = self.loss.gradients(*_as_target(distance)).negative_gradient[:, 0]
        if not (slope >= 0).all():
            row = int(np.flatnonzero(~(slope >= 0))[0])
            raise IncompatibleParts(
                f"{type(self.loss).__name__} does not rise with the distance: its slope at "
                f"{distance[row]:.3g} is {slope[row]:.3g}; give a loss of one target that rises "
                "with |y - raw|."
            )
        return slope

    def _one_step(
        self,
        residual: Floats,
        outside: Floats,
        weight: Floats,
        leaves: NDArray[np.int32],
        medians: Floats,
    ) -> Floats:
        """Step from the medians by the mean gradient over the largest curvature."""
        inside = leaves >= 0
        apart = residual[inside] - medians[leaves[inside]]
        pull = self.reweighted(np.append(distances(apart, outside[inside]), _TINY))
        largest = max(float(pull.max()), _TINY)
        steps = apart * (pull[:-1] / largest)[:, None]
        return medians + _means(steps, weight[inside], leaves[inside], len(medians))

    def _is_of_numbers(self, target: Target, raw: Floats) -> bool:
        """Whether distances are of numbers, for which the loss knows leaf values."""
        is_plain = raw.shape[1] == 1 and not self._outside(target, raw).any()
        return is_plain and self.loss.has_leaf_values

    def _values(self, distance: Floats) -> Floats:
        return np.asarray(self.loss.value(*_as_target(distance)), dtype=np.float64)

    @staticmethod
    def _residual(target: Target, raw: Floats) -> Floats:
        return target.y[:, : raw.shape[1]] - raw

    @staticmethod
    def _outside(target: Target, raw: Floats) -> Floats:
        """Distances of the labels from the space of ``raw``."""
        return target.y[:, -1] if target.y.shape[1] > raw.shape[1] else np.zeros(len(raw))

    def _distances(self, target: Target, raw: Floats) -> Floats:
        return distances(self._residual(target, raw), self._outside(target, raw))


class _Majorized(SmoothLoss):
    """A radial loss with the curvature ``ℓ'(d) / d``, the slope at ``width`` below that."""

    of_distance = True

    def __init__(self, loss: RadialLoss, width: float) -> None:
        super().__init__(loss)
        self._radial, self.width = loss, width

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Gradients of the smoothed loss, with the curvature of the parabolas."""
        residual = target.y[:, : raw.shape[1]] - raw
        distance = np.maximum(self._radial._distances(target, raw), self.width)
        weight = self._radial.reweighted(distance)[:, None]
        hessian = np.repeat(weight, raw.shape[1], axis=1)
        return Gradients(weight * residual, hessian, Structure(isotropic=True))


class _OfNumbers(SmoothLoss):
    """A radial loss of numbers with the curvature and the corners of the loss itself."""

    of_distance = True

    def __init__(self, loss: RadialLoss, smooth: Loss) -> None:
        super().__init__(loss)
        self.smooth = smooth

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Gradients of the loss itself."""
        return self.smooth.gradients(_numbers(target), raw)


def _numbers(target: Target) -> Target:
    """The target without its distances from the space of ``raw``."""
    return Target(target.y[:, :1], target.weight)


def _as_target(distance: Floats, weight: Floats | None = None) -> tuple[Target, Floats]:
    """Distances as targets of one column, and predictions of zero."""
    return Target(distance[:, None], weight), np.zeros((len(distance), 1))


def _means(values: Floats, weight: Floats, leaves: NDArray[np.int32], n_leaves: int) -> Floats:
    """Weighted mean of ``values`` (n, r) in every leaf, (n_leaves, r); 0 where no row weighs."""
    rows = np.flatnonzero((leaves >= 0) & (weight > 0))
    mass = np.bincount(leaves[rows], weights=weight[rows], minlength=n_leaves)
    weighted = weight[rows, None] * values[rows]
    total = [np.bincount(leaves[rows], weights=c, minlength=n_leaves) for c in weighted.T]
    return np.column_stack(total) / np.maximum(mass, _TINY)[:, None]

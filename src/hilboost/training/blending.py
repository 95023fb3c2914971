"""Weights of trees and a kernel machine, fitted to held-out outputs, and the gain they bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target

_SMALLEST_GAIN, _SMALLEST_GAIN_OF_FEW = 0.01, 0.02  # few rows decide ties by chance
_LEAST_SHARE = 0.2  # of the gain, which is not that of another weight of the trees
_FIRST_GAIN = 0.005  # of the first member; a smaller one ends the attempt
_FIRST_ERRORS = 0.5  # standard errors that it must exceed
_LARGE_ERROR = 0.03  # of that gain, which then has to exceed this many standard errors alone
_FIRST_ERRORS_IF_LARGE = -0.3
_ERRORS_OF_TREES, _ERRORS_OF_TREES_OF_FEW = 1, 2  # of their gain beside a kernel machine
_FEW_ROWS, _PARTS = 5000, 10
_PRIOR_ROWS = 0.5  # rows that say that weights are 1 and 0; keeps logits of separable rows finite

Weights = Sequence[float] | Floats


@dataclass(frozen=True)
class Blend:
    """The weights of trees and kernel machine, and how well they do on held-out rows.

    ``least`` is the smallest gain that is material, and ``gain_of_weight`` the gain of another
    weight of the trees alone.
    """

    weights: Floats  # (2,), or (2, c) for several targets
    gain: float
    standard_error: float
    least: float = _SMALLEST_GAIN
    gain_of_weight: float = 0.0

    @property
    def is_material(self) -> bool:
        """Whether the gain exceeds the smallest one that is material, and its standard error.

        A gain that another weight of the trees brings, too, is none of the kernel machine.
        """
        if self.gain - self.gain_of_weight < _LEAST_SHARE * self.gain:
            return False
        return self.gain > max(self.least, self.standard_error)

    @property
    def is_promising(self) -> bool:
        """Whether a fit to more rows or other members may confirm the gain of the first one.

        The rows of one member may be too few to tell; then all members decide, unless the kernel
        machine looks harmful.
        """
        least = max(_FIRST_GAIN, _FIRST_ERRORS * self.standard_error)
        if self.standard_error > _LARGE_ERROR:
            least = _FIRST_ERRORS_IF_LARGE * self.standard_error
        return self.weights[1] > 0 and self.gain > least

    @property
    def shrunk(self) -> Floats:
        """The weights, moved towards trees alone if the gain is not much above its error."""
        certain = max(0.0, 1 - (self.standard_error / self.gain) ** 2) if self.gain > 0 else 0.0
        alone = np.array([1.0, 0.0])
        return alone + certain * (self.weights - alone)

    @property
    def is_material_everywhere(self) -> bool:
        """Whether the gain of each target is material."""
        return self.is_material

    def exceeds(self, gain: float, n_errors: float) -> bool:
        """Whether the gain of each target exceeds this one, and a number of standard errors."""
        return self.gain > max(gain, n_errors * self.standard_error)


@dataclass(frozen=True)
class Blends(Blend):
    """The blends of several targets; the gain, with a bound of its error, is that of their sum."""

    each: tuple[Blend, ...] = ()

    @classmethod
    def of(cls, each: Sequence[Blend], losses: Floats) -> Blends:
        """Sum the gains, given the mean loss of the trees for each target (c,)."""
        shares = np.where(np.isfinite(losses), losses, 0.0)
        shares /= shares.sum() or 1.0
        gain, error = shares @ [[one.gain, one.standard_error] for one in each]
        weights = np.column_stack([one.weights for one in each])
        return cls(weights, float(gain), float(error), each=tuple(each))

    @property
    def is_material(self) -> bool:
        """Whether the gain of any target is material."""
        return any(one.is_material for one in self.each)

    @property
    def is_material_everywhere(self) -> bool:
        """Whether the gain of each target is material."""
        return all(one.is_material for one in self.each)

    @property
    def is_promising(self) -> bool:
        """Whether the gain of any target may be confirmed."""
        return any(one.is_promising for one in self.each)

    @property
    def shrunk(self) -> Floats:
        """The shrunk weights of each target (2, c); trees alone where the gain is not material."""
        alone = np.array([1.0, 0.0])
        return np.column_stack([one.shrunk if one.is_material else alone for one in self.each])

    def exceeds(self, gain: float, n_errors: float) -> bool:
        """Whether the gain of each target exceeds this one, and a number of standard errors."""
        return all(one.exceeds(gain, n_errors) for one in self.each)


@dataclass(frozen=True)
class Blender:
    """The loss, the start value of all parts, and whether a table of few rows judges them."""

    loss: Loss
    start: Floats
    of_few: bool = False

    def losses(self, target: Target, weights: Weights, parts: Sequence[Floats]) -> Floats:
        """Loss of each row (n,) with the sum of weighted parts (n, r)."""
        return self.loss.value(target, self._raw(weights, parts))

    def total(self, target: Target, weights: Weights, parts: Sequence[Floats]) -> float:
        """Weighted sum of the losses."""
        return float(mass_of(target) @ self.losses(target, weights, parts))

    def weigh(self, target: Target, trees: Floats, kernel: Floats) -> Blend:
        """Fit weights, at least zero, to the outputs (n, r) of both parts; own ones to each target.

        The gain of each row is that of weights fitted to other rows: those fitted to the row itself
        look better than they are if there are few rows.  Each part of the rows is judged by the
        others, and few rows are divided into more parts, as half of them determine no weights.
        The error of a mean is large if a few rows have large losses.  The gain counts as certain,
        too, if losses decrease that are bounded: their tanh in units of the loss of a constant.
        """
        mass, parts = mass_of(target), (trees, kernel)
        total = float(mass.sum())
        several = self._of_targets(target, trees, kernel)
        if len(several) > 1:
            each = [judge.weigh(y, f, k) for judge, y, f, k in several]
            of_trees_alone = [judge.total(y, (1, 0), (f, k)) / total for judge, y, f, k in several]
            return Blends.of(each, np.array(of_trees_alone))
        alone = self.losses(target, (1, 0), parts)
        loss = float(mass @ alone) / total
        if not 0 < loss < np.inf:
            return Blend(np.array([1.0, 0.0]), 0.0, 0.0)
        found = self._fitted(target, parts, loss)
        of_both, of_trees = np.empty(len(alone)), np.empty(len(alone))
        fits = (of_both, None, found), (of_trees, 0.0, np.array([1.0, 0.0]))
        n_parts = _PARTS if len(alone) <= _FEW_ROWS else 2
        for place in range(n_parts):
            judged, learned = slice(place, None, n_parts), np.arange(len(alone)) % n_parts != place
            rows, these = target.rows(learned), [part[learned] for part in parts]
            others = [part[judged] for part in parts]
            for losses, most_of_kernel, near in fits:
                weights = self._fitted(rows, these, loss, near, most_of_kernel=most_of_kernel)
                losses[judged] = self.losses(target.rows(judged), weights, others)
        gains, of_weight = alone - of_both, float(mass @ (alone - of_trees)) / total / loss
        if not np.isfinite([*found, *gains]).all():
            return Blend(np.array([1.0, 0.0]), 0.0, 0.0)
        gain, error = mean_and_error(gains / loss, mass)
        unit = max(loss, self.total(target, (0, 0), parts) / total)
        bounded, its_error = mean_and_error(np.tanh(alone / unit) - np.tanh(of_both / unit), mass)
        if gain > 0 and bounded > 0 and not self.loss.quadratic:
            error = min(error, its_error / bounded * gain)
        least = _SMALLEST_GAIN_OF_FEW if self.of_few else _SMALLEST_GAIN
        return Blend(found, gain, error, least, of_weight)

    def lowest(self, target: Target, trees: Floats, kernel: Floats) -> Floats:
        """Return the mean loss of each target with the best weights."""
        several = self._of_targets(target, trees, kernel)
        return np.array([judge._lowest(y, f, k) for judge, y, f, k in several])

    def _lowest(self, target: Target, trees: Floats, kernel: Floats) -> float:
        mass, parts = mass_of(target), (trees, kernel)
        total = float(mass.sum())
        unit = self.total(target, (1, 0), parts) / total
        if not 0 < unit < np.inf:
            return unit
        return self.total(target, self._fitted(target, parts, unit), parts) / total

    def lowest_alone(self, target: Target, kernel: Floats) -> float:
        """Return the mean loss with the best weight of a kernel machine alone."""
        mass, parts = mass_of(target), (np.zeros_like(kernel), kernel)
        total = float(mass.sum())
        unit = self.total(target, (0, 0), parts) / total
        if not 0 < unit < np.inf:
            return unit
        alone = self._fitted(target, parts, unit, (0.0, 1.0), most_of_trees=0.0)
        return self.total(target, alone, parts) / total

    def without_trees(
        self, target: Target, weights: Floats, trees: Floats, kernel: Floats
    ) -> Floats:
        """Return the weights, or the kernel machine alone if trees do not clearly gain more."""
        if weights.ndim > 1:
            pairs = zip(self._of_targets(target, trees, kernel), weights.T, strict=True)
            return np.column_stack(
                [judge.without_trees(y, own, f, k) for (judge, y, f, k), own in pairs]
            )
        mass, parts = mass_of(target), (trees, kernel)
        losses = self.losses(target, weights, parts)
        unit = float(mass @ losses) / float(mass.sum())
        if not 0 < unit < np.inf:
            return weights
        alone = self._fitted(target, parts, unit, (0.0, 1.0), most_of_trees=0.0)
        gains = self.losses(target, alone, parts) - losses
        gain, error = mean_and_error(gains / unit, mass)
        n_errors = _ERRORS_OF_TREES_OF_FEW if self.of_few else _ERRORS_OF_TREES
        return weights if gain > max(_SMALLEST_GAIN, n_errors * error) else alone

    def _fitted(
        self,
        target: Target,
        parts: Sequence[Floats],
        unit: float,
        start: Weights = (1.0, 0.1),
        most_of_trees: float | None = None,
        most_of_kernel: float | None = None,
    ) -> Floats:
        """Minimize the loss in a unit; the minimizer takes the same steps in any unit.

        The penalty, the mean square of what is added to the trees, is that of half a row; with
        several classes, the curvature of the loss of a row is divided among them, too.
        """
        mass = mass_of(target)
        total = float(mass.sum())
        if not total > 0:
            return np.array([1.0, 0.0])

        squares = np.array([float(mass @ (part**2).mean(axis=1)) / total for part in parts])
        prior = np.array([1.0, 0.0])

        def objective(weights: Floats) -> tuple[float, Floats]:
            raw = self._raw(weights, parts)
            negative = self.loss.gradients(target, raw).negative_gradient * mass[:, None]
            slopes = np.array([-(negative * part).sum() for part in parts])
            away = _PRIOR_ROWS * squares * (weights - prior)
            value = float(mass @ self.loss.value(target, raw)) + 0.5 * away @ (weights - prior)
            return value / total / unit, (slopes + away) / total / unit

        bounds = [(0, most_of_trees), (0, most_of_kernel)]
        return minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x

    def shares(
        self, target: Target, weights: Floats, trees: Floats, kernel: Floats
    ) -> tuple[float, float]:
        """Divide the gain over the start value between both parts."""
        parts = trees, kernel
        chosen = [(np.array(on) * weights.T).T for on in ((0, 0), (1, 0), (0, 1), (1, 1))]
        nothing, tree, kern, all_ = (self.total(target, some, parts) for some in chosen)
        of_kernel = max(0.0, (nothing - kern) + (tree - all_)) / 2
        of_trees = max(0.0, (nothing - tree) + (kern - all_)) / 2
        whole = of_kernel + of_trees
        return (of_trees / whole, of_kernel / whole) if whole > 0 else (1.0, 0.0)

    def _of_targets(
        self, target: Target, trees: Floats, kernel: Floats
    ) -> list[tuple[Blender, Target, Floats, Floats]]:
        """Separate targets whose losses are added up, with their outputs."""
        c = target.y.shape[1]
        if c == 1 or not self.loss.additive_over_targets:
            return [(self, target, trees, kernel)]
        columns = [slice(k, k + 1) for k in range(c)]
        return [
            (
                replace(self, start=self.start[k]),
                Target(np.ascontiguousarray(target.y[:, k]), target.weight),
                trees[:, k],
                kernel[:, k],
            )
            for k in columns
        ]

    def _raw(self, weights: Weights, parts: Sequence[Floats]) -> Floats:
        raw = np.empty_like(parts[0])
        raw[:] = self.start
        for weight, part in zip(weights, parts, strict=True):
            raw += weight * part
        return raw


def mass_of(target: Target) -> Floats:
    """Return the sample weights (n,)."""
    return np.ones(len(target.y)) if target.weight is None else target.weight


def mean_and_error(values: Floats, mass: Floats) -> tuple[float, float]:
    """Return the weighted mean of ``values`` (n,) and its standard error."""
    total = float(mass.sum())
    mean = float(mass @ values) / total
    return mean, math.sqrt(float(mass @ (values - mean) ** 2)) / total


def joined(targets: list[Target]) -> Target:
    """Concatenate targets."""
    weight = None
    if targets[0].weight is not None:
        weight = np.concatenate([target.weight for target in targets if target.weight is not None])
    return Target(np.concatenate([target.y for target in targets]), weight)

"""Weights of trees and a kernel machine, fitted to held-out outputs, and the gain they bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.model.fit_facts import ModelPart
from hilboost.reductions.row_splits import parts

_SMALLEST_GAIN, _SMALLEST_GAIN_OF_FEW = 0.01, 0.02  # few rows decide ties by chance
_LEAST_SHARE = 0.2  # of the gain, which is not that of another weight of the trees
_FIRST_GAIN = 0.005  # of the first member; a smaller one ends the attempt
_FIRST_ERRORS = 0.5  # standard errors that it must exceed
_LARGE_ERROR = 0.03  # of that gain, which then has to exceed this many standard errors alone
_FIRST_ERRORS_IF_LARGE = -0.3
_ROWS_OF_PARTS, _MOST_PARTS = 10_000, 10  # half of few rows determine no weights
_OUTPUTS_WORTH_THREADS = 2**20  # with fewer, threads wait for each other in Python
_PRIOR_ROWS = 0.5  # rows that say that weights are 1 and 0; keeps logits of separable rows finite

NEITHER, TREES, _BOTH = (0.0, 0.0), (1.0, 0.0), (1.0, 0.1)
TREES_ALONE = np.array(TREES)[:, None]  # the weights of all targets

Weights = Sequence[float] | Floats  # (2,), or (2, c) with weights of each target
Limits = tuple[float | None, float | None]  # of the weights of both parts
_NO_LIMITS: Limits = (None, None)


@dataclass(frozen=True)
class Blend:
    """The best weights for each target, and the gains over trees alone on held-out rows."""

    weights: Floats  # (2, c): of the trees and the kernel machine
    gains: Floats  # (c,): as shares of the losses of the trees
    errors: Floats  # (c,): standard errors of the gains
    losses: Floats  # (c,): mean losses of the trees
    least: float = _SMALLEST_GAIN  # the smallest gain that is material
    # (c,): gains that another weight of the trees brings without the kernel machine
    gains_of_weight: Floats | float = 0.0
    left: Floats | float = 1.0  # (c,): shares of the losses by which the weights are uncertain

    @property
    def gain(self) -> float:
        """The gain of the sum of the losses."""
        return self.gain_and_error[0]

    @cached_property
    def gain_and_error(self) -> tuple[float, float]:
        """The gain of the sum of the losses, and a bound of its error."""
        shares = np.where(np.isfinite(self.losses), self.losses, 0.0)
        shares /= shares.sum() or 1.0
        gain, error = shares @ np.column_stack([self.gains, self.errors])
        return float(gain), float(error)

    @property
    def material(self) -> NDArray[np.bool_]:
        """Whether each gain exceeds the smallest material one and its error, (c,).

        A gain that the trees could reach by another weight is not a merit of the kernel machine.
        """
        of_weight = self.gains - self.gains_of_weight < _LEAST_SHARE * self.gains
        return ~of_weight & (self.gains > np.maximum(self.least, self.errors))

    @property
    def is_promising(self) -> bool:
        """Whether a fit to more rows or other members may confirm a gain of the first one.

        The rows of one member may be too few to tell; then all members decide, unless the kernel
        machine looks harmful.
        """
        least = np.maximum(_FIRST_GAIN, _FIRST_ERRORS * self.errors)
        least = np.where(self.errors > _LARGE_ERROR, _FIRST_ERRORS_IF_LARGE * self.errors, least)
        return bool(((self.weights[1] > 0) & (self.gains > least)).any())

    @property
    def may_be_material(self) -> bool:
        """Whether a gain may be large enough, but for its error."""
        return bool((self.gains + self.errors > self.least).any())

    @property
    def shrunk(self) -> Floats:
        """The weights, moved towards trees alone by the uncertainty of each gain, (2, c)."""
        ratios = np.ones_like(self.gains)
        np.divide(self.errors, self.gains, out=ratios, where=self.material)
        certain = np.where(self.material, 1 - self.left * ratios**2, 0.0)
        return TREES_ALONE + np.maximum(certain, 0.0) * (self.weights - TREES_ALONE)

    def exceeds(self, gain: float, n_errors: float) -> bool:
        """Whether each gain exceeds this one, and a number of standard errors."""
        return bool((self.gains > np.maximum(gain, n_errors * self.errors)).all())


@dataclass(frozen=True)
class HeldOutOutputs:
    """Outputs of trees and a kernel machine for rows to which neither was fitted."""

    loss: Loss
    start: Floats  # (r,): what both are added to
    target: Target
    trees: Floats  # (n, r)
    kernel: Floats  # (n, r)
    of_few: bool = False  # whether the table has few rows
    team: ThreadTeam = field(default_factory=ThreadTeam)

    @cached_property
    def mass(self) -> Floats:
        """The sample weights (n,)."""
        return self.target.row_weights

    @property
    def least_gain(self) -> float:
        """The smallest gain that is material."""
        return _SMALLEST_GAIN_OF_FEW if self.of_few else _SMALLEST_GAIN

    @cached_property
    def each_target(self) -> list[HeldOutOutputs]:
        """The outputs for each of several targets whose losses are added up."""
        c = self.target.y.shape[1]
        if c == 1 or not self.loss.additive_over_targets:
            return [self]
        return [
            replace(
                self,
                start=self.start[k : k + 1],
                target=Target(
                    np.ascontiguousarray(self.target.y[:, k : k + 1]),
                    self.target.weight,
                    dependence=self.target.dependence,
                ),
                trees=self.trees[:, k : k + 1],
                kernel=self.kernel[:, k : k + 1],
            )
            for k in range(c)
        ]

    @cached_property
    def blend(self) -> Blend:
        """The best weights of each target, at least zero, and their gains.

        The gain of each row is that of weights fitted to other rows: those fitted to the row itself
        look better than they are if there are few rows.  Each part of the rows is judged by the
        others, and few rows are divided into more parts.
        A few rows with large losses make the standard error of a mean gain large.  It is therefore
        computed for bounded losses, too, the tanh of the losses in units of that of a constant, and
        the smaller error relative to its gain counts.  Of squared errors, only those that are left
        make the weights uncertain.
        """
        each = (one._blend() for one in self.each_target)
        weights, gains, errors, losses, of_weight = zip(*each, strict=True)
        return Blend(
            np.column_stack(weights),
            np.array(gains),
            np.array(errors),
            np.array(losses),
            self.least_gain,
            np.array(of_weight),
            np.maximum(1 - np.array(gains), 0.0) if self.loss.quadratic else 1.0,
        )

    def _blend(self) -> tuple[Floats, float, float, float, float]:
        """Weights, gain, error, loss of trees alone, and gain of their weight; of one target."""
        alone = self.losses(TREES)
        loss = self._mean(alone)
        no_gain = np.array(TREES), 0.0, 0.0, loss, 0.0
        if not 0 < loss < np.inf:
            return no_gain
        weights = self._fitted(loss)
        n_parts = min(max(2, _ROWS_OF_PARTS // len(alone)), _MOST_PARTS)
        part_of, is_random = np.arange(len(alone)) % n_parts, self.target.dependence is None
        if not is_random:
            part_of = parts(key_of(0, Purpose.FOLDS_COMPARED), n_parts, self.target)
        per_thread = -(-_OUTPUTS_WORTH_THREADS // self.trees.size)

        def judged(start: Weights, most: Limits = _NO_LIMITS) -> Floats:
            """Losses of the rows with weights fitted to the other parts."""
            losses = np.empty(len(alone))

            def judge(place: int) -> None:
                own = slice(place, None, n_parts) if is_random else np.flatnonzero(part_of == place)
                others, rows = self._rows(part_of != place), self._rows(own)
                losses[own] = rows.losses(others._fitted(loss, start, most))

            self.team.map(judge, np.unique(part_of).tolist(), per_thread)
            return losses

        of_both = judged(weights)
        gains = alone - of_both
        if not np.isfinite([*weights, *gains]).all():
            return no_gain
        gain, error = _mean_and_error(gains / loss, self.mass)
        unit = max(loss, self.mean_loss(NEITHER))
        bounded = np.tanh(alone / unit) - np.tanh(of_both / unit)
        bounded_gain, its_error = _mean_and_error(bounded, self.mass)
        if gain > 0 and bounded_gain > 0 and not self.loss.quadratic:
            error = min(error, its_error / bounded_gain * gain)
        of_weight = 0.0  # of no interest unless the gain is material
        if gain > max(self.least_gain, error):
            of_weight = self._mean(alone - judged(TREES, most=(None, 0.0))) / loss
        return weights, gain, error, loss, of_weight

    def lowest_losses(self) -> Floats:
        """Mean loss of each target with the best weights, (c,)."""
        return np.array([one._lowest(one.mean_loss(TREES), _BOTH) for one in self.each_target])

    def lowest_of_kernel(self) -> float:
        """Mean loss with the best weight of the kernel machine alone."""
        return self._lowest(self.mean_loss(NEITHER), (0.0, 1.0), most=(0.0, None))

    def _lowest(self, unit: float, start: Weights, most: Limits = _NO_LIMITS) -> float:
        if not 0 < unit < np.inf:
            return unit
        return self.mean_loss(self._fitted(unit, start, most))

    def without_trees(self, weights: Floats) -> Floats:
        """Weights (2, c) of the kernel machine alone where trees do not clearly gain more."""
        pairs = zip(self.each_target, weights.T, strict=True)
        return np.column_stack([one._without_trees(own) for one, own in pairs])

    def _without_trees(self, weights: Floats) -> Floats:
        losses = self.losses(weights)
        unit = self._mean(losses)
        if not 0 < unit < np.inf:
            return weights
        alone = self._fitted(unit, (0.0, 1.0), most=(0.0, None))
        gain, error = _mean_and_error((self.losses(alone) - losses) / unit, self.mass)
        return weights if gain > max(_SMALLEST_GAIN, error) else alone

    def _fitted(self, unit: float, start: Weights = _BOTH, most: Limits = _NO_LIMITS) -> Floats:
        """Minimize the loss in a unit; the minimizer takes the same steps in any unit.

        The penalty, the mean square of what is added to the trees, is that of half a row; with
        several classes, the curvature of the loss of a row is divided among them, too.  For squared
        errors, it is at most the unit, beside which losses of good models may be tiny.
        """
        total = float(self.mass.sum())
        if not total > 0:
            return np.array(TREES)
        parts = [np.asfortranarray(part) for part in (self.trees, self.kernel)]
        squares = np.array([float(self.mass @ (part**2).mean(axis=1)) / total for part in parts])
        if self.loss.quadratic:
            squares = np.minimum(squares, unit)
        weighted = [(part * self.mass[:, None]).T for part in parts]
        prior, raw, buffer = np.array(TREES), np.empty_like(parts[0]), np.empty_like(parts[0])
        memory: Gradients | None = None

        def objective(weights: Floats) -> tuple[float, Floats]:
            nonlocal memory
            self._write_raw(raw, weights, parts, buffer)
            values, memory = self.loss.value_and_gradients(self.target, raw, memory)
            slopes = -np.array([np.vdot(memory.negative_gradient.T, part) for part in weighted])
            away = _PRIOR_ROWS * squares * (weights - prior)
            value = float(self.mass @ values) + 0.5 * away @ (weights - prior)
            return value / total / unit, (slopes + away) / total / unit

        bounds = [(0, limit) for limit in most]
        return minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B").x

    def parts(self, weights: Floats, seconds: tuple[float, float]) -> dict[str, ModelPart]:
        """Describe both parts with their weights (2, c) and the durations of their fits."""
        constant = self.losses(NEITHER)
        loss, gain, error = self._mean(constant), 0.0, 0.0
        if loss > 0:
            gain, error = _mean_and_error((constant - self.losses(TREES)) / loss, self.mass)
        gains, shares = ((gain, error), self.blend.gain_and_error), self._shares(weights)
        return {
            name: ModelPart(
                float(weights[k].mean()),
                *(*gains[k], shares[k], seconds[k]),
                weights=tuple(weights[k].tolist()) if weights.shape[1] > 1 else (),
            )
            for k, name in enumerate(("tree", "kernel"))
        }

    def _shares(self, weights: Floats) -> tuple[float, float]:
        """Divide the gain over the start value between both parts."""
        chosen = [(np.array(on) * weights.T).T for on in ((0, 0), (1, 0), (0, 1), (1, 1))]
        nothing, tree, kern, all_ = (float(self.mass @ self.losses(some)) for some in chosen)
        of_kernel = max(0.0, (nothing - kern) + (tree - all_)) / 2
        of_trees = max(0.0, (nothing - tree) + (kern - all_)) / 2
        whole = of_kernel + of_trees
        return (of_trees / whole, of_kernel / whole) if whole > 0 else (1.0, 0.0)

    def mean_loss(self, weights: Weights) -> float:
        """Weighted mean of the losses."""
        return self._mean(self.losses(weights))

    def losses(self, weights: Weights) -> Floats:
        """Loss of each row (n,) with the weighted sum of both parts."""
        return self.loss.value(self.target, self._raw(weights))

    def _raw(self, weights: Weights) -> Floats:
        raw = np.empty_like(self.trees)
        self._write_raw(raw, weights, (self.trees, self.kernel), np.empty_like(raw))
        return raw

    def _write_raw(
        self, raw: Floats, weights: Weights, parts: Sequence[Floats], buffer: Floats
    ) -> None:
        raw[:] = self.start
        for weight, part in zip(weights, parts, strict=True):
            raw += np.multiply(weight, part, out=buffer)

    def _mean(self, values: Floats) -> float:
        return float(self.mass @ values) / float(self.mass.sum())

    def _rows(self, rows: slice | NDArray[Any]) -> HeldOutOutputs:
        target, trees, kernel = self.target.rows(rows), self.trees[rows], self.kernel[rows]
        return replace(self, target=target, trees=trees, kernel=kernel)


def _mean_and_error(values: Floats, mass: Floats) -> tuple[float, float]:
    """Return the weighted mean of ``values`` (n,) and its standard error."""
    total = float(mass.sum())
    mean = float(mass @ values) / total
    return mean, math.sqrt(float(mass @ (values - mean) ** 2)) / total


def joined(targets: Sequence[Target]) -> Target:
    """Concatenate targets."""
    weight = None
    if targets[0].weight is not None:
        weight = np.concatenate([target.weight for target in targets if target.weight is not None])
    joint = Target(np.concatenate([target.y for target in targets]), weight)
    if targets[0].dependence is None:
        return joint
    dependence = reduce(Dependence.followed_by, (t.dependence for t in targets if t.dependence))
    return replace(joint, dependence=dependence)

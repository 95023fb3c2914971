"""Mixtures of trees and a kernel machine, with weights fitted to held-out outputs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.learners.metric_kernel import (
    MetricExpansion,
    MetricKernelLearner,
    Rows,
    System,
)
from hilboost.learners.metric_kernel.features import columns_of
from hilboost.learners.mixed import MixedLearner
from hilboost.model.additive import AdditiveModel
from hilboost.model.importances import column_gains
from hilboost.model.parts import ModelPart
from hilboost.training.begin import InitialState
from hilboost.training.recipe import Outcome, Recipe

NAMES = ("tree", "kernel")
_SMALLEST_GAIN = 0.01
_FIRST_GAIN = 0.005  # of the first member; a smaller one ends the attempt
_FIRST_ERRORS = 0.5  # standard errors that it must exceed
_MOST_ROWS_OF_OWN_METRICS = 2000
_CENTERS_OF_OWN_METRICS = 1500

Weights = Sequence[float] | Floats


@dataclass(frozen=True)
class Weighing:
    """The weights of trees and kernel machine, and how well they do on held-out rows."""

    weights: Floats
    gain: float
    standard_error: float

    @property
    def is_material(self) -> bool:
        """Whether the gain is more than one percent, and more than one standard error."""
        return self.gain > max(_SMALLEST_GAIN, self.standard_error)

    @property
    def is_promising(self) -> bool:
        """Whether other members may confirm the gain of the first one."""
        return self.gain > max(_FIRST_GAIN, _FIRST_ERRORS * self.standard_error)

    @property
    def shrunk(self) -> Floats:
        """The weights, moved towards trees alone if the gain is not much above its error."""
        certain = max(0.0, 1 - (self.standard_error / self.gain) ** 2) if self.gain > 0 else 0.0
        alone = np.array([1.0, 0.0])
        return alone + certain * (self.weights - alone)


@dataclass(frozen=True)
class Judge:
    """Held-out rows, their targets, and the start value that all parts have in common."""

    loss: Loss
    start: Floats

    def losses(self, target: Target, weights: Weights, parts: Sequence[Floats]) -> Floats:
        """Loss of each row (n,) with the sum of weighted parts (n, r)."""
        return self.loss.value(target, self._raw(weights, parts))

    def total(self, target: Target, weights: Weights, parts: Sequence[Floats]) -> float:
        """Weighted sum of the losses."""
        return float(_mass(target) @ self.losses(target, weights, parts))

    def weigh(self, target: Target, trees: Floats, kernel: Floats) -> Weighing:
        """Fit weights, at least zero, to the outputs (n, r) of both parts."""
        mass, parts = _mass(target), (trees, kernel)
        total = float(mass.sum())
        alone = self.losses(target, (1, 0), parts)
        loss = float(mass @ alone) / total
        if not 0 < loss < np.inf:
            return Weighing(np.array([1.0, 0.0]), 0.0, 0.0)

        def objective(weights: Floats) -> tuple[float, Floats]:
            raw = self._raw(weights, parts)
            negative = self.loss.gradients(target, raw).negative_gradient * mass[:, None]
            slopes = np.array([-(negative * part).sum() for part in parts])
            value = float(mass @ self.loss.value(target, raw)) / total
            return value / loss, slopes / total / loss  # the same steps in any unit

        found = minimize(
            objective, [1.0, 0.1], jac=True, bounds=[(0, None)] * 2, method="L-BFGS-B"
        ).x
        gains = alone - self.losses(target, found, parts)
        if not np.isfinite(found).all():
            return Weighing(np.array([1.0, 0.0]), 0.0, 0.0)
        gain = float(mass @ gains) / total
        spread = float(mass @ (gains - gain) ** 2) / total
        return Weighing(found, gain / loss, math.sqrt(spread / total) / loss)

    def shares(
        self, target: Target, weights: Floats, trees: Floats, kernel: Floats
    ) -> tuple[float, float]:
        """Divide the gain over the start value between both parts."""
        parts = trees, kernel
        chosen = [np.array(on) * weights for on in ((0, 0), (1, 0), (0, 1), (1, 1))]
        nothing, tree, kern, all_ = (self.total(target, some, parts) for some in chosen)
        of_kernel = max(0.0, (nothing - kern) + (tree - all_)) / 2
        of_trees = max(0.0, (nothing - tree) + (kern - all_)) / 2
        whole = of_kernel + of_trees
        return (of_trees / whole, of_kernel / whole) if whole > 0 else (1.0, 0.0)

    def _raw(self, weights: Weights, parts: Sequence[Floats]) -> Floats:
        raw = np.empty_like(parts[0])
        raw[:] = self.start
        for weight, part in zip(weights, parts, strict=True):
            raw += weight * part
        return raw


def _mass(target: Target) -> Floats:
    return np.ones(len(target.y)) if target.weight is None else target.weight


class SharedCenters:
    """Kernel machines of all members on the same centers, with one metric.

    The metric is learned from the rows of the first member, and the members differ by the rows
    that they are fitted to.  A prediction evaluates the kernel once for all of them.
    """

    def __init__(self, learner: MetricKernelLearner, table: Rows, fit: _Fit) -> None:
        rows = fit.rows_of(0)
        space = learner.space(table, rows, fit.priorities(0), fit.seed, fit.team)
        every = np.arange(len(table), dtype=np.uint32)
        self._chosen = learner.centers(every, fit.seed, fit.team)
        self._features, self._fit = space.features, fit
        self._centers = space.features(table.X[self._chosen], learner.precision)
        self._system = System.of(self._centers, table.some(self._chosen), fit.team)
        self._ridge = learner.ridge(self._system, self._inside(0), space)

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        weights, _ = self._system.solved(self._inside(member), self._ridge)
        return MetricExpansion.of(self._features, self._centers, weights, self._system.spread)

    def _inside(self, member: int) -> NDArray[np.intp]:
        folds = self._fit.folds
        if folds is None:
            return np.arange(len(self._chosen))
        return np.flatnonzero(folds[self._chosen] != member)


class OwnCenters:
    """Kernel machines with a metric and centers for each member.

    This is more accurate than shared centers, but takes longer to predict.
    """

    def __init__(self, learner: MetricKernelLearner, tables: Sequence[Rows], fit: _Fit) -> None:
        self._learner = replace(learner, n_centers=min(learner.n_centers, _CENTERS_OF_OWN_METRICS))
        self._tables, self._fit = tables, fit

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        fit, table, learner = self._fit, self._tables[member], self._learner
        rows = fit.rows_of(member)
        priorities = fit.priorities(member)
        space = learner.space(table, rows, priorities, fit.seed + member, ThreadTeam())
        chosen = learner.centers(rows, fit.seed + member, ThreadTeam())
        centers = space.features(table.X[chosen], learner.precision)
        system = System.of(centers, table.some(chosen), ThreadTeam())
        inside = np.arange(len(chosen))
        weights, _ = system.solved(inside, learner.ridge(system, inside, space))
        return MetricExpansion.of(space.features, centers, weights, system.spread)


@dataclass(frozen=True)
class _Fit:
    """What the fits of all members have in common."""

    members: tuple[AdditiveModel, ...]
    inputs: tuple[Floats, ...]
    folds: NDArray[np.int64] | None
    seed: int
    team: ThreadTeam

    def rows_of(self, member: int) -> NDArray[np.uint32]:
        """The training rows of a member."""
        if self.folds is None:
            return np.arange(len(self.inputs[0]), dtype=np.uint32)
        return np.flatnonzero(self.folds != member).astype(np.uint32)

    def priorities(self, member: int) -> Floats:
        """The total gain of the trees' splits by column."""
        return column_gains(self.members[member].stages, self.inputs[member].shape[1])


def with_kernel_part(
    recipe: Recipe, initial: InitialState, outcome: Outcome, n_threads: int, began: float
) -> Outcome:
    """Add a kernel machine to each member, if this decreases the held-out loss.

    Parameters
    ----------
    recipe : Recipe
    initial : InitialState
    outcome : Outcome
        With the stages of the trees up to the best one.
    n_threads : int
    began : float
        ``time.monotonic()`` at the start of the fit.

    Returns
    -------
    Outcome
        Unchanged but for the record of the parts, unless the gain is material.  Otherwise, the
        stages of the trees are multiplied by their weight, and the last stage is the kernel
        machine.

    Notes
    -----
    The metric and the ridge are chosen by rows that the first member was fitted to.  Its held-out
    rows decide whether the other members are fitted.
    """
    if recipe.kernel_part is None or outcome.state.interrupt is not None:
        return outcome
    with ThreadTeam(n_threads) as team, array_api.blas_threads(1):
        return _Attempt(recipe, initial, outcome, team, began).result()


class _Attempt:
    """One attempt to improve the trees by a kernel machine."""

    def __init__(
        self,
        recipe: Recipe,
        initial: InitialState,
        outcome: Outcome,
        team: ThreadTeam,
        began: float,
    ) -> None:
        assert recipe.kernel_part is not None
        self._learner = recipe.kernel_part
        state = outcome.state
        self._recipe, self._outcome, self._team = recipe, outcome, team
        self._began = time.monotonic()
        self._trees_took = self._began - began
        self._judge = Judge(recipe.loss, recipe.initial_raw)
        arrays: dict[int, Floats] = {}
        for X in initial.inputs:
            if id(X) not in arrays:
                arrays[id(X)] = columns_of(X, np.arange(X.shape[1]))
        inputs = tuple(arrays[id(X)] for X in initial.inputs)
        models = tuple(member.model() for member in state.members)
        self._fit = _Fit(models, inputs, state.folds, recipe.seed, team)
        self._held = self._held_rows(initial)
        tables = [self._table(X) for X in inputs]
        self._shares = len(arrays) == 1 and (
            len(inputs[0]) > _MOST_ROWS_OF_OWN_METRICS or state.folds is None
        )
        if self._shares:
            self._machines: Any = SharedCenters(self._learner, tables[0], self._fit)
        else:
            self._machines = OwnCenters(self._learner, tables, self._fit)

    def _table(self, X: Floats) -> Rows:
        """The rows with the negative gradients at the start as targets."""
        target, start = self._recipe.data.target, self._recipe.initial_raw
        raw = np.tile(start, (len(target.y), 1))
        negative = self._recipe.loss.gradients(target, raw).negative_gradient
        return Rows(X, negative, target.weight)

    def _held_rows(self, initial: InitialState) -> list[tuple[Floats, Target]]:
        """The held-out rows of each member, with their targets."""
        data, folds = self._recipe.data, self._fit.folds
        if folds is None:
            assert initial.validation is not None
            held = initial.validation
            return [(columns_of(held.X, np.arange(held.X.shape[1])), held.target)]
        rows = [np.flatnonzero(folds == k) for k in range(len(self._fit.members))]
        return [
            (X[own], data.target.rows(own)) for X, own in zip(self._fit.inputs, rows, strict=True)
        ]

    def result(self) -> Outcome:
        """Fit the machines, and return the mixture or the trees alone."""
        n_threads = self._team.n_threads
        start = self._recipe.initial_raw
        trees = [
            model.predict_raw(X, n_threads) - start
            for model, (X, _) in zip(self._fit.members, self._held, strict=True)
        ]
        machines = [self._machines.model(0)]
        kernel = [machines[0].evaluate(self._held[0][0], self._team)]
        found = self._judge.weigh(self._held[0][1], trees[0], kernel[0])
        if found.is_promising and len(trees) > 1:
            others = range(1, len(trees))
            machines += self._team.map(self._machines.model, others)
            kernel += [machines[k].evaluate(self._held[k][0], self._team) for k in others]
            target = _joined([target for _, target in self._held])
            found = self._judge.weigh(target, np.concatenate(trees), np.concatenate(kernel))
        is_kept = len(kernel) == len(trees) and found.is_material
        used = len(kernel)
        target = _joined([target for _, target in self._held[:used]])
        outputs = np.concatenate(trees[:used]), np.concatenate(kernel)
        weights = found.shrunk if is_kept else np.array([1.0, 0.0])
        parts = self._record(found, weights, target, outputs)
        if not is_kept:
            return replace(self._outcome, parts=parts)
        parts["kernel"] = replace(parts["kernel"], n_centers=self._n_centers(machines))
        self._add(machines, weights, target, outputs)
        learner = MixedLearner((self._outcome.learner, self._learner), NAMES)
        return replace(self._outcome, learner=learner, parts=parts)

    def _n_centers(self, machines: list[MetricExpansion]) -> int:
        return sum(len(m.centers) for m in (machines[:1] if self._shares else machines))

    def _record(
        self,
        found: Weighing,
        weights: Floats,
        target: Target,
        outputs: tuple[Floats, Floats],
    ) -> dict[str, ModelPart]:
        """Describe both parts."""
        judge, seconds = self._judge, time.monotonic() - self._began
        constant = judge.losses(target, (0, 0), outputs)
        gains = constant - judge.losses(target, (1, 0), outputs)
        mass = _mass(target)
        total, loss = float(mass.sum()), float(mass @ constant)
        gain, error = 0.0, 0.0
        if loss > 0:
            gain = float(mass @ gains) / loss
            spread = float(mass @ (gains - gain * loss / total) ** 2) / total
            error = math.sqrt(spread / total) * total / loss
        shares = judge.shares(target, weights, *outputs)
        return {
            "tree": ModelPart(float(weights[0]), gain, error, shares[0], self._trees_took),
            "kernel": ModelPart(
                float(weights[1]), found.gain, found.standard_error, shares[1], seconds
            ),
        }

    def _add(
        self,
        machines: list[MetricExpansion],
        weights: Floats,
        target: Target,
        outputs: tuple[Floats, Floats],
    ) -> None:
        """Multiply the stages of the trees, and add the last stage, with its losses."""
        state, r = self._outcome.state, self._recipe.n_outputs
        train = []
        for k, (member, machine) in enumerate(zip(state.members, machines, strict=True)):
            member.stages[:] = [_of_learner(stage.scaled(weights[0]), 0) for stage in member.stages]
            term = Term(machine, slice(0, r), np.full(r, weights[1]), learner=1)
            member.stages.append(Stage((term,)))
            train.append(self._training_loss(k, member.model()))
        n_stages = len(state.members[0].stages)
        held = self._judge.total(target, weights, outputs) / _mass(target).sum()
        for losses, last in ((state.train, float(np.mean(train))), (state.validation, held)):
            losses[n_stages:] = [last]
        state.seconds[n_stages - 1 :] = [time.monotonic() - self._began]

    def _training_loss(self, member: int, model: AdditiveModel) -> float:
        rows = self._fit.rows_of(member)
        target = self._recipe.data.target.rows(rows)
        raw = model.predict_raw(self._fit.inputs[member][rows], self._team.n_threads)
        mass = _mass(target)
        return float(mass @ self._recipe.loss.value(target, raw)) / float(mass.sum())


def _of_learner(stage: Stage, learner: int) -> Stage:
    return Stage(tuple(replace(term, learner=learner) for term in stage.terms))


def _joined(targets: list[Target]) -> Target:
    """Concatenate targets."""
    weight = None
    if targets[0].weight is not None:
        weight = np.concatenate([target.weight for target in targets if target.weight is not None])
    return Target(np.concatenate([target.y for target in targets]), weight)

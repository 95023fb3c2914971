"""Mixtures of trees and a kernel machine, with weights fitted to held-out outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting import TrainingState
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.learners.metric_kernel import (
    MetricExpansion,
    MetricKernelLearner,
    NormalEquations,
    Rows,
)
from hilboost.learners.metric_kernel.features import columns_of
from hilboost.learners.mixed import MixedLearner
from hilboost.model.additive import AdditiveModel
from hilboost.model.importances import column_gains
from hilboost.model.parts import ModelPart
from hilboost.training.begin import InitialState
from hilboost.training.recipe import Outcome, Recipe
from hilboost.training.weighing import Judge, Weighing, joined, mass_of, mean_and_error

NAMES = ("tree", "kernel")
_MOST_ROWS_OF_OWN_METRICS = 2000
_CENTERS_OF_OWN_METRICS = 1500
_MOST_ROWS_AT_ONCE = 5_000  # with more rows, a fit to some of them comes first
_PARTS = 5  # of the rows, if there are no folds
_FEWEST_CENTERS = 500
_SECONDS_OF_METRIC, _OPERATIONS_PER_SECOND = 0.6, 3.5e10  # roughly


class SharedCenters:
    """Kernel machines of all members on the same centers, with one metric.

    The metric is learned from the rows of the first member, and the members differ by the rows
    that they are fitted to.  A prediction evaluates the kernel once for all of them.
    """

    def __init__(self, learner: MetricKernelLearner, table: Rows, fit: _Fit) -> None:
        self._learner, self._table, self._fit = learner, table, fit
        priorities = fit.priorities(0)
        self._space = learner.space(table, fit.rows_of(0), priorities, fit.seed, fit.team)

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """Fits of the first member, which end with the first one that does not gain anything."""
        whole = partial(self.model, 0)
        return [whole] if len(self._table) <= _MOST_ROWS_AT_ONCE else [self._of_some_rows, whole]

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        centers, equations, ridge = self._system
        left_out = None if self._fit.folds is None else member
        weights = equations.solved(left_out, ridge)
        return MetricExpansion.of(self._space.features, centers, weights, self._table.spread)

    @cached_property
    def _system(self) -> tuple[NDArray[Any], NormalEquations, float]:
        """The centers, the equations of all members, and the ridge."""
        table, fit, features = self._table, self._fit, self._space.features
        every = np.arange(len(table), dtype=np.uint32)
        chosen = self._learner.centers(every, fit.seed, fit.team)
        centers = features(table.X[chosen], self._learner.precision)
        equations = NormalEquations.of(features, centers, table, fit.parts(len(table)), fit.team)
        return centers, equations, equations.better_ridge(self._space.ridge)

    def _of_some_rows(self) -> MetricExpansion:
        """A fit that takes little time."""
        learner, fit = replace(self._learner, n_centers=_MOST_ROWS_OF_OWN_METRICS), self._fit
        rows = self._table.some(learner.centers(fit.rows_of(0), fit.seed, fit.team))
        return learner.expansion(self._space, rows, fit.seed, fit.team)


class OwnCenters:
    """Kernel machines with a metric and centers for each member.

    This is more accurate than shared centers, but takes longer to predict.
    """

    def __init__(self, learner: MetricKernelLearner, tables: Sequence[Rows], fit: _Fit) -> None:
        self._learner = replace(learner, n_centers=min(learner.n_centers, _CENTERS_OF_OWN_METRICS))
        self._tables, self._fit = tables, fit

    def trials(self) -> list[Callable[[], MetricExpansion]]:
        """The fit of the first member."""
        return [partial(self.model, 0)]

    def model(self, member: int) -> MetricExpansion:
        """Fit the machine of a member."""
        fit, table, learner = self._fit, self._tables[member], self._learner
        rows = fit.rows_of(member)
        priorities = fit.priorities(member)
        seed, team = fit.seed + member, ThreadTeam()
        space = learner.space(table, rows, priorities, seed, team)
        return learner.expansion(space, table.some(rows), seed, team)


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

    def parts(self, n: int) -> list[NDArray[np.intp]]:
        """The rows of each fold, or fifths of the rows."""
        if self.folds is None:
            return [np.arange(k, n, _PARTS) for k in range(_PARTS)]
        return [np.flatnonzero(self.folds == k) for k in range(len(self.members))]

    def priorities(self, member: int) -> Floats:
        """The total gain of the trees' splits by column."""
        return column_gains(self.members[member].stages, self.inputs[member].shape[1])


def with_kernel_part(
    recipe: Recipe,
    initial: InitialState,
    outcome: Outcome,
    n_threads: int,
    began: float,
    ends: float | None = None,
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
    ends : float or None
        ``time.monotonic()`` at the end of the time budget.

    Returns
    -------
    Outcome
        Unchanged if the fit was ended by a callback or an interrupt, and unchanged but for the
        record of the parts unless the gain is material.  Otherwise, the last stage is the kernel
        machine, and the stages of the trees are multiplied by their weight, or left out if they
        hardly gain anything beside it.

    Notes
    -----
    The metric and the ridge are chosen by rows that the first member was fitted to.  Its held-out
    rows decide whether the other members are fitted.
    """
    state = outcome.state
    if recipe.kernel_part is None or state.is_stopped or state.interrupt is not None:
        return outcome
    if ends is not None:
        learner = in_time(recipe, n_threads, ends - time.monotonic())
        if learner is None:
            return outcome
        recipe = replace(recipe, kernel_part=learner)
    try:
        with ThreadTeam(n_threads) as team, array_api.blas_threads(1):
            return _Attempt(recipe, initial, outcome, team, began).result()
    except KeyboardInterrupt as interrupt:
        return replace(outcome, state=replace(state, interrupt=interrupt))


def in_time(recipe: Recipe, n_threads: int, seconds: float) -> MetricKernelLearner | None:
    """Return the kernel machine with as many centers as the time suffices for, if there are any.

    Parameters
    ----------
    recipe : Recipe
    n_threads : int
    seconds : float

    Returns
    -------
    MetricKernelLearner or None
    """
    learner, n, n_fits = recipe.kernel_part, len(recipe.data.X), recipe.n_folds
    n_centers = 0 if learner is None else learner.n_centers
    while learner is not None and n_centers >= _FEWEST_CENTERS:
        if _seconds(n, n_centers, n_fits, n_threads) < seconds:
            return replace(learner, n_centers=n_centers)
        n_centers = int(n_centers / 1.4)
    return None


def _seconds(n: int, n_centers: int, n_fits: int, n_threads: int) -> float:
    """Estimate the duration of an attempt."""
    if n <= _MOST_ROWS_OF_OWN_METRICS:
        m = min(n, n_centers, _CENTERS_OF_OWN_METRICS)
        return n_fits * (_SECONDS_OF_METRIC + 2.0 * m**3 / _OPERATIONS_PER_SECOND) / n_threads
    trial = 2.0 * _MOST_ROWS_OF_OWN_METRICS**3 if n > _MOST_ROWS_AT_ONCE else 0.0
    operations = n * n_centers**2 / n_threads + (4 + n_fits) * n_centers**3 / 2
    return _SECONDS_OF_METRIC + (trial + operations) / _OPERATIONS_PER_SECOND


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
        X, target = self._held[0]
        for fit in self._machines.trials():
            machines = [fit()]
            kernel = [machines[0].evaluate(X, self._team)]
            found = self._judge.weigh(target, trees[0], kernel[0])
            if not found.is_possible:
                break
        if found.is_promising and len(trees) > 1:
            others = range(1, len(trees))
            machines += self._team.map(self._machines.model, others)
            kernel += [machines[k].evaluate(self._held[k][0], self._team) for k in others]
            target = joined([target for _, target in self._held])
            found = self._judge.weigh(target, np.concatenate(trees), np.concatenate(kernel))
        is_kept = len(kernel) == len(trees) and found.is_material
        used = len(kernel)
        target = joined([target for _, target in self._held[:used]])
        outputs = np.concatenate(trees[:used]), np.concatenate(kernel)
        weights = np.array([1.0, 0.0])
        if is_kept:
            weights = self._judge.without_trees(target, found.shrunk, *outputs)
        parts = self._record(found, weights, target, outputs)
        if not is_kept:
            return replace(self._outcome, parts=parts)
        parts["kernel"] = replace(parts["kernel"], n_centers=self._n_centers(machines))
        state = self._mixed(machines, weights, target, outputs)
        learner = MixedLearner((self._outcome.learner, self._learner), NAMES)
        return replace(self._outcome, state=state, learner=learner, parts=parts)

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
        mass = mass_of(target)
        loss = float(mass @ constant) / float(mass.sum())
        gain, error = mean_and_error(gains / loss, mass) if loss > 0 else (0.0, 0.0)
        shares = judge.shares(target, weights, *outputs)
        return {
            "tree": ModelPart(float(weights[0]), gain, error, shares[0], self._trees_took),
            "kernel": ModelPart(
                float(weights[1]), found.gain, found.standard_error, shares[1], seconds
            ),
        }

    def _mixed(
        self,
        machines: list[MetricExpansion],
        weights: Floats,
        target: Target,
        outputs: tuple[Floats, Floats],
    ) -> TrainingState:
        """Multiply the stages of the trees, and add the last stage, with its losses."""
        state, r = self._outcome.state, self._recipe.n_outputs
        members, train = [], []
        for k, (member, machine) in enumerate(zip(state.members, machines, strict=True)):
            kept = member.stages if weights[0] > 0 else []
            stages = [_of_learner(stage.scaled(weights[0]), 0) for stage in kept]
            term = Term(machine, slice(0, r), np.full(r, weights[1]), learner=1)
            members.append(replace(member, stages=[*stages, Stage((term,))]))
            train.append(self._training_loss(k, members[k].model()))
        n_stages = len(members[0].stages)
        held = self._judge.total(target, weights, outputs) / mass_of(target).sum()
        return replace(
            state,
            members=members,
            train=[*state.train[:n_stages], float(np.mean(train))],
            validation=[*state.validation[:n_stages], held],
            seconds=[*state.seconds[: n_stages - 1], time.monotonic() - self._began],
        )

    def _training_loss(self, member: int, model: AdditiveModel) -> float:
        rows = self._fit.rows_of(member)
        target = self._recipe.data.target.rows(rows)
        raw = model.predict_raw(self._fit.inputs[member][rows], self._team.n_threads)
        mass = mass_of(target)
        return float(mass @ self._recipe.loss.value(target, raw)) / float(mass.sum())


def _of_learner(stage: Stage, learner: int) -> Stage:
    return Stage(tuple(replace(term, learner=learner) for term in stage.terms))

"""Mixtures of trees and a kernel machine, with weights fitted to held-out outputs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting import TrainingState
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.learners.metric_kernel import MetricExpansion, Rows
from hilboost.learners.metric_kernel.features import columns_of
from hilboost.learners.mixed import MixedLearner
from hilboost.model.additive import AdditiveModel, side_by_side
from hilboost.model.importances import column_gains
from hilboost.model.parts import ModelPart
from hilboost.training.blending import (
    Blend,
    Blender,
    joined,
    mass_of,
    mean_and_error,
)
from hilboost.training.initial_state import InitialState
from hilboost.training.kernel_candidates import (
    FEW_ROWS,
    MOST_ROWS_OF_OWN_METRICS,
    KernelMachines,
    Members,
    OwnCenters,
    SharedCenters,
)
from hilboost.training.machine_time import in_time, seconds_of_attempt, seconds_of_predictions
from hilboost.training.recipe import Outcome, Recipe

NAMES = ("tree", "kernel")
FIRST_LOOK = 100  # stages, after which the gain of a kernel machine may be obvious
_SHARE_OF_OTHERS = 0.35  # of the time of the first machine, if they share their centers
_LARGE_GAIN = 0.2  # by which it is
_ERRORS_OF_LARGE_GAIN = 2.0
_SMALL_STEP = 0.02  # gain of twice as many stages that does not justify them


def with_kernel_part(
    recipe: Recipe,
    initial: InitialState,
    outcome: Outcome,  # with the stages of the trees up to the best one
    team: ThreadTeam,
    began: float,  # ``time.monotonic()`` at the start of the fit
    ends: float | None = None,  # ``time.monotonic()`` at the end of the time budget
    attempt: KernelTrial | None = None,  # an attempt that began before the trees were complete
) -> Outcome:
    """Add a kernel machine to each member, if this decreases the held-out loss.

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
    if ends is not None and attempt is None:
        learner = in_time(recipe, team.n_threads, ends - time.monotonic())
        if learner is None:
            return outcome
        recipe = replace(recipe, kernel_part=learner)
    try:
        attempt = attempt or KernelTrial(recipe, initial, team)
        return attempt.result(outcome, time.monotonic() - began)
    except KeyboardInterrupt as interrupt:
        return replace(outcome, state=replace(state, interrupt=interrupt))


class KernelTrial:
    """One attempt to improve the trees by a kernel machine.

    Parameters
    ----------
    recipe : Recipe
        With a kernel part.
    initial : InitialState
    team : ThreadTeam
    """

    def __init__(self, recipe: Recipe, initial: InitialState, team: ThreadTeam) -> None:
        assert recipe.kernel_part is not None
        self._learner = recipe.kernel_part
        self._recipe, self._state, self._team = recipe, initial.state, team
        of_few = recipe.data.target.n_rows < FEW_ROWS
        self._judge = Blender(recipe.config.loss, recipe.initial_raw, of_few)
        arrays: dict[int, Floats] = {}
        for X in initial.inputs:
            if id(X) not in arrays:
                arrays[id(X)] = columns_of(X, np.arange(X.shape[1]))
        self._inputs = tuple(arrays[id(X)] for X in initial.inputs)
        self._shares = len(arrays) == 1 and (
            len(self._inputs[0]) > MOST_ROWS_OF_OWN_METRICS or self._state.folds is None
        )
        self._held = self._held_rows(initial)
        self._further, self._phases = initial.others, initial.phases
        # Of the stages so far: a resumed fit begins with the same ones.
        self._priorities = tuple(
            column_gains(one.stages[:FIRST_LOOK], self._inputs[0].shape[1])
            for one in self._state.members
        )
        self._whole = joined([target for _, target in self._held])
        self._seconds = 0.0
        self._is_promising = True
        self._tried: list[tuple[MetricExpansion, Floats]] = []
        self._others: list[tuple[MetricExpansion, Floats]] = []

    @cached_property
    def _machines(self) -> KernelMachines:
        """The kernel machines, which know what the columns are worth to the first stages."""
        data, folds = self._recipe.data, self._state.folds
        more = self._table(*self._held[0]) if data.is_split else None
        seed, team = self._recipe.config.seed, self._team
        loss_of = None if self._recipe.config.loss.quadratic else self._loss_of_machine
        members = Members(self._inputs, folds, self._priorities, seed, team, more, loss_of)
        tables = [self._table(X, data.target) for X in self._inputs]
        if self._shares:
            return SharedCenters(self._learner, tables[0], members)
        return OwnCenters(self._learner, tables, members)

    def _loss_of_machine(self, rows: NDArray[np.integer[Any]], outputs: Floats) -> float:
        """Mean loss of rows with the best multiple of the outputs of a kernel machine."""
        return self._judge.lowest_alone(self._recipe.data.target.rows(rows), outputs)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the duration of a block to that of the attempt, and use one thread for BLAS."""
        began = time.monotonic()
        with array_api.one_blas_thread():
            yield
        self._seconds += time.monotonic() - began

    def _table(self, X: Floats, target: Target) -> Rows:
        """The rows with the negative gradients at the start as targets."""
        start = self._recipe.initial_raw
        raw = np.tile(start, (len(target.y), 1))
        negative = self._recipe.config.loss.gradients(target, raw).negative_gradient
        return Rows(X, negative, target.weight)

    def _held_rows(self, initial: InitialState) -> list[tuple[Floats, Target]]:
        """The held-out rows of each member, with their targets."""
        data, folds = self._recipe.data, self._state.folds
        if folds is None:
            assert initial.validation is not None
            held = initial.validation
            return [(columns_of(held.X, np.arange(held.X.shape[1])), held.target)]
        rows = [np.flatnonzero(folds == k) for k in range(len(self._inputs))]
        return [(X[own], data.target.rows(own)) for X, own in zip(self._inputs, rows, strict=True)]

    def _trees(self, n_stages: int | None = None) -> list[Floats]:
        """Outputs of the first stages for the held-out rows of each member."""
        start = self._recipe.initial_raw
        models = (AdditiveModel(start, tuple(m.stages[:n_stages])) for m in self._state.members)
        return [
            model.predict_raw(X, self._team.n_threads) - start
            for model, (X, _) in zip(models, self._held, strict=True)
        ]

    def needs_no_more(self, n_stages: int) -> bool:
        """Whether the last half of the stages gains hardly anything beside a kernel machine."""
        with self._timed():
            if not self._leads:
                return False
            kernel, judge = self._outputs_of_all(), self._judge
            trees = np.concatenate(self._trees(n_stages))
            if not judge.weigh(self._whole, trees, kernel).is_material_everywhere:
                return False
            half, now = (
                judge.lowest(self._whole, np.concatenate(self._trees(n)), kernel)
                for n in (n_stages // 2, n_stages)
            )
            return bool((now > (1 - _SMALL_STEP) * half).all())

    @property
    def seconds_left(self) -> float:
        """Roughly how long the machines of the other members and predictions will take."""
        if not self._is_promising:
            return 0.0
        n_threads, n_centers = self._team.n_threads, self._learner.n_centers
        seconds = seconds_of_predictions(len(self._inputs[0]), n_centers, n_threads)
        if not self._others:
            share = _SHARE_OF_OTHERS if self._shares else len(self._inputs) - 1
            seconds += share * self._seconds
        return seconds

    @cached_property
    def _expected_seconds(self) -> float:
        return seconds_of_attempt(self._recipe, self._learner, self._team.n_threads)

    def look(self) -> None:
        """Fit the kernel machine of the first member, and compare it with the first stages."""
        with self._timed():
            self._is_promising = self._first(self._trees(FIRST_LOOK)[0])[0].is_promising

    def is_worth(self, n_more: int) -> bool:
        """Whether the kernel machine gains more than a number of further stages would.

        These are expected to decrease the loss as much as the last ones, by the same ratio of the
        numbers of stages.  Otherwise, the attempt ends.
        """
        losses = self._state.validation
        n_stages = len(losses) - 1
        expected = losses[n_stages**2 // (n_stages + n_more)] / losses[-1] - 1
        with self._timed():
            gain = self._first(self._trees()[0])[0].gain
        self._is_promising = gain > expected
        return self._is_promising

    @cached_property
    def _leads(self) -> bool:
        """Whether the kernel machines are far better than the first stages."""
        found, _ = self._first(self._trees(FIRST_LOOK)[0], _LARGE_GAIN / 2)
        return found.exceeds(_LARGE_GAIN, _ERRORS_OF_LARGE_GAIN)

    def leads(self) -> bool:
        """Return whether the kernel machines are far better than the first stages."""
        with self._timed():
            return self._leads

    def _first(self, trees: Floats, least: float = -math.inf) -> tuple[Blend, Floats]:
        """Judge the first member by its held-out rows; return the outputs of its kernel machine.

        The fits end with one that gains nothing, or less than ``least``.
        """
        for k in range(len(self._machines.trials())):
            outputs = self._trial(k)
            found = self._judge.weigh(self._held[0][1], trees, outputs)
            if not found.is_promising or found.gain < least:
                break
        return found, outputs

    def _trial(self, k: int) -> Floats:
        """Outputs of a fit of the first member for its held-out rows."""
        if k == len(self._tried):
            with self._phases("trying a kernel machine", lambda: self._expected_seconds):
                machine = self._machines.trials()[k]()
            self._tried.append((machine, machine.evaluate(self._held[0][0], self._team)))
        return self._tried[k][1]

    def _by_first(self, trees: list[Floats]) -> tuple[Blend, tuple[Target, Floats, Floats], bool]:
        """Judge the first machine by some rows, with outputs of both parts; whether to go on.

        A small fold tells too little.  The rows of the other folds tell more: the trees of the
        other members and leave-one-out outputs of the machine have not seen their targets.
        """
        with self._phases("trying a kernel machine", lambda: self._expected_seconds):
            kernel = self._machines.left_out()
        if kernel is None:
            found, kernel = self._first(trees[0])
            return found, (self._held[0][1], trees[0], kernel), found.is_promising
        target = joined([target for _, target in self._held[1:]])
        found = self._judge.weigh(target, np.concatenate(trees[1:]), kernel)
        return found, (target, np.concatenate(trees[1:]), kernel), found.is_material

    def _outputs_of_all(self) -> Floats:
        """Outputs of the kernel machines of all members for their held-out rows."""
        if len(self._inputs) > 1 and not self._others:
            others = range(1, len(self._inputs))
            with self._phases("fitting kernel machines", lambda: self.seconds_left):
                machines = self._machines.models(others)
            self._others = [
                (machine, machine.evaluate(self._held[k][0], self._team))
                for k, machine in zip(others, machines, strict=True)
            ]
        first = self._trial(len(self._machines.trials()) - 1)
        return np.concatenate([first, *(outputs for _, outputs in self._others)])

    def result(self, outcome: Outcome, seconds: float) -> Outcome:
        """Return the mixture, or the trees alone.

        ``outcome``: with the stages of the trees. ``seconds``: duration of the fit so far.
        """
        seconds -= self._seconds
        with self._timed():
            trees = self._trees()
            found, (target, *outputs), goes_on = self._by_first(trees)
            is_judged = len(trees) == 1
            if self._is_promising and goes_on and not is_judged:
                target, outputs = self._whole, [np.concatenate(trees), self._outputs_of_all()]
                found, is_judged = self._judge.weigh(target, *outputs), True
            weights = np.array([1.0, 0.0])
            if is_judged and found.is_material:
                weights = self._judge.without_trees(target, found.shrunk, *outputs)
            if weights[1].any():
                machines = [self._tried[-1][0], *(machine for machine, _ in self._others)]
                machines = self._machines.final(machines)
        parts = self._record(found, weights, target, outputs, seconds)
        if not weights[1].any():
            return replace(outcome, parts=parts)
        parts["kernel"] = replace(
            parts["kernel"],
            n_centers=self._machines.n_centers(machines),
            kernel=machines[0].kernel_name,
        )
        state = self._mixed(machines, weights, target, outputs)
        learner = MixedLearner((outcome.learner, self._learner), NAMES)
        return replace(outcome, state=state, learner=learner, parts=parts)

    def _record(
        self,
        found: Blend,
        weights: Floats,
        target: Target,
        outputs: Sequence[Floats],
        seconds_of_trees: float,
    ) -> dict[str, ModelPart]:
        """Describe both parts."""
        judge = self._judge
        constant = judge.losses(target, (0, 0), outputs)
        gains = constant - judge.losses(target, (1, 0), outputs)
        mass = mass_of(target)
        loss = float(mass @ constant) / float(mass.sum())
        gain, error = mean_and_error(gains / loss, mass) if loss > 0 else (0.0, 0.0)
        shares = judge.shares(target, weights, *outputs)
        tree, kernel = (float(one.mean()) for one in weights)
        parts = {
            "tree": ModelPart(tree, gain, error, shares[0], seconds_of_trees),
            "kernel": ModelPart(kernel, found.gain, found.standard_error, shares[1], self._seconds),
        }
        if weights.ndim == 1:
            return parts
        each = (tuple(one.tolist()) for one in weights)
        return {
            name: replace(part, weights=own)
            for (name, part), own in zip(parts.items(), each, strict=True)
        }

    def _mixed(
        self,
        machines: list[MetricExpansion],
        weights: Floats,
        target: Target,
        outputs: Sequence[Floats],
    ) -> TrainingState:
        """Multiply the stages of the trees, and add the last stage, with its losses."""
        state, r = self._state, self._recipe.n_outputs
        members = []
        for member, machine in zip(state.members, machines, strict=True):
            kept = member.stages if weights[0].any() else []
            stages = [_of_learner(stage.scaled(weights[0]), 0) for stage in kept]
            term = Term(machine, slice(0, r), np.full(r, weights[1]), learner=1)
            members.append(replace(member, stages=[*stages, Stage((term,))]))
        train = self._training_losses([member.model() for member in members])
        n_stages = len(members[0].stages)
        size = 1.0 if self._recipe.config.units is None else self._recipe.config.units.value
        metrics = {}
        for one in self._further:
            name, X = one.named("loss"), columns_of(one.X, np.arange(one.X.shape[1]))
            loss = size * self._mean_loss(members[0].model(), X, one.target)
            metrics[name] = [*state.metrics[name][:n_stages], loss]
        held = self._judge.total(target, weights, outputs) / mass_of(target).sum()
        return replace(
            state,
            members=members,
            train=[*state.train[:n_stages], float(np.mean(train))],
            validation=[*state.validation[:n_stages], held],
            seconds=[*state.seconds[: n_stages - 1], self._seconds],
            metrics=metrics,
        )

    def _training_losses(self, models: list[AdditiveModel]) -> list[float]:
        """Loss of each model on the rows that it was fitted to."""
        target, folds, n = self._recipe.data.target, self._state.folds, self._team.n_threads
        if folds is None:
            return [self._mean_loss(models[0], self._inputs[0], target)]
        if self._shares:  # kernel values for all members at once
            whole, r = side_by_side(models).predict_raw(self._inputs[0], n), self._recipe.n_outputs
            return [
                self._loss_of(whole[folds != k, k * r : (k + 1) * r], target.rows(folds != k))
                for k in range(len(models))
            ]
        return [
            self._mean_loss(model, X[folds != k], target.rows(folds != k))
            for k, (model, X) in enumerate(zip(models, self._inputs, strict=True))
        ]

    def _mean_loss(self, model: AdditiveModel, X: Floats, target: Target) -> float:
        return self._loss_of(model.predict_raw(X, self._team.n_threads), target)

    def _loss_of(self, raw: Floats, target: Target) -> float:
        mass = mass_of(target)
        return float(mass @ self._recipe.config.loss.value(target, raw)) / float(mass.sum())


def _of_learner(stage: Stage, learner: int) -> Stage:
    return Stage(tuple(replace(term, learner=learner) for term in stage.terms))

"""Mixtures of trees and a kernel machine, with weights fitted to held-out outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.work_clock import working_seconds
from hilboost.boosting.state import TrainingState
from hilboost.boosting.units import losses_in_own_units
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.feature_map import columns_of
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.learners.mixed import MixedLearner
from hilboost.model.additive import AdditiveModel
from hilboost.model.fitted import column_gains
from hilboost.training.blending import TREES_ALONE, HeldOutOutputs, joined
from hilboost.training.budget import Work, seconds_of_machines
from hilboost.training.kernel_candidates import (
    FEW_ROWS,
    MOST_ROWS_OF_OWN_METRICS,
    KernelMachines,
    Members,
    OwnCenters,
    SharedCenters,
)
from hilboost.training.race import FIRST_LOOK
from hilboost.training.recipe import Outcome
from hilboost.training.run import FitRun

_SHARE_OF_OTHERS = 0.35  # of the time of the first machine, if they share their centers
_LARGE_GAIN = 0.2  # by which it is
_ERRORS_OF_LARGE_GAIN = 2.0
_SMALL_STEP = 0.02  # gain of twice as many stages that does not justify them


class KernelTrial:
    """One attempt to improve the trees by a kernel machine.

    The metric and the ridge are chosen by rows that the first member was fitted to.  Its held-out
    rows decide whether the other members are fitted.
    """

    def __init__(self, run: FitRun, learner: MetricKernelLearner) -> None:
        self._run, self._learner = run, learner
        self._state, self._recipe = run.initial.state, run.recipe
        arrays = {id(X): X for X in run.initial.inputs}  # members may share one
        arrays = {key: _numbers(X) for key, X in arrays.items()}
        self._inputs = tuple(arrays[id(X)] for X in run.initial.inputs)
        self._shares = len(arrays) == 1 and (
            self._state.folds is None
            or (len(self._inputs[0]) > MOST_ROWS_OF_OWN_METRICS and not run.recipe.last_is_model)
        )
        self._held = self._held_rows()
        self._target = joined([target for _, target in self._held])
        # Of the stages so far: a resumed fit begins with the same ones.
        self._priorities = tuple(
            column_gains(one.stages[:FIRST_LOOK], self._inputs[0].shape[1])
            for one in self._state.members
        )
        self._seconds = 0.0
        self._is_promising = True
        self.lacked_time = False  # whether the other members would have taken too long
        self.end = run.clock.end  # when it gives up, by ``OutOfTime``
        self._trials: list[tuple[KernelExpansion, Floats]] = []  # of the first member
        self._others: list[tuple[KernelExpansion, Floats]] = []
        # by numbers of stages: raw predictions of the held-out rows of each member
        self._raw_of_trees: list[dict[int, Floats]] = [{} for _ in self._held]

    def _held_rows(self) -> list[tuple[Floats, Target]]:
        """The held-out rows of each member, with their targets."""
        folds, held = self._state.folds, self._run.initial.validation
        if folds is None:
            assert held is not None
            return [(_numbers(held.X), held.target)]
        rows = [np.flatnonzero(folds == k) for k in range(len(self._inputs))]
        target = self._recipe.data.target
        return [(X[own], target.rows(own)) for X, own in zip(self._inputs, rows, strict=True)]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the duration of a block to that of the attempt, and use one thread for BLAS."""
        began = working_seconds()
        with array_api.one_blas_thread(), self._run.team.until(self.end):
            yield
        self._seconds += working_seconds() - began

    # Before the trees are complete

    def look(self) -> None:
        """Fit the kernel machine of the first member, and compare it with the first stages."""
        with self._timed():
            found = self._by_first_member(self._trees_of(0, FIRST_LOOK))
            self._is_promising = found.blend.is_promising

    @cached_property
    def leads(self) -> bool:
        """Whether the kernel machine of the first member is far better than the first stages."""
        with self._timed():
            found = self._by_first_member(self._trees_of(0, FIRST_LOOK), _LARGE_GAIN / 2)
            return found.blend.exceeds(_LARGE_GAIN, _ERRORS_OF_LARGE_GAIN)

    def needs_no_more(self, n_stages: int) -> bool:
        """Whether the last half of the stages gains hardly anything beside a kernel machine."""
        if not self.leads:
            return False
        with self._timed():
            now = self._by_all_members(self._trees(n_stages))
            if not now.blend.material.all():
                return False
            half = replace(now, trees=np.concatenate(self._trees(n_stages // 2)))
            return bool((now.lowest_losses() > (1 - _SMALL_STEP) * half.lowest_losses()).all())

    def is_worth(self, n_more: int) -> bool:
        """Whether the kernel machine gains more than a number of further stages would.

        These are expected to decrease the loss as much as the last ones, by the same ratio of the
        numbers of stages.  Otherwise, the attempt ends.
        """
        losses = self._state.validation
        n_stages = len(losses) - 1
        expected = losses[n_stages**2 // (n_stages + n_more)] / losses[-1] - 1
        with self._timed():
            gain = self._by_first_member(self._trees_of(0)).blend.gain
        self._is_promising = gain > expected
        return self._is_promising

    @property
    def seconds_left(self) -> float:
        """Roughly how long the machines of the other members and predictions will take."""
        return self._seconds_of_others() if self._is_promising else 0.0

    def _seconds_of_others(self) -> float:
        seconds = Work.of(self._run).seconds_of_predictions(self._learner.n_centers)
        if not self._others:
            share = _SHARE_OF_OTHERS if self._shares else len(self._inputs) - 1
            seconds += share * self._seconds
        return seconds

    # After the trees

    def result(self, outcome: Outcome) -> Outcome:
        """Add a kernel machine to each member, if this decreases the held-out loss.

        Unless the gain is material, only the record of the parts is added.  Otherwise, the last
        stage is the kernel machine, and the stages of the trees, up to the best one, are multiplied
        by their weight, or left out if they hardly gain anything beside it.
        """
        try:
            return self._result(outcome)
        except KeyboardInterrupt as interrupt:
            return replace(outcome, state=replace(outcome.state, interrupt=interrupt))

    def _result(self, outcome: Outcome) -> Outcome:
        seconds_of_trees = self._run.clock.passed() - self._seconds
        with self._timed():
            trees, weights = self._trees(), TREES_ALONE
            found, goes_on = self._by_most_rows(trees)
            is_judged = len(trees) == 1
            if goes_on and not is_judged:
                self.lacked_time = self._seconds_of_others() > self._run.clock.left()
                if not self.lacked_time:
                    found, is_judged = self._by_all_members(trees), True
            if is_judged and found.blend.material.any():
                weights = found.without_trees(found.blend.shrunk)
            machines = []
            if weights[1].any():
                machines = [machine for machine, _ in (self._trials[-1], *self._others)]
                machines = self._machines.final(machines)
        parts = found.parts(weights, (seconds_of_trees, self._seconds))
        if not machines:
            return replace(outcome, parts=parts)
        parts["kernel"] = replace(
            parts["kernel"],
            n_centers=self._machines.n_centers(machines),
            kernel=self._machines.space.kernel_name,
        )
        state = self._mixed(machines, weights, found.mean_loss(weights))
        learner = MixedLearner((outcome.learner, self._learner), tuple(parts))
        return replace(outcome, state=state, learner=learner, parts=parts)

    # Judgments of both parts by held-out rows

    def _by_first_member(self, trees: Floats, least: float = -math.inf) -> HeldOutOutputs:
        """By the held-out rows of the first member."""
        return decisive(self._trials_of_first_member(trees), least)

    def _trials_of_first_member(self, trees: Floats) -> Iterator[HeldOutOutputs]:
        found = None
        for k in range(len(self._machines.trials())):
            if found is not None and found.blend.gain < _LARGE_GAIN / 2:
                self._machines.limit_centers()
            found = self._outputs(self._held[0][1], trees, self._trial(k))
            yield found

    def _by_most_rows(self, trees: list[Floats]) -> tuple[HeldOutOutputs, bool]:
        """By the first machine with as many rows as it has; also whether to fit the others.

        A small fold tells too little.  The rows of the other folds tell more: the trees of the
        other members and leave-one-out outputs of the machine have not seen their targets.
        """
        with self._tries():
            kernel = self._machines.left_out()
        if kernel is None:
            found = self._by_first_member(trees[0])
            is_whole = len(self._trials) == len(self._machines.trials())
            return found, found.blend.is_promising and is_whole
        target = joined([target for _, target in self._held[1:]])
        found = self._outputs(target, np.concatenate(trees[1:]), kernel)
        return found, bool(found.blend.material.any())

    def _by_all_members(self, trees: list[Floats]) -> HeldOutOutputs:
        """By the held-out rows of all members."""
        first = self._trial(len(self._machines.trials()) - 1)
        if len(self._inputs) > 1 and not self._others:
            others = range(1, len(self._inputs))
            with self._run.initial.phases("fitting kernel machines", lambda: self.seconds_left):
                machines = self._machines.models(others)
            self._others = [
                self._evaluated(machine, k) for k, machine in zip(others, machines, strict=True)
            ]
        kernel = np.concatenate([first, *(outputs for _, outputs in self._others)])
        return self._outputs(self._target, np.concatenate(trees), kernel)

    def _outputs(self, target: Target, trees: Floats, kernel: Floats) -> HeldOutOutputs:
        recipe = self._recipe
        of_few = recipe.data.target.n_rows < FEW_ROWS
        loss, start = recipe.config.loss, recipe.initial_raw
        return HeldOutOutputs(loss, start, target, trees, kernel, of_few, self._run.team)

    def _trees(self, n_stages: int | None = None) -> list[Floats]:
        """Outputs of the first stages for the held-out rows of each member."""
        members, team = range(len(self._held)), self._run.team
        n_threads = -(-team.n_threads // len(members))
        return team.map(lambda k: self._trees_of(k, n_stages, n_threads), members)

    def _trees_of(
        self, member: int, n_stages: int | None = None, n_threads: int | None = None
    ) -> Floats:
        """The same of one member; only stages after the last look at fewer are added."""
        stages, (X, _) = self._state.members[member].stages[:n_stages], self._held[member]
        start, known = self._recipe.initial_raw, self._raw_of_trees[member]
        before = max((n for n in known if n <= len(stages)), default=0)
        raw = known[before].copy() if before else np.tile(start, (len(X), 1))
        new = AdditiveModel(start, tuple(stages[before:]))
        new.add_stages(raw, X, n_threads or self._run.team.n_threads)
        # A look compares as many stages as the last one with twice as many.
        self._raw_of_trees[member] = {n: known[n] for n in known if n >= len(stages) // 2}
        self._raw_of_trees[member][len(stages)] = raw
        return raw - start

    def _trial(self, k: int) -> Floats:
        """Outputs of a fit of the first member for its held-out rows."""
        if k == len(self._trials):
            with self._tries():
                machine = self._machines.trials()[k]()
            self._trials.append(self._evaluated(machine, 0))
        return self._trials[k][1]

    def _tries(self) -> AbstractContextManager[None]:
        """Show what happens, and for how long."""
        estimate = partial(seconds_of_machines, self._learner, self._run)
        return self._run.initial.phases("trying a kernel machine", estimate)

    def _evaluated(self, machine: KernelExpansion, member: int) -> tuple[KernelExpansion, Floats]:
        X, n_outputs = self._held[member][0], self._recipe.n_outputs
        if not len(X):  # of the member of all rows
            return machine, np.empty((0, n_outputs))
        return machine, machine.evaluate(X, self._run.team)

    @cached_property
    def _machines(self) -> KernelMachines:
        """The kernel machines, which know what the columns are worth to the first stages."""
        data, config = self._recipe.data, self._recipe.config
        members = Members(
            self._inputs,
            self._state.folds,
            tuple(member.rows for member in self._state.members),
            self._priorities,
            config.seed,
            self._run.team,
            self._table(*self._held[0]) if data.is_split else None,
            None if config.loss.quadratic else self._loss_of_machine,
            data.target if data.target.dependence else None,
        )
        tables = [self._table(X, data.target) for X in self._inputs]
        if self._shares:
            return SharedCenters(self._learner, tables[0], members)
        return OwnCenters(self._learner, tables, members)

    def _table(self, X: Floats, target: Target) -> Rows:
        """The rows with the negative gradients at the start as targets."""
        raw = np.tile(self._recipe.initial_raw, (len(target.y), 1))
        negative = self._recipe.config.loss.gradients(target, raw).negative_gradient
        return Rows.of(X, negative, target.weight)

    def _loss_of_machine(self, rows: NDArray[np.integer[Any]], outputs: Floats) -> float:
        """Mean loss of rows with the best multiple of the outputs of a kernel machine."""
        target = self._recipe.data.target.rows(rows)
        return self._outputs(target, np.zeros_like(outputs), outputs).lowest_of_kernel()

    # The model of both parts

    def _mixed(
        self, machines: list[KernelExpansion], weights: Floats, held_out_loss: float
    ) -> TrainingState:
        """Multiply the stages of the trees, and add the last stage, with its losses."""
        state, r = self._state, self._recipe.n_outputs
        of_trees, of_kernel = (np.broadcast_to(one, r) for one in weights)
        members = []
        for member, machine in zip(state.members, machines, strict=True):
            kept = member.stages if of_trees.any() else []
            stages = [stage.scaled(of_trees, learner=0) for stage in kept]
            term = Term(machine, slice(0, r), of_kernel.copy(), learner=1)
            members.append(replace(member, stages=[*stages, Stage((term,))]))
        n_stages, metrics = len(members[0].stages), {}
        for one in self._run.initial.others:
            raw = members[0].model().predict_raw(_numbers(one.X), self._run.team.n_threads)
            loss = losses_in_own_units(
                self._recipe.config.units, [self._mean_loss(raw, one.target)]
            )
            name = one.named("loss")
            metrics[name] = [*state.metrics[name][:n_stages], float(loss[0])]
        losses = self._training_losses(machines, weights)
        return replace(
            state,
            members=members,
            train=[*state.train[:n_stages], float(np.mean(losses))],
            validation=[*state.validation[:n_stages], held_out_loss],
            seconds=[*state.seconds[: n_stages - 1], self._seconds],
            metrics=metrics,
        )

    def _training_losses(self, machines: list[KernelExpansion], weights: Floats) -> list[float]:
        """Loss of each member on the rows that it was fitted to."""
        start, target, team = self._recipe.initial_raw, self._recipe.data.target, self._run.team
        losses = []
        for k, outputs in enumerate(self._training_outputs(machines)):
            member = self._state.members[k]
            own = slice(None) if self._state.folds is None else member.inside
            raw = start + weights[1] * outputs
            if weights[0].any():
                of_trees = member.model().predict_raw(self._inputs[k][own], team.n_threads)
                raw += weights[0] * (of_trees - start)
            losses.append(self._mean_loss(raw, target.rows(own)))
        return losses

    def _training_outputs(self, machines: list[KernelExpansion]) -> Iterator[Floats]:
        """Outputs of each kernel machine on the rows that it was fitted to."""
        members, team, r = self._state.members, self._run.team, self._recipe.n_outputs
        if self._state.folds is None:
            yield machines[0].evaluate(self._inputs[0], team)
        elif self._shares:  # kernel values for all machines at once
            columns = [slice(k * r, (k + 1) * r) for k in range(len(machines))]
            outputs = np.zeros((len(self._inputs[0]), len(machines) * r))
            together = KernelExpansion.sum_of(list(map(Term.of, machines, columns)))
            together.add_to(outputs, self._inputs[0], team.n_threads)
            for member, own in zip(members, columns, strict=True):
                yield outputs[member.inside, own]
        else:
            for machine, X, member in zip(machines, self._inputs, members, strict=True):
                yield machine.evaluate(X[member.inside], team)

    def _mean_loss(self, raw: Floats, target: Target) -> float:
        mass = target.row_weights
        return float(mass @ self._recipe.config.loss.value(target, raw)) / float(mass.sum())


def decisive(trials: Iterable[HeldOutOutputs], least: float) -> HeldOutOutputs:
    """Return the first trial that gains too little, or less than ``least``, or the last one.

    The trials are better and better fits, which take longer and longer.
    """
    for trial in trials:
        blend = trial.blend
        if not (blend.is_promising and blend.may_be_material) or blend.gain < least:
            break
    return trial


def _numbers(X: Floats) -> Floats:
    """All columns of a table."""
    return columns_of(X, np.arange(X.shape[1]))

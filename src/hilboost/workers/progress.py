"""Stages that are recorded while workers train, so that a new session continues from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hilboost.boosting import BoostingConfig, EnsembleMember, TrainingState
from hilboost.core.base_model import Stage
from hilboost.core.callback import Event
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.model.resolved import ResolvedParameters
from hilboost.training.recipe import Continuation, Recipe


@dataclass(frozen=True)
class StageRecord:
    """A finished stage, in units of the fit.

    Attributes
    ----------
    number : int
        Number of stages so far.
    n_stages : int
        Most stages of the fit.
    stages : tuple of Stage
        One for each member.
    initial_raw : tuple of (r,) float64
        Of each member.
    train : list of float
        Losses from the initial one on, in the first record, and later the last one.
    validation : list of float
        Likewise; empty without held-out rows.
    resolved : ResolvedParameters
    """

    number: int
    n_stages: int
    stages: tuple[Stage, ...]
    initial_raw: tuple[Floats, ...]
    train: list[float]
    validation: list[float]
    resolved: ResolvedParameters | None

    @property
    def event(self) -> Event:
        """The event for callbacks."""
        held_out = self.validation[-1] if self.validation else None
        return Event(self.number, self.n_stages, self.train[-1], held_out)


def continued(records: Sequence[StageRecord], seed: int) -> Continuation | None:
    """Return the fit with the recorded stages; ``None`` without any.

    Parameters
    ----------
    records : sequence of StageRecord
        From the first stage on, in order.
    seed : int
    """
    if not records:
        return None
    members = [
        EnsembleMember(start, stages=[record.stages[k] for record in records])
        for k, start in enumerate(records[0].initial_raw)
    ]
    train = [loss for record in records for loss in record.train]
    validation = [loss for record in records for loss in record.validation]
    state = TrainingState(members, train=train, validation=validation)
    return Continuation(state, seed, records[0].resolved, in_units=True)


class Progress:
    """Sends a record of each stage; takes the place of a checkpoint.

    Parameters
    ----------
    send : callable or None
        ``None`` in workers that do not send.
    """

    def __init__(self, send: Callable[[StageRecord], None] | None) -> None:
        self._send = send

    def check_learner(self, learner: Learner) -> None:
        """Accept trees, which have no state beside their stages."""

    def check_width(self, width: int) -> None:
        """Accept stages, which come from this fit."""

    def writing(
        self, config: BoostingConfig, recipe: Recipe, state: TrainingState, n_columns: int
    ) -> BoostingConfig:
        """Add a callback that sends stages; add no stages to a complete fit."""
        stopping, send = config.stopping, self._send
        if stopping is not None and stopping.should_stop(config.watched(state)):
            config = replace(config, n_stages=len(state.members[0].stages))
        if send is None:
            return config

        def callback(event: Event) -> None:
            last = slice(None) if event.stage == 1 else slice(-1, None)
            record = StageRecord(
                event.stage,
                event.n_stages,
                tuple(member.stages[-1] for member in state.members),
                tuple(member.initial_raw for member in state.members),
                state.train[last],
                state.validation[last],
                recipe.resolved,
            )
            send(record)

        return replace(config, callbacks=(*config.callbacks, callback))

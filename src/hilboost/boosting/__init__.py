"""The boosting loop: functional gradient descent in stages."""

from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.loop import HOPELESS_GROWTH, add_held_out, boost
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.offsets import starting_constant
from hilboost.boosting.sampling import RowSampling, StageKey
from hilboost.boosting.scores import metric_value
from hilboost.boosting.shards import Rotation, deal_rows, shard_ranges
from hilboost.boosting.state import TrainingState, Validation
from hilboost.boosting.stopping import EarlyStopping
from hilboost.boosting.units import (
    continued_in_units,
    in_own_units,
    in_units,
    losses_in_own_units,
    offset_in_own_units,
    raw_in_units,
)

__all__ = [
    "HOPELESS_GROWTH",
    "BoostingConfig",
    "EarlyStopping",
    "EnsembleMember",
    "Rotation",
    "RowSampling",
    "StageKey",
    "TrainingState",
    "Validation",
    "add_held_out",
    "boost",
    "continued_in_units",
    "deal_rows",
    "in_own_units",
    "in_units",
    "losses_in_own_units",
    "metric_value",
    "offset_in_own_units",
    "raw_in_units",
    "shard_ranges",
    "starting_constant",
]

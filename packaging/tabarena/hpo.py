"""Search space of hilboost in TabArena."""

from autogluon.common.space import Categorical, Int, Real

from tabarena.utils.config_utils import ConfigGenerator

from .model import HilboostModel

SEARCH_SPACE = {
    "learner": Categorical("auto", "tree"),
    "learning_rate": Real(0.03, 0.15, log=True),
    "max_leaf_nodes": Int(6, 64),
    "min_samples_leaf": Int(1, 20),
    "l2_regularization": Real(0.1, 30.0, log=True),
    "max_features": Real(0.25, 1.0),
    "subsample": Real(0.6, 1.0),
}
"""Early stopping chooses the number of stages, and kernel machines choose their parameters."""

gen_hilboost = ConfigGenerator(
    model_cls=HilboostModel, manual_configs=[{}], search_space=SEARCH_SPACE
)

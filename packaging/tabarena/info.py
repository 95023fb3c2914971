"""Entry of hilboost in TabArena's registry of models."""

from tabarena.models._method_metadata import MethodMetadata
from tabarena.models._model_info import ModelInfo

from .hpo import gen_hilboost
from .model import HilboostModel

hilboost_method_metadata = MethodMetadata.config(
    method="hilboost",
    ag_key=HilboostModel.ag_key,
    config_default="hilboost_c1_default_BAG_L1",
    compute="cpu",
    is_bag=True,
    can_hpo=True,
    display_name="hilboost",
    verified=False,
)

hilboost_info = ModelInfo(
    model_cls=HilboostModel,
    search_space=gen_hilboost,
    method_metadata=hilboost_method_metadata,
    pip_extra=("hilboost>=0.2",),
)

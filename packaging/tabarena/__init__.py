"""hilboost in TabArena: a copy of this folder is the package ``tabarena.models.hilboost``."""

from .hpo import gen_hilboost
from .info import hilboost_info, hilboost_method_metadata

__all__ = ["gen_hilboost", "hilboost_info", "hilboost_method_metadata"]

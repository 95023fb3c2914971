"""What the process that workers are forked from has loaded: the package and compiled code.

A worker that is started anew then takes a fraction of a second instead of several seconds.
"""

from multiprocessing import get_context

import dask.array
import dask.dataframe
import numpy as np
from distributed.utils import get_mp_context
from tests.cases import PLAIN

from hilboost import BoostingRegressor

FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}


def load_before_forking():
    """Let the process from which workers are forked load this module, which the tests import."""
    with dask.config.set(FORKED):
        get_mp_context()  # sets what it loads otherwise
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


if __name__ != "__main__":
    table = np.random.default_rng(0).normal(size=(50, 4))
    BoostingRegressor(**PLAIN | {"n_estimators": 1, "n_jobs": 1}).fit(table, -table[:, 0])

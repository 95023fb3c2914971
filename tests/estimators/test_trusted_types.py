"""The list of trusted types covers everything that fitted estimators consist of, and no more."""

import io
import pickle
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelForestRegressor,
    StackedKernelRidge,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(220, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=np.where(X[:, 2] > 0.5, "u", "v"))
TIMES = np.array(list(zip(Y > 0.3, 1 + X[:, 0], strict=True)), [("event", bool), ("time", float)])
LABELS = [{"low"} if y < 0.5 else {"high", "any"} for y in Y]

FITS = {
    "automatic": (BoostingRegressor(n_estimators=3), X, Y),
    "quantiles": (BoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=3), X, Y),
    "continued": (BoostingRegressor(n_estimators=3, early_stopping=False, warm_start=True), X, Y),
    "categories": (BoostingClassifier(n_estimators=3, target_encoding=True), FRAME, Y > 0.5),
    "learners": (BoostingRegressor(learner=["tree", "kernel", "linear"], n_estimators=3), X, Y),
    "times": (BoostingSurvival(n_estimators=3), X, TIMES),
    "kernels": (KernelBoostingRegressor(n_estimators=2, kernel="gaussian"), X, Y),
    "label sets": (OutputKernelForestRegressor("label_set", n_estimators=2), X, LABELS),
    "subsets": (StackedKernelRidge(), X, Y),
}


class Reader(pickle.Unpickler):
    """Notes the classes of the package that an object needs."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.names = set()

    def find_class(self, module, name):
        if module.startswith("hilboost"):
            self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


@pytest.mark.parametrize("name", FITS)
def test_fitted_estimators_consist_of_trusted_types(name):
    model, table, y = FITS[name]
    reader = Reader(pickle.dumps(model.set_params(random_state=0).fit(table, y)))
    reader.load()
    assert reader.names
    assert reader.names <= set(hilboost.trusted_types())


def test_trusted_types_run_no_code_of_files():
    """Objects are created without ``__init__``, so that only special methods could do harm."""
    names = hilboost.trusted_types()
    assert names == sorted(set(names))
    for name in names:
        module, _, attribute = name.rpartition(".")
        one = getattr(import_module(module), attribute)
        assert isinstance(one, type)
        for special in ("__del__", "__reduce__", "__reduce_ex__", "__array_interface__"):
            assert getattr(one, special, None) is getattr(object, special, None), (name, special)

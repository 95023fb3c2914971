"""Workers hold out whole groups, or the latest rows, as one process does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor
from hilboost.core.errors import InvalidData
from hilboost.kernels import Gaussian

N = 160
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(N, 3)), 1)
NUMBER = RNG.integers(12, size=N)
LEVEL = X[:, 0] + RNG.normal(size=12)[NUMBER] + 0.3 * RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(0.5 * LEVEL)).astype(float)
DEPENDENCE = {
    "groups": {"groups": NUMBER},
    "names": {"groups": np.array([f"patient {k}" for k in NUMBER])},
    "two groups": {"groups": NUMBER // 6},
    "time": {"time": np.round(RNG.normal(size=N), 1)},
    "dates": {"time": np.datetime64("2024-02-27") + NUMBER.astype("timedelta64[D]")},
}
FEW = {"n_estimators": 4, "random_state": 0, "n_jobs": 1, "max_bins": 16}
TREES = {"learner": "tree", "early_stopping": True, **FEW}
MODELS = {
    "folds": (BoostingRegressor(cv_folds=3, **TREES), LEVEL),
    "a part": (BoostingRegressor(cv_folds=1, validation_fraction=0.3, **TREES), LEVEL),
    "classes": (BoostingClassifier(cv_folds=3, **TREES), LEVEL > 0),
    "quantile": (BoostingRegressor("quantile", cv_folds=2, **TREES), LEVEL),
    "distribution": (BoostingRegressor("normal", cv_folds=3, **TREES), LEVEL),
    "counts": (BoostingRegressor("negative_binomial", cv_folds=2, **TREES), COUNTS),
    "encoded": (
        BoostingRegressor(cv_folds=2, categorical_features=[1], target_encoding=True, **TREES),
        LEVEL,
    ),
    "kernel machine": (
        KernelBoostingRegressor(kernel=Gaussian(2.0), n_estimators=2, random_state=0),
        LEVEL,
    ),
}


@settings(max_examples=30, deadline=None)
@example(model="folds", dependence="two groups", cuts=[80], owners=[0, 1, 0, 0], weighted=True)
@example(model="counts", dependence="dates", cuts=[50, 90], owners=[1, 0, 1, 0], weighted=True)
@given(
    model=st.sampled_from(sorted(MODELS)),
    dependence=st.sampled_from(sorted(DEPENDENCE)),
    cuts=st.lists(st.integers(0, N), min_size=1, max_size=3),
    owners=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    weighted=st.booleans(),
)
def test_the_bytes_of_one_process(model, dependence, cuts, owners, weighted):
    (estimator, y), held_out_by = MODELS[model], DEPENDENCE[dependence]
    weight = np.random.default_rng(1).integers(0, 3, size=N) * 1.0 if weighted else None
    alone = saved(clone(estimator).fit(X, y, weight, **held_out_by))
    parts = partitions_of(X, y, weight, cuts, **held_out_by)
    together = fit_together(estimator, parts, owners[: len(parts)])
    assert {saved(one) for one in together} == {alone}


def refused(estimator=MODELS["folds"][0], **given):
    parts = partitions_of(X, LEVEL, None, [80], **given)
    with pytest.raises(InvalidData) as caught:
        fit_together(estimator, parts, [0, 1])
    return str(caught.value)


def test_bad_groups_and_times():
    names, times = DEPENDENCE["names"]["groups"].astype(object), DEPENDENCE["time"]["time"].copy()
    names[100] = None
    assert refused(groups=names).startswith("partition 1: row 20 of groups is missing")
    times[3] = np.nan
    assert refused(time=times).startswith("partition 0: row 3 of time is missing or infinite")
    mixed = pd.Series([*range(80), *"ab" * 40], dtype=object).to_numpy()
    assert refused(groups=mixed).startswith("groups holds int64 in some partitions and <U1 in")
    assert refused(groups=np.repeat(1, N)).startswith("groups has a single label")
    assert refused(time=np.repeat(1, N)).startswith("time is the same in all rows")
    assert refused(groups=NUMBER, time=times[::-1]).startswith("partition 1: row 76 of time")
    both = {"groups": NUMBER, "time": np.arange(N)}
    assert refused(**both).startswith("groups and time were both passed")
    by_group = clone(MODELS["folds"][0]).set_params(validation="groups")
    assert refused(by_group, time=np.arange(N)).startswith(
        "validation='groups' requires the groups"
    )
    weight = (NUMBER == 3) * 1.0
    parts = partitions_of(X, LEVEL, weight, [80], groups=NUMBER)
    with pytest.raises(InvalidData, match="whose weight is not zero have the same group"):
        fit_together(MODELS["folds"][0], parts, [0, 1])

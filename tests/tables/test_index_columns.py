"""Arrow tables in which pandas has stored an index: read as the frame that they were."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import saved

from hilboost import BoostingRegressor

MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 3, "random_state": 0, "learner": "tree"})
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(np.round(RNG.normal(size=(60, 2)), 2), columns=["a", "b"])
Y = pd.DataFrame({"y": FRAME["a"] * FRAME["b"], "z": FRAME["a"]})


class Stream:
    """An object of another library that exports an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch, Stream])
@given(
    names=st.lists(st.sampled_from([None, "id", "day"]), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 9),
)
def test_an_index_is_no_feature_and_no_target(kind, names, seed):
    values = [np.random.default_rng([seed, k]).permutation(60) for k in range(len(names))]
    index = pd.MultiIndex.from_arrays(values, names=names)
    make = (
        (lambda frame: Stream(pa.Table.from_pandas(frame))) if kind is Stream else kind.from_pandas
    )
    X, y = (make(one.set_index(index)) for one in (FRAME, Y))
    expected = clone(MODEL).fit(FRAME, Y)
    found = clone(MODEL).fit(X, y if kind is pa.Table else Y)
    assert list(found.feature_names_in_) == ["a", "b"]
    assert saved(found) == saved(expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(FRAME))


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_an_index_that_is_chosen_alone_is_a_column():
    table = pa.Table.from_pandas(FRAME.set_index("a"))
    assert list(clone(MODEL).fit(table.select(["a"]), Y).feature_names_in_) == ["a"]

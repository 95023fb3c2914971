"""Output kernels: every worker has some rows, and the labels of all."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from tests.workers.together import fit_together, partitions_of, run_together

from hilboost import OutputKernelBoostingRegressor
from hilboost.core.errors import HilboostError
from hilboost.core.exchange import RowShare
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import prepare_vector_trees, vector_workers
from hilboost.kernels import Gaussian
from hilboost.kernels.pivoted_cholesky import factor_columns
from hilboost.learners.tree import VectorTreeLearner
from hilboost.outputs import KernelOutput, kernel_output
from hilboost.workers.partitions import Partition

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 5))
X[:, 4] = np.round(X[:, 4])
X[RNG.uniform(size=X.shape) < 0.05] = np.nan
KNOWN = np.nan_to_num(X)
CURVES = np.stack([np.sin(k * KNOWN[:, 0]) + KNOWN[:, 1] * KNOWN[:, 2] for k in (1, 2, 3)], axis=1)
CURVES += 0.1 * RNG.normal(size=CURVES.shape)
WEIGHT = RNG.integers(0, 3, size=N).astype(float)
THIRDS, TENTHS = np.full(N, 1 / 3), np.full(N, 0.1)  # sums that are whole numbers up to rounding
MODEL = OutputKernelBoostingRegressor(n_estimators=8, max_splits=6, random_state=0)


def labels(output):
    """Labels that depend on the first columns."""
    if output == "label_set":
        return [
            {name for name, value in zip("abc", row, strict=True) if value > 0.2} for row in CURVES
        ]
    if output == "ranking":
        return np.argsort(np.argsort(CURVES, axis=1), axis=1) + 1
    if output == "string":
        return ["".join("xy"[int(value > 0)] for value in row) + "z" for row in CURVES]
    return CURVES


def assert_same(model, y, weight=None, cuts=(60, 60, 150), owners=(0, 1, 0, 2), held_out=()):
    parts = partitions_of(X, y, weight, cuts)
    named = {} if not held_out else {"X_val": held_out[0], "y_val": held_out[1]}
    alone = clone(model).set_params(learner=model.learner).fit(X, y, weight, **named)
    held = [Partition(0, *held_out)] if held_out else ()
    expected = alone.predict_raw(X)
    for found in fit_together(model, parts, owners[: len(parts)], held, n_workers=3):
        raw = found.predict_raw(X)
        assert np.abs(raw - expected).max() <= 1e-8 * expected.std()
        assert found.n_estimators_ == alone.n_estimators_
    return found, alone


SPACES = ["linear", "gaussian", "label_set", "ranking", "string"]


@pytest.mark.parametrize("learner", ["extra_trees", "ok3"])
@pytest.mark.parametrize("output", SPACES)
def test_the_predictions_of_one_process(output, learner):
    weight = (None, WEIGHT)[(SPACES.index(output) + (learner == "ok3")) % 2]
    model = clone(MODEL).set_params(output=output, learner=learner)
    found, alone = assert_same(model, labels(output), weight)
    np.testing.assert_array_equal(
        np.asarray(found.predict(X), dtype=object), np.asarray(alone.predict(X), dtype=object)
    )


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    division=st.tuples(
        st.lists(st.integers(0, N), max_size=4), st.lists(st.integers(0, 2), min_size=5, max_size=5)
    ),
    parameters=st.sampled_from(
        [
            {"learner": "ok3", "max_features": 0.5},
            {"learner": "ok3", "sketch": 2},
            {"subsample": 0.6},
            {"min_samples_leaf": 10.0},
            {"early_stopping": True, "metric": "preimage", "output": "gaussian"},
            {"early_stopping": True, "metric": "mean_squared_error"},
        ]
    ),
    weight=st.sampled_from([None, WEIGHT, THIRDS, TENTHS]),
)
def test_every_division(division, parameters, weight):
    model = clone(MODEL).set_params(**{"learner": "extra_trees"} | parameters)
    assert_same(model, CURVES, weight, *division)


@pytest.mark.parametrize("learner", ["extra_trees", "ok3"])
@pytest.mark.parametrize("weight", [THIRDS, TENTHS], ids=["thirds", "tenths"])
@pytest.mark.parametrize("least", [1.0, 3.0])
def test_leaves_of_the_least_weight(weight, learner, least):
    """A sum of fractions reaches a whole number or misses it by rounding, in any order."""
    model = clone(MODEL).set_params(learner=learner, min_samples_leaf=least, max_splits=60)
    assert_same(model, CURVES, weight)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_kernel_machines_have_all_rows(weight):
    model = OutputKernelBoostingRegressor("label_set", learner="kernel", random_state=0, n_jobs=1)
    y, inputs = labels("label_set"), np.nan_to_num(X)
    alone = clone(model).fit(inputs, y, weight)
    together = fit_together(model, partitions_of(inputs, y, weight, [60, 150]), [0, 1, 0])
    expected = alone.predict_raw(inputs)
    for found in together:
        assert np.abs(found.predict_raw(inputs) - expected).max() <= 1e-8 * expected.std()


@pytest.mark.parametrize("learner", ["extra_trees", "ok3"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_categories(learner, weight):
    """Few and many levels, some of which only one worker has, or none in a node."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": KNOWN[:, 0],
            "b": [f"level {k}" for k in rng.integers(0, 20, size=N)],
            "c": rng.choice(list("pqrs"), size=N),
        }
    )
    frame.loc[rng.uniform(size=N) < 0.1, "c"] = None
    frame.loc[:50, "b"] = "first"
    y = CURVES + 2.0 * (frame["b"] > "level 15").to_numpy()[:, None]
    y[:, 1] += (frame["c"] == "p").to_numpy() - 1.0 * frame["c"].isna().to_numpy()
    model = clone(MODEL).set_params(learner=learner, n_estimators=12, max_splits=12)
    alone = clone(model).fit(frame, y, weight)
    new = frame.assign(b="unknown")
    for owners in ([0, 1, 0], [2, 0, 1]):
        for found in fit_together(model, partitions_of(frame, y, weight, [60, 150]), owners):
            for rows in (frame, new):
                raw, expected = found.predict_raw(rows), alone.predict_raw(rows)
                assert np.abs(raw - expected).max() <= 1e-8 * expected.std()


@pytest.mark.parametrize("learner", ["extra_trees", "ok3"])
@pytest.mark.parametrize("weight", [None, WEIGHT, TENTHS], ids=["", "weights", "tenths"])
def test_trees_that_split_every_node(weight, learner):
    model = clone(MODEL).set_params(learner=learner, max_splits=N, n_estimators=2)
    assert_same(model, CURVES, weight)


@pytest.mark.parametrize("max_splits", [20, None])
@pytest.mark.parametrize("random_cuts", [False, True])
def test_nodes_are_divided_in_batches(random_cuts, max_splits):
    learner = VectorTreeLearner(max_splits=max_splits, random_cuts=random_cuts)
    draws, negative = np.random.default_rng, np.nan_to_num(CURVES)
    data = learner.prepare(X, None, 0, 1)
    (alone,) = learner.fit(data, Gradients(negative), RowSample(None, None), draws(1))

    def work(exchange):
        share = RowShare.block(N, exchange)
        added, calls = exchange.added, []
        exchange.added = lambda values: calls.append(len(values)) or added(values)
        data = prepare_vector_trees(learner, X[share.numbers], None, 0, 1, share)
        gradients = Gradients(negative[share.numbers])
        (fitted,) = learner.fit(data, gradients, RowSample(None, None), draws(1))
        return fitted, calls

    n_splits = len(alone.term.model.leaf_values) - 1
    for fitted, calls in run_together(3, work):
        tree, expected = fitted.term.model, alone.term.model
        np.testing.assert_allclose(tree.predict_raw(X), expected.predict_raw(X), atol=1e-9)
        assert len(calls) < (0.95 if max_splits else 0.3) * n_splits


def test_validation_rows():
    model = clone(MODEL).set_params(learner="extra_trees", early_stopping=True)
    assert_same(model, CURVES, held_out=(X[:50] + 1e-9, CURVES[:50]))


def test_sums_in_parts(monkeypatch):
    """Sums of many columns are sent in several parts."""
    monkeypatch.setattr(vector_workers, "_MESSAGE_CELLS", 1)
    for learner in ("extra_trees", "ok3"):
        assert_same(clone(MODEL).set_params(learner=learner, output="gaussian"), CURVES)


def test_pivots_of_all_workers(monkeypatch):
    """Each worker computes some rows of the columns of the pivots."""
    monkeypatch.setattr(kernel_output, "_WHOLE_UP_TO", 100)
    model = clone(MODEL).set_params(learner="extra_trees")
    assert_same(model.set_params(output=KernelOutput(Gaussian(1.0), max_rank=20)), CURVES)


@pytest.mark.parametrize("n", [1, 2, 90])
def test_the_factor_does_not_depend_on_the_workers(n):
    rows = RNG.normal(size=(n, 3)).round(1)
    K = Gaussian(1.0).block(rows, rows)
    expected = factor_columns(K.diagonal(), lambda i: K[:, i], 1e-3)

    def factored(exchange):
        share = RowShare.block(n, exchange)
        own = K[share.numbers]
        return factor_columns(K.diagonal()[share.numbers], lambda i: own[:, i], 1e-3, share=share)

    for found in run_together(3, factored):
        np.testing.assert_array_equal(found.pivots, expected.pivots)
        np.testing.assert_allclose(found.codes, expected.codes, atol=1e-12)


def test_equal_labels_give_the_pivots_of_one_process():
    """Of discrete labels, many have the largest remainder, up to rounding."""
    rows = np.random.default_rng(1).integers(0, 4, size=(300, 3)).astype(float)
    K = Gaussian(1.3).block(rows, rows)
    for tolerance in (0.0, 0.1):
        expected = factor_columns(K.diagonal(), lambda i: K[:, i], tolerance)

        def factored(exchange, tolerance=tolerance):
            numbers = (share := RowShare.block(300, exchange)).numbers
            own = K[numbers]
            return factor_columns(
                K.diagonal()[numbers], lambda i: own[:, i], tolerance, share=share
            )

        for n_workers in (2, 3, 7):
            for found in run_together(n_workers, factored):
                np.testing.assert_array_equal(found.pivots, expected.pivots)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (25, np.nan, "NaN or infinity in row 25;"),
        (3, np.nan, "NaN or infinity in row 25;"),
        (3, 0.5, r"not symmetric: k\(3, 25\)|k\(25, 3\)|row 25"),
    ],
)
def test_rows_in_errors_are_those_of_the_table(column, value, message):
    K = np.eye(30)
    K[25, column] = value

    def factored(exchange):
        share = RowShare.block(30, exchange)
        return factor_columns(
            K.diagonal()[share.numbers], lambda i: K[share.numbers, i], 0.0, share=share
        )

    with pytest.raises(HilboostError, match=message):
        run_together(2, factored)


@pytest.mark.parametrize("whole_up_to", [100, 1000])
def test_rows_in_errors_of_a_kernel_of_two_labels(whole_up_to, monkeypatch):
    monkeypatch.setattr(kernel_output, "_WHOLE_UP_TO", whole_up_to)
    y = [None if i == 200 else "ab"[i % 2] for i in range(N)]
    space = KernelOutput(lambda a, b: float(a + "" == b), pairwise=True)
    model = clone(MODEL).set_params(learner="extra_trees", output=space)
    with pytest.raises(HilboostError, match="failed for row 200, None, and"):
        fit_together(model, partitions_of(X, y, None, [100]), [0, 1])


def test_labels_of_a_class_of_the_user():
    """A class that no module contains travels with the labels."""
    pytest.importorskip("cloudpickle")

    class Label:
        def __init__(self, value):
            self.value = value

    space = KernelOutput(lambda a, b: float(a.value == b.value), pairwise=True)
    y = [Label(int(value > 0)) for value in CURVES[:, 0]]
    assert_same(clone(MODEL).set_params(learner="extra_trees", output=space), y)


def test_labels_in_tables_and_lists():
    """Labels of all partitions are put together whatever holds them."""
    frame = pd.DataFrame(CURVES, columns=list("pqr"))
    model = clone(MODEL).set_params(learner="extra_trees")
    assert_same(model, CURVES)
    parts = [Partition(0, X[:100], frame.iloc[:100]), Partition(1, X[100:], frame.iloc[100:])]
    (found, _) = fit_together(model, parts, [0, 1])
    np.testing.assert_array_equal(found.predict_raw(X), clone(model).fit(X, CURVES).predict_raw(X))
    parts = [Partition(0, X[:100], CURVES[:100]), Partition(1, X[100:], CURVES[100:, :2])]
    with pytest.raises(HilboostError, match="labels of different shapes in the partitions"):
        fit_together(model, parts, [0, 1])
    for first, second, message in [
        (frame, CURVES, "partition 1: y is an array or list, but .* 0 it is a table with the col"),
        (CURVES, frame, "partition 1: y is a table with the columns .*'r'.*, but in partition 0"),
        (frame, frame.rename(columns={"r": "s"}), "partition 1: y is a table .*'q', 's'"),
        (frame, frame["p"], "partition 1: y is a series"),
        (CURVES, csr_array(CURVES), "partition 1: y is a sparse matrix"),
    ]:
        parts = [Partition(0, X[:100], first[:100]), Partition(1, X[100:], second[100:])]
        with pytest.raises(HilboostError, match=message):
            fit_together(model, parts, [0, 1])
    parts = [Partition(0, X[:100], CURVES[:100])]
    with pytest.raises(HilboostError, match="partition 1: .* 100 labels|partition 1: "):
        fit_together(model, [parts[0], Partition(1, X[100:], CURVES[:100])], [0, 1])


def test_automatic_learners_are_trees():
    found, *_ = fit_together(MODEL, partitions_of(X, CURVES, cuts=[100]), [0, 1])
    assert found.learner_.random_cuts

"""Hashes of training rows, by which reports recognize these rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from tests.cases import PLAIN
from tests.model.editing import assert_refused, contents, edit, header_of
from tests.workers.together import fit_together, partitions_of

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelTreeRegressor,
    SparseKernelRidge,
    load,
)
from hilboost.core.errors import DataWarning
from hilboost.kernels import Gaussian
from hilboost.model.row_marks import RowMarks
from hilboost.network import BipartiteNetwork, NetworkCompletion
from hilboost.report import facts
from hilboost.tables.sparse import SparseTable

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 3)).astype(np.float32)
X[::7, 1] = np.nan
X[:, 2] = np.round(X[:, 2])
Y = np.where(np.isnan(X[:, 1]), 0.0, X[:, 1]) + X[:, 0]


def mentions(found):
    return [text for text in found["warnings"] if "occur in the training data" in text]


@pytest.mark.parametrize("convert", [np.asarray, np.float64, lambda x: SparseTable(csr_array(x))])
def test_the_share_is_exact_for_small_tables(convert):
    marks = RowMarks.of(X[:200])
    assert marks.share_of(convert(X[150:])) == pytest.approx(50 / 150)
    assert marks.share_of(convert(X[:200])) == 1.0
    assert marks.share_of(convert(X[200:])) == 0.0


@pytest.mark.parametrize("keys", [2, 5000])  # different values of the columns of the key
def test_the_share_is_estimated_for_large_tables(keys):
    table = RNG.normal(size=(50_000, 6))
    table[:, [0, -1]] = RNG.integers(keys, size=(50_000, 2))
    marks = RowMarks.of(table[:40_000])
    assert len(marks.hashes) == 4096
    assert marks.share_of(table) == pytest.approx(0.8, abs=0.05)
    assert marks.share_of(table[40_000:]) == 0.0
    assert marks.share_of(table[:3]) in (0.0, 1.0)  # too few rows to say


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_marks_do_not_depend_on_threads_and_the_order_of_the_rows(n_threads):
    table = RNG.normal(size=(300_000, 3)).round(2)
    order = RNG.permutation(len(table))
    marks, permuted = RowMarks.of(table), RowMarks.of(table[order], n_threads=n_threads)
    np.testing.assert_array_equal(marks.hashes, permuted.hashes)
    assert marks.limit == permuted.limit
    assert (marks.n_rows, marks.n_repeated) == (permuted.n_rows, permuted.n_repeated)


def test_repeated_rows_do_not_change_the_share():
    few = RNG.normal(size=(8, 3))
    marks = RowMarks.of(few[RNG.integers(8, size=10_000)])
    new = RNG.normal(size=(1000, 3))
    new[:60] = few[RNG.integers(8, size=60)]
    assert marks.share_of(new) == 0.06


def test_wide_sparse_tables():
    table = random_array((400, 20_000), density=1e-3, random_state=0, format="csr")
    marks = RowMarks.of(SparseTable(table[:300]))
    assert marks.share_of(SparseTable(table[200:])) == pytest.approx(0.5)


def test_refitted_leaves_have_seen_their_rows():
    complete = np.nan_to_num(X)
    model = BoostingRegressor(**PLAIN).fit(complete[:100], Y[:100])
    assert mentions(facts(model.refit_leaves(complete[100:], Y[100:]), complete[100:], Y[100:]))
    assert not mentions(facts(model, complete[100:], Y[100:]))


def test_equal_numbers_have_equal_hashes():
    marks = RowMarks.of(np.array([[0.0, np.nan]]))
    assert marks.share_of(np.array([[-0.0, -np.nan], [0.0, 1.0]])) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_reports_say_which_share_of_rows_the_fit_has_seen(share, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 0] > 0, "u", "v"))
    model = BoostingRegressor(n_estimators=20, learner="tree", random_state=0)
    model.fit(frame[:200], Y[:200])
    rows = slice(200 - int(100 * share), 300 - int(100 * share))
    found = mentions(facts(model, frame[rows], Y[rows]))
    assert len(found) == (share > 0.1)
    if found:
        assert found[0].startswith("50% of these 100 rows also occur in the training data.")
    model.save(tmp_path / "model.hilboost", training_data=True)
    assert mentions(facts(load(tmp_path / "model.hilboost"), frame[rows], Y[rows])) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        BoostingClassifier(n_estimators=5, learner="tree"),
        BoostingRegressor(**PLAIN | {"early_stopping": True}),
        KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, n_estimators=3),
    ],
)
def test_the_training_data_are_recognized(model):
    complete = np.nan_to_num(X)
    y = Y if model._kind == "numbers" else np.array(["low", "high"])[(Y > 0).astype(int)]
    found = facts(model.fit(complete, y), complete, y)
    assert any("training data" in text for text in found["warnings"])
    new = facts(model, complete + 0.01, y)
    assert not any("training data" in text for text in new["warnings"])


def test_rows_that_recur_by_chance_are_no_training_rows(tmp_path):
    cells = RNG.integers(40, size=(3000, 2)).astype(float)
    y = cells[:, 0] + RNG.normal(size=3000)
    model = BoostingRegressor(**PLAIN).fit(cells[:1500], y[:1500])
    assert not facts(model, cells[1500:], y[1500:])["warnings"]
    model.save(tmp_path / "model", training_data=False)  # without marks
    again = facts(load(tmp_path / "model"), cells[1500:], y[1500:], X_train=cells[:1500])
    assert again["drift"]["in_both"] > 600
    assert not again["warnings"]
    again = facts(model, cells[:1400], y[:1400])["warnings"]
    assert again[0].startswith("100% of these 1400 rows also occur in the training data")


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_rows_that_a_kernel_machine_merges_recur_by_chance():
    cells = RNG.integers(20, size=(600, 2)).astype(float)
    model = KernelBoostingRegressor(n_estimators=2).fit(cells[:500], cells[:500, 0])
    assert not facts(model, cells[500:], cells[500:, 0])["warnings"]


# Model files


def column(kind, n, rng):
    """A column (n,) of one of several kinds."""
    if kind == "number":
        return rng.normal(size=n)
    if kind == "code":
        return rng.integers(5, size=n)
    values = np.array(["red", "green", "blue", None], dtype=object)[rng.integers(4, size=n)]
    return values if kind == "text" else pd.Categorical(values, ["blue", "green", "red"])


@given(st.data())
def test_models_from_files_recognize_training_rows_alone(tmp_path_factory, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    kinds = data.draw(st.lists(st.sampled_from(["number", "code", "text", "category"]), max_size=4))
    n = data.draw(st.integers(80, 400), label="n")
    frame = pd.DataFrame({f"c{k}": column(kind, 2 * n, rng) for k, kind in enumerate(kinds)})
    place = data.draw(st.integers(0, len(kinds)))
    frame.insert(place, "x", rng.normal(size=2 * n).round(data.draw(st.integers(1, 9))))
    frame.loc[rng.uniform(size=2 * n) < data.draw(st.floats(0, 0.5)), "x"] = np.nan
    y = frame["x"].fillna(0.0) + rng.normal(size=2 * n)
    settings = {"learner": "tree", "n_estimators": 2, "max_leaf_nodes": 4, "random_state": 0}
    model = BoostingRegressor(**settings, n_jobs=1).fit(frame[:n], y[:n])
    path = tmp_path_factory.mktemp("marks") / "model"
    model.save(path)
    marks, known = load(path).fitted_.marks, load(path)._checked(frame)
    np.testing.assert_array_equal(marks.hashes, model.fitted_.marks.hashes[:1024])
    assert marks.leaked_share(known[n:]) == 0.0
    repeated = frame[:n].duplicated(keep=False).mean()
    assert marks.n_repeated == round(n * repeated)
    if repeated < 0.6:
        assert marks.leaked_share(known[:n]) == 1.0
    if repeated < 0.1:
        assert marks.leaked_share(known[n // 2 : n + n // 2]) > 0.3


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_files_have_marks_of_few_rows(tmp_path):
    rows = RNG.normal(size=(30_000, 2))
    model = BoostingRegressor(**PLAIN | {"n_estimators": 1}).fit(rows[:20_000], rows[:20_000, 0])
    model.save(tmp_path / "model", training_data=True)
    model.save(tmp_path / "without", training_data=False)
    sizes = [(tmp_path / name).stat().st_size for name in ("model", "without")]
    assert 8 * 1024 < sizes[0] - sizes[1] < 8 * 1024 + 300
    again = load(tmp_path / "model").fitted_.marks
    assert again.share_of(rows) == pytest.approx(2 / 3, abs=0.1)
    assert again.share_of(rows[20_000:]) == 0.0
    assert load(tmp_path / "without").fitted_.marks is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("limit", limit) for limit in (5, 2**64, 1.5)),
        ("n_rows", 1),
        ("n_repeated", 301),
        ("version", "1"),
    ],
)
def test_damaged_marks_are_refused(field, value, tmp_path):
    path = tmp_path / "model"
    BoostingRegressor(**PLAIN).fit(X, Y).save(path)
    fields = header_of(path)["row_marks"]
    assert_refused(path, header={"row_marks": fields | {field: value}})


def test_marks_of_other_versions_are_ignored_and_unordered_ones_refused(tmp_path):
    path = tmp_path / "model"
    BoostingRegressor(**PLAIN).fit(X, Y).save(path)
    fields = header_of(path)["row_marks"]
    edit(path, header={"row_marks": fields | {"version": 2}})
    assert load(path).fitted_.marks is None
    marks = contents(path)[0]["row_marks"][::-1].copy()
    assert_refused(path, arrays={"row_marks": marks}, header={"row_marks": fields})


# Validation data


def fit_with(model, X_val, y_val):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        model.fit(X[:200], Y[:200], X_val=X_val, y_val=y_val)
    assert all(one.filename == __file__ for one in said)
    return [str(one.message) for one in said]


STOPPING = BoostingRegressor(**PLAIN | {"early_stopping": True})


def test_validation_with_training_rows_warns():
    (told,) = fit_with(STOPPING, X[100:250], Y[100:250])
    assert told.startswith("67% of the 150 rows of the validation data are training rows")
    assert not fit_with(STOPPING, X[190:], Y[190:])  # less than a tenth
    assert not fit_with(clone(STOPPING).set_params(early_stopping=False), X, Y)
    machine = KernelBoostingRegressor(n_estimators=2)
    complete = np.nan_to_num(X)
    with pytest.warns(DataWarning, match="100% of the 200 rows"):
        machine.fit(complete[:200], Y[:200], X_val=complete[:200], y_val=Y[:200])


def test_the_validation_set_that_decides_warns_of_training_rows():
    old, new = slice(200), slice(200, 300)
    sets, labels = {"old": X[old], "new": X[new]}, {"old": Y[old], "new": Y[new]}
    (told,) = fit_with(STOPPING, sets, labels)
    assert "100% of the 200 rows of X_val['old'] are training rows" in told
    assert not fit_with(STOPPING, {"new": X[new], "old": X[old]}, labels)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_workers_tell_the_share_of_all_validation_rows(n_workers):
    parts = partitions_of(np.float64(X[:200]), Y[:200], cuts=[70, 150])
    held = partitions_of(np.float64(X[150:]), Y[150:], cuts=[40, 45])
    with pytest.warns(DataWarning, match="33% of the 150 rows of the validation data"):
        fit_together(STOPPING, parts, [k % n_workers for k in range(3)], held)


# Calibration with training rows


def test_more_rows_than_recur_by_chance():
    distinct = RowMarks.of(X[:200])
    assert distinct.leaked_share(X[180:]) == pytest.approx(20 / 120)
    assert distinct.leaked_share(X[190:]) == 0.0  # less than a tenth
    table = RNG.integers(3, size=(2000, 4)).astype(float)
    repeated = RowMarks.of(table[:1000])
    assert repeated.share_of(table[1000:]) > 0.99
    assert repeated.leaked_share(table[1000:]) == 0.0
    cells = RNG.integers(40, size=(3000, 2)).astype(float)  # about half of the rows occur once
    some = RowMarks.of(cells[:1500])
    assert some.leaked_share(cells[1500:]) == 0.0
    assert some.leaked_share(cells[:1500]) == 1.0


CALIBRATED = {
    "numbers": BoostingRegressor(**PLAIN),
    "folds": BoostingRegressor(n_estimators=5, learner="tree", random_state=0),
    "quantiles": BoostingRegressor("quantile", quantile=[0.1, 0.9], **PLAIN),
    "classes": BoostingClassifier(**PLAIN),
    "kernel machine": KernelBoostingRegressor(n_estimators=3),
    "sparse kernel machine": SparseKernelRidge(n_basis=5, random_state=0),
    "structured": OutputKernelTreeRegressor("linear", random_state=0),
}


@pytest.mark.parametrize("kind", CALIBRATED)
def test_calibration_with_training_rows_warns(kind):
    complete = np.nan_to_num(X)
    y = {"classes": np.where(Y > 0, "high", "low"), "structured": np.column_stack([Y, Y])}
    labels = y.get(kind, Y)
    model = clone(CALIBRATED[kind]).fit(complete[:220], labels[:220])
    with pytest.warns(
        DataWarning, match="20% of the 100 calibration rows are rows of the fit"
    ) as said:
        model.calibrate(complete[200:], labels[200:])
    assert said[0].filename == __file__
    assert ("leave calibrate out" in str(said[0].message)) == (kind == "folds")
    model.calibrate(complete[220:], labels[220:])
    model.calibrate(complete, labels, sample_weight=1.0 * (np.arange(len(complete)) >= 220))


def test_networks_calibrated_with_known_vertices_warn():
    links = (RNG.random((60, 60)) < 0.2).astype(float)
    points = RNG.normal(size=(60, 2))
    tree = OutputKernelTreeRegressor("linear", random_state=0)
    model = BipartiteNetwork(tree).fit(points[:40], links[:40])
    with pytest.warns(DataWarning, match="100% of the 40 calibration rows"):
        model.calibrate(points[:40], links[:40])
    model.calibrate(points[40:], links[40:])
    symmetric = np.maximum(links, links.T)
    model = NetworkCompletion().fit(points[:40], symmetric[:40, :40])
    with pytest.warns(DataWarning, match="100% of the 40 calibration rows"):
        model.calibrate(points[:40], symmetric[:40, :40])
    model.calibrate(points[40:], symmetric[40:, :40])

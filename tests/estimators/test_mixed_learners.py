"""Several learners in one model: ``learner=[...]``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from tests.cases import LOSSES, ids
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter, InvalidType
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.tree import TreeLearner

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(240, 3))
Y = np.sin(2 * X[:, 0]) + (X[:, 1] > 0.3) + 0.5 * X[:, 2] + RNG.normal(size=240) / 10
MACHINE = SparseLearner(KernelMachineConfig(kernel=Gaussian(1.0), regularization=0.1), n_basis=50)
ALL = ["tree", MACHINE, "linear"]
FEW = {"n_estimators": 12, "random_state": 0}
TEXT = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    town=np.array(["Ghent", "Namur", "Liège"])[RNG.integers(3, size=240)],
    street=[f"s{k}" for k in RNG.integers(50, size=240)],
)


def raw(model, table=X):
    return model.predict_raw(table)


SOME = [
    case
    for case in LOSSES
    if case.id in ("huber-2", "quantile-3", "poisson", "log_loss-3", "hinge-2")
]


@pytest.mark.parametrize("loss", SOME, ids=ids(SOME))
@pytest.mark.parametrize("early", [False, True])
def test_losses_of_all_kinds(loss, early):
    target = loss.target(np.random.default_rng(1), len(X))
    labels = loss.labels(target.y)
    table = np.column_stack([X, target.y.sum(axis=1) + RNG.normal(size=len(X)) / 3])
    model = loss.build(learner=ALL, early_stopping=early, **FEW).fit(table, labels)
    assert model.history_.train[-1] < model.history_.train[0]
    n_members = 4 if early else 1
    assert all(len(stage) == n_members for stage in model.learners_.stages)
    assert sum(model.learners_.counts.values()) == n_members * model.n_estimators_


@pytest.mark.usefixtures("threads_at_once")
def test_the_model_does_not_depend_on_threads():
    labels = np.digitize(Y, [0.0, 1.0])
    table = np.column_stack([X, np.random.default_rng(2).normal(size=(240, 9)) / 50])
    one, other = (
        BoostingClassifier(learner=ALL, n_jobs=n_jobs, **FEW).fit(table, labels)
        for n_jobs in (1, 3)
    )
    assert one.learners_ == other.learners_
    np.testing.assert_array_equal(raw(one, table), raw(other, table))


def test_a_weight_is_a_repetition_without_folds():
    weight = np.random.default_rng(3).integers(1, 4, size=len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    same = FEW | {"early_stopping": False, "min_samples_leaf": 5, "l2_regularization": 1.0}
    one = BoostingRegressor(learner=ALL, **same).fit(X, Y, sample_weight=weight)
    other = BoostingRegressor(learner=ALL, **same).fit(X[rows], Y[rows])
    assert one.learners_ == other.learners_
    np.testing.assert_allclose(raw(one), raw(other), rtol=1e-6, atol=1e-6)


def test_names_objects_and_regressors_together():
    machine = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1)
    given = ("tree", machine, "linear", Ridge(), Ridge(alpha=10.0), TreeLearner())
    model = BoostingRegressor(learner=given, **FEW).fit(X, Y)
    assert model.learners_.names == (*("tree", "sparse", "linear", "Ridge", "Ridge-2", "tree-2"),)
    assert clone(model).fit(X, Y).learners_ == model.learners_
    assert f"{model.n_estimators_} stages" in repr(model.learners_)


def test_files_keep_the_model_and_its_learners(tmp_path):
    machine = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1)
    model = BoostingClassifier(learner=["tree", machine, "linear", Ridge()], **FEW)
    model.fit(X, np.digitize(Y, [0.0, 1.0]))
    loaded = reloaded(model)
    np.testing.assert_array_equal(raw(loaded), raw(model))
    assert loaded.learners_ == model.learners_
    assert loaded.learner[0] == "tree"
    with pytest.raises(IncompatibleParts, match="KNeighborsRegressor"):
        BoostingRegressor(learner=[KNeighborsRegressor(1), "linear"], **FEW).fit(X, Y).save(
            tmp_path / "n"
        )


@pytest.mark.parametrize(
    ("kind", "learner", "table"),
    [
        (BoostingRegressor, ["tree", "kernel", "linear"], TEXT),
        (BoostingClassifier, ["tree", "kernel", "linear"], X),
        (BoostingClassifier, ["tree", "linear"], TEXT),
    ],
)
def test_categories_files_and_onnx(kind, learner, table):
    runtime = pytest.importorskip("onnxruntime")
    labels = Y if kind is BoostingRegressor else np.digitize(Y, [0.0, 1.0])
    table = table[:120]
    model = kind(learner=learner, **FEW).fit(table, labels[:120])
    np.testing.assert_array_equal(raw(reloaded(model), table), raw(model, table))
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    columns = {"X": table}
    if isinstance(table, pd.DataFrame):
        columns = {name: table[[name]].to_numpy() for name in "abc"}
        columns |= {name: table[[name]].to_numpy(str).astype(object) for name in ("town", "street")}
    found = session.run(None, columns)[-1]
    expected = model.predict(table) if kind is BoostingRegressor else model.predict_proba(table)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("other", ["linear", "kernel"])
def test_missing_numbers_and_unknown_levels_where_all_learners_take_them(other):
    table = TEXT[:80].copy()
    table.loc[::7, "a"] = np.nan
    model = BoostingRegressor(learner=["tree", other], **FEW).fit(table, Y[:80])
    assert np.isfinite(model.predict(table.assign(town="Bruges"))).all()


def test_full_machines_compare_by_the_rows_that_all_learned_from():
    machine = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, stages="full")
    model = BoostingRegressor(learner=["tree", machine, "linear"], **FEW).fit(X, Y)
    assert all(len(stage) == 1 for stage in model.learners_.stages)
    assert model.learner_.parts[1].name == "full"
    assert model.score(X, Y) > 0.7
    with pytest.raises(IncompatibleParts, match="do not support row sampling"):
        model.set_params(subsample=0.5).fit(X, Y)


def test_the_linear_learner_alone_reads_categories():
    shift = TEXT["town"].map({"Ghent": 0.0, "Namur": 5.0, "Liège": 9.0})
    model = BoostingRegressor(learner="linear", **FEW | {"n_estimators": 60}).fit(TEXT, shift)
    assert model.score(TEXT, shift) > 0.98


def test_reports_show_the_learners():
    model = BoostingRegressor(learner=["linear", "tree"], n_estimators=2).fit(X[:60], Y[:60])
    report = model.report(X[:60], Y[:60])
    shown = {one["name"]: one["stages"] for one in report.facts["model"]["learners"]}
    assert shown == model.learners_.counts
    assert "stages by learner: " in report.html


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_output_spaces():
    targets = np.column_stack([Y, Y**2, X[:, 2]])
    for learner in (["tree", "kernel", "linear"], ["ok3", "extra_trees", Ridge()]):
        model = OutputKernelBoostingRegressor("linear", learner=learner, **FEW).fit(X, targets)
        assert sum(model.learners_.counts.values()) == 12
        assert model.history_.train[-1] < model.history_.train[0]
    one = OutputKernelBoostingRegressor("linear", learner="extra_trees", **FEW).fit(X, targets)
    other = OutputKernelBoostingRegressor("linear", learner=["tree"], **FEW).fit(X, targets)
    np.testing.assert_array_equal(raw(one), raw(other))
    np.testing.assert_array_equal(raw(reloaded(model)), raw(model))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"learner": []}, InvalidParameter, "learner is an empty list"),
        ({"learner": ["tree", ["kernel"]]}, InvalidType, "contains a nested list"),
        ({"learner": ["auto", "tree"]}, InvalidParameter, "contains 'auto'"),
        ({"learner": ["tree", "kernle"]}, InvalidParameter, "Did you mean 'kernel'"),
        ({"learner": ["tree", 3]}, InvalidType, "or a list of these; got 3"),
        ({"learner": ALL, "monotonic_cst": [1, 0, 0]}, InvalidParameter, "only supported by the b"),
        (
            {"learner": ["kernel", "linear"], "max_bins": 9},
            InvalidParameter,
            "max_bins is only sup",
        ),
    ],
)
def test_bad_input(parameters, error, message):
    with pytest.raises(error, match=message):
        BoostingRegressor(**FEW | parameters).fit(X, Y)


def test_the_part_of_each_learner_is_a_model():
    model = BoostingRegressor(learner=["tree", "linear"], **FEW).fit(X, Y)
    parts = {name: model.learner_part(name) for name in model.learners_.names}
    raw = sum(part.predict_raw(X) for part in parts.values())
    np.testing.assert_allclose(raw, model.predict_raw(X), rtol=1e-12, atol=1e-12)
    trees = parts["tree"]
    assert trees.learner == "tree"
    assert trees.feature_importances_.sum() == pytest.approx(1)
    assert trees.apply(X).shape == (len(X), model.learners_.counts["tree"])
    with pytest.raises(InvalidParameter, match="name='forest' is not known.*linear, tree"):
        model.learner_part("forest")
    with pytest.raises(AttributeError, match="only for models of several learners"):
        trees.learner_part("tree")


def test_what_needs_one_learner_is_refused():
    model = BoostingRegressor(learner=ALL, **FEW).fit(X, Y)
    with pytest.raises(InvalidData, match="require a model of trees"):
        _ = model.feature_importances_
    with pytest.raises(IncompatibleParts, match="requires a model of trees"):
        hilboost.to_xgboost_json(model)
    with pytest.raises(AttributeError, match="learners_ is defined only for models of several"):
        _ = BoostingRegressor(learner="tree", **FEW).fit(X, Y).learners_
    with pytest.raises(IncompatibleParts, match="learner Ridge supports only numbers"):
        BoostingRegressor(learner=["tree", Ridge()], **FEW).fit(TEXT, Y)

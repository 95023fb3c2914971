"""Labels of a single class: the model predicts it always, with a warning."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.reloaded import reloaded
from tests.workers.together import fit_together

import hilboost
from hilboost import (
    AdaBoostKernelClassifier,
    BoostingClassifier,
    KernelBoostingClassifier,
    SparseKernelClassifier,
)
from hilboost.core.errors import FitWarning, InvalidData
from hilboost.workers.partitions import Partition

X = np.random.default_rng(0).normal(size=(40, 3))
ONE, TWO = np.array(["yes"] * 40), np.array(["no", "yes"] * 20)
TABLE = pd.DataFrame({"size": X[:, 0], "kind": ["a", "b"] * 20})
MODELS = [
    BoostingClassifier(n_jobs=1),
    BoostingClassifier("hinge", n_jobs=1),
    BoostingClassifier("exponential", learner=["tree", "linear"], class_weight="balanced"),
    BoostingClassifier("squared_error", multi_output="shared", early_stopping=True),
    KernelBoostingClassifier(),
    SparseKernelClassifier(),
    SparseKernelClassifier("squared_hinge"),
    BoostingClassifier(learner="kernel", warm_start=True),
    BoostingClassifier(learner=["tree", "linear"], warm_start=True),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("of_two", [False, True])
def test_the_class_is_learnt_as_a_constant(model, of_two):
    model, (y, weight) = clone(model), (TWO, TWO == "yes") if of_two else (ONE, None)
    with pytest.warns(FitWarning, match="only one class .*, 'yes'; the model has no stages"):
        model.fit(TABLE, y, weight)
    assert model.n_estimators_ == 0
    assert set(model.predict(TABLE)) == {"yes"}
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.decision_function(TABLE).shape == (40,)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(TABLE)
        assert p.shape == (40, len(model.classes_))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_allclose(p[:, -1], 1, atol=1e-3)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))
    assert loaded.n_estimators_ == 0
    assert model.report_facts(TABLE, y)["scores"]


def test_validation_rows_of_one_class_and_another():
    model = BoostingClassifier(early_stopping=True, n_jobs=1)
    with pytest.warns(FitWarning, match="only one class"):
        model.fit(X, ONE, X_val=X + 1e-9, y_val=ONE)
    with (
        pytest.warns(FitWarning, match="only one class"),
        pytest.raises(InvalidData, match="y_val: y contains the class 'no', which is not one of"),
    ):
        model.fit(X, ONE, X_val=X + 1e-9, y_val=TWO)


def test_onnx():
    runtime = pytest.importorskip("onnxruntime")
    with pytest.warns(FitWarning, match="only one class"):
        model = BoostingClassifier(n_jobs=1).fit(X, ONE)
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    label, probabilities = session.run(None, {session.get_inputs()[0].name: X})
    assert set(label) == {"yes"}
    np.testing.assert_array_equal(probabilities, np.ones((40, 1)))


def test_several_workers():
    parts = [Partition(0, X[:20], ONE[:20]), Partition(1, X[20:], ONE[20:])]
    with pytest.warns(FitWarning, match="only one class"):
        models = fit_together(BoostingClassifier(random_state=0), parts, [0, 1])
    assert [model.n_estimators_ for model in models] == [0, 0]


def test_random_subsets_require_two():
    with (
        pytest.warns(FitWarning, match="only one class"),
        pytest.raises(InvalidData, match="one class; these ensembles require at least two"),
    ):
        AdaBoostKernelClassifier().fit(X, ONE)

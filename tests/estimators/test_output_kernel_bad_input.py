"""Refusals of output kernel models: sentences that say what was wrong, where, and what to do."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from tests.refusals import refused

from hilboost import (
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import (
    DataWarning,
    HilboostError,
    InvalidData,
    InvalidParameter,
    InvalidType,
)
from hilboost.kernels import Gaussian
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.outputs import KernelOutput, Rankings

RNG = np.random.default_rng(0)
N = 20
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2))
K = Y @ Y.T
MODELS = {
    "boosting": OutputKernelBoostingRegressor,
    "forest": OutputKernelForestRegressor,
    "tree": OutputKernelTreeRegressor,
}
models = pytest.mark.parametrize("name", MODELS)


def build(name="boosting", output="linear", **options):
    few = {} if name == "tree" else {"n_estimators": 3}
    return MODELS[name](output, **few | {"random_state": 0} | options)


def replaced(labels, row, odd):
    labels = list(labels)
    labels[row] = odd
    return labels


# Labels; other odd ones are refused by the tests of their output spaces


ODD = {
    "nan": ("linear", replaced(Y, 7, [1.0, np.nan]), "Y contains NaN or infinity in row 7; out"),
    "empty": ("linear", np.empty((N, 0)), r"one row of numbers per sample; got shape \(20, 0\)"),
    "sets": ("label_set", replaced([{"a"}] * N, 7, "ab"), "row 7 of Y is 'ab', not a set"),
    "words": ("string", replaced(["abc"] * N, 7, 3), r"row 7 of Y is 3 \(int\); each"),
    "gram": ("precomputed", K[:19], r"inconsistent numbers of rows: 20 and 19"),
    "zero": ("precomputed", np.zeros((N, N)), "the output kernel is zero for all training"),
    "too few": ("linear", Y[:19], "X and y have inconsistent numbers of rows: 20 and 19. Pass one"),
    "too many": ("string", ["abc"] * 21, "inconsistent numbers of rows: 20 and 21"),
    "sparse": ("label_set", scipy.sparse.eye_array(19).tocsr(), "rows: 20 and 19"),
    "nothing": ("linear", None, "requires y to be passed, but the target y is None"),
}


@pytest.mark.parametrize("case", ODD)
@models
def test_labels_that_cannot_be_used_are_refused(name, case):
    output, labels, message = ODD[case]
    with pytest.raises(ValueError, match=message) as caught:
        build(name, output).fit(X, labels)
    assert isinstance(caught.value, HilboostError)


@models
def test_labels_without_a_length_are_refused(name):
    for labels in (iter(Y), 3.0, object()):
        with pytest.raises(InvalidType, match="y must be a list or an array of labels; got "):
            build(name).fit(X, labels)
    model = build(name).fit(X, Y)
    refused(InvalidType, "y must be a list or an array of labels; got ", model.score, X, iter(Y))


@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        ("labelset", InvalidParameter, "output='labelset' is not known. Did you mean 'label_set'"),
        ("curve", InvalidParameter, "Did you mean 'linear'"),
        (Rankings, InvalidType, r"output=Rankings is a class; write Rankings\(\)"),
        (Gaussian, InvalidType, r"output=Gaussian is a class; write Gaussian\(\)"),
        (3, InvalidType, "output must be an output space, a name, a kernel .*got int"),
        (None, InvalidType, "output must be an output space"),
        (KernelOutput(tolerance=2), InvalidParameter, r"tolerance must lie in \[0, 1\); got 2"),
    ],
)
def test_unknown_outputs_are_refused(output, error, message):
    refused(error, message, build("tree", output).fit, X, Y)


@models
def test_unknown_ways_to_decode_are_refused(name):
    for way, message in (("nearst", "Did you mean 'neares"), ("kemeny", ".*Valid values: auto, ")):
        with pytest.raises(InvalidParameter, match=f"decode='{way}' is not known. {message}"):
            build(name, decode=way).fit(X, Y)


@pytest.mark.parametrize("lengths", [(20, 19, 20), (20, 21, 20), (19, 20, 20), (20, 20, 19)])
@pytest.mark.parametrize("output", ["string", "precomputed"])
def test_lengths_are_compared_before_rows_are_left_out(output, lengths):
    n, n_labels, n_weights = lengths
    labels = np.eye(n_labels) if output == "precomputed" else (["aaa", "bbb"] * N)[:n_labels]
    weight = np.ones(n_weights)
    weight[[3, -1]] = 0
    with pytest.raises(ValueError, match="inconsistent numbers of rows|one value for each"):
        build("tree", output).fit(X[:n], labels, sample_weight=weight)


# New labels


@models
def test_new_labels_are_checked_too(name):
    model = build(name).fit(X, Y)
    for use in (model.score, model.embedding_loss, model.preimage_loss):
        for labels, weight, message in (
            (np.ones((N, 3)), None, "Y has 3 numbers per row; the model was fitted with 2"),
            (Y[:19], None, "inconsistent numbers of rows: 20 and 19"),
            (replaced(Y, 4, [np.nan, 0]), None, "Y contains NaN or infinity in row 4"),
            (Y, np.ones(7), "sample_weight"),
            (Y, replaced(np.ones(N), 2, -1.0), "weight must not be negative; row 2 has -1"),
        ):
            refused(ValueError, message, use, X, labels, weight)
    for candidates, allowed, message in (
        (np.ones((4, 3)), None, "candidates has 3 numbers per row"),
        ([], None, "candidates is empty; pass at least one"),
        (Y[:9], [[0], [9]] + [[0]] * 18, r"allowed\[1\] contains index 9; candidates have"),
    ):
        refused(InvalidData, message, model.predict, X, candidates, allowed)


def test_a_gram_matrix_does_not_tell_norms_of_new_outputs():
    model = build("tree", "precomputed").fit(X, K)
    crossed = RNG.normal(size=(N, 2)) @ Y.T
    for use in (model.score, model.embedding_loss, model.preimage_loss):
        refused(InvalidData, r"requires k\(y, y\) of the new outputs", use, X, crossed)


def test_held_out_labels_are_checked():
    for held_out, message in (
        ({"X_val": X}, "only one of X_val and y_val was passed"),
        (
            {"X_val": X, "y_val": np.ones((N, 3))},
            "Y has 3 numbers per row; the model was fitted wi",
        ),
        ({"X_val": X, "y_val": Y[:5]}, "inconsistent numbers of rows: 20 and 5"),
    ):
        refused(InvalidData, message, build().fit, X, Y, **held_out)
    with pytest.raises(InvalidData, match="row 1 of Y contains the label 'z', which does not"):
        build(output="label_set").fit(X, [{"a"}] * N, X_val=X[:2], y_val=[{"a"}, {"z"}])


# Inputs


@models
def test_inputs_that_cannot_be_used_are_refused(name):
    bad = X.copy()
    bad[4, 2] = np.inf
    refused(InvalidData, "Input X contains infinity .* in column 2", build(name).fit, bad, Y)
    model = build(name).fit(X, Y)
    for use in (model.predict, model.predict_embedding, model.predict_weights):
        refused(InvalidData, "Input X contains infinity", use, bad)
        refused(ValueError, "X has 2 features, but .* is expecting 3", use, X[:, :2])
    refused(ValueError, "0 sample", build(name).fit, X[:0], Y[:0])
    refused(TypeError, r"[Ss]parse", build(name).fit, scipy.sparse.csr_array(X), Y)
    with pytest.raises(NotFittedError):
        build(name).predict(X)


@pytest.mark.parametrize("learner", [KernelBoostingRegressor(kernel="gaussian"), Ridge()])
def test_gaps_are_for_trees(learner):
    gaps = X.copy()
    gaps[3, 1] = np.nan
    refused(ValueError, r"column 1|NaN", build(learner=learner).fit, gaps, Y)
    for learner in "ok3", "kernel":
        assert np.isfinite(build(learner=learner).fit(gaps, Y).predict(gaps)).all()


@models
def test_weights_that_cannot_be_used_are_refused(name):
    for weight, message in (
        (np.ones(7), "one value for each of the"),
        (replaced(np.ones(N), 2, -1.0), "sample_weight must not be negative; row 2 has -1"),
        (replaced(np.zeros(N), 2, -1.0), "sample_weight must not be negative; row 2 has -1"),
        (replaced(np.ones(N), 2, np.nan), "sample_weight contains NaN"),
        (np.zeros(N), "zero for every row; at least one|at least one non-zero number"),
    ):
        refused(ValueError, message, build(name).fit, X, Y, sample_weight=weight)


@models
def test_weights_too_light_for_any_leaf_are_told(name):
    with pytest.warns(DataWarning, match=r"sums to 1 over 20 rows.*Scale the weights so that"):
        build(name).fit(X, Y, sample_weight=np.full(N, 1 / N))
    build(name, min_samples_leaf=1 / N).fit(X, Y, sample_weight=np.full(N, 1 / N))


@pytest.mark.parametrize("kind", [TreeLearner, VectorTreeLearner])
def test_weights_too_light_for_leaves_of_a_learner_are_told(kind):
    with pytest.warns(DataWarning, match=r"no leaf can reach min_samples_leaf=3"):
        build(learner=kind(min_samples_leaf=3)).fit(X, Y, sample_weight=np.full(N, 0.1))
    build(learner=Ridge()).fit(X, Y, sample_weight=np.full(N, 1 / N))


# Parameters


@pytest.mark.parametrize("name", ["forest", "tree"])
def test_trees_that_are_not_boosted_take_no_held_out_rows(name):
    for more in ("X_val", "y_val", "sample_weight_val", "callbacks"):
        refused(TypeError, more, build(name).fit, X, Y, **{more: ()})


OF_TREES = {"max_splits": 3, "min_samples_leaf": 2, "max_features": 0.5, "sketch": 4}


@pytest.mark.parametrize("parameter", OF_TREES)
@pytest.mark.parametrize("learner", ["kernel", Ridge(), VectorTreeLearner()], ids=repr)
def test_parameters_of_trees_are_refused_with_other_learners(learner, parameter):
    model = build(learner=learner, **{parameter: OF_TREES[parameter]})
    with pytest.raises(
        InvalidParameter, match=f"{parameter} applies only to the learners .* has no effect"
    ):
        model.fit(X, Y)


def test_parameters_at_their_defaults_are_not_refused():
    options = {"max_splits": np.int64(20), "min_samples_leaf": 1.0, "sketch": None}
    assert build(learner=Ridge(), **options).fit(X, Y).n_estimators_ > 0
    machine = KernelBoostingRegressor(kernel="gaussian", regularization=0.1, learning_rate=1)
    assert build(learner=machine).fit(X, Y).n_estimators_ > 0


def test_kernel_machines_as_learners_have_no_loop_of_their_own():
    loop = {"n_estimators": 5, "learning_rate": 0.1, "subsample": 0.5, "early_stopping": True}
    loop |= {"validation_fraction": 0.3, "n_iter_no_change": 2}
    for name, value in loop.items():
        machine = KernelBoostingRegressor(kernel="gaussian", **{name: value})
        message = f"{name} of the KernelBoostingRegressor passed"
        refused(InvalidParameter, message, build(learner=machine).fit, X, Y)


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        ("ok4", InvalidParameter, "='ok4' is not known. Did you mean 'ok3'.* values: auto, extra_"),
        ("tree", InvalidParameter, "='tree' is not known. .*Valid values: auto, extra_trees, kern"),
        (Ridge, InvalidType, r"learner=Ridge is a class; write Ridge\(\)"),
        (VectorTreeLearner, InvalidType, "learner=VectorTreeLearner is a class"),
        (None, InvalidType, "must be 'auto', 'ok3', 'extra_trees', 'kernel', 'linear', a Learner,"),
        (3, InvalidType, "learner must be .* list of these; got 3"),
        (LogisticRegression(), InvalidType, "is a classifier"),
        (KernelBoostingClassifier(), InvalidType, "is a classifier"),
        (KernelBoostingRegressor("huber"), InvalidParameter, "='squared_error'.*got loss='huber'"),
        (KernelBoostingRegressor(stages="ful"), ValueError, "'stages' parameter of KernelBoosting"),
        (KernelBoostingRegressor(kernel="gausian"), InvalidParameter, "Did you mean 'gaussian'"),
    ],
)
def test_unknown_learners_are_refused(learner, error, message):
    refused(error, message, build(learner=learner).fit, X, Y)


def test_learners_without_weights_refuse_them():
    with pytest.raises(
        InvalidData, match="KNeighborsRegressor does not support sample weights; fit"
    ):
        build(learner=KNeighborsRegressor(3)).fit(X, Y, sample_weight=np.arange(1, 21))


@models
def test_whole_numbers_of_any_type_are_taken(name):
    options = {"max_splits": np.int64(3), "n_jobs": np.int32(1), "sketch": np.int64(1)}
    model = build(name, **options, min_samples_leaf=np.float32(2)).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()

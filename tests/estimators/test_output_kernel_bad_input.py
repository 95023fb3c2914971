"""Refusals of output kernel models: sentences that say what was wrong, where, and what to do."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

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


# Labels


ODD = {
    "rows-nan": (
        "linear",
        replaced(Y, 7, [1.0, np.nan]),
        "Y contains NaN or infinity in row 7; out",
    ),
    "rows-inf": ("linear", replaced(Y, 7, [1.0, np.inf]), "Y contains NaN or infinity in row 7"),
    "rows-text": (
        "linear",
        replaced(Y, 7, "abc"),
        "Y must contain rows of numbers; row 7 is 'abc'",
    ),
    "rows-long": ("linear", replaced(Y, 7, [1, 2, 3]), "row 7 has length 3 and row 0 has length 2"),
    "rows-none": ("linear", replaced(Y, 7, None), "row 7 has length 1 and row 0 has length 2"),
    "rows-empty": (
        "linear",
        np.empty((N, 0)),
        r"one row of numbers per sample; got shape \(20, 0\)",
    ),
    "rows-complex": ("linear", Y + 1j, "Complex data not supported: Y must contain real numbers"),
    "images-nan": ("gaussian", replaced(Y, 7, [np.nan] * 2), "Y contains NaN or infinity in row 7"),
    "images-text": (
        "gaussian",
        replaced(Y, 7, ["a", "b"]),
        "must contain rows of numbers; row 7 is",
    ),
    "sets-number": ("label_set", replaced([{1}] * N, 7, 3), "row 7 of Y is 3, not a set"),
    "sets-text": ("label_set", replaced([{"a"}] * N, 7, "ab"), "row 7 of Y is 'ab', not a set"),
    "sets-missing": (
        "label_set",
        replaced([{1}] * N, 7, {None}),
        "row 7 of Y contains a missing label",
    ),
    "sets-table": ("label_set", np.full((N, 2), 2), "Y contains 2 in row 0; indicators must be 0"),
    "ranks-twice": ("ranking", replaced([[1, 2]] * N, 7, [1, 1]), "row 7"),
    "ranks-text": ("ranking", replaced([[1, 2]] * N, 7, ["a", "b"]), "row 7"),
    "words-number": ("string", replaced(["abc"] * N, 7, 3), r"row 7 of Y is 3 \(int\); each"),
    "words-one": ("string", "a" * N, "Y must be a list of strings, one per row"),
    "shares": ("composition", replaced([[0.5, 0.5]] * N, 7, [0.5, 0.6]), "row 7 of Y sums to 1.1"),
    "samples": ("distribution", replaced([[1.0]] * N, 7, []), "row 7 of Y is an empty sample"),
    "matrices": (
        "positive_matrix",
        replaced([np.eye(2)] * N, 7, -np.eye(2)),
        "row 7 of Y is not positive definite",
    ),
    "gram-wide": ("precomputed", K[:, :19], r"the Gram matrix Y must be square, .*got \(20, 19\)"),
    "gram-rows": ("precomputed", K[:19], r"inconsistent numbers of rows: 20 and 19"),
    "gram-nan": (
        "precomputed",
        np.where(K[7, 7] == K, np.nan, K),
        "Y contains NaN or infinity in row 7",
    ),
    "gram-asymmetric": (
        "precomputed",
        K + np.eye(N, k=3),
        r"not symmetric: k\(\d+, \d+\) = .*Use",
    ),
    "gram-negative": (
        "precomputed",
        K - np.eye(N),
        r"not positive semidefinite \(detected in row \d",
    ),
    "gram-zero": ("precomputed", np.zeros((N, N)), "the output kernel is zero for all training"),
    "too-few": ("linear", Y[:19], "X and y have inconsistent numbers of rows: 20 and 19. Pass one"),
    "too-many": ("string", ["abc"] * 21, "inconsistent numbers of rows: 20 and 21"),
    "sparse-few": ("label_set", scipy.sparse.eye_array(19).tocsr(), "rows: 20 and 19"),
    "nothing": ("linear", None, "requires y to be passed, but the target y is None"),
}


@pytest.mark.parametrize("case", ODD)
@models
def test_labels_that_cannot_be_used_are_refused(name, case):
    output, labels, message = ODD[case]
    with pytest.raises(ValueError, match=message) as caught:
        build(name, output).fit(X, labels)
    assert isinstance(caught.value, HilboostError)
    assert not isinstance(caught.value, np.linalg.LinAlgError)


@models
def test_labels_without_a_length_are_refused(name):
    for labels in (iter(Y), 3.0, object()):
        with pytest.raises(InvalidType, match="y must be a list or an array of labels; got "):
            build(name).fit(X, labels)
    model = build(name).fit(X, Y)
    with pytest.raises(InvalidType, match="y must be a list or an array of labels; got "):
        model.score(X, iter(Y))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda A, B: np.ones((len(A), 3)),
            r"returned an array of shape \(20, 3\) for 20 and 20 labels; it mu",
        ),
        (lambda A, B: 1.0, r"returned an array of shape \(\) for 20 and 20"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "contains NaN or infinity in row 0"),
        (lambda A, B: np.arange(400.0).reshape(20, 20), r"is not symmetric: k\(0, 19\) = 19 and k"),
        (
            lambda A, B: 1.0 - np.eye(20),
            r"is not positive semidefinite \(detected in row 0\); use a",
        ),
        (lambda A, B: np.zeros((len(A), len(B))), "is zero for all training outputs"),
    ],
    ids=["shape", "number", "inf", "asymmetric", "negative", "zero"],
)
@models
def test_functions_that_are_no_kernels_are_refused(name, kernel, message):
    with pytest.raises(ValueError, match=f"the output kernel {message}"):
        build(name, kernel).fit(X, list("abcdefghijklmnopqrst"))


@models
@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        ("labelset", InvalidParameter, "output='labelset' is not known. Did you mean 'label_set'"),
        ("rankings", InvalidParameter, "Did you mean 'ranking'"),
        ("curve", InvalidParameter, "Did you mean 'linear'"),
        ("gausian", InvalidParameter, "Did you mean 'gaussian'"),
        (Rankings, InvalidType, r"output=Rankings is a class; write Rankings\(\)"),
        (Gaussian, InvalidType, r"output=Gaussian is a class; write Gaussian\(\)"),
        (
            3,
            InvalidType,
            "output must be an output space, a name, a kernel .*got int",
        ),
        (None, InvalidType, "output must be an output space"),
        (KernelOutput(tolerance=2), InvalidParameter, r"tolerance must lie in \[0, 1\); got 2"),
        (
            KernelOutput(Gaussian((1.0, 2.0, 3.0))),
            InvalidParameter,
            "3 length scales, but X has 2 col",
        ),
    ],
)
def test_unknown_outputs_are_refused(name, output, error, message):
    with pytest.raises(error, match=message):
        build(name, output).fit(X, Y)


@models
@pytest.mark.parametrize("output", ["linear", "gaussian", "label_set", "precomputed"])
def test_unknown_ways_to_decode_are_refused(name, output):
    labels = {"label_set": [{1}] * N, "precomputed": K}.get(output, Y)
    with pytest.raises(
        InvalidParameter, match="decode='nearst' is not known. Did you mean 'neares"
    ):
        build(name, output, decode="nearst").fit(X, labels)
    with pytest.raises(
        InvalidParameter, match="decode='kemeny' is not known. .*Valid values: auto, "
    ):
        build(name, output, decode="kemeny").fit(X, labels)


@models
@pytest.mark.parametrize("output", ["linear", "label_set", "string", "precomputed"])
@pytest.mark.parametrize("lengths", [(20, 19, 20), (20, 21, 20), (19, 20, 20), (20, 20, 19)])
def test_lengths_are_compared_before_rows_are_left_out(name, output, lengths):
    n, n_labels, n_weights = lengths
    labels = {"label_set": [{1}, {2}] * N, "string": ["aaa", "bbb"] * N}.get(
        output, [[1.0]] * 2 * N
    )
    labels = np.eye(n_labels) if output == "precomputed" else labels[:n_labels]
    weight = np.ones(n_weights)
    weight[[3, -1]] = 0
    with pytest.raises(ValueError, match="inconsistent numbers of rows|one value for each"):
        build(name, output).fit(X[:n], labels, sample_weight=weight)


# New labels


@models
def test_new_labels_are_checked_too(name):
    model = build(name).fit(X, Y)
    for use in (model.score, model.embedding_loss, model.preimage_loss):
        with pytest.raises(
            InvalidData, match="Y has 3 numbers per row; the model was fitted with 2"
        ):
            use(X, np.ones((N, 3)))
        with pytest.raises(InvalidData, match="inconsistent numbers of rows: 20 and 19"):
            use(X, Y[:19])
        with pytest.raises(InvalidData, match="Y contains NaN or infinity in row 4"):
            use(X, replaced(Y, 4, [np.nan, 0]))
        with pytest.raises(ValueError, match=r"sample_weight"):
            use(X, Y, np.ones(7))
        with pytest.raises(InvalidData, match="sample_weight must not be negative; row 2 has -1"):
            use(X, Y, replaced(np.ones(N), 2, -1.0))
    with pytest.raises(InvalidData, match="candidates has 3 numbers per row"):
        model.predict(X, candidates=np.ones((4, 3)))
    with pytest.raises(InvalidData, match="candidates is empty; pass at least one"):
        model.predict(X, candidates=[])
    with pytest.raises(InvalidData, match=r"allowed\[1\] contains index 9; candidates have"):
        model.predict(X, candidates=Y[:9], allowed=[[0], [9]] + [[0]] * 18)


@models
def test_a_gram_matrix_does_not_tell_norms_of_new_outputs(name):
    model = build(name, "precomputed").fit(X, K)
    crossed = RNG.normal(size=(N, 2)) @ Y.T
    for use in (model.score, model.embedding_loss, model.preimage_loss):
        with pytest.raises(InvalidData, match=r"requires k\(y, y\) of the new outputs"):
            use(X, crossed)
    with pytest.raises(InvalidData, match="candidates must be indices of training outputs"):
        model.predict(X, candidates=["a"])
    with pytest.raises(
        InvalidData, match="there is no training output 20; indices must be from 0 to 19"
    ):
        model.predict(X, candidates=[20])


def test_held_out_labels_are_checked():
    with pytest.raises(InvalidData, match="only one of X_val and y_val was passed"):
        build().fit(X, Y, X_val=X)
    with pytest.raises(InvalidData, match="Y has 3 numbers per row; the model was fitted with 2"):
        build().fit(X, Y, X_val=X, y_val=np.ones((N, 3)))
    with pytest.raises(InvalidData, match="inconsistent numbers of rows: 20 and 5"):
        build().fit(X, Y, X_val=X, y_val=Y[:5])
    with pytest.raises(InvalidData, match="row 1 of Y contains the label 'z', which does not"):
        build(output="label_set").fit(X, [{"a"}] * N, X_val=X[:2], y_val=[{"a"}, {"z"}])


# Inputs


@models
def test_inputs_that_cannot_be_used_are_refused(name):
    bad = X.copy()
    bad[4, 2] = np.inf
    with pytest.raises(InvalidData, match="Input X contains infinity .* in column 2"):
        build(name).fit(bad, Y)
    model = build(name).fit(X, Y)
    for use in (model.predict, model.predict_embedding, model.predict_weights):
        with pytest.raises(InvalidData, match="Input X contains infinity"):
            use(bad)
        with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
            use(X[:, :2])
    with pytest.raises(ValueError, match="0 sample"):
        build(name).fit(X[:0], Y[:0])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        build(name).fit(scipy.sparse.csr_array(X), Y)
    with pytest.raises(NotFittedError):
        build(name).predict(X)


@pytest.mark.parametrize("learner", [KernelBoostingRegressor(kernel="gaussian"), Ridge()])
def test_gaps_are_for_trees(learner):
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1|NaN"):
        build(learner=learner).fit(gaps, Y)
    for learner in "ok3", "kernel":
        assert np.isfinite(build(learner=learner).fit(gaps, Y).predict(gaps)).all()


@models
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(7), "one value for each of the"),
        (replaced(np.ones(N), 2, -1.0), "sample_weight must not be negative; row 2 has -1"),
        (replaced(np.zeros(N), 2, -1.0), "sample_weight must not be negative"),
        (replaced(np.ones(N), 2, np.nan), "sample_weight contains NaN"),
        (np.zeros(N), "zero for every row; at least one|at least one non-zero number"),
    ],
    ids=["few", "negative", "negative and zeros", "nan", "zeros"],
)
def test_weights_that_cannot_be_used_are_refused(name, weight, message):
    with pytest.raises(ValueError, match=message):
        build(name).fit(X, Y, sample_weight=weight)


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
@pytest.mark.parametrize("more", ["X_val", "y_val", "sample_weight_val", "callbacks"])
def test_trees_that_are_not_boosted_take_no_held_out_rows(name, more):
    with pytest.raises(TypeError, match=more):
        build(name).fit(X, Y, **{more: ()})


OF_TREES = {
    "max_splits": 3,
    "min_samples_leaf": 2,
    "max_features": 0.5,
    "sketch": 4,
}


@pytest.mark.parametrize("parameter", OF_TREES)
@pytest.mark.parametrize(
    "learner",
    ["kernel", KernelBoostingRegressor(kernel="gaussian"), Ridge(), VectorTreeLearner()],
    ids=["kernel", "machine", "ridge", "trees"],
)
def test_parameters_of_trees_are_refused_with_other_learners(learner, parameter):
    model = build(learner=learner, **{parameter: OF_TREES[parameter]})
    with pytest.raises(
        InvalidParameter, match=f"{parameter} applies only to the learners .* has no effect"
    ):
        model.fit(X, Y)
    for trees in ("ok3", "extra_trees"):
        model.set_params(learner=trees).fit(X, Y)


def test_parameters_at_their_defaults_are_not_refused():
    options = {"max_splits": np.int64(20), "min_samples_leaf": 1.0, "sketch": None}
    assert build(learner=Ridge(), **options).fit(X, Y).n_estimators_ > 0
    machine = KernelBoostingRegressor(kernel="gaussian", regularization=0.1, learning_rate=1)
    assert build(learner=machine).fit(X, Y).n_estimators_ > 0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_estimators", 5),
        ("learning_rate", 0.1),
        ("subsample", 0.5),
        ("early_stopping", True),
        ("validation_fraction", 0.3),
        ("n_iter_no_change", 2),
    ],
)
def test_kernel_machines_as_learners_have_no_loop_of_their_own(parameter, value):
    machine = KernelBoostingRegressor(kernel="gaussian", **{parameter: value})
    with pytest.raises(
        InvalidParameter, match=f"{parameter} of the KernelBoostingRegressor passed"
    ):
        build(learner=machine).fit(X, Y)


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (
            "ok4",
            InvalidParameter,
            "learner='ok4' is not known. Did you mean 'ok3'.* Valid values: auto, extra_trees, k",
        ),
        (
            "tree",
            InvalidParameter,
            "learner='tree' is not known. .*Valid values: auto, extra_trees, kernel",
        ),
        (Ridge, InvalidType, r"learner=Ridge is a class; write Ridge\(\)"),
        (VectorTreeLearner, InvalidType, "learner=VectorTreeLearner is a class"),
        (
            None,
            InvalidType,
            "learner must be 'auto', 'ok3', 'extra_trees', 'kernel', 'linear', a Learner, a scikit",
        ),
        (3, InvalidType, "learner must be .* list of these; got 3"),
        (LogisticRegression(), InvalidType, "is a classifier"),
        (KernelBoostingClassifier(), InvalidType, "is a classifier"),
        (
            KernelBoostingRegressor("huber"),
            InvalidParameter,
            "loss='squared_error'.*got loss='huber'",
        ),
        (
            KernelBoostingRegressor(stages="ful"),
            ValueError,
            "'stages' parameter of KernelBoosting",
        ),
        (KernelBoostingRegressor(kernel="gausian"), InvalidParameter, "Did you mean 'gaussian'"),
    ],
)
def test_unknown_learners_are_refused(learner, error, message):
    with pytest.raises(error, match=message):
        build(learner=learner).fit(X, Y)


def test_learners_without_weights_refuse_them():
    with pytest.raises(
        InvalidData, match="KNeighborsRegressor does not support sample weights; fit"
    ):
        build(learner=KNeighborsRegressor(3)).fit(X, Y, sample_weight=np.arange(1, 21))


@models
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_splits", 0),
        ("max_splits", 2.5),
        ("min_samples_leaf", 0),
        ("max_features", 0.0),
        ("max_features", 1.5),
        ("max_features", "log2"),
        ("sketch", 0),
        ("decode", 3),
        ("n_jobs", 1.5),
        ("n_jobs", 0),
        ("random_state", "a"),
    ],
)
def test_parameters_out_of_range_are_refused(name, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        build(name, **{parameter: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("boosting", "n_estimators", 0),
        ("boosting", "n_estimators", "many"),
        ("boosting", "learning_rate", 0.0),
        ("boosting", "learning_rate", 2.1),
        ("boosting", "max_splits", None),
        ("boosting", "subsample", 0.0),
        ("boosting", "metric", "f1"),
        ("boosting", "early_stopping", "yes"),
        ("boosting", "validation_fraction", 1.0),
        ("boosting", "n_iter_no_change", 0),
        ("boosting", "verbose", -1),
        ("forest", "n_estimators", 0),
        ("forest", "splitter", "worst"),
        ("forest", "bootstrap", 2),
        ("tree", "max_features", "auto"),
        ("tree", "splitter", "worst"),
        ("tree", "max_depth", 0),
    ],
)
def test_parameters_of_one_model_out_of_range_are_refused(name, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        build(name, **{parameter: value}).fit(X, Y)


@models
def test_whole_numbers_of_any_type_are_taken(name):
    options = {"max_splits": np.int64(3), "n_jobs": np.int32(1), "sketch": np.int64(1)}
    model = build(name, **options, min_samples_leaf=np.float32(2)).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()

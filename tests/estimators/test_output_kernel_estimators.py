"""Output kernel models from the outside: labels of all kinds, learners, tools of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidData
from hilboost.kernels import Gaussian, Matern
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.outputs import KernelOutput

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
ROWS = np.column_stack([np.sin(X[:, 0]), X[:, 1] + X[:, 2], X[:, 0] ** 2])
ROWS += RNG.normal(size=(N, 3)) / 9
SETS = [{name for name, x in zip("abcd", row, strict=True) if x > -0.5} for row in X]
WORDS = ["".join("ab"[int(x > 0)] for x in row) + "cc" for row in X]
GRAM = Gaussian(2.0).block(ROWS, ROWS)
LABELS = {"rows": ("linear", ROWS), "sets": ("label_set", SETS), "words": ("string", WORDS)}
MORE_LABELS = LABELS | {"images": ("gaussian", ROWS), "matrix": ("precomputed", GRAM)}
all_labels = pytest.mark.parametrize("kind", LABELS)
MODELS = {
    "boosting": OutputKernelBoostingRegressor(n_estimators=8, learning_rate=0.3, random_state=0),
    "forest": OutputKernelForestRegressor(n_estimators=8, random_state=0),
    "tree": OutputKernelTreeRegressor(random_state=0),
}
models = pytest.mark.parametrize("name", MODELS)
LEARNERS = {
    "ok3": "ok3",
    "extra_trees": "extra_trees",
    "kernel": "kernel",
    "full": KernelBoostingRegressor(kernel=Matern(1.5, 2.5), regularization=0.1),
    "sparse": KernelBoostingRegressor(stages="sparse", n_basis=20, kernel="gaussian"),
    "block": KernelBoostingRegressor(stages="block", n_basis=30, kernel="gaussian"),
    "trees": TreeLearner(shared=True, min_samples_leaf=3),
    "vector-trees": VectorTreeLearner(max_depth=2),
    "ridge": Ridge(),
    "neighbors": KNeighborsRegressor(3),
    "pipeline": make_pipeline(StandardScaler(), Ridge()),
}
learners = pytest.mark.parametrize("learner", LEARNERS)


def build(name, output="linear", **options):
    return clone(MODELS[name]).set_params(output=output, **options)


def boosting(output="linear", **options):
    settings = {"n_estimators": 8, "learning_rate": 0.3, "random_state": 0}
    return OutputKernelBoostingRegressor(output, **settings | options)


# Labels of every kind


def test_scores_of_rows_are_those_of_scikit_learn():
    model = boosting().fit(X, ROWS[:, 0])
    weight = RNG.uniform(size=N)
    for w in (None, weight):
        expected = r2_score(ROWS[:, 0], model.predict(X), sample_weight=w)
        assert model.score(X, ROWS[:, 0], w) == pytest.approx(expected)
    model.fit(X, ROWS)
    expected = r2_score(ROWS, model.predict(X), multioutput="variance_weighted")
    assert model.score(X, ROWS) == pytest.approx(expected)
    assert model.embedding_loss(X, ROWS) == pytest.approx(
        ((model.predict(X) - ROWS) ** 2).sum(axis=1).mean()
    )
    assert model.preimage_loss(X, ROWS) == model.embedding_loss(X, ROWS)
    far = boosting().fit(X, ROWS + 1e8)
    assert far.score(X, ROWS + 1e8) == pytest.approx(model.score(X, ROWS), rel=1e-6)


@models
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)], ids=str)
def test_predictions_have_the_shape_of_labels(name, shape):
    Y = RNG.normal(size=(N, *shape))
    model = build(name, "gaussian").fit(X, Y)
    for way in model.output_.ways:
        assert model.set_params(decode=way).predict(X[:5]).shape == (5, *shape)
    assert model.predict(X[:5], candidates=Y[:4]).shape == (5, *shape)
    width = model.predict_embedding(X).shape[1]
    assert all(raw.shape == (N, width) for raw in model.staged_predict_embedding(X))


def test_rows_may_be_tables_of_any_kind():
    table = ROWS.astype(np.float32).astype(float)
    expected = boosting().fit(X, table).predict(X)
    for kind in (list, pd.DataFrame, np.float32):
        model = boosting().fit(X, kind(table))
        np.testing.assert_array_equal(model.predict(X), expected)
        assert model.score(X, kind(table)) > 0.5


def test_sparse_tables_of_label_sets():
    table = np.array([[name in labels for name in "abcd"] for labels in SETS]).astype(int)
    expected = boosting("label_set").fit(X, table)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        model = boosting("label_set").fit(X, kind(table))
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, kind(table)) == expected.score(X, table)
        assert model.preimage_loss(X, kind(table)) == expected.preimage_loss(X, table)
        half = np.arange(N) % 2
        weighted = boosting("label_set").fit(X, kind(table), sample_weight=half)
        other = boosting("label_set").fit(X[1::2], table[1::2])
        np.testing.assert_array_equal(weighted.predict(X), other.predict(X))


# Candidates


@models
def test_candidates(name):
    model = build(name, "string").fit(X, WORDS)
    among = ["aabbcc", "bbbbcc", "zzz"]
    found = model.predict(X, candidates=among)
    codes = model.output_.encode(among)
    cost = model.output_.norms(among) - 2 * model.predict_embedding(X) @ codes.T
    assert found == [among[i] for i in cost.argmin(axis=1)]
    own = [[i % 3] for i in range(N)]
    assert model.predict(X, among, own) == [among[i % 3] for i in range(N)]
    for options in ({"candidates": among}, {"candidates": among, "allowed": own}):
        *_, last = model.staged_predict(X, **options)
        assert last == model.predict(X, **options)
    for use in (model.predict, lambda X, **allowed: next(model.staged_predict(X, **allowed))):
        with pytest.raises(InvalidData, match="allowed contains indices of candidates, but"):
            use(X, allowed=own)
    with pytest.raises(InvalidData, match="allowed has 60 entries, but X has 2 rows"):
        model.predict(X[:2], among, own)


# Tools of scikit-learn


@models
def test_search_in_a_pipeline(name):
    pipeline = make_pipeline(StandardScaler(), build(name, "label_set"))
    key = f"{pipeline.steps[1][0]}__max_splits"
    search = GridSearchCV(pipeline, {key: [1, 6]}, cv=3, error_score="raise").fit(X, SETS)
    assert search.best_params_ == {key: 6}
    scaled = StandardScaler().fit_transform(X)
    alone = build(name, "label_set", max_splits=6).fit(scaled, SETS)
    assert search.predict(X) == alone.predict(scaled)
    assert search.score(X, SETS) == alone.score(scaled, SETS)


# Stages


@models
def test_staged_predictions_end_with_the_prediction(name):
    model = build(name, "label_set").fit(X, SETS)
    staged = list(model.staged_predict(X))
    assert len(staged) == model.n_estimators_ == (1 if name == "tree" else 8)
    assert staged[-1] == model.predict(X)
    *_, last = model.staged_predict_embedding(X)
    np.testing.assert_array_equal(last, model.predict_embedding(X))
    one = next(model.staged_predict_embedding(X))
    short = build(name, "label_set", **{} if name == "tree" else {"n_estimators": 1}).fit(X, SETS)
    np.testing.assert_allclose(one, short.predict_embedding(X), rtol=1e-12, atol=1e-15)


@models
def test_staged_kernels_and_weights(name):
    model = build(name, "string").fit(X, WORDS)
    points = [raw.copy() for raw in model.staged_predict_embedding(X[:9])]
    others = [raw.copy() for raw in model.staged_predict_embedding(X[9:])]
    own, crossed = model.staged_predict_kernel(X[:9]), model.staged_predict_kernel(X[:9], X[9:])
    codes = model.output_.encode_training(WORDS)
    combinations = list(model.staged_predict_weights(X[:9]))
    stages = zip(points, others, own, crossed, combinations, strict=True)
    for raw, other, square, oblong, weights in stages:
        np.testing.assert_allclose(square, raw @ raw.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(oblong, raw @ other.T, rtol=1e-12, atol=1e-12)
        assert weights.shape == (9, N)
        np.testing.assert_allclose(weights @ codes, raw, atol=1e-8)
    np.testing.assert_allclose(square, model.predict_kernel(X[:9]), rtol=1e-12)
    np.testing.assert_allclose(weights.toarray(), model.predict_weights(X[:9]).toarray(), atol=1e-8)


@learners
def test_learners(learner):
    model = boosting(learner=LEARNERS[learner]).fit(X, ROWS)
    assert model.score(X, ROWS) > 0.5
    assert model.predict(X).shape == (N, 3)
    history = model.history_.train
    assert len(history) == model.n_estimators_ + 1
    assert history[0] == pytest.approx(ROWS.var(axis=0).sum() / 2)
    assert (np.diff(history) < 0).all()
    assert history[-1] == pytest.approx(model.embedding_loss(X, ROWS) / 2, rel=1e-6)
    again = clone(model).fit(X, ROWS)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    staged = list(model.staged_predict(X))
    np.testing.assert_allclose(staged[-1], model.predict(X), rtol=1e-9, atol=1e-9)
    flat = boosting(learner=LEARNERS[learner]).fit(X, ROWS[:, 0])
    assert flat.predict(X).shape == (N,)


@pytest.mark.parametrize("learner", ["ok3", "kernel", "sparse", "trees", "neighbors"])
@pytest.mark.parametrize("kind", ["sets", "words"])
def test_learners_of_sets_and_strings(learner, kind):
    output, labels = LABELS[kind]
    model = boosting(output, learner=LEARNERS[learner]).fit(X, labels)
    assert model.score(X, labels) > 0.3
    assert len(model.predict(X)) == N


@pytest.mark.parametrize("learner", ["ok3", "full"])
@pytest.mark.parametrize("metric", ["embedding", "preimage"])
@pytest.mark.parametrize("kind", ["sets", "images", "matrix"])
def test_early_stopping_keeps_the_best_stage(learner, metric, kind):
    output, labels = MORE_LABELS[kind]
    options = {"metric": metric, "early_stopping": True, "n_iter_no_change": 2}
    options |= {"validation_fraction": 0.3, "n_estimators": 12, "learning_rate": 0.7}
    model = boosting(output, learner=LEARNERS[learner], **options).fit(X, labels)
    losses = model.history_.validation
    assert len(losses) == len(model.history_.train)
    assert model.n_estimators_ == int(np.argmin(losses)) == len(model.model_.stages)
    assert len(losses) <= model.n_estimators_ + 4
    assert len(model.predict(X)) == N


@pytest.mark.parametrize("metric", ["embedding", "preimage"])
@all_labels
def test_held_out_rows_may_be_given(metric, kind):
    output, labels = LABELS[kind]
    options = {"metric": metric, "decode": "nearest"}
    model = boosting(output, **options).fit(X[:40], labels[:40], X_val=X[40:], y_val=labels[40:])
    loss = model.embedding_loss if metric == "embedding" else model.preimage_loss
    kept = model.history_.validation[model.n_estimators_]
    if kind == "rows" or metric == "preimage":
        assert kept == pytest.approx(loss(X[40:], labels[40:]) / 2)
    assert model.history_.validation[0] >= kept
    never = boosting(output, early_stopping=False)
    never.fit(X[:40], labels[:40], X_val=X[40:], y_val=labels[40:])
    assert never.n_estimators_ == 8


def test_callbacks_and_printing(capsys):
    seen = []
    model = boosting(verbose=1).fit(X, ROWS, callbacks=[lambda event: seen.append(event.stage)])
    assert seen == list(range(1, 9))
    assert capsys.readouterr().out
    model = boosting().fit(X, ROWS, callbacks=[lambda event: event.stage == 3])
    assert model.n_estimators_ == 3
    assert not capsys.readouterr().out


def test_threads_end_with_a_fit_that_fails():
    closed = []

    class Watched(VectorTreeLearner):
        def fit(self, *_):
            raise MemoryError

        def close(self, data):
            closed.append(data)
            super().close(data)

    with pytest.raises(MemoryError):
        boosting(learner=Watched()).fit(X, ROWS)
    assert len(closed) == 1


def test_columns_of_a_node_of_a_forest():
    """Random cuts see a part of them, the best ones all."""
    for splitter, columns in (("random", "sqrt"), ("best", 1.0)):
        model = build("forest", splitter=splitter, bootstrap=splitter == "best").fit(X, ROWS)
        assert model.learner_.max_features == columns
        given = clone(model).set_params(max_features=columns).fit(X, ROWS)
        np.testing.assert_array_equal(given.predict(X), model.predict(X))
        assert clone(model).set_params(max_features=0.5).fit(X, ROWS).learner_.max_features == 0.5


def test_labels_are_encoded_once_for_a_score():
    calls = []

    def overlap(A, B):
        calls.append(len(A) * len(B))
        return np.array([[len(a & b) + 1.0 for b in B] for a in A])

    model = boosting(KernelOutput(overlap)).fit(X, SETS)
    model.output_.encode(SETS)
    calls.clear()
    model.output_.encode(SETS)
    model.output_.norms(SETS)
    once = list(calls)
    calls.clear()
    model.score(X, SETS)
    assert calls == once


# Small and odd tables


@models
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("kind", ["rows", "words", "matrix"])
def test_few_rows(name, n, kind):
    output, labels = MORE_LABELS[kind]
    labels = GRAM[:n, :n] if kind == "matrix" else labels[:n]
    model = build(name, output).fit(X[:n], labels)
    assert len(model.predict(X)) == N
    assert np.isfinite(model.predict_embedding(X)).all()
    if n == 1:
        assert model.embedding_loss(X[:1], labels) == pytest.approx(0, abs=1e-12)
    if name == "boosting":
        build(name, output, early_stopping=True).fit(X[:n], labels)


@models
def test_constant_outputs(name):
    Y = np.full((N, 2), 0.1)
    model = build(name).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-14)
    assert all(stage.terms[0].model.depth == 0 for stage in model.model_.stages)
    np.testing.assert_allclose(model.predict_weights(X) @ Y, Y, rtol=1e-9)
    for output, labels in (("label_set", [{1, 2}] * N), ("string", ["abc"] * N)):
        assert build(name, output).fit(X, labels).predict(X) == labels
    np.testing.assert_allclose(build(name, "gaussian").fit(X, Y).predict(X), Y, rtol=1e-9)


@models
def test_columns_and_rows_of_all_kinds(name):
    odd = np.column_stack([X, np.ones(N), np.full(N, np.nan), X[:, :1]])
    odd[3:9, 0] = np.nan
    odd[10], odd[11] = np.nan, 1e300
    twice = np.vstack([odd, odd])
    model = build(name).fit(twice, np.vstack([ROWS, ROWS]))
    assert np.isfinite(model.predict(twice)).all()
    assert model.score(odd, ROWS) > 0.5
    assert np.isfinite(model.predict(np.full((2, 7), np.nan))).all()
    only = build(name).fit(np.full((N, 2), np.nan), ROWS)
    expected = np.repeat(ROWS.mean(axis=0)[None], N, axis=0)
    np.testing.assert_allclose(only.predict(np.ones((N, 2))), expected, rtol=1e-9, atol=1e-12)


@models
def test_equal_inputs_get_the_mean_of_their_outputs(name):
    inputs = np.repeat([[0.0], [1.0]], 5, axis=0)
    model = build(name, max_features=1.0)
    if name == "boosting":
        model.set_params(learning_rate=1.0, n_estimators=1)
    found = model.fit(inputs, np.arange(10.0)).predict([[0.0], [1.0]])
    np.testing.assert_allclose(found, [2, 7])


@models
def test_gram_matrices_keep_rows_of_weight_zero_and_numbers(name):
    weight = np.arange(N) % 3 > 0
    model = build(name, "precomputed", decode="nearest").fit(X, GRAM, sample_weight=weight)
    kept = np.flatnonzero(weight)
    inner = GRAM[np.ix_(kept, kept)]
    other = build(name, "precomputed").fit(X[kept], inner)
    np.testing.assert_allclose(
        model.predict_kernel(X), other.predict_kernel(X), rtol=1e-7, atol=1e-7
    )
    assert model.score(X, GRAM, weight) == pytest.approx(other.score(X[kept], inner))
    np.testing.assert_array_equal(model.predict(X, candidates=kept), kept[other.predict(X)])


@pytest.mark.parametrize("metric", ["embedding", "preimage"])
def test_held_out_rows_of_a_gram_matrix(metric):
    """Points are cut, and not the matrix: the same as for points given."""
    options = {"metric": metric, "early_stopping": True, "decode": "nearest"}
    model = boosting("precomputed", **options).fit(X, GRAM)
    points = model.output_.encode_training(GRAM)
    other = boosting("linear", **options).fit(X, points)
    np.testing.assert_allclose(model.history_.validation, other.history_.validation, rtol=1e-9)
    np.testing.assert_allclose(model.history_.train, other.history_.train, rtol=1e-9)
    options["early_stopping"] = "auto"
    held = {"X_val": X[40:], "y_val": GRAM[40:, :40]}
    if metric == "embedding":
        fitted = boosting("precomputed", **options).fit(X[:40], GRAM[:40, :40], **held)
        assert len(fitted.history_.validation) == len(fitted.history_.train)
    held["y_val"] = GRAM[40:]
    with pytest.raises(InvalidData, match="kernel values with all 40 training outputs"):
        boosting("precomputed", **options).fit(X[:40], GRAM[:40, :40], **held)

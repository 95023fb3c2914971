"""Rankings: groups stay whole, their order has no effect, and every learner takes part."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn import config_context
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.tree import DecisionTreeRegressor
from tests.cases import PLAIN, assert_same_model
from tests.reloaded import reloaded

from hilboost import BoostingRanker, KernelBoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.sampling import RowSampling, StageKey
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import DataWarning, InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Gaussian
from hilboost.losses import (
    CrossEntropyNDCG,
    LambdaMAP,
    LambdaMRR,
    LambdaRank,
    PairwiseLogistic,
    QueryRMSE,
    SquaredError,
    YetiRank,
)
from hilboost.metrics import NDCG, MeanAveragePrecision
from hilboost.model.codecs import NumberCodec
from hilboost.tables.schema import Schema
from hilboost.training.data import TrainingData

MACHINE = KernelBoostingRegressor(kernel=Gaussian(2.0), regularization=0.1)
DRAWN = ("lambdamap", "lambdamrr", "yetirank")
LOSSES = ("lambdarank", "xendcg", "pairwise_logistic", "query_rmse", *DRAWN)
SHORT = {name: value for name, value in PLAIN.items() if name != "multi_output"}
SHORT |= {"n_estimators": 6, "early_stopping": False, "min_samples_leaf": 5}


def draw(n_groups=40, seed=0, n_columns=4):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_groups), rng.integers(1, 12, size=n_groups))
    X = rng.normal(size=(len(query), n_columns))
    offset = rng.normal(size=n_groups)[query]  # says nothing about the order within a group
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=len(X))) + 1, 0, 3)
    X[:, 2] += offset
    return X, y, query


X, Y, QUERY = draw()


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_groups_and_rows_has_no_effect(loss):
    names = np.array([f"query {q:02}" for q in QUERY])
    order = np.random.default_rng(1).permutation(len(X))
    model = BoostingRanker(loss, **SHORT).fit(X, Y, groups=names)
    moved = BoostingRanker(loss, **SHORT).fit(X[order], Y[order], groups=names[order])
    assert_same_model(model, moved)
    np.testing.assert_array_equal(model.history_.train, moved.history_.train)
    assert model.score(X, Y, groups=names) == moved.score(X[order], Y[order], groups=names[order])
    assert model.score(X, Y, groups=QUERY) > (0.7 if loss == "lambdamrr" else 0.8)


@pytest.mark.parametrize("write", [lambda q: 100 + 3 * q, lambda q: f"query {q:02}"])
def test_groups_among_the_features_warn_once(write):
    groups = np.array([write(q) for q in QUERY])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=groups)
    with pytest.warns(DataWarning, match="^column 'qid' contains the groups of the rows") as told:
        BoostingRanker(**SHORT).fit(frame, Y, groups=groups)
    assert len(told) == 1


@pytest.mark.parametrize("loss", ["lambdarank", "query_rmse"])
def test_weights_repeat_groups(loss):
    times = np.random.default_rng(2).integers(0, 4, size=QUERY.max() + 1)
    model = BoostingRanker(loss, **SHORT).fit(X, Y, groups=QUERY, sample_weight=times[QUERY])
    rows = [np.flatnonzero(q == QUERY) for q, n in enumerate(times) for _ in range(n)]
    groups = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    rows = np.concatenate(rows)
    repeated = BoostingRanker(loss, **SHORT).fit(X[rows], Y[rows], groups=groups)
    np.testing.assert_array_equal(model.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(model.history_.train, repeated.history_.train)


@pytest.mark.parametrize("loss", ["lambdamap", "yetirank", "query_rmse"])
def test_groups_of_zero_weight_have_no_effect(loss):
    used = QUERY % 3 > 0
    settings = SHORT | {"early_stopping": True, "subsample": 0.8}
    model = BoostingRanker(loss, **settings).fit(X, Y, groups=QUERY, sample_weight=1.0 * used)
    alone = BoostingRanker(loss, **settings).fit(X[used], Y[used], groups=QUERY[used])
    assert_same_model(model, alone)


@pytest.mark.parametrize("loss", ["lambdarank", "xendcg", "yetirank"])
@pytest.mark.usefixtures("threads_at_once")
def test_threads(loss):
    Z, y, query = draw(300, n_columns=16)
    parameters = SHORT | {"n_estimators": 2, "subsample": 0.5}
    one, two = (
        BoostingRanker(loss, **parameters, n_jobs=n).fit(Z, y, groups=query) for n in (1, 2)
    )
    assert_same_model(one, two)


def test_query_rmse_by_hand():
    loss, target = QueryRMSE(), Target(Y[:, None], None, QUERY)
    raw = np.random.default_rng(4).normal(size=(len(Y), 1))
    residual = Y - raw[:, 0]
    for q in range(3):
        residual[q == QUERY] -= residual[q == QUERY].mean()
    some = QUERY < 3
    np.testing.assert_allclose(
        loss.gradients(target, raw).negative_gradient[some, 0], residual[some]
    )
    np.testing.assert_allclose(loss.value(target, raw)[some], residual[some] ** 2 / 2)


def test_score_is_that_of_sklearn():
    model = BoostingRanker(**SHORT, k=3).fit(X, Y, groups=QUERY)
    scores, found = model.predict(X), []
    for q in np.unique(QUERY):
        rows = q == QUERY
        gains = np.exp2(Y[rows]) - 1
        long = rows.sum() > 1 and gains.any()
        found.append(ndcg_score(gains[None], scores[rows][None], k=3) if long else 1.0)
    assert model.score(X, Y, groups=QUERY) == pytest.approx(np.mean(found))
    weight = np.where(QUERY < 9, 2.0, 1.0)
    expected = np.average(found, weights=np.where(np.arange(len(found)) < 9, 2.0, 1.0))
    assert model.score(X, Y, groups=QUERY, sample_weight=weight) == pytest.approx(expected)


def test_folds_and_held_out_parts_consist_of_whole_groups():
    data = TrainingData(X, Target(Y[:, None], None, QUERY), Schema(4), NumberCodec(1, True))
    part = data.hold_out(0.3, 0)
    held = set(part.held_out.target.groups)
    assert not held & set(part.target.groups)
    assert len(held) == 12
    model = BoostingRanker(**SHORT | {"early_stopping": True, "n_iter_no_change": 9}, cv_folds=3)
    model.set_params(eval_metric=["ndcg@10", "map", "mrr"]).fit(X, Y, groups=QUERY)
    history = model.history_
    np.testing.assert_allclose(history.metrics["ndcg@10"], 1 - history.validation)
    assert all(0 < v[-1] <= 1 for v in history.metrics.values())
    assert model.n_estimators_ == np.argmax(history.metrics["ndcg@10"])


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("part", [None, np.flatnonzero(QUERY % 3 > 0).astype(np.uint32)])
def test_samples_consist_of_whole_groups(bootstrap, part):
    target = Target(Y[:, None], None, QUERY)
    sample = RowSampling(0.5, bootstrap).draw(target, part, StageKey(0, 0), ThreadTeam())
    rows = np.arange(len(Y)) if part is None else part
    assert set(sample.rows) <= set(rows)
    drawn = np.unique(QUERY[sample.rows])
    assert len(sample.rows) == np.isin(QUERY[rows], drawn).sum()
    n_groups = len(np.unique(QUERY[rows]))
    if bootstrap:
        counts = sample.weight[np.searchsorted(QUERY, drawn)]
        assert counts.sum() == round(0.5 * n_groups)
        np.testing.assert_array_equal(
            sample.weight[sample.rows], counts[np.searchsorted(drawn, QUERY[sample.rows])]
        )
    else:
        assert len(drawn) == round(0.5 * n_groups)


@pytest.mark.parametrize(
    ("loss", "learner"),
    [
        ("lambdarank", MACHINE),
        ("xendcg", "linear"),
        ("yetirank", ["tree", "linear"]),
        ("pairwise_logistic", DecisionTreeRegressor(max_depth=3)),
    ],
    ids=["kernel", "linear", "mixed", "own"],
)
def test_learners(loss, learner):
    model = BoostingRanker(loss, learner=learner, n_estimators=3, random_state=0)
    assert model.fit(X, Y, groups=QUERY).score(X, Y, groups=QUERY) > 0.8


def test_validation_groups_files_and_warm_start(tmp_path):
    parameters = SHORT | {"early_stopping": True, "n_estimators": 30, "n_iter_no_change": 4}
    held = draw(15, seed=1)
    model = BoostingRanker(**parameters)
    model.fit(X, Y, groups=QUERY, X_val=held[0], y_val=held[1], groups_val=held[2])
    expected = 1 - model.score(held[0], held[1], groups=held[2])
    assert model.history_.validation[model.n_estimators_] == pytest.approx(expected)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(held[0], held[1], groups=held[2]) == model.score(
        held[0], held[1], groups=held[2]
    )
    whole = BoostingRanker(**SHORT).fit(X, Y, groups=QUERY)
    part = BoostingRanker(**SHORT | {"n_estimators": 2}, warm_start=True).fit(X, Y, groups=QUERY)
    assert_same_model(part.set_params(n_estimators=6).fit(X, Y, groups=QUERY), whole)
    kept = BoostingRanker(**SHORT).fit(X, Y, groups=QUERY, callbacks=[Checkpoint(tmp_path / "fit")])
    assert_same_model(kept, whole)
    with pytest.raises(InvalidData, match="different data"):
        clone(kept).fit(X, Y, groups=QUERY // 2, callbacks=[Checkpoint(tmp_path / "fit")])


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = BoostingRanker(**SHORT).set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(model, {"loss": ["query_rmse", "lambdarank"]}, cv=GroupKFold(3))
        search.fit(X, Y, groups=QUERY)
    assert search.best_score_ > 0.7


def test_scores_without_metadata_routing():
    model = BoostingRanker(**SHORT).fit(X, Y, groups=QUERY)
    with pytest.raises(InvalidData, match="; elsewhere, pass scoring=lambda") as caught:
        permutation_importance(model, X, Y)
    told = re.search(r"scoring=(lambda .*groups\))\.$", str(caught.value))[1]
    scoring = eval(told, {"groups": QUERY})
    found = permutation_importance(model, X, Y, scoring=scoring, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0
    with pytest.raises(InvalidData, match="by name: the third argument is sample_weight"):
        model.score(X, Y, QUERY.astype(str))


def clicked(n=2400):
    """Inputs, groups, relevance, clicks, and positions that depend on a useless column."""
    rng = np.random.default_rng(0)
    query, Z = np.repeat(np.arange(n // 8), 8), rng.normal(size=(n, 3))
    shown = np.lexsort((-Z[:, 1] - 0.5 * rng.normal(size=n), query))
    positions = np.empty(n, dtype=int)
    positions[shown] = np.arange(n) % 8 + 1
    relevance = 1 / (1 + np.exp(1 - 2 * Z[:, 0]))
    clicks = rng.uniform(size=n) < relevance / positions
    return Z, query, np.round(4 * relevance), clicks, positions


@pytest.mark.parametrize("loss", LOSSES)
def test_all_losses_correct_clicks_for_positions(loss):
    Z, query, labels, clicks, positions = clicked()
    model = BoostingRanker(loss, **SHORT | {"n_estimators": 20})
    plain = model.fit(Z, clicks, groups=query).score(Z, labels, groups=query)
    model.fit(Z, clicks, groups=query, positions=positions)
    assert model.score(Z, labels, groups=query) > plain + 0.03


@pytest.mark.slow
def test_effects_of_positions():
    Z, query, _, clicks, positions = clicked(24_000)  # enough that all effects stand out
    rng, settings = np.random.default_rng(1), SHORT | {"n_estimators": 20}
    plain = BoostingRanker(**settings).fit(Z, clicks, groups=query)
    model = BoostingRanker(**settings).fit(Z, clicks, groups=query, positions=positions)
    target = Target(clicks[:, None].astype(float), None, query, positions=positions)
    effects = LambdaRank().adapted(target, model.predict_raw(Z)).effects
    assert spearmanr(effects[1:], np.arange(1, 9)).statistic < -0.9
    order = rng.permutation(24_000)
    moved = BoostingRanker(**settings)
    moved.fit(Z[order], clicks[order], groups=query[order], positions=positions[order])
    assert_same_model(model, moved)
    alike = BoostingRanker(**settings).fit(Z, clicks, groups=query, positions=0 * positions)
    assert_same_model(plain, alike)
    for bad in (positions[1:], -positions, positions + 0.5):
        with pytest.raises(InvalidData, match="positions must"):
            BoostingRanker(**settings).fit(Z, clicks, groups=query, positions=bad)
    with pytest.raises(InvalidData, match="positions is not supported by SquaredError"):
        BoostingRanker(SquaredError, **settings).fit(Z, clicks, groups=query, positions=positions)


def test_a_long_group_takes_little_memory():
    n, rng = 30_000, np.random.default_rng(0)
    target = Target(rng.integers(3, size=(n, 1)).astype(float), None, np.zeros(n, dtype=np.int64))
    raw = np.round(rng.normal(size=(n, 1)), 2)  # ties of many rows
    losses = LambdaRank(), LambdaMAP(), LambdaMRR(), YetiRank()
    for loss in (*losses, CrossEntropyNDCG(), PairwiseLogistic()):
        loss.gradients(target.rows(slice(0, 9)), raw[:9])  # compile
        tracemalloc.start()
        found = loss.gradients(target, raw)
        assert tracemalloc.get_traced_memory()[1] < 200 * n
        tracemalloc.stop()
        assert np.isfinite(found.negative_gradient).all()


@pytest.mark.parametrize("loss", ["lambdarank", "xendcg", "query_rmse"])
def test_groups_that_say_nothing(loss):
    """Groups of one row, and groups with equal labels, have no gradient."""
    model, rows = BoostingRanker(loss, **SHORT), np.arange(len(X))
    with pytest.warns(DataWarning, match="every group has one row, so that there is nothing to"):
        alone = model.fit(X, Y, groups=rows)
    np.testing.assert_array_equal(alone.predict(X), 0)
    with pytest.warns(DataWarning, match="every group has one row"):
        assert alone.score(X, Y, groups=rows) == 1
    with pytest.warns(DataWarning, match="the rows of every group have equal labels"):
        alike = model.fit(X, np.ones(len(X)), groups=QUERY)
    if loss != "query_rmse":
        np.testing.assert_array_equal(alike.predict(X), 0)
    with pytest.warns(DataWarning, match="the rows of every group have equal labels"):
        assert alike.score(X, np.zeros(len(X)), groups=QUERY) == 1
    for first in (X[:1], X[:5]):  # of one query: no warning
        assert alike.score(first, np.zeros(len(first)), groups=np.zeros(len(first))) == 1
    with pytest.warns(DataWarning, match="every group has one row"):
        model.fit(X, Y, groups=QUERY, X_val=X, y_val=Y, groups_val=rows)
    one_pair = np.where(rows < 2, 0, rows)
    model.fit(X, (rows == 0).astype(float), groups=one_pair)


GRADES = pd.Categorical.from_codes(Y.astype(int), list("abcd"), ordered=True)
TEXT = QUERY.astype(str)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": None}, r"requires the group of each row.*set_fit_request\("),
        (
            {"groups": None, "sample_weight": TEXT},
            "pass groups=.* by name: the third argument is s",
        ),
        (
            {"y": GRADES},
            "must contain numbers; pass relevance labels, such as 0 to 4 or y.cat.codes",
        ),
        ({"groups": QUERY[:-1]}, "one label for each"),
        ({"groups": [len(X) - 3, 3]}, r"Pass sizes of groups as np\.repeat\("),
        ({"groups": [len(X) - 3.0, 3.0]}, r"Pass sizes of groups as np\.repeat\("),
        ({"groups": [0, 3, len(X)]}, r"Pass starts of groups as .* np\.diff\(starts"),
        ({"sample_weight": np.arange(len(X)) + 1.0}, "same for all rows of a group"),
        ({"y": Y - 2}, "must not be negative"),
        ({"y": Y + 600}, "too large"),
        ({"y": np.column_stack([Y, Y])}, "one column of relevance"),
        ({"X_val": X, "y_val": Y}, "requires the group of each row"),
        ({"X_val": X, "y_val": Y}, "groups_val is None; pass groups_val="),
        ({"X_val": {"a": X}, "y_val": {"a": Y}}, r"groups_val\['a'\] is None; pass groups_val="),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InvalidData, match=message):
        BoostingRanker(**SHORT).fit(**{"X": X, "y": Y, "groups": QUERY} | change)


def test_groups_that_hold_their_sizes_or_the_labels():
    model, rng = BoostingRanker(**SHORT), np.random.default_rng(0)
    query = np.repeat(np.arange(8), [5, 5, 5, 5, 10, 10, 10, 10])
    A, y = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    for rows in (np.arange(60), rng.permutation(60)):
        with pytest.warns(DataWarning, match="size of the group of each row, as 20 rows have 5"):
            model.fit(A, y, groups=np.bincount(query)[query][rows])
        model.fit(A, y, groups=query[rows])
    with pytest.warns(DataWarning, match=r"seem to be exchanged: y has 8 .* groups=query"):
        model.fit(A, query, groups=y)


@pytest.mark.parametrize("loss", ["lambdamap", "lambdamrr"])
def test_labels_of_relevant_rows(loss):
    ranker = BoostingRanker(loss, **SHORT)
    with pytest.raises(InvalidData, match=f"loss='{loss}' compares .* smallest label in y is 1; "):
        ranker.fit(X, Y + 1, groups=QUERY)
    with pytest.raises(InvalidData, match=f"y contains -1, .* loss='{loss}'; set .* to 0"):
        ranker.fit(X, Y - 1, groups=QUERY)


def test_bad_parameters():
    for k, make in ((0, LambdaRank), (0, NDCG), (0, MeanAveragePrecision), (0, LambdaMAP)):
        with pytest.raises(InvalidParameter, match="at least 1"):
            make(k)
    for make in (LambdaRank, CrossEntropyNDCG, NDCG):
        with pytest.raises(InvalidParameter, match="'exponential' or 'linear'"):
            make(gain="cubic")
    with pytest.raises(InvalidParameter, match="Valid values: lambdamap"):
        BoostingRanker("squared_error").fit(X, Y, groups=QUERY)
    parameters = SHORT | {"early_stopping": True}
    with pytest.raises(InvalidData, match="labels that are not negative"):
        BoostingRanker("query_rmse", **parameters, eval_metric="ndcg").fit(X, Y - 9, groups=QUERY)


@pytest.mark.parametrize("folds", [1, 3])
def test_a_position_of_one_group_alone(folds):
    rng = np.random.default_rng(0)
    sizes = np.r_[12, np.full(30, 5)]
    groups = np.repeat(np.arange(31), sizes)
    places = np.concatenate([np.arange(size) for size in sizes])
    A, clicks = rng.normal(size=(len(groups), 3)), rng.integers(2, size=len(groups))
    settings = {"n_estimators": 4, "random_state": 0, "cv_folds": folds}
    models = [
        BoostingRanker(**settings).fit(A, clicks, groups=groups, positions=shown)
        for shown in (places, places + 1, 100 * places)
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(other.predict(A), models[0].predict(A))


def test_defaults():
    for n_columns, share in ((4, 0.75), (20, 0.3)):
        Z, y, query = draw(60, n_columns=n_columns)
        model = BoostingRanker("query_rmse", n_estimators=5, random_state=0).fit(Z, y, groups=query)
        assert model.fitted_.resolved.cv_folds == 8
        assert model.fitted_.resolved.max_features == share
        assert model.fitted_.resolved.n_iter_no_change == 30
    for parameters in ({"loss": "query_rmse", "time_budget": 60.0}, {"loss": "lambdarank"}):
        model = BoostingRanker(**parameters, n_estimators=5, random_state=0)
        assert model.fit(Z, y, groups=query).fitted_.resolved.cv_folds == 4
    assert model.fitted_.resolved.n_iter_no_change == 100

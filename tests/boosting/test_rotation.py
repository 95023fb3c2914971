"""Stages that learn from shards of the rows in turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge
from tests.cases import assert_same_model
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting import rotation
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.rotation import Rotation, RotationPlan, deal_rows, number_after, shard_ranges
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import FitWarning, InvalidParameter
from hilboost.core.target import Target
from hilboost.engine import tree_data
from hilboost.engine.plan import Plan
from hilboost.learners.tree.learner import TreeRows

SETTINGS = {
    "n_estimators": 7,
    "max_leaf_nodes": 6,
    "early_stopping": False,
    "n_shards": 3,
    "random_state": 0,
}
SEED = 209652396  # the seed of a fit with random_state=0
N = 401


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, 4)).astype(float)
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.2 * rng.standard_normal(n)


def classes(n=N):
    X, y = table(n)
    return X, np.digitize(y, [0.2, 0.8])


def shards_of(n, n_shards, seed=SEED):
    order = deal_rows(n, n_shards, seed)
    return [order[rows] for rows in shard_ranges(n, n_shards)]


@given(n=st.integers(1, 200), n_shards=st.integers(1, 20), seed=st.integers(0, 2**31 - 1))
def test_rows_are_dealt_in_runs(n, n_shards, seed):
    dealt = shards_of(n, n_shards, seed)
    assert_array_equal(np.sort(np.concatenate(dealt)), np.arange(n))
    assert {len(shard) - n // n_shards for shard in dealt} <= {0, 1}
    length = next(n_shards * 2**k for k in range(5) if n_shards * 2**k >= 16)
    for shard in dealt:
        counts = np.bincount(shard // length, minlength=n // length)
        assert (counts[: n // length] == length // n_shards).all()


@given(n=st.integers(1, 200), half=st.sampled_from([1, 2, 3, 4, 5, 8]))
def test_two_shards_are_one_of_half_as_many(n, half):
    twice = shards_of(n, 2 * half)
    for k, shard in enumerate(shards_of(n, half)):
        assert_array_equal(shard, np.concatenate(twice[2 * k : 2 * k + 2]))


def test_rows_of_a_run_are_dealt_in_all_orders():
    shard = shards_of(160_000, 16)[0] % 16
    counts = np.bincount(shard, minlength=16)
    assert abs(counts / 10_000 - 1 / 16).max() < 0.01


def test_the_order_of_a_run_does_not_depend_on_the_number_of_rows():
    for short, long in zip(shards_of(320, 16), shards_of(960, 16), strict=True):
        assert_array_equal(short, long[: len(short)])


def test_stages_learn_from_the_shards_in_turn():
    """The oracle fits one tree to the residuals of the shard, without shrinkage or a penalty."""
    X, y = table()
    plain = SETTINGS | {"l2_regularization": 0.0, "min_samples_leaf": 5}
    model = BoostingRegressor(**plain, learning_rate=0.1).fit(X, y)
    one = BoostingRegressor(**plain | {"n_estimators": 1, "n_shards": 1}, learning_rate=1.0)
    raw = np.full(N, y.mean())
    for t, staged in enumerate(model.staged_predict(X)):
        rows = shards_of(N, 3)[t % 3]
        raw += 0.1 * one.fit(X[rows], (y - raw)[rows]).predict(X)
        assert_allclose(staged, raw, rtol=1e-9, atol=1e-9)


def test_a_trial_run_shares_nothing_that_it_changes():
    X, y = table()
    first, trial = (EnsembleMember(np.zeros(1)) for _ in range(2))
    of_fit = Rotation.of(RotationPlan(2, 2), Target(y[:, None]), [X], [first], TreeRows(), 1)
    for shard, own in zip(of_fit.shards, of_fit.of_trial(trial).shards, strict=True):
        (member,) = own.members
        assert member.stages is trial.stages
        assert member.memory is trial.memory
        assert not np.shares_memory(member.raw, shard.members[0].raw)


def test_training_losses_are_those_of_the_next_shard():
    X, y = table()
    model = BoostingRegressor(**SETTINGS).fit(X, y)
    predicted = [np.full(N, y.mean()), *(p.copy() for p in model.staged_predict(X))]
    for t, loss in enumerate(model.history_.train):
        rows = shards_of(N, 3)[t % 3]
        assert_allclose(loss, 0.5 * ((y - predicted[t])[rows] ** 2).mean())


def test_one_shard_is_the_whole_table():
    X, y = table()
    plain = {name: value for name, value in SETTINGS.items() if name != "n_shards"}
    assert_same_model(
        BoostingRegressor(**plain, n_shards=1).fit(X, y), BoostingRegressor(**plain).fit(X, y)
    )


KINDS = {
    "regression": (BoostingRegressor, {}, table),
    "absolute error": (BoostingRegressor, {"loss": "absolute_error"}, table),
    "huber": (BoostingRegressor, {"loss": "huber"}, table),
    "quantiles": (BoostingRegressor, {"loss": "quantile", "quantile": [0.2, 0.7]}, table),
    "monotonic": (BoostingRegressor, {"monotonic_cst": [1, 0, 0, -1]}, table),
    "line search": (BoostingRegressor, {"line_search": True}, table),
    "drawn": (BoostingRegressor, {"subsample": 0.6, "max_features": 0.5}, table),
    "bootstrap": (BoostingRegressor, {"bootstrap": True}, table),
    "classes": (BoostingClassifier, {}, classes),
    "shared": (BoostingClassifier, {"multi_output": "shared"}, classes),
    "levels": (BoostingClassifier, {"categorical_features": [0, 1]}, classes),
    "held out": (BoostingRegressor, {"early_stopping": True, "cv_folds": 1}, table),
    "folds": (BoostingRegressor, {"early_stopping": True, "cv_folds": 2}, table),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def build(kind, **parameters):
    make, extra, data = KINDS[kind]
    return make(**SETTINGS | extra | parameters), *data()


@kinds
def test_parts_of_a_fit_give_the_model_of_one_fit(kind, tmp_path):
    whole, X, y = build(kind)
    whole.fit(X, y)
    loaded = reloaded(whole)
    assert_array_equal(loaded.predict(X), whole.predict(X))
    assert loaded.fitted_.resolved.n_shards == 3
    halves, X, y = build(kind, n_estimators=4, warm_start=True)
    if kind != "levels":  # no target encoding after other rows
        assert_same_model(halves.fit(X, y).set_params(n_estimators=7).fit(X, y), whole)
    resumed, X, y = build(kind)
    resumed.fit(X, y, callbacks=[Checkpoint(tmp_path / "fit"), lambda event: event.stage == 5])
    assert_same_model(resumed.fit(X, y, callbacks=[Checkpoint(tmp_path / "fit")]), whole)


@kinds
def test_number_of_threads(kind, threads_at_once):
    one, X, y = build(kind, n_jobs=1, n_estimators=4)
    two, *_ = build(kind, n_jobs=2, n_estimators=4)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(N, 300)).round(1)])  # worth sharing
    if "monotonic_cst" in KINDS[kind][1]:
        one, two = (model.set_params(monotonic_cst={0: 1, 3: -1}) for model in (one, two))
    assert_same_model(one.fit(X, y), two.fit(X, y))


def test_sparse_and_dense_tables_give_the_same_model():
    X, y = table()
    X[X < 5] = 0
    dense = BoostingRegressor(**SETTINGS).fit(X, y)
    assert_same_model(BoostingRegressor(**SETTINGS).fit(csr_array(X), y), dense)


@given(factor=st.sampled_from([0.25, 2.0, 8.0]), seed=st.integers(0, 100))
def test_units_of_the_target(factor, seed):
    X, y = table(seed=seed)
    parameters = SETTINGS | {"l2_regularization": 0.0}
    plain = BoostingRegressor(**parameters).fit(X, y)
    scaled = BoostingRegressor(**parameters).fit(X, factor * y)
    assert_array_equal(scaled.predict(X), factor * plain.predict(X))


def test_weights_of_zero_are_no_rows():
    X, y = table()
    weight = np.ones(N)
    weight[::5] = 0
    kept = weight > 0
    one = BoostingRegressor(**SETTINGS).fit(X, y, weight)
    assert_allclose(one.predict(X), BoostingRegressor(**SETTINGS).fit(X[kept], y[kept]).predict(X))


def test_losses_and_callbacks_see_the_shard():
    sizes, stages = set(), []

    class Watching(hilboost.losses.SquaredError):
        def gradients(self, target, raw):
            sizes.add((len(target.y), len(raw)))
            return super().gradients(target, raw)

    X, y = table()
    model = BoostingRegressor(loss=Watching(), **SETTINGS)
    model.fit(X, y, callbacks=[lambda event: stages.append(event.stage)])
    assert sizes == {(401, 401), (133, 133), (134, 134)}  # once all rows, to choose settings
    assert stages == list(range(1, 8))
    assert_same_model(model, BoostingRegressor(**SETTINGS).fit(X, y))


def test_early_stopping_compares_all_held_out_rows():
    X, y = table()
    model = BoostingRegressor(**SETTINGS | {"early_stopping": True, "cv_folds": 2}).fit(X, y)
    calibrated = model.fitted_.calibration
    out_of_fold = np.abs(np.ravel(calibrated.scores))
    best = model.history_.validation.min()
    assert_allclose(0.5 * (out_of_fold**2).mean(), best)


def test_shards_have_enough_rows():
    X, y = table()
    with pytest.raises(InvalidParameter, match=r"n_shards=5 .* fewer than 100 rows; .* at most 4"):
        BoostingRegressor(**SETTINGS | {"n_shards": 5}).fit(X, y)


def test_other_learners_have_no_shards():
    with pytest.raises(InvalidParameter, match=r"n_shards=3 is only supported .* set n_shards=1"):
        BoostingRegressor(learner=Ridge(), **SETTINGS | {"max_leaf_nodes": "auto"}).fit(*table())


# Automatic numbers of shards

LONG = SETTINGS | {"n_estimators": 35, "n_shards": "auto"}


@pytest.fixture
def small_shards(monkeypatch):
    """Shards for small tables, too: eight for 1,000 rows and six leaves."""
    monkeypatch.setattr(rotation, "_FEWEST_FOR_SHARDS", 0)
    monkeypatch.setattr(rotation, "_ROWS_PER_LEAF", 20)


def noise(n=1000, share=1.0):
    X, _ = table(n)
    return X, (1 - share) * (X - 4).sum(axis=1) + share * np.random.default_rng(1).normal(size=n)


def n_shards(model):
    return model.fitted_.resolved.n_shards


@pytest.mark.parametrize(
    ("n", "leaves", "expected"),
    [(499_999, 2, 1), (500_000, 31, 8), (1_000_000, 31, 16), (10**8, 31, 16), (10**6, 255, 1)],
)
def test_number_of_shards_at_the_start(n, leaves, expected):
    assert rotation.most_shards(n, leaves) == expected
    assert expected == 1 or n / expected >= 2000 * leaves


def test_gains_are_those_on_two_shards(small_shards, monkeypatch):
    """The oracle computes the losses of the shards of every second stage from predictions."""
    found = []
    monkeypatch.setattr(rotation, "number_after", lambda n, gains: found.append(list(gains)) or n)
    X, y = noise(share=0.3)
    model = BoostingRegressor(**LONG | {"n_estimators": 16}).fit(X, y)
    predicted = [np.full(len(X), y.mean()), *(p.copy() for p in model.staged_predict(X))]

    def gain(stage, shard):
        rows = shards_of(1000, 8)[shard % 8]
        before, after = (0.5 * ((y - predicted[t])[rows] ** 2).mean() for t in (stage, stage + 1))
        return before - after

    expected = [(gain(t, t), gain(t, t + 1)) for t in range(1, 16, 2)]
    assert_allclose(np.concatenate(found), expected, rtol=1e-9)
    assert [len(gains) for gains in found] == [4, 4]


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([(1.0, 0.8)], 16),
        ([(1.0, 0.6), (1.0, 0.8)], 16),
        ([(1.0, 0.6)], 4),  # noise 0.4 / 16 a shard: 0.6 of 0.7
        ([(1.0, 0.2)], 1),
        ([(1.0, -0.1), (1.0, 1.1)], 2),  # noise 1.0 / 16 a shard: 1.0 of 1.125
        ([(1.0, -0.1)], 1),
        ([(0.0, 0.0)], 16),
    ],
)
def test_number_of_shards_after_a_decision(gains, expected):
    assert number_after(16, [np.array(pair) for pair in gains]) == expected


def test_noise_ends_the_shards(small_shards):
    X, y = noise()
    lengths = []

    class Watching(hilboost.losses.SquaredError):
        def gradients(self, target, raw):
            lengths.append(len(raw))
            return super().gradients(target, raw)

    model = BoostingRegressor(loss=Watching(), **LONG).fit(X, y)
    assert n_shards(model) == 1
    assert lengths == [1000] + [125] * 8 + [1000] * 27  # first to choose settings


def test_a_clear_signal_keeps_the_shards(small_shards):
    X, _ = noise()
    assert n_shards(BoostingRegressor(**LONG).fit(X, (X[:, 0] > 4).astype(float))) == 8


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("first", [4, 10, 19, 31])
def test_parts_of_an_automatic_fit_give_the_model_of_one_fit(small_shards, first, share, tmp_path):
    X, y = noise(share=share)
    whole = BoostingRegressor(**LONG).fit(X, y)
    halves = BoostingRegressor(**LONG | {"n_estimators": first}, warm_start=True).fit(X, y)
    assert_same_model(halves.set_params(n_estimators=35).fit(X, y), whole)
    stop = [Checkpoint(tmp_path / "fit"), lambda event: event.stage == first]
    BoostingRegressor(**LONG).fit(X, y, callbacks=stop)
    resumed = BoostingRegressor(**LONG).fit(X, y, callbacks=[Checkpoint(tmp_path / "fit")])
    assert_same_model(resumed, whole)
    assert n_shards(resumed) == n_shards(whole)


def test_an_interrupted_automatic_fit_resumes(small_shards, tmp_path):
    X, y = noise()
    whole = BoostingRegressor(**LONG).fit(X, y)

    def interrupt(event):
        if event.stage == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pytest.warns(FitWarning, match="interrupted"):
        BoostingRegressor(**LONG).fit(X, y, callbacks=[Checkpoint(tmp_path / "fit"), interrupt])
    resumed = BoostingRegressor(**LONG).fit(X, y, callbacks=[Checkpoint(tmp_path / "fit")])
    assert_same_model(resumed, whole)


@pytest.mark.slow
def test_ensembles_have_no_automatic_shards(small_shards):
    X, y = noise(share=0.3)
    folds = LONG | {"cv_folds": 2, "early_stopping": True}
    model = BoostingRegressor(**folds).fit(X, y)
    assert n_shards(model) == 1
    assert_same_model(model, BoostingRegressor(**folds | {"n_shards": 1}).fit(X, y))


def test_other_learners_have_no_automatic_shards(small_shards):
    X, y = noise(share=0.3)
    settings = LONG | {"max_leaf_nodes": "auto"}
    assert n_shards(BoostingRegressor(learner=Ridge(), **settings).fit(X, y)) == 1


@pytest.mark.slow
def test_early_stopping_with_automatic_shards(small_shards):
    X, y = noise(share=0.5)
    held = {"X_val": X[:300], "y_val": y[:300]}
    settings = LONG | {"early_stopping": True, "n_estimators": 600, "max_features": "auto"}
    model = BoostingRegressor(**settings).fit(X[300:], y[300:], **held)
    losses = model.history_.validation
    assert losses.argmin() == model.n_estimators_ < len(losses) - 1
    predicted = model.predict(X[:300])
    assert_allclose(0.5 * ((y[:300] - predicted) ** 2).mean(), losses.min())


def test_trees_of_several_classes_learn_from_the_shard_of_their_stage(monkeypatch):
    """The oracle arranges what a tree is grown with anew for each tree."""
    X, y = classes()
    model = BoostingClassifier(**SETTINGS).fit(X, y)
    monkeypatch.setattr(tree_data, "plan_for", lambda *sizes: Plan())
    assert_same_model(BoostingClassifier(**SETTINGS).fit(X, y), model)

"""Several validation sets: the first decides, and the losses and metrics of all are noted."""

import numpy as np
import pytest
from tests.reloaded import reloaded

from hilboost import BoostingRanker, BoostingRegressor, BoostingSurvival, StackedKernelRidge
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import InvalidData

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + RNG.normal(size=300)
PARTS = {"spring": slice(100, 200), "autumn": slice(200, 300)}
X_VAL = {name: X[rows] for name, rows in PARTS.items()}
Y_VAL = {name: Y[rows] for name, rows in PARTS.items()}
SETTINGS = {"learner": "tree", "n_estimators": 40, "random_state": 0, "n_iter_no_change": 5}


def fitted(**more):
    return BoostingRegressor(**SETTINGS, **more).fit(X[:100], Y[:100], X_val=X_VAL, y_val=Y_VAL)


def test_the_first_decides():
    model = fitted(eval_metric="mae")
    single = BoostingRegressor(**SETTINGS, eval_metric="mae")
    single.fit(X[:100], Y[:100], X_val=X_VAL["spring"], y_val=Y_VAL["spring"])
    np.testing.assert_array_equal(model.predict(X), single.predict(X))
    np.testing.assert_array_equal(model.history_.validation, single.history_.validation)
    found = model.history_.metrics
    assert list(found) == ["mae", "autumn: loss", "autumn: mae"]
    for k, predicted in enumerate(model.staged_predict(X_VAL["autumn"]), 1):
        error = Y_VAL["autumn"] - predicted
        assert found["autumn: mae"][k] == pytest.approx(np.abs(error).mean())
        assert found["autumn: loss"][k] == pytest.approx(0.5 * (error**2).mean())
    again = reloaded(model).history_.metrics
    np.testing.assert_array_equal(again["autumn: mae"], found["autumn: mae"])


def test_callbacks_and_continued_fits():
    seen = []
    model = BoostingRegressor(**SETTINGS | {"n_estimators": 4}, warm_start=True)
    sets = {"X_val": X_VAL, "y_val": Y_VAL}
    model.fit(X[:100], Y[:100], **sets, callbacks=[lambda event: seen.append(event.metrics)])
    assert [one["autumn: loss"] for one in seen] == model.history_.metrics["autumn: loss"][
        1:
    ].tolist()
    model.set_params(n_estimators=8)
    with pytest.raises(InvalidData, match="other validation sets"):
        model.fit(X[:100], Y[:100], X_val=X_VAL["spring"], y_val=Y_VAL["spring"])
    model.fit(X[:100], Y[:100], **sets)
    assert len(model.history_.metrics["autumn: loss"]) == len(model.history_.train)


def test_continued_kernel_machines_note_the_same_losses():
    def fit(n_stages, model):
        model.set_params(n_estimators=n_stages)
        return model.fit(X[:100], Y[:100], X_val=X_VAL, y_val=Y_VAL)

    settings = SETTINGS | {"learner": "kernel", "learning_rate": 0.5, "n_iter_no_change": 50}
    whole, other = (BoostingRegressor(**settings, warm_start=True) for _ in range(2))
    found = fit(8, fit(3, other)).history_.metrics["autumn: loss"]
    np.testing.assert_array_equal(found, fit(8, whole).history_.metrics["autumn: loss"])


def test_groups_weights_and_survival_times():
    query = np.repeat(np.arange(30), 10)
    labels, groups = np.clip(np.round(Y), 0, 2), {name: query[rows] for name, rows in PARTS.items()}
    ranker = BoostingRanker(n_estimators=5, random_state=0, eval_metric="ndcg@5")
    y_val = {name: labels[rows] for name, rows in PARTS.items()}
    weights = {"autumn": np.ones(100)}
    ranker.fit(
        X[:100], labels[:100], groups=query[:100],
        X_val=X_VAL, y_val=y_val, groups_val=groups, sample_weight_val=weights,
    )  # fmt: skip
    assert list(ranker.history_.metrics) == ["ndcg@5", "autumn: loss", "autumn: ndcg@5"]
    times = np.empty(300, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = RNG.uniform(size=300) < 0.7, 1 + np.exp(Y)
    y_val = {name: times[rows] for name, rows in PARTS.items()}
    entry = {"spring": np.full(100, 0.5)}
    model = BoostingSurvival(n_estimators=5, random_state=0)
    model.fit(X[:100], times[:100], X_val=X_VAL, y_val=y_val, entry_val=entry)
    assert list(model.history_.metrics) == ["autumn: loss"]


@pytest.mark.parametrize(
    ("match", "sets"),
    [
        ("y_val must be a dict with the same names: 'spring', 'autumn'", {"X_val": X_VAL}),
        ("y_val must be a dict", {"X_val": X_VAL, "y_val": {"spring": Y_VAL["spring"]}}),
        ("X_val and y_val must both be dicts", {"X_val": X_VAL, "y_val": Y}),
        ("X_val and y_val must both be dicts", {"X_val": X, "y_val": Y_VAL}),
        ("X_val is an empty dict", {"X_val": {}, "y_val": {}}),
        ("names of .* sets must be different", {"X_val": {1: X, "1": X}, "y_val": {1: Y, "1": Y}}),
        (
            "sample_weight_val contains 'winter', which is not one of",
            {"X_val": X_VAL, "y_val": Y_VAL, "sample_weight_val": {"winter": Y}},
        ),
        (r"y_val\['autumn'\]", {"X_val": X_VAL, "y_val": {**Y_VAL, "autumn": Y}}),
    ],
)
def test_bad_sets(match, sets):
    with pytest.raises(InvalidData, match=match):
        BoostingRegressor(**SETTINGS).fit(X[:100], Y[:100], **sets)


def test_mixtures_know_their_loss_on_all_sets():
    smooth = np.sin(2 * X[:, 0]) + X[:, 1]
    y_val = {name: smooth[rows] for name, rows in PARTS.items()}
    model = BoostingRegressor(n_estimators=20, learning_rate=0.2, random_state=0)
    noise = 0.01 * np.random.default_rng(0).normal(size=(300, 3))
    model.fit(np.tile(X[:100], (3, 1)) + noise, np.tile(smooth[:100], 3),
              X_val=X_VAL, y_val=y_val)  # fmt: skip
    assert model.parts_["kernel"].weight > 0
    found = model.history_.metrics["autumn: loss"]
    assert len(found) == len(model.history_.train)
    error = y_val["autumn"] - model.predict(X_VAL["autumn"])
    assert found[-1] == pytest.approx(0.5 * (error**2).mean())
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))


def test_checkpoints_know_all_sets(tmp_path):
    def fit(X_val, y_val):
        model = BoostingRegressor(**SETTINGS | {"n_estimators": 4})
        file = Checkpoint(tmp_path / "fit")
        return model.fit(X[:100], Y[:100], X_val=X_val, y_val=y_val, callbacks=[file])

    first = fit(X_VAL, Y_VAL)
    np.testing.assert_array_equal(fit(X_VAL, Y_VAL).predict(X), first.predict(X))
    changed = {**Y_VAL, "autumn": -Y_VAL["autumn"]}
    for sets in ((X_VAL, changed), (X_VAL["spring"], Y_VAL["spring"])):
        with pytest.raises(InvalidData, match=r"different data \(.*y_val\['autumn'\]"):
            fit(*sets)


def test_ensembles_of_kernel_machines_have_one_set():
    with pytest.raises(InvalidData, match="StackedKernelRidge.fit supports one validation set"):
        StackedKernelRidge(n_estimators=2).fit(X[:100], Y[:100], X_val=X_VAL, y_val=Y_VAL)

"""``learner="auto"``: trees, and a kernel machine where held-out rows show a gain."""

import re
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor, plot_tree
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import FitWarning, InvalidData
from hilboost.core.target import Target
from hilboost.learners.kernel_machine.tuning import refined_metrics
from hilboost.losses import BinomialLogLoss, SquaredError
from hilboost.training import early_kernel_check, kernel_candidates, mixture, race
from hilboost.training.blending import Blend, HeldOutOutputs

RNG = np.random.default_rng(0)
N = 400
X = RNG.uniform(-2, 2, size=(N, 4))
SMOOTH = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + RNG.normal(size=N) / 20
NOISE = np.random.default_rng(7).normal(size=N)
BOTH = SMOOTH + 3.0 * (np.floor(8 * X[:, 3]) % 2)
CLASSES = np.digitize(SMOOTH, [-1, 1])
SLOPING = np.sin(1.5 * (X[:, 0] + X[:, 1] - X[:, 2]))
FEW = {"n_estimators": 60, "random_state": 0}


@pytest.fixture(scope="module")
def smooth():
    return BoostingRegressor(n_jobs=2, **FEW).fit(X, SMOOTH)


@pytest.fixture(scope="module")
def both():
    """Steps, for which trees are better, and a smooth function."""
    return BoostingRegressor(**FEW).fit(X, BOTH)


@pytest.fixture(scope="module")
def classes():
    return BoostingClassifier(**FEW).fit(X, CLASSES)


@pytest.fixture(scope="module")
def sloping():
    """One direction matters, which is not that of a column."""
    return BoostingRegressor(**FEW).fit(X, SLOPING)


def same_bits(model, table=X, target=NOISE, **parameters):
    """Whether the model is that of trees alone."""
    trees = type(model)(learner="tree", **parameters).fit(table, target)
    found = model.predict_raw(table), trees.predict_raw(table)
    return np.array_equal(*found) and model.n_estimators_ == trees.n_estimators_


@pytest.mark.slow
def test_functions_without_noise_have_hardly_any_error():
    table = np.random.default_rng(0).uniform(-1, 1, size=(3000, 3))
    target = 1e6 + np.sin(3 * table[:, 0]) + table[:, 1] * np.exp(table[:, 2])
    model = BoostingRegressor(**FEW).fit(table[:2000], target[:2000])
    error = model.predict(table[2000:]) - target[2000:]
    assert np.abs(error).mean() < 1e-4 * target.std()


@pytest.mark.slow
def test_a_smooth_target_gets_a_kernel_machine(smooth):
    test = RNG.uniform(-2, 2, size=(1000, 4))
    target = np.sin(2 * test[:, 0]) + test[:, 1] * test[:, 2]
    trees = BoostingRegressor(learner="tree", **FEW).fit(X, SMOOTH)
    both, alone = (np.mean((m.predict(test) - target) ** 2) for m in (smooth, trees))
    assert both < 0.3 * alone
    part = smooth.parts_["kernel"]
    assert part.gain > 0.5
    assert part.weight > 0.5
    assert part.n_centers == 4 * 300
    assert sum(p.share for p in smooth.parts_.values()) == pytest.approx(1)


def test_without_gain_there_are_trees_alone_with_the_same_bits():
    model = BoostingRegressor(**FEW).fit(X, NOISE)
    assert model.parts_["kernel"].weight == 0
    assert model.parts_["tree"].weight == 1
    assert same_bits(model, **FEW)
    hilboost.to_xgboost_json(model)
    with pytest.raises(AttributeError, match="learners_ is defined only for"):
        model.learners_  # noqa: B018


FORBIDDEN = [
    {"early_stopping": False},
    {"loss": "huber"},
    {"monotonic_cst": [1, 0, 0, 0]},
    {"interaction_cst": "no_interactions"},
    {"warm_start": True},
    {"n_shards": 2},
    {"eval_metric": "rmse"},
]


@pytest.mark.parametrize("parameters", FORBIDDEN, ids=lambda p: next(iter(p)))
def test_other_settings_give_trees(parameters):
    parameters = {"n_estimators": 20, "random_state": 0} | parameters
    model = BoostingRegressor(**parameters).fit(X, SMOOTH)  # learner="auto" is the default
    assert model.learner == "auto"
    assert same_bits(model, target=SMOOTH, **parameters)
    with pytest.raises(AttributeError, match="parts_ is defined only if learner='auto' compared"):
        model.parts_  # noqa: B018


@pytest.mark.parametrize("last", [9, pytest.param(100, id="at a look", marks=pytest.mark.slow)])
def test_fits_that_a_callback_ends_get_trees(last):
    settings = {"n_estimators": 300, "random_state": 0}
    stop = [lambda event: event.stage == last]
    model, trees = (
        BoostingRegressor(learner=learner, **settings).fit(X, SMOOTH, callbacks=stop)
        for learner in ("auto", "tree")
    )
    np.testing.assert_array_equal(model.predict(X), trees.predict(X))
    assert model.n_estimators_ <= last


def test_an_interrupt_of_the_kernel_machine_leaves_the_trees(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    model = BoostingRegressor(**FEW)
    monkeypatch.setattr("hilboost.training.kernel_candidates.OwnCenters.model", interrupt)
    with pytest.warns(FitWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        model.fit(X, SMOOTH)
    assert same_bits(model, target=SMOOTH, **FEW)


@pytest.mark.slow
def test_a_gain_on_a_few_rows_of_noise_is_no_gain():
    """Weights that are fitted to the rows that judge them would gain a little."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table, target = rng.normal(size=(240, 6)), rng.normal(size=240)
        model = BoostingRegressor(n_estimators=10, early_stopping=True, cv_folds=1)
        parts = model.set_params(random_state=0).fit(table, target).parts_
        found.append(parts["kernel"].gain)
    assert np.mean(found) < 0.005


def test_small_and_sparse_tables_get_trees():
    model = BoostingRegressor(**FEW).fit(X[:39], SMOOTH[:39])
    assert same_bits(model, X[:39], SMOOTH[:39], **FEW)
    table = sparse.csr_array(X)
    model = BoostingRegressor(**FEW).fit(table, SMOOTH)
    assert same_bits(model, table, SMOOTH, **FEW)


def n_stages_grown(table, target, **parameters):
    """Number of stages of trees that were fitted, and the model."""
    events = []
    model = BoostingRegressor(random_state=0, n_iter_no_change=1000, **parameters)
    model.fit(table, target, callbacks=[lambda event: events.append(event.stage)])
    return len(events), model


@pytest.mark.slow
def test_trees_stop_growing_beside_a_kernel_machine_that_is_far_better():
    found, model = n_stages_grown(X, SMOOTH, n_estimators=500, learning_rate=0.2)
    assert found in (100, 200)
    assert model.parts_["kernel"].gain > 0.5
    assert model.fitted_.history.validation[-1] == min(model.fitted_.history.validation)


@pytest.mark.slow
def test_a_checkpoint_of_a_whole_fit_is_the_same_model(tmp_path):
    one, other = (
        BoostingRegressor(**FEW).fit(X, SMOOTH, callbacks=[Checkpoint(tmp_path / "fit")])
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert len(other.history_.train) == len(one.history_.train)


@pytest.mark.slow
def test_a_fit_that_is_resumed_after_a_look_is_the_same(tmp_path, monkeypatch):
    for module in (mixture, early_kernel_check):
        monkeypatch.setattr(module, "FIRST_LOOK", 8)
    y = BOTH + NOISE
    model = BoostingRegressor(**FEW, n_iter_no_change=6, learning_rate=0.3)
    whole, again = clone(model).fit(X, y), clone(model)
    stop = [Checkpoint(tmp_path / "fit"), lambda event: event.stage == 9]
    model.fit(X, y, callbacks=stop)
    again.fit(X, y, callbacks=[Checkpoint(tmp_path / "fit")])
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_trees_grow_on_if_the_kernel_machine_is_not_far_better(monkeypatch):
    # An additive kernel finds these steps.
    monkeypatch.setattr(refined_metrics, "additive_metric", lambda *_: None)
    steps = 3.0 * (np.floor(8 * X[:, 3]) % 2) + NOISE / 5
    found, model = n_stages_grown(X, steps, n_estimators=120, learning_rate=0.2)
    assert found == 120
    assert model.parts_["kernel"].weight == 0
    settings = {"n_estimators": 120, "learning_rate": 0.2, "n_iter_no_change": 1000}
    assert same_bits(model, target=steps, random_state=0, **settings)


@pytest.mark.slow
def test_long_trial_runs_are_left_out_beside_a_far_better_kernel_machine(monkeypatch):
    class Raced(Exception):
        pass

    def raced(*_):
        raise Raced

    monkeypatch.setattr("hilboost.training.race.best_trial", raced)
    with pytest.raises(Raced):
        BoostingRegressor(**FEW).fit(X, SMOOTH)  # short runs
    monkeypatch.setattr(race, "_LONG_RACE", 0.0)
    model = BoostingRegressor(**FEW).fit(X, SMOOTH)
    assert model.fitted_.resolved.max_features == 0.5
    assert model.parts_["kernel"].weight > 0.5
    with pytest.raises(Raced):
        BoostingRegressor(**FEW).fit(X, NOISE)


@pytest.mark.parametrize(("noise", "least", "n_fits"), [(4, 0.1, 1), (4, 0.0, 2), (1, 0.1, 2)])
def test_small_gains_over_the_first_stages_need_no_whole_machine(noise, least, n_fits):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(2000, 1))
    trees, errors = (part + rng.normal(size=(2000, 1)) / 10 for part in (target, 0.0))

    kernel = target + noise * errors
    one = HeldOutOutputs(SquaredError(), np.zeros(1), Target(target), trees, kernel)
    left = iter([one, one])
    found = mixture.decisive(left, least).blend
    assert 0.01 < found.gain < 0.1 if noise == 4 else found.gain > 0.1
    assert 2 - len(list(left)) == n_fits


@pytest.mark.parametrize(("noise", "n_fits"), [(14, 1), (6, 2)])
def test_a_gain_that_is_surely_too_small_needs_no_whole_machine(noise, n_fits):
    trees, error, other = np.random.default_rng(0).normal(size=(3, 4000, 1))
    target, kernel = trees + error, error + noise * other  # gains 1 / (1 + noise²)
    one = HeldOutOutputs(SquaredError(), np.zeros(1), Target(target), trees, kernel)
    left = iter([one, one])
    blend = mixture.decisive(left, -np.inf).blend
    assert blend.is_promising
    assert blend.material.all() == (n_fits == 2)
    assert 2 - len(list(left)) == n_fits


def test_a_clear_lead_ends_trial_runs(runs):
    model = BoostingRegressor(random_state=0, learner="tree")
    table = np.random.default_rng(1).uniform(-1, 1, size=(1600, 4))
    product = np.sign(table[:, 0] * table[:, 1])  # one column alone is of no use
    total = table.sum(axis=1) + np.sin(np.arange(1600.0))
    longest = []
    for n, target in ((1600, product), (1600, total), (1200, product)):
        runs.clear()
        model.fit(table[:n], target[:n], callbacks=[lambda event: True])
        longest.append(max(reached for *_, reached in runs))
    assert longest[0] == 50 < min(longest[1:])


def test_very_long_trial_runs_are_halved(runs, monkeypatch):
    for longest in (100.0, 0.0):
        monkeypatch.setattr(race, "_VERY_LONG_RACE", longest)
        BoostingRegressor(learner="tree", random_state=0).fit(X, NOISE)
    assert sorted({asked for _, asked, *_ in runs}) == [25, 50, 100, 200]


def test_material_gains_exceed_the_smallest_one_and_their_standard_error():
    gain = Blend(np.array([[1.0], [0.5]]), np.array([0.015]), np.array([0.01]), np.ones(1))
    assert gain.material.all()
    assert not replace(gain, least=0.02).material.any()
    assert not replace(gain, errors=np.array([0.016])).material.any()


def test_weights_of_rows_that_can_be_separated_are_finite():
    """Logits of any size would gain on the rows that they are fitted to."""
    y = np.arange(60) % 2
    kernel, target = np.where(y, 0.5, -0.5)[:, None], Target(y[:, None].astype(float))
    trees = np.full_like(kernel, 0.1)
    found = HeldOutOutputs(BinomialLogLoss(), np.zeros(1), target, trees, kernel).blend
    assert np.abs(found.weights).max() < 30
    assert 0.3 < found.gain < 1


def test_the_kernel_machine_is_the_last_stage(both):
    assert min(part.weight for part in both.parts_.values()) > 0
    stages = list(both.staged_predict(X))
    np.testing.assert_allclose(stages[-1], both.predict(X), rtol=1e-12)
    assert len(stages) == both.n_estimators_ == len(both.history_.train) - 1
    assert both.history_.validation[-1] == min(both.history_.validation)
    assert both.learners_.stages[-1] == ("kernel",) * 4
    assert both.learners_.counts["tree"] == 4 * (both.n_estimators_ - 1)
    raw = sum(both.learner_part(name).predict_raw(X) for name in ("tree", "kernel"))
    np.testing.assert_allclose(raw, both.predict_raw(X), atol=1e-10)
    trees = both.learner_part("tree")
    hilboost.to_xgboost_json(trees)
    np.testing.assert_array_equal(both.apply(X), trees.apply(X))


def test_a_model_says_in_one_line_what_it_is(smooth, both):
    trees = BoostingRegressor(n_estimators=60, cv_folds=3, random_state=0).fit(X, NOISE)
    stages = f"{trees.n_estimators_} stages" if trees.n_estimators_ > 1 else "1 stage"
    assert str(trees).splitlines()[-1] == (
        f"trees × 3 folds, {stages} of 60 (stopped early); a kernel machine was tried, without gain"
    )
    weight = smooth.parts_["kernel"].weight
    assert str(smooth) == (
        f"{smooth!r}\nan additive kernel machine with weight {weight:.2f}, without trees, 4 folds"
    )
    tree, kernel = (f"{both.parts_[name].weight:.2f}" for name in ("tree", "kernel"))
    text = f"trees with weight {tree} and .*kernel machine with weight {kernel}, 4 folds, [0-9]+ st"
    assert re.search(text, str(both))
    alone = BoostingRegressor(n_estimators=5, early_stopping=False, learner="tree")
    assert str(alone) == repr(alone)
    assert str(alone.fit(X, SMOOTH)).splitlines()[-1] == "trees, 5 stages"
    assert "\n" not in repr(alone)


@pytest.mark.parametrize("seed", [3, 7])
def test_the_choice_on_few_rows_is_not_that_of_one_fold(seed):
    """A fold of 83 rows often shows no gain, although all rows together show one."""
    table, target = load_diabetes(return_X_y=True)
    learned = train_test_split(table, target, random_state=0)[::2]
    assert BoostingRegressor(random_state=seed).fit(*learned).parts_["kernel"].weight > 0.5


def test_trees_without_gain_are_left_out(smooth):
    assert smooth.parts_["tree"].weight == 0
    assert smooth.n_estimators_ == 1
    for use, of in ((smooth.apply, X), (hilboost.to_xgboost_json, smooth), (plot_tree, smooth)):
        with pytest.raises(
            ValueError, match="this model chose an additive kernel .*learner='tree'"
        ):
            use(of)
    assert len(smooth.history_.train) == 2
    raw = sum(smooth.learner_part(name).predict_raw(X) for name in ("tree", "kernel"))
    np.testing.assert_allclose(raw, smooth.predict_raw(X), atol=1e-10)


@pytest.fixture
def with_shared_centers(monkeypatch):
    monkeypatch.setattr(mixture, "MOST_ROWS_OF_OWN_METRICS", 100)
    model = BoostingRegressor(**FEW).fit(X, SMOOTH)
    assert model.parts_["kernel"].n_centers == N
    return model


@pytest.mark.parametrize("model", ["smooth", "both", "with_shared_centers"])
def test_the_history_is_the_loss_of_the_members(model, request):
    Y, smooth = BOTH if model == "both" else SMOOTH, request.getfixturevalue(model)
    folds = smooth.fitted_.calibration.folds
    members = smooth.fitted_.raw_of_members(X)
    held = np.choose(folds, [raw[:, 0] for raw in members])
    loss = np.mean((held - Y) ** 2) / 2
    # Kernel weights of both signs are much larger than their sums, which are rounded.
    assert smooth.history_.validation[-1] == pytest.approx(loss, rel=1e-7)
    losses = [
        np.mean((raw[folds != k, 0] - Y[folds != k]) ** 2) / 2 for k, raw in enumerate(members)
    ]
    assert smooth.history_.train[-1] == pytest.approx(np.mean(losses), rel=1e-7)


def test_a_mixture_is_not_continued(smooth):
    model = copy(smooth).set_params(warm_start=True, n_estimators=80)
    with pytest.raises(InvalidData, match="warm_start: the model contains a kernel machine"):
        model.fit(X, SMOOTH)


@pytest.fixture(scope="module")
def sixteen_cores():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HILBOOST_CORES", "16")
        yield


@st.composite
def drawn_tables(draw):
    """A table with some missing cells, and a target of one of several kinds."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n, d = draw(st.integers(200, 500)), draw(st.integers(2, 6))
    table = rng.normal(size=(n, d)).round(draw(st.integers(1, 3)))
    table[rng.random(size=(n, d)) < draw(st.sampled_from([0.0, 0.05]))] = np.nan
    filled = np.nan_to_num(table)
    target = np.sin(filled[:, 0]) + filled[:, 1] * filled[:, -1] + rng.normal(size=n) / 5
    kind = draw(st.sampled_from(["number", "numbers", "two classes", "classes"]))
    if kind == "numbers":
        return table, np.column_stack([target, np.cos(filled[:, 0])])
    cuts = {"number": None, "two classes": [0.0], "classes": [-0.5, 0.5]}[kind]
    return table, target if cuts is None else np.digitize(target, cuts)


@pytest.mark.slow
@given(drawn_tables(), st.sampled_from([None, 0.2]), st.integers(0, 9))
def test_drawn_tables_get_the_same_bits_on_any_number_of_threads(
    sixteen_cores, drawn, held_out, seed
):
    table, target = drawn
    make = BoostingRegressor if target.dtype == float else BoostingClassifier
    folds = {} if held_out is None else {"cv_folds": 1, "validation_fraction": held_out}
    models = [
        make(n_estimators=60, random_state=seed, n_jobs=n_jobs, **folds).fit(table, target)
        for n_jobs in (1, (2, 3, 5, 16)[seed % 4])
    ]
    np.testing.assert_array_equal(*(model.predict_raw(table) for model in models))
    assert len({model.parts_["kernel"].weight for model in models}) == 1


def test_classes_and_validation_rows_of_the_caller(classes):
    assert classes.parts_["kernel"].gain > 0.1
    assert classes.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert classes.predict_set(X[:20], coverage=0.9).shape == (20, 3)
    model = BoostingRegressor(**FEW)
    model.fit(X[:300], SMOOTH[:300], X_val=X[300:], y_val=SMOOTH[300:])
    assert model.parts_["kernel"].gain > 0.3
    assert model.parts_["kernel"].n_centers == 300


def test_importances_are_those_of_both_parts(smooth):
    found = smooth.feature_importances_
    assert found.sum() == pytest.approx(1)
    assert found[3] < 0.02
    assert min(found[:3]) > 0.1


@pytest.mark.slow
def test_directions_other_than_those_of_columns(sloping):
    features = sloping.model_.stages[-1].terms[0].model.inputs
    axes, sizes, _ = np.linalg.svd(features.rotation / features.scale[:, None])
    assert sizes[0] > 3 * sizes[1:].max(initial=0.0)
    np.testing.assert_allclose(np.abs(axes[:3, 0]), 3**-0.5, atol=0.02)
    importances = sloping.feature_importances_
    np.testing.assert_allclose(importances[:3], 1 / 3, atol=0.05)
    test = np.random.default_rng(1).uniform(-2, 2, size=(500, 4))
    error = sloping.predict(test) - np.sin(1.5 * (test[:, 0] + test[:, 1] - test[:, 2]))
    assert np.mean(error**2) < 0.01


@pytest.mark.parametrize("damage", [np.ones((2, 2)), np.full((4, 1), np.nan), "axes"])
def test_damaged_rotations_are_found(sloping, damage):
    features = sloping.model_.stages[-1].terms[0].model.inputs
    assert features.is_valid(4)
    assert not replace(features, rotation=damage).is_valid(4)


@pytest.mark.parametrize("name", ["both", "classes", "sloping"])
def test_files(name, request):
    model = request.getfixturevalue(name)
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict_raw(X), model.predict_raw(X))
    for part, stored in zip(model.parts_.values(), loaded.parts_.values(), strict=True):
        assert (part.weight, part.gain, part.share) == (stored.weight, stored.gain, stored.share)
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(
        loaded.learner_part("kernel").predict_raw(X[:9]),
        model.learner_part("kernel").predict_raw(X[:9]),
    )


@pytest.fixture(params=[1.5, 0])
def rows_per_center(request, monkeypatch):
    for name in ("ROWS_PER_CENTER", "_ROWS_PER_CENTER_IF_CERTAIN"):
        monkeypatch.setattr(kernel_candidates, name, request.param)
    return request.param


def test_a_single_kernel_machine_learns_from_the_rows_that_judged_it(rows_per_center, monkeypatch):
    found, final = [], kernel_candidates.SharedCenters.final

    def spied(self, models):
        ridge = self._better_ridge[0] if self._has_few_rows else self._equations[2]
        found.append((*final(self, models), self._table, self._members.split_off, ridge))
        return found[0][:1]

    monkeypatch.setattr(kernel_candidates.SharedCenters, "final", spied)
    weight = 1.0 + np.arange(N) % 2
    model = BoostingRegressor(cv_folds=1, **FEW).fit(X, SMOOTH, weight)
    one, table, split_off, ridge = found[0]
    assert (len(table), len(split_off)) == (360, 40)
    every = table.joined(split_off)
    centers, root = one.basis.astype(np.float64), np.sqrt(every.weight)[:, None]
    K = one.kernel.block(one.inputs(every.X), centers)
    values = one.kernel.block(centers, centers) + 1e-12 * np.eye(len(centers))
    penalty = np.sqrt(ridge) * np.linalg.cholesky(values).T
    right = np.vstack([root * every.Y, np.zeros((len(centers), 1))])
    exact = np.linalg.lstsq(np.vstack([root * K, penalty]), right, rcond=None)[0]
    np.testing.assert_allclose(K @ one.weights, K @ exact, atol=1e-5)
    assert model.parts_["kernel"].n_centers == (N if rows_per_center else 360)


@pytest.mark.slow
def test_larger_tables_share_their_centers():
    table = np.random.default_rng(1).uniform(-2, 2, size=(2100, 3))
    target = np.sin(2 * table[:, 0]) + table[:, 1] * table[:, 2]
    model = BoostingRegressor(**FEW).fit(table, target)
    assert model.parts_["kernel"].n_centers == 2100
    assert model.model_.n_basis == 2100
    assert model.score(table, target) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("roughness", "n_centers"), [(0, 1000), (3, 2800)])
def test_a_plain_function_needs_few_centers(roughness, n_centers):
    rng = np.random.default_rng(1)
    table = rng.uniform(-2, 2, size=(2800, 4))
    target = table @ [1.0, 2.0, 1.0, 0.5] + rng.normal(size=2800) / 5
    target += roughness * np.sin(2 * table[:, 0] + table[:, 1] * table[:, 2])
    model = BoostingRegressor(**FEW | {"n_estimators": 10}).fit(table, target)
    assert model.parts_["kernel"].n_centers == n_centers


@pytest.mark.slow
def test_data_frames_with_missing_values_and_categories():
    table = pd.DataFrame(X.copy(), columns=list("abcd"))
    table["town"] = np.array(["Ghent", "Namur", "Liège"])[RNG.integers(3, size=N)]
    table["street"] = [f"s{k}" for k in RNG.integers(50, size=N)]
    table["without any level"] = pd.Series(dtype="category")
    table.loc[::7, "d"] = np.nan
    target = SMOOTH + (table["town"] == "Ghent")
    model = BoostingRegressor(**FEW).fit(table, target)
    assert model.parts_["kernel"].weight > 0
    assert model.score(table, target) > 0.9
    single = [model.predict(table.iloc[[k]])[0] for k in range(5)]
    np.testing.assert_allclose(single, model.predict(table)[:5], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_several_targets():
    target = np.column_stack([SMOOTH, X[:, 3] ** 2])
    model = BoostingRegressor(**FEW).fit(X, target)
    assert model.parts_["kernel"].weight > 0
    assert model.score(X, target) > 0.9
    gaps = np.where(np.arange(N)[:, None] % 9, target, [0, np.nan])
    assert BoostingRegressor(**FEW).fit(X, gaps).fitted_.parts is None


@pytest.mark.slow
def test_onnx_gives_the_same_predictions():
    codes = RNG.integers(3, size=N).astype(float)
    table = np.column_stack([X, codes])
    table[::7, 3] = np.nan
    model = BoostingRegressor(categorical_features=[4], **FEW)
    model.fit(table, SLOPING + (codes == 1))
    assert model.parts_["kernel"].weight > 0
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    session = runtime.InferenceSession(hilboost.to_onnx(model).SerializeToString())
    found = np.ravel(session.run(None, {session.get_inputs()[0].name: table})[0])
    np.testing.assert_allclose(found, model.predict(table), atol=2e-4)


def _table(n, d, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, d))


def _many_columns():
    table = _table(700, 100)
    return table, np.sin(2 * table[:, 0]) + table[:, 1] * table[:, 2]


def _heavy_tails():
    table = _table(800, 5)
    noise = np.random.default_rng(1).lognormal(sigma=1.5, size=800)
    return table, np.exp(table[:, 0] + table[:, 1] / 2) * noise


def _steps():
    table = _table(800, 5)
    return table, (table[:, 0] > 0.3) + 2.0 * (table[:, 1] > -0.7) * (table[:, 2] > 0)


def _codes():
    rng = np.random.default_rng(1)
    table = rng.integers(12, size=(800, 6)).astype(float)
    levels = rng.normal(size=(6, 12))
    effects = levels[np.arange(3), table[:, :3].astype(int)].sum(axis=1)
    return table, effects + rng.normal(size=800) / 3


def _separable():
    table = _table(800, 6)
    return table, np.digitize(table[:, 0] + 0.3 * (table[:, 1] > 0), [-1.2, -0.4, 0.5, 1.3])


HARD = [_many_columns, _heavy_tails, _steps, _codes, _separable]


@pytest.mark.slow
@pytest.mark.parametrize("make", HARD, ids=lambda make: make.__name__[1:])
def test_the_kernel_machine_does_no_harm(make):
    table, target = make()
    half = len(table) // 2
    errors = []
    for learner in ("auto", "tree"):
        if make is _separable:
            model = BoostingClassifier(learner=learner, n_estimators=20, random_state=0)
            model.fit(table[:half], target[:half])
            errors.append(log_loss(target[half:], model.predict_proba(table[half:])))
        else:
            categories = range(6) if make is _codes else None
            model = BoostingRegressor(learner=learner, n_estimators=50, random_state=0)
            model.set_params(categorical_features=categories).fit(table[:half], target[:half])
            errors.append(np.sqrt(np.mean((model.predict(table[half:]) - target[half:]) ** 2)))
    assert errors[0] <= 1.015 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("adds_little", [False, True])
def test_a_kernel_machine_that_adds_little_has_few_centers(adds_little, monkeypatch):
    monkeypatch.setattr(kernel_candidates, "_CENTERS_OF_LITTLE_GAIN", 700)
    rng = np.random.default_rng(1)
    table = rng.uniform(-2, 2, size=(3100, 3))
    target = np.sin(2 * table[:, 0]) + table[:, 1] * table[:, 2]
    if adds_little:
        target += 3.0 * (table > [0, 0.5, -0.5]).all(axis=1) + rng.normal(size=3100)
    part = BoostingRegressor(**FEW).fit(table, target).parts_["kernel"]
    assert 0.01 < part.gain < 0.1 if adds_little else part.gain > 0.1
    assert part.n_centers == 700 if adds_little else part.n_centers > 700
